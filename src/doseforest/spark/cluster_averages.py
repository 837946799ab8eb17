"""Average dose-response curves of a cluster's rows, from models and trees that missed them.

With standard errors it is the bias-corrected average of `doseforest.estimator.averages`: the mean
of out-of-bag curves plus local parabolas through what they leave of the outcomes, weighted by
r = p(T) / pi(T | X); at levels of the dose, means. Errors are by the rows' influences, summed
within groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.row_blocks import RowBlock, Sums
from doseforest.doses.bases.dose_basis import FittedBasis
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
from doseforest.estimator.corrections.sieve_forests import OrthogonalCorrection, sieve_curves
from doseforest.estimator.corrections.sieve_rows import ADDED, residual
from doseforest.estimator.effect_forest import Correction
from doseforest.nuisance.cross_fit import FoldModels
from doseforest.nuisance.outcome.outcome_models import OutcomeModel
from doseforest.spark.cluster_outcome import FoldOutcomes, observed
from doseforest.spark.cluster_units import Units
from doseforest.spark.jobs import broadcast
from doseforest.spark.treatment_ratios import TreatmentRatios

RowValues = Callable[[RowBlock], tuple[FloatArray, FloatArray]]  # curves, and what they leave


def average_curve(
    units: Units, outcomes: FoldOutcomes, correction: Correction, doses: FloatArray
) -> FloatArray:
    """Mean of the rows' corrected curves at some doses."""
    basis = _basis(correction)
    with broadcast(units.context, outcomes.without) as sent:

        def sums(block: RowBlock) -> Sums:
            curves, row_weights = _curves(sent.value, basis, block, doses), block.row_weights
            return row_weights.sum(), row_weights @ curves

        weight, total = units.add_up("average curve", sums)
    average: FloatArray = total / weight
    return average


def average_interval(
    units: Units,
    outcomes: FoldOutcomes,
    correction: Correction,
    ratios: TreatmentRatios,
    doses: FloatArray,
) -> AverageDoseResponse:
    """Doubly robust average at some doses with standard errors."""
    basis = _basis(correction)
    with broadcast(units.context, outcomes.without) as sent:

        def rows(block: RowBlock) -> tuple[FloatArray, FloatArray]:
            left = block.y - observed(sent.value, block) if basis is None else residual(block)
            return _curves(sent.value, basis, block, doses), left

        return average_with_errors(units, rows, ratios, doses)


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


def _curves(
    without: tuple[OutcomeModel, ...],
    basis: FittedBasis | None,
    block: RowBlock,
    doses: FloatArray,
) -> FloatArray:
    """Curves of rows as corrected, out of fold and out of bag."""
    curves = FoldModels(block.folds, without, None).out_of_fold(
        lambda model, rows: model.curves(block.numbers[rows], doses), len(doses)
    )
    if basis is not None:
        curves += sieve_curves(basis, block[ADDED], doses)
    return curves


def _basis(correction: Correction) -> FittedBasis | None:
    """What the rows' additions are coefficients of; executors need no more of a correction."""
    return correction.basis if isinstance(correction, OrthogonalCorrection) else None


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
        name: np.array(each, np.float64) for name, each in stored.items() if isinstance(each, list)
    }
    plain = {
        name: value for name, value in stored.items() if name != "degrees" or value is not None
    }
    return AverageDoseResponse(**{**plain, **arrays})
