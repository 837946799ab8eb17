"""What a call asks for; nothing means the whole study."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import Any

from accuracy_study.estimators import ESTIMATORS
from accuracy_study.settings import FIRST_SEED
from doseforest.simulation import DESIGNS, JOINT_DESIGNS


@dataclass(frozen=True, slots=True)
class Options:
    """Parts of a study, and how it runs."""

    study: str
    designs: list[str] | None
    rows: list[str] | None
    simulations: int | None
    seed: int | None
    processes: int
    fresh: bool

    @property
    def whole(self) -> bool:
        """Whether nothing is left out, so that results may replace the published ones."""
        return (self.designs, self.rows, self.simulations, self.seed) == (None,) * 4

    def seeds(self, simulations: int) -> range:
        """Seeds of the simulations, of which the study has so many by default."""
        first = FIRST_SEED if self.seed is None else self.seed
        return range(first, first + (self.simulations or simulations))


def parse_options(studies: dict[str, Any], text: str) -> Options:
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("study", nargs="?", choices=studies, default=next(iter(studies)))
    parser.add_argument("--designs", nargs="+", choices=[*DESIGNS, *JOINT_DESIGNS])
    parser.add_argument("--rows", nargs="+", choices=ESTIMATORS, help="estimators to run")
    parser.add_argument("--simulations", type=int, help="of each design")
    parser.add_argument("--seed", type=int, help=f"the first one (default {FIRST_SEED})")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--fresh", action="store_true", help="do again what is done already")
    return Options(**vars(parser.parse_args()))
