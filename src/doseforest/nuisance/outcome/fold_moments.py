"""Sums of products by fold: all that penalised least squares and its cross-validation need.

Sums add up, so the moments of any set of folds are a sum of arrays, and the error of a fit on a
fold it has not seen follows without touching rows again. The same arrays can be summed by a
cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray

BLOCK_ROWS = 8192
BLOCK_VALUES = 2**23  # 64 MB


@dataclass(frozen=True, slots=True)
class FoldMoments:
    """Weighted sums of products of columns z and of the response y, one entry per fold."""

    gram: FloatArray  # (n_folds, k, k) z z'
    cross: FloatArray  # (n_folds, k) z y
    square: FloatArray  # (n_folds,) y y
    weight: FloatArray  # (n_folds,)

    @property
    def sums(self) -> tuple[FloatArray, ...]:
        """The sums as they add up."""
        return self.gram, self.cross, self.square, self.weight

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.square)

    def without(self, fold: int | None) -> FoldMoments:
        """Moments of all folds but one, or of all, as a single fold."""
        kept = [f for f in range(self.n_folds) if f != fold]
        gram = self.gram[kept[:1]]
        for other in kept[1:]:
            gram += self.gram[other]  # the largest of the sums, without a copy of all that it adds
        return FoldMoments(
            gram,
            self.cross[kept].sum(axis=0, keepdims=True),
            self.square[kept].sum(keepdims=True),
            self.weight[kept].sum(keepdims=True),
        )

    def only(self, columns: IntArray, fold: int = 0) -> FoldMoments:
        """Moments of some columns in one fold, as a single fold."""
        return FoldMoments(
            self.gram[fold][np.ix_(columns, columns)][None],
            self.cross[fold][columns][None],
            self.square[[fold]],
            self.weight[[fold]],
        )

    def squared_error(self, fold: int, coefficients: FloatArray) -> float:
        """Sum of squared errors of a fit on one fold."""
        explained = 2 * self.cross[fold] @ coefficients
        gram = self.gram[fold]
        return float(self.square[fold] - explained + coefficients @ gram @ coefficients)


def fold_blocks(
    folds: IntArray, n_folds: int, n_columns: int
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Rows of each fold, (fold, rows), in blocks whose columns fit into memory."""
    at_once = max(1, min(BLOCK_ROWS, BLOCK_VALUES // max(1, n_columns)))
    for fold in range(n_folds):
        rows = np.flatnonzero(folds == fold)
        for first in range(0, len(rows), at_once):
            yield fold, rows[first : first + at_once]


def sum_moments(
    columns_of: Callable[[NDArray[np.int64]], FloatArray],
    n_columns: int,
    y: FloatArray,
    weights: FloatArray,
    folds: IntArray,
    n_folds: int,
) -> FoldMoments:
    """Sum the moments of columns that are made block by block.

    Examples
    --------
    >>> z = np.array([[1.0], [2.0], [3.0]])
    >>> moments = sum_moments(z.__getitem__, 1, np.ones(3), np.ones(3), np.array([0, 1, 1]), 2)
    >>> moments.gram.ravel(), moments.cross.ravel()
    (array([ 1., 13.]), array([1., 5.]))
    """
    moments = FoldMoments(
        np.zeros((n_folds, n_columns, n_columns)),
        np.zeros((n_folds, n_columns)),
        np.zeros(n_folds),
        np.zeros(n_folds),
    )
    for fold, rows in fold_blocks(folds, n_folds, n_columns):
        own = weights[rows]
        root = np.sqrt(own)
        rooted = columns_of(rows) * root[:, None]
        moments.gram[fold] += rooted.T @ rooted  # of one array: NumPy computes half of it
        moments.cross[fold] += rooted.T @ (root * y[rows])
        moments.square[fold] += own @ y[rows] ** 2
        moments.weight[fold] += own.sum()
    return moments
