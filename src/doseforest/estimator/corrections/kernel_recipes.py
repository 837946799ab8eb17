"""Kernel corrections as objects: the stabilised form, and the published formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from doseforest.base.dtypes import FloatArray
from doseforest.data.registered_names import NameIn
from doseforest.engine.splits.distances import CURVE_DISTANCES, DistanceFunction
from doseforest.engine.splits.split_registry import SPLIT_STATISTICS, split_recipe
from doseforest.engine.splits.split_statistics import SplitRecipe
from doseforest.estimator.chosen_bandwidths import BANDWIDTH_RULES, choose_bandwidth
from doseforest.estimator.corrections.correction_recipe import (
    CorrectionRecipe,
    check_fields,
    take_size,
    take_sizes,
)
from doseforest.estimator.corrections.fitted_correction import FittedCorrection
from doseforest.estimator.corrections.kernel_growth import LEAF_SIZES, KernelSettings
from doseforest.estimator.corrections.published_kernels import fit_published
from doseforest.estimator.corrections.stabilized_kernels import fit_stabilized
from doseforest.estimator.fit_plan import FitPlan, dose_kernel
from doseforest.estimator.training_rows import TrainingRows
from doseforest.estimator.weighting import conditional_density, weigh_treatments

if TYPE_CHECKING:
    from doseforest.nuisance.outcome.cross_fitted_outcome import CrossFittedOutcome

BANDWIDTHS = [Interval(Real, 0, None, closed="neither"), StrOptions(set(BANDWIDTH_RULES)), None]
DISTANCES = [NameIn(CURVE_DISTANCES), callable]
GROWTH_RULES: dict[str, list[Any]] = {
    "bandwidth": BANDWIDTHS,
    "distance": DISTANCES,
    "statistic": [
        NameIn(SPLIT_STATISTICS),
        HasMethods(["n_doses", "point_weights", "lay_out"]),
        None,
    ],
}


@dataclass(frozen=True, slots=True)
class Stabilized(CorrectionRecipe):
    """Forests of weighted residuals at the observed dose, smoothed by local lines.

    Parameters
    ----------
    leaf_sizes : sequence of ints, default=(20, 60, 200)
        Smallest numbers of growth rows in a leaf; forests of all sizes are stacked.
    bandwidth : float, "rule_of_thumb" or "leave_one_out", optional
        Of unit curves; by default twice the rule of thumb. Raise it where few rows are near a
        dose: that flattens what is corrected.
    distance : str or callable, default="l2"
        Distance between curves that splits go by, see `doseforest.engine`.
    statistic : SplitRecipe or str, optional
        What children are compared by, as of `CurveForest`; by default mean curves. Take
        "mean_slopes" where the curves of units differ in level more than in shape.

    Examples
    --------
    >>> Stabilized(bandwidth=0.5).leaf_sizes
    (20, 60, 200)
    """

    leaf_sizes: Sequence[int] = LEAF_SIZES
    bandwidth: float | str | None = None
    distance: str | DistanceFunction = "l2"
    statistic: SplitRecipe | str | None = None

    name: ClassVar[str] = "stabilized"

    def __post_init__(self) -> None:
        take_sizes(self)
        check_fields(self, {"leaf_sizes": ["array-like"], **GROWTH_RULES})

    @property
    def n_sizes(self) -> int:
        """Leaf sizes that share the trees."""
        return len(self.leaf_sizes)

    def n_forests(self, plan: FitPlan) -> int:
        """One for each leaf size."""
        return len(self.leaf_sizes)

    def fit(
        self, rows: TrainingRows, outcome: CrossFittedOutcome, plan: FitPlan
    ) -> FittedCorrection:
        """Correct an outcome model, see `fit_stabilized`."""
        residual = rows.y - outcome.observed
        with plan.stopwatch("nuisances"):
            weights = weigh_treatments(rows, residual, plan).chosen.r
        arguments = _arguments(rows, residual, plan, self, tuple(self.leaf_sizes))
        return fit_stabilized(rows, outcome, plan.grid, weights, **arguments)


@dataclass(frozen=True, slots=True)
class PublishedKernel(CorrectionRecipe):
    """A forest of doubly robust kernel curves, by the formula of the paper.

    Kept for comparison: its weights explode where few units of a kind get a dose.

    Parameters
    ----------
    leaf_size : int, default=20
        Smallest number of growth rows in a leaf.
    bandwidth : float, "rule_of_thumb" or "leave_one_out", optional
        Of unit curves; by default the rule of thumb.
    distance : str or callable, default="l2"
        Distance between curves that splits go by, see `doseforest.engine`.
    statistic : SplitRecipe or str, optional
        What children are compared by, as of `CurveForest`; by default mean curves. Take
        "mean_slopes" where the curves of units differ in level more than in shape.

    Examples
    --------
    >>> PublishedKernel(bandwidth="leave_one_out").name
    'kernel'
    """

    leaf_size: int = 20
    bandwidth: float | str | None = None
    distance: str | DistanceFunction = "l2"
    statistic: SplitRecipe | str | None = None

    name: ClassVar[str] = "kernel"
    divides_by_density: ClassVar[bool] = True

    def __post_init__(self) -> None:
        take_size(self)
        check_fields(self, {"leaf_size": [Real], **GROWTH_RULES})

    def n_forests(self, plan: FitPlan) -> int:
        """One."""
        return 1

    def fit(
        self, rows: TrainingRows, outcome: CrossFittedOutcome, plan: FitPlan
    ) -> FittedCorrection:
        """Correct an outcome model, see `fit_published`."""
        with plan.stopwatch("nuisances"):
            density = conditional_density(rows, plan)
            on_grid = density.out_of_fold(rows.treatment_features, plan.grid)
        # Weights are local constants of outcomes: mu-hat at t is compared with what T_i brought.
        arguments = _arguments(rows, rows.y, plan, self, (int(self.leaf_size),), degree=0)
        return fit_published(rows, outcome, plan.grid, on_grid, **arguments)


def _arguments(
    rows: TrainingRows,
    smoothed: FloatArray,
    plan: FitPlan,
    recipe: Stabilized | PublishedKernel,
    leaf_sizes: tuple[int, ...],
    degree: int = 1,
) -> dict[str, Any]:
    kernel, smooth = dose_kernel(rows, plan)
    bandwidth = None
    if smooth and recipe.bandwidth is not None:
        bandwidth = choose_bandwidth(recipe.bandwidth, rows, smoothed, kernel, degree=degree)
    growth = plan.growth
    if recipe.statistic is not None:
        growth = replace(growth, statistic=split_recipe(recipe.statistic))
    settings = KernelSettings(
        kernel=kernel,
        bandwidth=bandwidth,
        leaf_sizes=leaf_sizes,
        distance=recipe.distance,  # type: ignore[arg-type]
        growth=growth,
        seed=plan.seed,
    )
    return {
        "settings": settings,
        "n_threads": plan.n_threads,
        "stopwatch": plan.stopwatch,
        "on_progress": plan.on_progress,
    }
