"""The average dose-response curve of the training rows, from models and trees that missed them."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.corrections.sieve_forests import OrthogonalCorrection, sieve_curves
from doseforest.dtypes import FloatArray
from doseforest.prediction.effect_forest import Correction
from doseforest.spark.jobs import broadcast
from doseforest.spark.outcome import FoldOutcomes, by_fold
from doseforest.spark.sieve_rows import ADDED
from doseforest.spark.units import UnitBlock, Units, add_up


def average_curve(
    units: Units, outcomes: FoldOutcomes, correction: Correction, doses: FloatArray
) -> FloatArray:
    """Mean of the rows' corrected curves at some doses."""
    corrected = isinstance(correction, OrthogonalCorrection)
    with broadcast(units.context, outcomes.without) as sent:

        def sums(block: UnitBlock) -> tuple[Any, ...]:
            curves = by_fold(
                sent.value, block, lambda model, own, r: model.curves(own.numbers[r], doses)
            )
            own = block.own_weights
            return own.sum(), own @ curves, own @ block[ADDED] if corrected else 0.0

        weight, total, added = add_up(units.blocks, "average curve", sums)
    average: FloatArray = total / weight
    if isinstance(correction, OrthogonalCorrection):
        average += sieve_curves(correction.basis, np.atleast_2d(added / weight), doses)[0]
    return average
