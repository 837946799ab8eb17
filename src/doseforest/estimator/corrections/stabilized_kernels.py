"""The stabilised kernel correction: residuals at the observed dose, smoothed by local lines.

A unit's curve is mu-hat(t, x) plus a ratio of sums over its neighbours, sum W e / sum W, with
e = Y - mu-hat(T, X) and W the weights of a local line at t through rows weighted by K_h(T - t) r.
A right mu-hat leaves residuals of mean zero; right weights r make the smoothed residual tend to
mu - mu-hat, with a smoothing bias in that difference and not in mu.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import CHANNEL_DTYPE, ChannelArray, FloatArray
from doseforest.base.stopwatch import Stopwatch
from doseforest.doses.curve_effects import dose_table
from doseforest.doses.curve_interpolation import interpolated
from doseforest.doses.dose_values import Doses
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.doses.smoothing.boundary import local_linear_weights
from doseforest.doses.smoothing.kernel_weights import effective_sample
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.doses.smoothing.smoother_inputs import given_bandwidth
from doseforest.engine.grow_forest import GrownForest
from doseforest.estimator.corrections.fitted_correction import FittedCorrection
from doseforest.estimator.corrections.kernel_curves import (
    KernelForest,
    StabilizedCorrection,
    kernel_ratio,
)
from doseforest.estimator.corrections.kernel_growth import KernelSettings, grow_curves
from doseforest.estimator.corrections.orthogonal import effective_rows
from doseforest.estimator.corrections.shape_stack import ShapeStack, stack_shapes
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.outcome.cross_fitted_outcome import CrossFittedOutcome
from doseforest.nuisance.treatment.conditional_means import cross_fit_means

# Times the rule of thumb: a neighbourhood has fewer rows than the sample that the rule is for. On
# waves and steps, with good and bad outcome models, errors of effects were .65 of the outcome
# model's own at 1, .62 at 2, .75 at 4, and .64 with the bandwidth that residuals left out prefer.
WIDENING = 2.0
GAPS = 1.5  # a bandwidth is at least so many times the distance of a dose to the nearest row
SHRINKAGE_ROWS = 5.0  # rows' worth of the overall ratio in the ratio of a neighbourhood


@dataclass(frozen=True, slots=True, eq=False)
class AddedTable:
    """Additions to the training rows' curves, from trees that have not seen the row."""

    grid: FloatArray  # (n_grid,)
    values: ChannelArray  # (n_rows, n_grid)

    def curves(self, doses: FloatArray) -> FloatArray:
        """Additions at each dose of a grid."""
        return interpolated(
            self.grid, self.values.astype(np.float64), dose_table(doses, len(self.values)).values
        )

    def observed(self, dose: FloatArray) -> FloatArray:
        """Additions at each row's own dose."""
        return interpolated(self.grid, self.values.astype(np.float64), dose[:, None])[:, 0]


def fit_stabilized(
    rows: TrainingRows,
    outcome: CrossFittedOutcome,
    grid: FloatArray,
    treatment_weights: FloatArray,
    settings: KernelSettings,
    *,
    n_threads: int = 1,
    stopwatch: Stopwatch | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> FittedCorrection:
    """Fit the correction to what a cross-fitted outcome model leaves.

    Parameters
    ----------
    grid : array of shape (n_doses,)
        Ascending doses at which leaves hold curves; the levels of a dose that has few.
    treatment_weights : array of shape (n_rows,)
        Weights r, about p(T) / pi(T | X), already capped.
    on_progress : callable
        Told after each forest.
    """
    stopwatch = Stopwatch() if stopwatch is None else stopwatch
    residual = rows.y - outcome.observed
    bandwidth = forest_bandwidth(rows.dose.values, grid, settings, rows.weights)
    smoother = bandwidth, settings.kernel, treatment_weights, rows.weights
    with stopwatch("curves"):
        # Tables of rows by doses are the memory of a fit. Three stay while trees grow, in float32.
        weights = residual_weights(rows.dose.values, grid, *smoother)
        smoothed = weights * residual[:, None].astype(CHANNEL_DTYPE)
        curves = outcome.curves_out_of_fold(rows.X, grid, n_threads).astype(CHANNEL_DTYPE)
        curves += smoothed
        channels = np.hstack([smoothed, weights])
        del weights, smoothed
    grown = []
    for leaf_size in settings.leaf_sizes:
        grown.append(grow_curves(rows, curves, channels, grid, settings, leaf_size))
        stopwatch.add(grown[-1].seconds)
        on_progress(1)
    with stopwatch("leaves"):
        observed = [_everyone_else(rows, channels, grid)]
        del curves, channels
        share = kernel_share(rows.dose.values, grid, *smoother)
        everyone, *forests = _candidates(rows, grown, share)
        observed += [forest.observed(rows, grid) for forest in forests]
    with stopwatch("nuisances"):
        stack = _stack(rows, outcome, observed, residual, settings.seed, n_threads)
    with stopwatch("leaves"):
        candidates = [everyone, *forests]
        correction, added = _mixed(rows, grid, candidates, stack)
    report = {**stack.report([candidate.name for candidate in candidates]), "bandwidth": bandwidth}
    return FittedCorrection(correction, AddedTable(grid, added), (report,))


def forest_bandwidth(
    dose: FloatArray, grid: FloatArray, settings: KernelSettings, weights: FloatArray | None = None
) -> float:
    """Bandwidth of unit curves: as given, or twice the rule of thumb, and wide enough for gaps.

    It is chosen apart from that of average curves, which has all rows to draw on. Not by residuals
    left out: these know of the average curve only, and a good outcome model leaves it flat.

    Examples
    --------
    >>> dose = np.linspace(0, 10, 1001)
    >>> round(forest_bandwidth(dose, dose[::50], KernelSettings()), 2)
    2.89
    >>> forest_bandwidth(np.append(dose, 30.0), np.array([0.0, 20.0]), KernelSettings())
    15.0
    """
    if settings.bandwidth is not None:
        return given_bandwidth(settings.bandwidth)
    if Doses.of(dose).joint:  # its kernels are widened wherever too few rows are near
        return WIDENING
    seen = np.sort(dose if weights is None else dose[weights > 0])
    above = np.minimum(np.searchsorted(seen, grid), len(seen) - 1)
    gaps = np.minimum(np.abs(seen[above] - grid), np.abs(seen[np.maximum(above - 1, 0)] - grid))
    rule = rule_of_thumb(dose, settings.kernel, weights)
    return max(WIDENING * rule, GAPS * float(gaps.max()))


def residual_weights(
    dose: FloatArray,
    grid: FloatArray,
    bandwidth: float,
    kernel: str | Kernel,
    treatment_weights: FloatArray,
    weights: FloatArray | None = None,
) -> ChannelArray:
    """Weights W of residuals at each dose, shape (n_rows, n_doses), of mean 1 over the sample.

    Those of local lines through rows weighted by K r; with the exact match, r at the row's level.

    Examples
    --------
    >>> residual_weights(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0]), 1.0, "exact",
    ...                  np.array([1.0, 3.0, 1.0]))
    array([[0.75, 0.  ],
           [2.25, 0.  ],
           [0.  , 3.  ]], dtype=float32)
    """
    if weights is None:
        return local_linear_weights(dose, grid, bandwidth, kernel, treatment_weights)
    smooth = local_linear_weights(dose, grid, bandwidth, kernel, treatment_weights * weights)
    # Sums over rows are weighted by the sample's weights once more.
    own = np.divide(1.0, weights, out=np.zeros(len(weights)), where=weights > 0)
    smooth *= (own * weights.mean())[:, None].astype(CHANNEL_DTYPE)
    return smooth


def kernel_share(
    dose: FloatArray,
    grid: FloatArray,
    bandwidth: float,
    kernel: str | Kernel,
    treatment_weights: FloatArray,
    weights: FloatArray | None = None,
) -> float:
    """Share of the rows that speak about a dose: effective samples over rows, their median."""
    row_weights = treatment_weights if weights is None else treatment_weights * weights
    return float(np.median(effective_sample(dose, grid, bandwidth, kernel, row_weights))) / len(
        dose
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """One source of additions: a forest, or everyone alike."""

    name: str
    constant: FloatArray  # (n_grid,) what everyone's ratio adds
    forest: GrownForest | None = None
    shrinkage: float = 0.0

    def out_of_bag(self, rows: TrainingRows) -> FloatArray:
        """Additions to the rows' curves, (n_rows, n_grid); to everyone's, (1, n_grid)."""
        if self.forest is None:
            return self.constant[None]
        averages = self.forest.average_oob(rows.split_rows.table)
        return kernel_ratio(averages, self.forest.forest.fallback, self.shrinkage)

    def observed(self, rows: TrainingRows, grid: FloatArray) -> FloatArray:
        """Additions at the observed doses, shape (n_rows,)."""
        return interpolated(grid, self.out_of_bag(rows), rows.dose.values[:, None])[:, 0]


def _everyone_else(rows: TrainingRows, channels: ChannelArray, grid: FloatArray) -> FloatArray:
    """What the ratio of all rows but a row and its group adds at the row's dose, (n_rows,)."""
    averages = rows.leaf_means_without(channels.astype(np.float64))
    ratio = kernel_ratio(averages, rows.leaf_mean(channels.astype(np.float64)), shrinkage=0.0)
    return interpolated(grid, ratio, rows.dose.values[:, None])[:, 0]


def _candidates(
    rows: TrainingRows, grown: Sequence[GrownForest], share_of_rows: float
) -> list[_Candidate]:
    overall = grown[0].forest.fallback
    constant = kernel_ratio(overall[None], overall, shrinkage=0.0)[0]
    candidates = [_Candidate("everyone", constant)]
    for forest in grown:
        n_effective = share_of_rows * effective_rows(forest, rows.effect_features)
        name = f"leaves of {forest.settings.min_node_size}"
        candidates.append(_Candidate(name, constant, forest, SHRINKAGE_ROWS / n_effective))
    return candidates


def _stack(
    rows: TrainingRows,
    outcome: CrossFittedOutcome,
    observed: list[FloatArray],
    residual: FloatArray,
    seed: int,
    n_threads: int,
) -> ShapeStack:
    """Weigh the candidates by the R-risk, as the default correction does.

    The alternative is the risk at the observed dose weighted by r: free of means given X, but it
    takes candidates for their level, and r makes the gain unsure. On waves and steps it left 2 %
    more of the error, with true weights and a good outcome model 4 %.
    """
    columns = np.column_stack([*observed, residual])
    columns -= cross_fit_means(
        rows.X,
        columns,
        outcome.folds,
        weights=rows.weights,
        counts=rows.category_counts(),
        seed=seed,
        n_threads=n_threads,
    )
    return stack_shapes(
        columns[:, :-1], columns[:, -1], weights=rows.leaf_weights, clusters=rows.ids
    )


def _mixed(
    rows: TrainingRows, grid: FloatArray, candidates: Sequence[_Candidate], stack: ShapeStack
) -> tuple[StabilizedCorrection, ChannelArray]:
    """Candidates times their shares, for new units and for the rows, out of bag."""
    constant = np.zeros(len(grid))
    added = np.zeros((rows.n_rows, len(grid)), CHANNEL_DTYPE)
    forests = []
    for candidate, share in zip(candidates, stack.shares.tolist(), strict=True):
        if share == 0:
            continue
        added += (share * candidate.out_of_bag(rows)).astype(CHANNEL_DTYPE)
        if candidate.forest is None:
            constant += share * candidate.constant
        else:
            forests.append(KernelForest(candidate.forest.forest, candidate.shrinkage, share))
    return StabilizedCorrection(grid, tuple(forests), constant), added
