"""Algorithm 1 of the GCF paper as printed: trees on one half, the outcomes of the other in leaves.

It is kept to be compared with. Nuisances and splits share their rows without cross-fitting, the
published curves are unstable where the dose hardly varies given the covariates, and leaves average
raw outcomes at doses that may be far from t: local constants, biased most at the baseline, which
lies on the edge, and confounded inside a leaf. docs/paper.md lists what differs from the print.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from doseforest.base.dtypes import CHANNEL_DTYPE, Array, FloatArray
from doseforest.base.seeds import Purpose, derive
from doseforest.base.stopwatch import Stopwatch
from doseforest.doses.smoothing.boundary import normalised_kernel
from doseforest.doses.smoothing.kernel_channels import kernel_channels
from doseforest.doses.smoothing.kernels import GaussianKernel, Kernel
from doseforest.doses.smoothing.smoother_inputs import checked_kernel
from doseforest.engine.forest import Forest
from doseforest.engine.grow_forest import GrownForest, grow_forest
from doseforest.engine.growth.binned_rows import BinnedRows
from doseforest.engine.growth.forest_settings import GrowthSettings
from doseforest.engine.splits.distances import DistanceFunction
from doseforest.engine.splits.mean_splits import SplitByMeans
from doseforest.engine.splits.ratio_splits import SplitByRatioSlopes
from doseforest.engine.splits.split_statistics import SplitRecipe, StatisticRows
from doseforest.estimator.corrections.fitted_correction import FittedCorrection
from doseforest.estimator.corrections.kernel_curves import PublishedCorrection
from doseforest.estimator.corrections.paper_leaves import filled_with_averages
from doseforest.estimator.corrections.paper_positivity import (
    DensityOfRows,
    density_moments,
    mixture_variance,
    random_split_gain,
)
from doseforest.estimator.corrections.published_kernels import AddedMeans, doubly_robust_curves
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.outcome.cross_fitted_outcome import CrossFittedOutcome


@dataclass(frozen=True, slots=True)
class PaperSettings:
    """How Algorithm 1 is run; the paper's names in brackets."""

    baseline: float  # a dose of the grid, that theta is measured against
    bandwidth: float  # h
    kernel: str | Kernel = "gaussian"  # K
    criterion: str = "theta"  # of CRITERIA
    distance: str | DistanceFunction = "l2"  # D
    zeta: float = 0.0  # in units of `zeta_unit`
    min_info_gain: float = 0.0
    leaf_size: int = 20  # min.node.size
    growth: GrowthSettings = field(default_factory=GrowthSettings)
    max_bins: int = 64
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class SplitColumns:
    """What the rows that grow are split by."""

    values: Array  # (n_growing, n_columns)
    statistic: SplitRecipe  # how the columns are read


def fit_paper(
    rows: TrainingRows,
    outcome: CrossFittedOutcome,
    grid: FloatArray,
    density: DensityOfRows,
    settings: PaperSettings,
    *,
    n_threads: int = 1,
    stopwatch: Stopwatch | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> FittedCorrection:
    """Grow trees on Omega1 and fill their leaves with Omega2.

    Parameters
    ----------
    rows : TrainingRows
        With `grows`: Omega1 are the rows that grow, Omega2 the others.
    outcome : CrossFittedOutcome
        Its full model, fitted to Omega1, is mu-hat; nothing of it is out of fold.
    grid : array of shape (n_doses,)
        Ascending doses at which curves are compared and leaves hold averages.
    density : callable
        Values pi-hat(t | X_i) of Omega1, from a fit to Omega1.
    on_progress : callable
        Told after the forest.
    """
    stopwatch = Stopwatch() if stopwatch is None else stopwatch
    assert rows.grows is not None  # the honest split was drawn
    growing, filling = rows.where(rows.grows), rows.where(~rows.grows)
    with stopwatch("curves"):
        curves = outcome.full.curves(growing.X, grid, n_threads=n_threads)
        columns = CRITERIA[settings.criterion](growing, curves, grid, density, settings)
        moments = None
        if settings.zeta:
            moments = density_moments(density, grid, growing.dose.values, settings.kernel)
    seed = derive(settings.seed, Purpose.PAPER_FOREST)
    in_bins = growing.binned(settings.max_bins, seed=seed, n_threads=n_threads)
    grown = _grow(in_bins, columns, moments, grid, settings, seed)
    stopwatch.add(grown.seconds)
    on_progress(1)
    with stopwatch("leaves"):
        forest = _fill(grown.forest, filling, grid, settings, n_threads)
        means = forest.predict(rows.effect_features, n_jobs=n_threads).astype(CHANNEL_DTYPE)
    report = {
        "bandwidth": float(settings.bandwidth),
        "growing_rows": growing.n_rows,
        "filling_rows": filling.n_rows,
    }
    return FittedCorrection(
        correction=PublishedCorrection(grid, forest),
        added=AddedMeans(outcome, rows.X, grid, means),
        report=(report,),
    )


def theta_columns(
    rows: TrainingRows,
    curves: FloatArray,
    grid: FloatArray,
    density: DensityOfRows,
    settings: PaperSettings,
) -> SplitColumns:
    """Doubly robust curves less their value at the baseline: theta_C is their mean over a node.

    Step 3: mu~(t, X_i) = mu-hat(t, X_i) + K_h(T_i - t) / pi-hat(t | X_i) (Y_i - mu-hat(t, X_i)).
    """
    robust = doubly_robust_curves(
        curves,
        rows.dose.values,
        rows.y,
        grid,
        density(grid),
        kernel=settings.kernel,
        bandwidth=settings.bandwidth,
    )
    theta = robust - robust[:, [int(np.searchsorted(grid, settings.baseline))]]
    return SplitColumns(theta.astype(CHANNEL_DTYPE), SplitByMeans())


def pdrf_columns(
    rows: TrainingRows,
    curves: FloatArray,
    grid: FloatArray,
    density: DensityOfRows,
    settings: PaperSettings,
) -> SplitColumns:
    """Sums behind Phi, the derivative of the kernel regression of raw outcomes in a node.

    Step 5: Phi = sum K'Y / sum K - (sum KY)(sum K') / (sum K)^2 for a Gaussian kernel, and
    differences of sum KY / sum K from dose to dose for all others, also those with a derivative.
    """
    derivative = isinstance(checked_kernel(settings.kernel), GaussianKernel)
    columns = kernel_channels(
        rows.dose.values,
        rows.y,
        grid,
        settings.bandwidth,
        settings.kernel,
        derivative=derivative,
        normalise=True,
    )
    return SplitColumns(columns, SplitByRatioSlopes(derivative=derivative))


CriterionColumns = Callable[
    [TrainingRows, FloatArray, FloatArray, DensityOfRows, PaperSettings], SplitColumns
]
CRITERIA: dict[str, CriterionColumns] = {"theta": theta_columns, "pdrf": pdrf_columns}


def _grow(
    rows: TrainingRows,
    columns: SplitColumns,
    moments: FloatArray | None,
    grid: FloatArray,
    settings: PaperSettings,
    seed: int,
) -> GrownForest:
    """Step 4: B trees on bootstrap samples of Omega1, each with a draw of mtry features.

    Delta = n1 n2 / nP * D(theta_1, theta_2) + zeta * sigma(pi-hat); a node stays a leaf where no
    child may be as large as min.node.size, or Delta <= min.info.gain.
    """
    levels = checked_kernel(settings.kernel).support == 0
    by_means = isinstance(columns.statistic, SplitByMeans)
    quadrature = np.ones(len(grid)) if levels and by_means else None
    unit = 0.0
    if moments is not None:
        unit = zeta_unit(rows.split_rows, columns, moments, grid, quadrature, settings, seed)
    growth = replace(
        settings.growth,
        sampling="bootstrap",
        honesty="none",
        mtry_scope="tree",
        statistic=columns.statistic,
        distance=settings.distance,
        min_node_size=settings.leaf_size,
        min_info_gain=settings.min_info_gain,
        zeta=settings.zeta * unit,
        positivity="mixture",
        seed=seed,
    )
    return grow_forest(
        rows.split_rows,
        columns.values,
        growth,
        doses=grid,
        quadrature=quadrature,
        spread=moments,
    )


def zeta_unit(
    rows: BinnedRows,
    columns: SplitColumns,
    moments: FloatArray,
    grid: FloatArray,
    quadrature: FloatArray | None,
    settings: PaperSettings,
    seed: int,
) -> float:
    """What zeta = 1 adds to a split's gain per unit of sigma(pi-hat).

    The gain of splits of Omega1 at random over the variance of the mixture of all its densities,
    so that zeta has no unit; 0 where that variance is 0.
    """
    variance = mixture_variance(moments, rows.weights)
    if not variance > 0:
        return 0.0
    n_doses = columns.statistic.n_doses(columns.values.shape[1])
    split_rows = StatisticRows(
        values=columns.values,
        doses=grid,
        quadrature=columns.statistic.point_weights(n_doses, grid, quadrature),
        distance=settings.distance,
        weights=rows.weights,
    )
    gain = random_split_gain(columns.statistic, split_rows, rows.sampling_ids, seed)
    return gain / variance


def _fill(
    forest: Forest,
    rows: TrainingRows,
    grid: FloatArray,
    settings: PaperSettings,
    n_threads: int,
) -> Forest:
    """Step 6: averages of the outcomes of Omega2 with T_i = t, read as kernel averages."""
    kernel = _leaf_kernel(rows, grid, settings)
    reached = kernel.any(axis=0)
    if not reached.all():
        raise ValueError(
            "The 'doses' parameter must hold doses that the kernel reaches from some row that "
            "fills leaves: raise 'bandwidth', lower 'honesty_fraction' or leave the dose out. "
            f"Got {grid[~reached][0]:g} instead."
        )
    return filled_with_averages(forest, rows.effect_features, kernel, rows.y, n_threads)


def _leaf_kernel(rows: TrainingRows, grid: FloatArray, settings: PaperSettings) -> FloatArray:
    """Step 7: the kernel divided by its integral over [Tmin, Tmax], over t at a fixed T_i."""
    dose = rows.dose.values
    ends = min(dose.min(), grid[0]), max(dose.max(), grid[-1])
    kernel = normalised_kernel(
        dose, grid, settings.bandwidth, settings.kernel, support=ends, over="grid"
    )
    row_weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    return kernel * row_weights[:, None]
