"""What kind of functions of the dose a basis has, and what trees split by of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.data.row_blocks import RowBlock, RowBlocks, Sums

SPLIT_ORDER = 3  # of the functions that trees split by, beside indicators
FUNCTIONS = "functions"  # the column of functions of the dose, the constant left out
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


@dataclass(frozen=True, slots=True, eq=False)
class Duals:
    """Functions whose mean product with a curve is its coefficient."""

    mean: FloatArray  # (n_functions,) of the functions of the dose
    inverse: FloatArray  # (n_functions, n_functions) of their covariances

    def of(self, functions: FloatArray) -> FloatArray:
        """Dual functions of rows: their own when functions are orthonormal."""
        return (functions - self.mean) @ self.inverse


def measure_functions(blocks: RowBlocks, orders: IntArray | None) -> tuple[DoseShape, Duals]:
    """The shape of the functions in the column `FUNCTIONS`, and their duals.

    Parameters
    ----------
    blocks : RowBlocks
    orders : array of int, optional
        Orders of all functions, where they are not 1, 2, ….
    """

    def first(block: RowBlock) -> Sums:
        weights, functions = block.row_weights, block[FUNCTIONS]
        total = (functions * weights[:, None]).sum(axis=0)
        active = ((functions != 0) * weights[:, None]).sum(axis=0)
        return weights.sum(), total, active, (~np.isin(functions, (0.0, 1.0))).sum(axis=0)

    weight, total, active, others = blocks.add_up("means of the functions of the dose", first)
    mean = total / weight

    def second(block: RowBlock) -> Sums:
        weights, offset = block.row_weights[:, None], block[FUNCTIONS] - mean
        return (offset**2 * weights).sum(axis=0), (offset * weights).T @ offset

    squares, products = blocks.add_up("products of the functions of the dose", second)
    shape = DoseShape.of(
        is_indicator=others == 0, variance=squares / weight, active=active / weight, orders=orders
    )
    return shape, Duals(mean, np.linalg.pinv(products / weight, hermitian=True))
