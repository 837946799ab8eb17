"""The average dose-response curve with standard errors, from influences summed over a cluster.

The bias-corrected average of `doseforest.estimator.averages`: the mean of out-of-bag curves plus
local parabolas through what they leave of the outcomes, weighted by r = p(T) / pi(T | X); at levels
of the dose, means. Errors are by the rows' influences, summed within groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray
from doseforest.data.row_blocks import RowBlock, Sums
from doseforest.doses.smoothing.boundary import edge_bandwidths
from doseforest.doses.smoothing.kernels import KERNELS
from doseforest.doses.smoothing.local_polynomials import LEAST_LEFT, horner, solve_moments
from doseforest.estimator.averages.average_curves import (
    AverageDoseResponse,
    estimates_of_groups,
    sums_of_groups,
)
from doseforest.spark.cluster_units import Units
from doseforest.spark.treatment_ratios import TreatmentRatios

RowValues = Callable[[RowBlock], tuple[FloatArray, FloatArray]]  # curves, and what they leave


@dataclass(frozen=True, slots=True)
class _Fits:
    """Polynomials in u = (T - t) / h at each dose."""

    doses: FloatArray  # (n_doses,)
    widths: FloatArray  # (n_doses,) h
    kernel: str
    mass: FloatArray  # (n_doses,) sum of kernel weights
    coefficients: FloatArray  # (n_doses, degree + 1)
    first: FloatArray  # what turns kernel weights into equivalent ones
    form: FloatArray  # what leverages are of

    def influence(self, dose: FloatArray, left: FloatArray, weights: FloatArray) -> FloatArray:
        """Part of each row in the errors, times its weight, (n_rows, n_doses)."""
        u = (dose[:, None] - self.doses) / self.widths
        share = KERNELS[self.kernel].value(u) * weights[:, None] / self.mass
        rest = left[:, None] - horner(self.coefficients, u)
        if self.kernel != "exact":
            rest = rest / np.maximum(1 - share * horner(self.form, u), LEAST_LEFT)
        out: FloatArray = share * horner(self.first, u) * rest
        return out


def average_with_errors(
    units: Units, rows: RowValues, ratios: TreatmentRatios, doses: FloatArray
) -> AverageDoseResponse:
    """Average outcome at each dose with standard errors.

    Parameters
    ----------
    rows : callable
        From a block to curves at the doses, (n_rows, n_doses), and outcomes less the curve at the
        observed dose, (n_rows,), from models and trees that have not seen the rows.
    ratios : TreatmentRatios
        Weights r and how doses are smoothed.
    """
    degree = 0 if ratios.kernel == "exact" else 2
    widths = edge_bandwidths(doses, ratios.bandwidth, ratios.kernel, ratios.ends)
    weight, curve, moments, crossed = units.add_up(
        "average curve: local sums of residuals",
        lambda block: _moments(block, rows, ratios, doses, widths, degree),
    )
    alone = moments[:, 0] <= 0  # doses that no row is near: the curves say what there is to say
    moments[alone, 0] = np.inf
    fits = _Fits(
        doses, widths, ratios.kernel, moments[:, 0], *_solved(moments, crossed, alone, degree)
    )
    mean = curve / weight
    n_rows = float(units.n_rows)

    def sums(block: RowBlock) -> Sums:
        own = block.row_weights
        curves, left = rows(block)
        influence = n_rows * fits.influence(block.dose, left, own * ratios.weights(block))
        return sums_of_groups(own[:, None] * (curves - mean) + influence, own, block.groups)

    found = units.add_up("average curve: influences", sums)
    off = found[1] / n_rows  # influences have mean 0, as curves about theirs
    estimates = estimates_of_groups(mean + fits.coefficients[:, 0], weight, found, off)
    covariance = estimates.covariance
    covariance[alone, alone] = np.inf
    return AverageDoseResponse(
        doses=doses,
        values=estimates.values,
        standard_errors=np.sqrt(np.maximum(np.diag(covariance), 0.0)),
        covariance=covariance,
        bandwidth=None if ratios.kernel == "exact" else ratios.bandwidth,
        method="bias_corrected",
        degrees=estimates.degrees,
    )


def _solved(
    moments: FloatArray, crossed: FloatArray, alone: NDArray[np.bool_], degree: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Polynomials at the doses, 0 where no row is near."""
    found = solve_moments(moments[~alone], crossed[~alone], degree)
    out = tuple(np.zeros((len(alone), own.shape[1])) for own in found)
    for every, own in zip(out, found, strict=True):
        every[~alone] = own
    coefficients, first, form = out
    return coefficients, first, form


def _moments(
    block: RowBlock,
    rows: RowValues,
    ratios: TreatmentRatios,
    doses: FloatArray,
    widths: FloatArray,
    degree: int,
) -> tuple[Any, ...]:
    own = block.row_weights
    curves, left = rows(block)
    u = (block.dose[:, None] - doses) / widths
    powered = KERNELS[ratios.kernel].value(u) * (own * ratios.weights(block))[:, None]
    moments, crossed = np.zeros((len(doses), 2 * degree + 1)), np.zeros((len(doses), degree + 1))
    for power in range(2 * degree + 1):
        moments[:, power] = powered.sum(axis=0)
        if power <= degree:
            crossed[:, power] = left @ powered
        powered = powered * u
    return own.sum(), own @ curves, moments, crossed


def plain_average(average: AverageDoseResponse) -> dict[str, Any]:
    """An average as what JSON can hold."""
    return {
        "doses": average.doses.tolist(),
        "values": average.values.tolist(),
        "standard_errors": average.standard_errors.tolist(),
        "covariance": average.covariance.tolist(),
        "bandwidth": average.bandwidth,
        "method": average.method,
        "degrees": np.asarray(average.degrees).tolist() if np.ndim(average.degrees) else None,
    }


def read_average(stored: dict[str, Any]) -> AverageDoseResponse:
    """The average of what `plain_average` returned."""
    arrays = {
        name: np.array(own, np.float64) for name, own in stored.items() if isinstance(own, list)
    }
    own = {name: value for name, value in stored.items() if name != "degrees" or value is not None}
    return AverageDoseResponse(**{**own, **arrays})
