"""The ways in which leaves of a sieve are read."""

from __future__ import annotations

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.estimator.corrections.dose_shapes import DoseShape
from doseforest.estimator.corrections.sieve_forests import Reading

RIDGE = 10.0  # rows' worth of shrinkage of a coefficient


def offset_readings(
    shape: DoseShape, spread: FloatArray, n_effective: float, label: str
) -> list[Reading]:
    """Offsets in functions up to the first, the third and the last order, beside indicators.

    The penalty is in rows at which a function is not 0, against its spread there: RIDGE rows for
    indicators and for a few functions, k^3 rows for one of order k of all. Units that could not
    have had the dose of an indicator bring next to nothing to its moments: without the penalty
    noise would be divided by next to nothing.
    """
    readings = []
    for n_used in shape.sizes(1, shape.split_order):
        rows = np.full(n_used, RIDGE)
        if n_used > shape.n_used(shape.split_order):
            rows[shape.n_indicators :] = shape.orders**3.0
        penalty = tuple((rows * spread[:n_used] / n_effective).tolist())
        readings.append(Reading(f"offset of {n_used}, {label}", n_used, penalty))
    return readings


def plain_readings(shape: DoseShape, label: str) -> list[Reading]:
    """Mean curves in functions up to the third and the last order, beside indicators."""
    return [
        Reading(f"mean of {size}, {label}", size, None) for size in shape.sizes(shape.split_order)
    ]
