"""What a call of a study asks for; nothing means the whole study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from bench.studies.provenance import OUT
from bench.studies.study_settings import FIRST_SEED
from doseforest.base.machine import thread_count


@dataclass(frozen=True, slots=True)
class Request:
    """Parts of a study, and how it runs."""

    designs: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    sections: tuple[str, ...] | None = None
    simulations: int | None = None
    n: int | None = None
    seed: int | None = None
    processes: int = thread_count(-1)
    fresh: bool = False
    verbose: bool = False
    out: Path = OUT  # folder of the report and of single fits
    publish: bool = False  # whether a whole report goes to the clone's published ones

    @property
    def whole(self) -> bool:
        """Whether nothing is left out, so that results may replace the published ones."""
        parts = self.designs, self.methods, self.sections, self.simulations, self.n, self.seed
        return all(part is None for part in parts)

    @property
    def only_parts(self) -> bool:
        """Whether nothing but designs or methods is left out.

        >>> Request(designs=("steps",)).only_parts, Request(methods=("zero",)).only_parts
        (True, True)
        >>> Request(methods=("zero",), seed=1).only_parts, Request().only_parts
        (False, False)
        """
        return not self.whole and self.all_parts.whole

    @property
    def all_parts(self) -> Request:
        """The same of all designs and methods."""
        return replace(self, designs=None, methods=None)

    def seeds(self, simulations: int) -> range:
        """Seeds of the simulations, of which the study has so many by default.

        >>> Request(seed=5, simulations=2).seeds(20)
        range(5, 7)
        """
        first = FIRST_SEED if self.seed is None else self.seed
        return range(first, first + (self.simulations or simulations))
