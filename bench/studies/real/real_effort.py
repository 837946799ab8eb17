"""How much work a section does: rows, trees, seeds; by default that of a default forest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bench.real_data import DoseRows
from bench.studies.result_keys import digest_of
from doseforest import GeneralizedCausalForest

N_TREES = GeneralizedCausalForest().n_trees


@dataclass(frozen=True, slots=True)
class RealEffort:
    """Rows of each data set, and settings of forests."""

    n_rows: int | None = None  # at most, drawn at random
    n_trees: int = N_TREES
    outcome_model: Any = "stack"
    seeds: tuple[int, ...] = (0, 1, 2)  # the first is that of all fits that are not repeated
    n_jobs: int | None = None

    @property
    def seed(self) -> int:
        """The first of the seeds."""
        return self.seeds[0]

    @property
    def state(self) -> str:
        """Digest of what results depend on.

        >>> RealEffort(n_jobs=1).state == RealEffort(n_jobs=2).state != RealEffort(n_rows=500).state
        True
        """
        return digest_of(self.n_rows, self.n_trees, self.outcome_model, self.seeds)

    def forest(self, rows: DoseRows, **options: Any) -> GeneralizedCausalForest:
        """A forest fitted to the rows, with what is known of their assignment."""
        settings = {
            "n_trees": self.n_trees,
            "outcome_model": self.outcome_model,
            "density": rows.density,
            "random_state": self.seed,
            "n_jobs": self.n_jobs,
            "progress": False,
        }
        return GeneralizedCausalForest(**{**settings, **options}).fit(
            rows.X, rows.y, treatment=rows.treatment, groups=rows.groups
        )

    def settings_text(self) -> str:
        """What differs from the defaults, for a report."""
        changed: Iterable[str] = (
            text
            for text, differs in (
                (f"at most {self.n_rows} rows", self.n_rows is not None),
                (f"{self.n_trees} trees", self.n_trees != N_TREES),
                (f"outcome model {self.outcome_model}", self.outcome_model != "stack"),
            )
            if differs
        )
        return ", ".join(changed) or "default forests, all rows, unless a section says otherwise"
