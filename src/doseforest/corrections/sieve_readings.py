"""Which functions of the dose a sieve has, and the ways in which its leaves are read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.corrections.sieve_forests import Reading
from doseforest.dtypes import FloatArray, IntArray

SPLIT_ORDER = 3  # of the functions that trees split by, beside indicators
JOINT_SPLIT_ORDER = 2  # the same where doses have several components: five functions of two
RIDGE = 10.0  # rows' worth of shrinkage of a coefficient


@dataclass(frozen=True, slots=True, eq=False)
class SieveShape:
    """What kind of functions of the dose there are, the constant left out."""

    n_indicators: int  # the first functions, each of a level or a point mass
    orders: IntArray  # (n_smooth,) ascending, of the others
    split_order: int  # of the last function that trees split by
    deviation: FloatArray  # (n_functions,) standard deviation
    active: FloatArray  # (n_functions,) share of the rows where a function is not 0

    @classmethod
    def of(
        cls, functions: FloatArray, weights: FloatArray | None, orders: IntArray | None
    ) -> SieveShape:
        """Tell the shape; `orders` are those of all functions, where they are not 1, 2, …."""
        mean = np.average(functions, axis=0, weights=weights)
        return cls.of_moments(
            is_indicator=np.asarray(np.isin(functions, (0.0, 1.0)).all(axis=0)),
            variance=np.average((functions - mean) ** 2, axis=0, weights=weights),
            active=np.average(functions != 0, axis=0, weights=weights),
            orders=orders,
        )

    @classmethod
    def of_moments(
        cls,
        *,
        is_indicator: NDArray[np.bool_],
        variance: FloatArray,
        active: FloatArray,
        orders: IntArray | None,
    ) -> SieveShape:
        """Tell the shape from what is known of each function."""
        n_indicators = int(np.argmin(np.append(is_indicator, False)))
        n_smooth = len(variance) - n_indicators
        if orders is None:
            own, split_order = np.arange(1, n_smooth + 1), SPLIT_ORDER
        else:
            own, split_order = orders[1 + n_indicators :], JOINT_SPLIT_ORDER
        return cls(n_indicators, own, split_order, np.sqrt(variance), active)

    def n_used(self, order: int) -> int:
        """Number of functions when all indicators and the others up to an order are used."""
        return self.n_indicators + int((self.orders <= order).sum())

    def sizes(self, *orders: int) -> list[int]:
        """Numbers of functions to try."""
        return sorted({*map(self.n_used, orders), len(self.deviation)})


def offset_readings(
    shape: SieveShape, spread: FloatArray, n_effective: float, label: str
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


def plain_readings(shape: SieveShape, label: str) -> list[Reading]:
    """Mean curves in functions up to the third and the last order, beside indicators."""
    return [
        Reading(f"mean of {size}, {label}", size, None) for size in shape.sizes(shape.split_order)
    ]
