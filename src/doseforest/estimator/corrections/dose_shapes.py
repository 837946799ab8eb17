"""What kind of functions of the dose a basis has, and what trees split by of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray

SPLIT_ORDER = 3  # of the functions that trees split by, beside indicators
JOINT_SPLIT_ORDER = 2  # the same where doses have several components: five functions of two


@dataclass(frozen=True, slots=True, eq=False)
class DoseShape:
    """What kind of functions of the dose there are, the constant left out."""

    n_indicators: int  # the first functions, each of a level or a point mass
    orders: IntArray  # (n_smooth,) ascending, of the others
    split_order: int  # of the last function that trees split by
    deviation: FloatArray  # (n_functions,) standard deviation
    active: FloatArray  # (n_functions,) share of the rows where a function is not 0

    @classmethod
    def of(
        cls, functions: FloatArray, weights: FloatArray | None, orders: IntArray | None
    ) -> DoseShape:
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
    ) -> DoseShape:
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

    def split_scores(self, scores: FloatArray) -> FloatArray:
        """Scores of the first functions, whose squared distance is about that of the curves."""
        n_used = self.n_used(self.split_order)
        return scores[:, :n_used] * self.deviation[:n_used]

    def sizes(self, *orders: int) -> list[int]:
        """Numbers of functions to try."""
        return sorted({*map(self.n_used, orders), len(self.deviation)})


def dual_functions(functions: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Functions whose mean product with a curve is its coefficient: their own when orthonormal."""
    offset = functions - np.average(functions, axis=0, weights=weights)
    own = np.ones(len(functions)) if weights is None else weights
    gram = (offset * own[:, None]).T @ offset / own.sum()
    dual: FloatArray = offset @ np.linalg.pinv(gram, hermitian=True)
    return dual
