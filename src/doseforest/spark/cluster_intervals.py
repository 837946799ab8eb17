"""The average dose-response curve with standard errors, from influences summed over a cluster.

The bias-corrected average of `doseforest.estimator.averages`: the mean of out-of-bag curves plus
local parabolas through what they leave of the outcomes, weighted by r = p(T) / pi(T | X); at levels
of the dose, means. Errors are by the rows' influences, summed within groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.row_blocks import RowBlock, Sums
from doseforest.doses.smoothing.local_polynomials import (
    local_moments,
    local_windows,
    solve_moments,
)
from doseforest.estimator.averages.average_curves import (
    AverageDoseResponse,
    estimates_of_groups,
    sums_of_groups,
)
from doseforest.spark.cluster_units import Units
from doseforest.spark.treatment_ratios import TreatmentRatios

RowValues = Callable[[RowBlock], tuple[FloatArray, FloatArray]]  # curves, and what they leave


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
    exact = ratios.kernel == "exact"
    degree = 0 if exact else 2
    window = local_windows(doses, ratios.bandwidth, ratios.kernel, ratios.ends)

    def local(block: RowBlock) -> Sums:
        weights = block.row_weights
        curves, left = rows(block)
        moments = local_moments(block.dose, left, weights * ratios.weights(block), window, degree)
        return weights.sum(), weights @ curves, *moments

    text = "average curve: local sums of residuals"
    weight, curve, moments, crossed = units.add_up(text, local)
    fits, mean = solve_moments(window, moments, crossed, degree), curve / weight
    n_rows = units.n_rows

    def groups(block: RowBlock) -> Sums:
        weights = block.row_weights
        curves, left = rows(block)
        influence = fits.influence(block.dose, left, weights * ratios.weights(block), n_rows)
        about = weights[:, None] * (curves - mean) + influence
        return sums_of_groups(about, weights, block.groups)

    sums = units.add_up("average curve: influences", groups)
    off = sums[1] / n_rows  # influences have mean 0, as curves about theirs
    estimates = estimates_of_groups(mean + fits.values, weight, sums, off)
    covariance = estimates.covariance
    alone = moments[:, 0] <= 0  # doses that no row is near: the curves say what there is to say
    covariance[alone, alone] = np.inf
    return AverageDoseResponse(
        doses=doses,
        values=estimates.values,
        standard_errors=np.sqrt(np.maximum(np.diag(covariance), 0.0)),
        covariance=covariance,
        bandwidth=None if exact else ratios.bandwidth,
        method="bias_corrected",
        degrees=estimates.degrees,
    )


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
