"""What both kernel corrections share: settings, bandwidth, and growth on curves over a grid."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from doseforest.base.dtypes import Array, DoseArray, FloatArray
from doseforest.base.seeds import Purpose, derive
from doseforest.doses.dose_values import Doses
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.doses.smoothing.smoother_inputs import checked_kernel
from doseforest.engine.grow_forest import GrownForest, grow_forest
from doseforest.engine.growth.forest_settings import GrowthSettings
from doseforest.engine.splits.distances import trapezoid_weights
from doseforest.estimator.training_rows import TrainingRows

LEAF_SIZES = (20, 60, 200)


@dataclass(frozen=True, slots=True)
class KernelSettings:
    """How a kernel correction is fitted."""

    kernel: str | Kernel = "epanechnikov"
    bandwidth: float | None = None  # None: by the spread of the doses
    leaf_sizes: tuple[int, ...] = LEAF_SIZES  # of the published form: the first
    distance: str = "l2"
    growth: GrowthSettings = field(default_factory=GrowthSettings)
    seed: int = 0


def dose_quadrature(grid: FloatArray, kernel: str | Kernel) -> FloatArray:
    """Weights of the doses of a grid in an integral, of sum 1; levels count alike.

    >>> dose_quadrature(np.array([0.0, 1.0, 4.0]), "epanechnikov")
    array([0.125, 0.5  , 0.375])
    >>> dose_quadrature(np.array([0.0, 4.0]), "exact")
    array([0.5, 0.5])
    """
    levels = checked_kernel(kernel).support == 0
    weights = np.ones(len(grid)) if levels else _grid_weights(grid)
    shares: FloatArray = weights / weights.sum()
    return shares


def _grid_weights(grid: DoseArray) -> FloatArray:
    """Trapezoid weights, multiplied over the components of a grid."""
    weights = np.ones(len(grid))
    for column in Doses.of(grid).columns:
        axis, places = np.unique(column, return_inverse=True)
        if len(axis) > 1:
            weights *= trapezoid_weights(axis)[places]
    return weights


def grow_curves(
    rows: TrainingRows,
    curves: Array,
    leaf_channels: Array,
    grid: FloatArray,
    settings: KernelSettings,
    leaf_size: int,
) -> GrownForest:
    """Grow a forest on the rows' curves, each less its mean over the doses.

    What is left is the shape: effects are differences along a curve, and a level that is the
    outcome model's to explain would only draw splits. The mean is a steadier thing to take off
    than the value at the baseline, the noisiest point of a curve.
    """
    quadrature = dose_quadrature(grid, settings.kernel)
    growth = replace(
        settings.growth,
        min_node_size=leaf_size,
        distance=settings.distance,
        seed=derive(settings.seed, Purpose.CORRECTION_FOREST, 0, leaf_size),
    )
    return grow_forest(
        rows.split_rows,
        curves - (curves @ quadrature)[:, None],
        growth,
        leaf_channels=leaf_channels,
        doses=Doses.of(grid).axis,
        # Another statistic knows itself how its points are weighed.
        quadrature=quadrature if growth.statistic is None else None,
    )
