"""The kernel correction as published: forests of doubly robust curves, GCF step 3.

It is kept for fidelity and comparison. Where few units of a kind get a dose its weights explode,
and it compares mu-hat(t, X) with an outcome observed at another dose, which adds a kernel bias of
the size of the curve's own bend; the stabilised form has neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import CHANNEL_DTYPE, Array, ChannelArray, DoseArray, FloatArray
from doseforest.base.stopwatch import Stopwatch
from doseforest.doses.curve_effects import dose_table
from doseforest.doses.curve_interpolation import interpolated
from doseforest.doses.dose_values import Doses
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.doses.smoothing.boundary import normalised_kernel
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.doses.smoothing.product_kernels import product_kernel
from doseforest.doses.smoothing.smoother_inputs import checked_kernel, given_bandwidth
from doseforest.estimator.corrections.fitted_correction import FittedCorrection
from doseforest.estimator.corrections.kernel_curves import PublishedCorrection
from doseforest.estimator.corrections.kernel_growth import KernelSettings, grow_curves
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.outcome.cross_fitted_outcome import CrossFittedOutcome
from doseforest.nuisance.treatment.chained import joint_support

# Of an even spread over the doses. It only keeps division possible: a floor that rows of any
# number fall below would break double robustness.
LEAST_DENSITY = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class AddedMeans:
    """Mean curves of the training rows, out of bag, less their outcome models' curves."""

    outcome: CrossFittedOutcome
    X: FloatArray  # (n_rows, n_features)
    grid: FloatArray  # (n_grid,)
    means: ChannelArray  # (n_rows, n_grid)

    def curves(self, doses: FloatArray) -> FloatArray:
        """Additions at each dose of a grid."""
        means = interpolated(
            self.grid, self.means.astype(np.float64), dose_table(doses, len(self.means)).values
        )
        return means - self.outcome.curves_out_of_fold(self.X, doses)

    def observed(self, dose: FloatArray) -> FloatArray:
        """Additions at each row's own dose."""
        means = interpolated(self.grid, self.means.astype(np.float64), dose[:, None])
        return means[:, 0] - self.outcome.curves_out_of_fold(self.X, dose[:, None])[:, 0]


def fit_published(
    rows: TrainingRows,
    outcome: CrossFittedOutcome,
    grid: FloatArray,
    density_on_grid: FloatArray,
    settings: KernelSettings,
    *,
    n_threads: int = 1,
    stopwatch: Stopwatch | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> FittedCorrection:
    """Grow one forest on doubly robust curves; its mean curves are the answer.

    Nothing is weighed against the outcome model. Without a bandwidth in the settings the rule of
    thumb sets it.

    Parameters
    ----------
    grid : array of shape (n_doses,)
        Ascending doses at which leaves hold curves; the levels of a dose that has few.
    density_on_grid : array of shape (n_rows, n_doses)
        Densities pi(t | X_i) from fits that have not seen the row; probabilities of levels.
    on_progress : callable
        Told after the forest.
    """
    stopwatch = Stopwatch() if stopwatch is None else stopwatch
    bandwidth = settings.bandwidth
    if bandwidth is None:
        bandwidth = rule_of_thumb(rows.dose, settings.kernel, rows.weights)
    with stopwatch("curves"):
        curves = doubly_robust_curves(
            outcome.curves_out_of_fold(rows.X, grid, n_threads),
            rows.dose.values,
            rows.y,
            grid,
            density_on_grid,
            kernel=settings.kernel,
            bandwidth=bandwidth,
            masses=[each.masses for each in joint_support(rows.dose, rows.weights)],
        ).astype(CHANNEL_DTYPE)
    grown = grow_curves(rows, curves, curves, grid, settings, settings.leaf_sizes[0])
    stopwatch.add(grown.seconds)
    on_progress(1)
    with stopwatch("leaves"):
        means = grown.predict_oob(rows.split_rows.table).astype(CHANNEL_DTYPE)
    return FittedCorrection(
        correction=PublishedCorrection(grid, grown.forest),
        added=AddedMeans(outcome, rows.X, grid, means),
        report=({"bandwidth": float(bandwidth)},),
    )


def doubly_robust_curves(
    curves: Array,
    dose: DoseArray,
    y: FloatArray,
    grid: DoseArray,
    density: FloatArray,
    *,
    kernel: str | Kernel,
    bandwidth: float,
    masses: Sequence[Sequence[float]] = ((),),
) -> FloatArray:
    """Published curves of units, shape (n_units, n_doses).

    mu~(t, X_i) = mu-hat(t, X_i) + K_h(T_i - t) / pi-hat(t | X_i) (Y_i - mu-hat(t, X_i)), the kernel
    divided by its mass inside the range of the doses.

    Parameters
    ----------
    curves : array of shape (n_units, n_doses)
        Outcome model on the grid, from fits that have not seen the unit.
    dose, y : arrays of shape (n_units,)
    grid : array of shape (n_doses,)
    density : array of shape (n_units, n_doses)
        Values pi-hat(t | X_i); at a point mass its probability.
    masses : sequence of sequences of floats
        For each component the values that many units share: matched exactly, and no neighbours of
        other values.

    Examples
    --------
    >>> doubly_robust_curves(
    ...     np.array([[1.0, 1.0]]), np.array([0.0]), np.array([3.0]), np.array([0.0, 1.0]),
    ...     np.array([[0.5, 0.5]]), kernel="exact", bandwidth=1.0)
    array([[5., 1.]])
    """
    kernels, bandwidths = [checked_kernel(kernel)], [given_bandwidth(bandwidth)]
    if Doses.of(dose).joint:
        made = product_kernel(dose, kernel)
        kernels, bandwidths = list(made.kernels), (bandwidths[0] * made.widths).tolist()
    parts = zip(
        Doses.of(dose).columns, Doses.of(grid).columns, kernels, bandwidths, masses, strict=True
    )
    weights, width = _kernel_weights(*next(parts))
    for part in parts:
        own_weights, own_width = _kernel_weights(*part)
        weights *= own_weights
        width = width * own_width
    weights /= np.maximum(density, LEAST_DENSITY / width)
    return curves + weights * (y[:, None] - curves)


def _kernel_weights(
    dose: FloatArray, grid: FloatArray, kernel: Kernel, bandwidth: float, masses: Sequence[float]
) -> tuple[ChannelArray, FloatArray]:
    """Kernel weights (n_units, n_doses) of one component, and the width of its range."""
    low, high = min(dose.min(), grid.min()), max(dose.max(), grid.max())
    weights = normalised_kernel(dose, grid, bandwidth, kernel, support=(low, high), over="grid")
    width = np.full(len(grid), high - low if kernel.is_density else 1.0)
    if len(masses):
        shared = np.isin(grid, masses)
        weights[np.isin(dose, masses)] = 0.0
        weights[:, shared] = dose[:, None] == grid[shared]
        width[shared] = 1.0
    return weights, width
