"""Runs the parts that are not on disk yet: regimes, one option or two, and seeds."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.golden import require_stored_answers
from bench.studies.market.market_part import (
    MarketEffort,
    booster_name,
    digest_of_market,
    measure,
    part_name,
)
from bench.studies.market.market_tables import report
from bench.studies.report import Report
from bench.studies.request import Request
from bench.studies.result_keys import result_key, source
from bench.studies.study_methods import BOOSTERS
from bench.studies.study_workers import Clock
from bench.studies.tasks import Record
from doseforest.base.atomic_files import write_text
from doseforest.base.progress import ProgressBar
from doseforest.pricing.market import REGIMES

SIMULATIONS = 20
PARTS = {part_name(regime, options): (regime, options) for options in (1, 2) for regime in REGIMES}
FILES = ("bench/studies/market/market_part.py", "baselines/xgboost_trees.py")


@dataclass(frozen=True, slots=True)
class MarketplaceStudy:
    """Parts by seeds, each kept on disk once it is measured."""

    about: str
    uses: tuple[str, ...]  # parts of the algorithm whose golden answers its results rest on
    effort: MarketEffort = field(default_factory=MarketEffort)
    takes: tuple[str, ...] = ("designs", "simulations", "n")  # options of the command

    @property
    def designs(self) -> tuple[str, ...]:
        """Names of the parts."""
        return tuple(PARTS)

    def run(self, request: Request, clock: Clock) -> tuple[Report, bool]:
        """Measure what is missing, all parts of a seed before the next seed."""
        effort = replace(self.effort, n_jobs=request.processes)
        if request.n is not None:
            effort = replace(effort, n_train=request.n)
        seeds, parts = request.seeds(SIMULATIONS), request.designs or self.designs
        require_stored_answers(self.uses, request.out, clock.tell)
        asked = [(name, seed) for seed in seeds for name in parts]
        records: list[Record] = []
        failed = 0
        with ProgressBar(len(asked), "experiments", "part") as bar:
            for name, seed in asked:
                found = self._part(name, seed, effort, request, clock)
                failed += not found
                records += found
                bar.advance(1)
        return report(records, effort), not failed

    def _part(
        self, name: str, seed: int, effort: MarketEffort, request: Request, clock: Clock
    ) -> list[Record]:
        path = self.part_file(name, seed, effort, request.out)
        if path.exists() and not request.fresh:
            clock.mention(f"{name}, seed {seed} is done already")
            stored: list[Record] = json.loads(path.read_text(encoding="utf-8"))
            return stored
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of poor support; orders say what matters
                found = measure(*PARTS[name], seed, effort)
        except Exception as error:  # the other parts are worth having
            clock.tell(f"{name}, seed {seed} failed: {error!r}")
            return []
        clock.mention(f"{name}, seed {seed}: {time.perf_counter() - start:.0f} s")
        write_text(path, json.dumps(found) + "\n")
        return found

    def part_file(self, name: str, seed: int, effort: MarketEffort, out: Path) -> Path:
        """Where the results of a part are kept, named by all that they depend on."""
        state = result_key(
            self.uses,
            packages=(*BOOSTERS, "xgboost-cpu"),
            files=map(source, FILES),
            others=(effort.state, booster_name(), digest_of_market(*PARTS[name])),
        )
        return out / "marketplace" / f"{name}-{seed}-{state}.json"
