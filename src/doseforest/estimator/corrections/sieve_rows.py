"""What the orthogonal correction makes of the rows: columns of blocks, and sums over all of them.

Functions of the dose are those of the basis without the constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.row_blocks import RowBlock, RowBlocks, Sums
from doseforest.estimator.corrections.dose_shapes import FUNCTIONS
from doseforest.estimator.corrections.moments import moment_channels
from doseforest.estimator.corrections.shape_stack import TARGET

CENTRED = "centred"  # (n_rows, n_functions) functions less their means given the covariates
CURVES = "curves"  # (n_rows, n_functions) coefficients of the outcome model's curves
LEFT = "left"  # (n_rows,) outcome less the outcome model's prediction
ADDED = "added"  # (n_rows, n_functions) what rounds have added so far, out of bag
SCORES = "scores"  # (n_rows, n_functions) corrected curves plus dual functions times residual


def residual(block: RowBlock) -> FloatArray:
    """What the corrected curves leave of the outcomes."""
    left: FloatArray = block[LEFT] - (block[FUNCTIONS] * block[ADDED]).sum(axis=1)
    return left


def corrected(block: RowBlock) -> FloatArray:
    """Coefficients of the curves as corrected so far."""
    curves: FloatArray = block[CURVES] + block[ADDED]
    return curves


def leaf_channels(block: RowBlock) -> FloatArray:
    """What leaves add up: packed moments, then scores."""
    return np.hstack([moment_channels(block[CENTRED], block[TARGET]), block[SCORES]])


@dataclass(frozen=True, slots=True)
class Everyone:
    """Means over the rows that fill leaves, and sums that a row is left out of."""

    channels: FloatArray  # (n_leaf_channels,)
    spread: FloatArray  # (n_functions,) mean squares of the residualised functions
    total: FloatArray  # (n_leaf_channels,) sums over groups
    weight: float

    def without(self, block: RowBlock) -> FloatArray:
        """Mean leaf channels of everyone but a row and its group, for each row of a block."""
        sums, groups = _group_sums(block), block.groups
        others = np.append(self.total, self.weight) - sums[:, groups].T
        means: FloatArray = others[:, :-1] / others[:, -1:]
        return means


def measure_everyone(blocks: RowBlocks) -> Everyone:
    """Sum what the rows bring to leaves."""

    def sums(block: RowBlock) -> Sums:
        weights, channels = block.leaf_weights, leaf_channels(block)
        return (
            weights.sum(),
            (channels * weights[:, None]).sum(axis=0),
            (block[CENTRED] ** 2 * weights[:, None]).sum(axis=0),
            np.array([column.sum() for column in _group_sums(block)]),
        )

    weight, channels, squares, by_group = blocks.add_up("moments of all rows", sums)
    return Everyone(channels / weight, squares / weight, by_group[:-1], float(by_group[-1]))


def _group_sums(block: RowBlock) -> FloatArray:
    """Weighted sums of the leaf channels and, last, of ones over the rows of each group."""
    weights, groups = block.leaf_weights, block.groups
    columns = (*leaf_channels(block).T, 1.0)
    return np.stack([np.bincount(groups, weights=weights * column) for column in columns])
