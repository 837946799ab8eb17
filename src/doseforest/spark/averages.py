"""The average dose-response curve of the training rows, from models and trees that missed them."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.corrections.sieve_forests import OrthogonalCorrection, sieve_curves
from doseforest.dtypes import FloatArray
from doseforest.prediction.effect_forest import Correction
from doseforest.spark.jobs import broadcast
from doseforest.spark.outcome import FoldOutcomes, by_fold
from doseforest.spark.units import UnitBlock, Units, add_up


def average_curve(
    units: Units, outcomes: FoldOutcomes, correction: Correction, rows: Any, doses: FloatArray
) -> FloatArray:
    """Mean of the rows' corrected curves at some doses; `rows` is None without a correction."""
    with broadcast(units.context, outcomes.without) as sent:

        def modelled(block: UnitBlock) -> tuple[Any, ...]:
            curves = by_fold(sent.value, block, lambda model, own, r: model.curves(own.X[r], doses))
            return block.own_weights.sum(), block.own_weights @ curves

        weight, total = add_up(units.blocks, "average of the outcome model's curves", modelled)
    average: FloatArray = total / weight
    if rows is None or not isinstance(correction, OrthogonalCorrection):
        return average
    _, added = add_up(
        units.beside(rows),
        "average of the corrections",
        lambda pair: (pair[0].own_weights.sum(), pair[0].own_weights @ pair[1].added),
    )
    average += sieve_curves(correction.basis, np.atleast_2d(added / weight), doses)[0]
    return average
