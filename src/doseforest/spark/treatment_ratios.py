"""Treatment weights of a cluster's rows: p(T) / pi(T | X), capped, of mean 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.row_blocks import RowBlock, Sums
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.cross_fit import FoldModels
from doseforest.nuisance.treatment.mixed import MixedDensity
from doseforest.nuisance.treatment.treatment_support import quadrature_grid
from doseforest.nuisance.treatment.treatment_weights import (
    check_integral,
    fold_densities,
    read_density,
)
from doseforest.spark.cluster_density import PREDICTED
from doseforest.spark.cluster_units import Units

RATIO = "ratio"  # the column of p(T_i) / pi(T_i | X_i)
SLICE = 8192


@dataclass(frozen=True, slots=True)
class TreatmentRatios:
    """What makes weights of the ratios, and how rows are smoothed over doses."""

    cap: float
    raw_mean: float  # of the ratios
    capped_mean: float
    kernel: str
    bandwidth: float
    ends: tuple[float, float]  # lowest and highest dose

    def weights(self, block: RowBlock) -> FloatArray:
        """Treatment weights r, of mean 1."""
        r: FloatArray = np.minimum(block[RATIO], self.cap) / self.capped_mean
        return r


def add_ratios(
    units: Units,
    density: MixedDensity,
    sample: TrainingRows,
    ends: tuple[float, float],
) -> TreatmentRatios:
    """Add `RATIO` to every block; p is the mean of pi over the rows of a fold.

    Parameters
    ----------
    density : MixedDensity
        Of `PREDICTED`.
    sample : TrainingRows
        A sample of the doses.
    ends : (low, high)
        Lowest and highest dose of all rows.
    """
    ground = density.support
    points = quadrature_grid(sample.dose.values, ground, sample.weights)
    means = _mean_density(units, density, points)

    def ratios(block: RowBlock) -> dict[str, FloatArray]:
        observed = density.density(block[PREDICTED], block.dose[:, None])[:, 0]
        overall = FoldModels(block.folds, tuple(means), None).out_of_fold(
            lambda mean, rows: read_density(mean, points, ground, block.dose[rows])[0]
        )
        return {RATIO: overall / np.maximum(observed, np.finfo(float).tiny)}

    units.add("weights of the dose", ratios)
    cap = float(np.sqrt(units.n_rows))

    def sums(block: RowBlock) -> Sums:
        row_weights, ratio = block.row_weights, block[RATIO]
        return row_weights.sum(), row_weights @ ratio, row_weights @ np.minimum(ratio, cap)

    weight, raw, capped = units.add_up("mean weight of the dose", sums)
    kernel = "epanechnikov" if ground.continuous else "exact"
    bandwidth = rule_of_thumb(sample.dose, kernel, sample.weights)
    return TreatmentRatios(
        cap=cap,
        raw_mean=float(raw / weight),
        capped_mean=float(capped / weight),
        kernel=kernel,
        bandwidth=bandwidth * (units.n_rows / sample.n_rows) ** -0.2,
        ends=ends,
    )


def _mean_density(units: Units, density: MixedDensity, points: FloatArray) -> FloatArray:
    """Mean density over the rows of each fold, (n_folds, n_points + n_masses)."""
    ground = density.support
    means, weight = fold_densities(
        units,
        np.concatenate([points, ground.masses]),
        lambda rows, fold, doses: density.density(rows[PREDICTED], doses),
        range(units.n_folds),
    )
    whole = [read_density(mean, points, ground, np.zeros(0))[1] for mean in means]
    rule = "The 'overlap' parameter must be False for rows whose densities of the dose do not"
    check_integral(float(np.average(whole, weights=weight)), ground, rule)
    return means


def in_slices(block: RowBlock, function: Callable[[RowBlock], Sums]) -> Sums:
    """Sums of a function over the rows of a block, a few thousand at a time."""
    total = function(block.take(slice(0, SLICE)))
    for first in range(SLICE, len(block), SLICE):
        own = function(block.take(slice(first, first + SLICE)))
        total = tuple(a + b for a, b in zip(total, own, strict=True))
    return total
