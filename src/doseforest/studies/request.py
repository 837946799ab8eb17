"""What a call of a study asks for; nothing means the whole study."""

from __future__ import annotations

from dataclasses import dataclass, replace

from doseforest.machine import thread_count
from doseforest.studies.settings import FIRST_SEED


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

    @property
    def whole(self) -> bool:
        """Whether nothing is left out, so that results may replace the published ones."""
        parts = self.designs, self.methods, self.sections, self.simulations, self.n, self.seed
        return all(part is None for part in parts)

    @property
    def only_designs(self) -> bool:
        """Whether nothing but designs is left out.

        >>> Request(designs=("steps",)).only_designs, Request().only_designs
        (True, False)
        """
        return self.designs is not None and replace(self, designs=None).whole

    def seeds(self, simulations: int) -> range:
        """Seeds of the simulations, of which the study has so many by default.

        >>> Request(seed=5, simulations=2).seeds(20)
        range(5, 7)
        """
        first = FIRST_SEED if self.seed is None else self.seed
        return range(first, first + (self.simulations or simulations))
