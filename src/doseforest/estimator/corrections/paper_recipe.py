"""The paper's Algorithm 1 as a correction: its defaults, rules and refusals."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval

from doseforest.data.registered_names import NameIn
from doseforest.engine.splits.distances import DistanceFunction
from doseforest.estimator.chosen_bandwidths import choose_bandwidth
from doseforest.estimator.corrections.correction_recipe import (
    CorrectionRecipe,
    check_fields,
    take_size,
)
from doseforest.estimator.corrections.fitted_correction import FittedCorrection
from doseforest.estimator.corrections.kernel_recipes import BANDWIDTHS, DISTANCES
from doseforest.estimator.corrections.paper_algorithm import CRITERIA, PaperSettings, fit_paper
from doseforest.estimator.fit_plan import FitPlan, dose_kernel
from doseforest.estimator.honest_split import n_growing
from doseforest.estimator.training_rows import TrainingRows
from doseforest.estimator.weighting import density_of_growing_rows

if TYPE_CHECKING:
    from doseforest.nuisance.outcome.cross_fitted_outcome import CrossFittedOutcome

NOT_NEGATIVE = [Interval(Real, 0, None, closed="left")]


@dataclass(frozen=True, slots=True)
class Paper(CorrectionRecipe):
    """Algorithm 1 of the GCF paper in every step; `GeneralizedCausalForest.paper` sets the rest.

    Parameters
    ----------
    leaf_size : int, default=5
        Smallest number of growth rows in a leaf (min.node.size).
    criterion : {"theta", "pdrf"}, default="theta"
        What nodes are compared by: effects by doubly robust curves, or derivatives of kernel
        regressions.
    distance : str or callable, default="l2"
        Distance between curves (D).
    zeta : float, default=0.0
        Weight of the variance of the treatment in a split's gain; it has no unit. At 1 the whole
        variance counts as much as splits at random gain, which keeps the treatment more varied
        where splits gain little. Raise it where some covariates nearly fix the dose; at 100 it
        decides alone.
    min_info_gain : float, default=0.0
        What a split must gain (min.info.gain). Raise it for smaller trees.
    bandwidth : float, "rule_of_thumb" or "leave_one_out", optional
        Of curves (h); by default the rule of thumb.

    Examples
    --------
    >>> Paper(criterion="pdrf", distance="l1").zeta
    0.0
    """

    leaf_size: int = 5
    criterion: Literal["theta", "pdrf"] = "theta"
    distance: str | DistanceFunction = "l2"
    zeta: float = 0.0
    min_info_gain: float = 0.0
    bandwidth: float | str | None = None

    name: ClassVar[str] = "paper"
    divides_by_density: ClassVar[bool] = True
    judged_out_of_bag: ClassVar[bool] = False
    splits_sample: ClassVar[bool] = True

    def __post_init__(self) -> None:
        take_size(self)
        rules: dict[str, list[Any]] = {
            "leaf_size": [Real],
            "criterion": [NameIn(CRITERIA)],
            "distance": DISTANCES,
            "zeta": NOT_NEGATIVE,
            "min_info_gain": NOT_NEGATIVE,
            "bandwidth": BANDWIDTHS,
        }
        check_fields(self, rules)

    def check(self, rows: TrainingRows, forest: Any) -> None:
        """Refuse doses of several components, another honesty, and too few rows for the split."""
        if rows.dose.joint:
            raise ValueError(
                "The 'treatment' parameter must have one component for correction='paper'. Got "
                f"{rows.dose.n_components} instead: the other corrections take several."
            )
        if forest.honesty != "forest":
            raise ValueError(
                "The 'honesty' parameter must be 'forest' for correction='paper', which splits the "
                "sample once; GeneralizedCausalForest.paper() sets it. "
                f"Got {forest.honesty!r} instead."
            )
        n_groups = len(np.unique(rows.ids))
        growing = n_growing(n_groups, forest.honesty_fraction)
        if not forest.n_folds <= growing < n_groups:
            raise ValueError(
                f"The 'honesty_fraction' parameter must leave at least {forest.n_folds} of the "
                f"{n_groups} rows or groups to grow, one for each of 'n_folds', and one to fill "
                f"leaves for correction='paper'. Got {forest.honesty_fraction!r}, {growing} that "
                "grow, instead."
            )

    def n_forests(self, plan: FitPlan) -> int:
        """One."""
        return 1

    def fit(
        self, rows: TrainingRows, outcome: CrossFittedOutcome, plan: FitPlan
    ) -> FittedCorrection:
        """Grow trees on one part of the sample and fill them with the other, see `fit_paper`."""
        assert rows.grows is not None  # drawn by the plan
        kernel, smooth = dose_kernel(rows, plan)
        growing = rows.where(rows.grows)
        asked = self.bandwidth if smooth and self.bandwidth is not None else "rule_of_thumb"
        with plan.stopwatch("nuisances"):
            density = density_of_growing_rows(rows, plan)
        settings = PaperSettings(
            baseline=plan.baseline,
            bandwidth=choose_bandwidth(asked, growing, growing.y, kernel, degree=0),
            kernel=kernel,
            criterion=self.criterion,
            distance=self.distance,
            zeta=float(self.zeta),
            min_info_gain=float(self.min_info_gain),
            leaf_size=int(self.leaf_size),
            growth=plan.growth,
            max_bins=plan.max_bins,
            seed=plan.seed,
        )
        return fit_paper(
            rows,
            outcome,
            plan.grid,
            density,
            settings,
            n_threads=plan.n_threads,
            stopwatch=plan.stopwatch,
            on_progress=plan.on_progress,
        )


# The paper names the Gaussian kernel and a bandwidth by rule of thumb or cross-validation. It gives
# no value for the others: alpha is the even split, B, min.node.size and the share of features are
# those that regression forests commonly have, and zeta is 1 because the term is in the formula.
PAPER = Paper(zeta=1.0, bandwidth="rule_of_thumb")
PAPER_PARAMETERS: dict[str, Any] = {
    "n_trees": 500,  # B
    "honesty": "forest",
    "honesty_fraction": 0.5,  # alpha
    "mtry": 1 / 3,
    "kernel": "gaussian",
    "density": "location_scale",
}
