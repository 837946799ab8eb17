"""One record of how a forest is grown, from the border of an estimator down to the grower."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import numpy as np

from doseforest.data.sampling import Honesty, SamplingPlan
from doseforest.engine.leaves.leaf_curves import LeafCurve
from doseforest.engine.splits.distances import DistanceFunction
from doseforest.engine.splits.guards import TreatmentGuard
from doseforest.engine.splits.positivity import Positivity
from doseforest.engine.splits.split_statistics import SplitRecipe


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthSettings:
    """How a forest is grown, checked; names and defaults are those of `CurveForest`."""

    n_trees: int = 500
    distance: str | DistanceFunction = "l2"
    statistic: SplitRecipe | None = None  # None: mean curves
    guard: TreatmentGuard | None = None
    min_node_size: int = 20
    max_depth: int | None = None
    min_info_gain: float = 0.0
    min_child_fraction: float = 0.0
    mtry: int | float | Literal["sqrt"] | None = None
    mtry_scope: Literal["node", "tree"] = "node"
    sampling: Literal["subsample", "bootstrap"] = "subsample"
    sample_fraction: float = 0.5
    bag_size: int = 1
    honesty: Honesty = "tree"
    honesty_fraction: float = 0.5
    zeta: float = 0.0
    positivity: Positivity = "conditional"
    leaf_curve: LeafCurve | None = None  # None: averaged leaf channels are the curve
    n_threads: int = 1
    memory_limit: int | None = None  # bytes; None: what the machine has left
    progress: bool | None = False
    seed: int = 0  # of the draws, 64 bits

    @property
    def plan(self) -> SamplingPlan:
        """How trees draw rows."""
        return SamplingPlan(
            seed=self.seed,
            fraction=self.sample_fraction,
            bootstrap=self.sampling == "bootstrap",
            honesty=self.honesty,
            growth_fraction=self.honesty_fraction,
            bag_size=self.bag_size,
        )

    def features_of_split(self, n_features: int) -> int:
        """Number of features that a split may use.

        Examples
        --------
        >>> GrowthSettings(mtry="sqrt").features_of_split(10)
        3
        """
        if self.mtry is None:
            return n_features
        if isinstance(self.mtry, str):
            return max(1, int(np.sqrt(n_features)))
        if isinstance(self.mtry, Integral):
            if self.mtry > n_features:
                raise ValueError(
                    f"The 'mtry' parameter of CurveForest must be at most the number of features "
                    f"({n_features}). Got {self.mtry} instead."
                )
            return int(self.mtry)
        return max(1, round(float(self.mtry) * n_features))
