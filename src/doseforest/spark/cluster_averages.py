"""Average dose-response curves of the training rows, from models and trees that missed them."""

from __future__ import annotations

from doseforest.base.dtypes import FloatArray
from doseforest.data.row_blocks import RowBlock, Sums
from doseforest.doses.bases.dose_basis import FittedBasis
from doseforest.estimator.averages.average_curves import AverageDoseResponse
from doseforest.estimator.corrections.sieve_forests import OrthogonalCorrection, sieve_curves
from doseforest.estimator.corrections.sieve_rows import ADDED, residual
from doseforest.estimator.effect_forest import Correction
from doseforest.nuisance.outcome.outcome_models import OutcomeModel
from doseforest.spark.cluster_intervals import average_with_errors
from doseforest.spark.cluster_outcome import FoldOutcomes, by_fold, observed
from doseforest.spark.cluster_units import Units
from doseforest.spark.jobs import broadcast
from doseforest.spark.treatment_ratios import TreatmentRatios


def average_curve(
    units: Units, outcomes: FoldOutcomes, correction: Correction, doses: FloatArray
) -> FloatArray:
    """Mean of the rows' corrected curves at some doses."""
    basis = _basis(correction)
    with broadcast(units.context, outcomes.without) as sent:

        def sums(block: RowBlock) -> Sums:
            curves, own = _curves(sent.value, basis, block, doses), block.row_weights
            return own.sum(), own @ curves

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
            if basis is None:
                left = block.y - by_fold(sent.value, block, observed)
            else:
                left = residual(block)
            return _curves(sent.value, basis, block, doses), left

        return average_with_errors(units, rows, ratios, doses)


def _curves(
    without: tuple[OutcomeModel, ...],
    basis: FittedBasis | None,
    block: RowBlock,
    doses: FloatArray,
) -> FloatArray:
    """Curves of rows as corrected, out of fold and out of bag."""
    curves = by_fold(
        without, block, lambda model, own, rows: model.curves(own.numbers[rows], doses)
    )
    if basis is not None:
        curves += sieve_curves(basis, block[ADDED], doses)
    return curves


def _basis(correction: Correction) -> FittedBasis | None:
    """What the rows' additions are coefficients of; executors need no more of a correction."""
    return correction.basis if isinstance(correction, OrthogonalCorrection) else None
