"""What numeric covariates explain of some columns by a line, from sums over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.data.row_blocks import RowBlock, RowBlocks, Sums

RIDGE = 1e-2  # per row, on standardised covariates


@dataclass(frozen=True, slots=True, eq=False)
class NumericLine:
    """A line in the numeric covariates.

    Without the line, what covariates do would be noise, or bias, in what categories seem to do.
    """

    columns_of: Callable[[RowBlock], FloatArray]
    numeric: IntArray  # (n_numeric,) features
    level: FloatArray  # (n_numeric,) their means
    scale: FloatArray  # (n_numeric,) infinite for a constant
    centre: FloatArray  # (n_numeric,) means of the offsets
    means: FloatArray  # (n_columns,)
    slopes: FloatArray  # (n_numeric, n_columns)

    def offsets(self, block: RowBlock) -> FloatArray:
        """Standardised covariates, about 0 where missing."""
        X = block.X[:, self.numeric]
        standardised: FloatArray = np.where(np.isnan(X), 0.0, X - self.level) / self.scale
        return standardised - self.centre

    def left(self, block: RowBlock) -> FloatArray:
        """What the line leaves of the columns, of weighted mean 0 each."""
        centred: FloatArray = self.columns_of(block) - self.means
        return centred - self.offsets(block) @ self.slopes


def fit_line(
    blocks: RowBlocks, counts: Mapping[int, int], columns_of: Callable[[RowBlock], FloatArray]
) -> NumericLine:
    """Least squares on standardised covariates with a little ridge."""

    def first(block: RowBlock) -> Sums:
        numeric = np.setdiff1d(np.arange(block.X.shape[1]), list(counts))
        X, weights = block.X[:, numeric], block.row_weights[:, None]
        gap = np.isnan(X)
        present = np.where(gap, 0.0, weights)
        total = (columns_of(block) * weights).sum(axis=0)
        known = present.sum(axis=0), (present * np.where(gap, 0.0, X)).sum(axis=0)
        return weights.sum(), total, *known

    def sums_of(values: Callable[[RowBlock], FloatArray]) -> Callable[[RowBlock], Sums]:
        return lambda block: ((values(block) * block.row_weights[:, None]).sum(axis=0),)

    weight, total, present, sums = blocks.add_up("means of covariates", first)
    n_features = len(sums) + len(counts)
    nothing, numeric = np.zeros(len(sums)), np.setdiff1d(np.arange(n_features), list(counts))
    level, ones = sums / np.maximum(present, 1e-300), np.ones(len(sums))
    slopes = np.zeros((len(sums), len(total)))
    line = NumericLine(columns_of, numeric, level, ones, nothing, total / weight, slopes)
    if not len(sums):
        return line
    offsets = line.offsets
    (squares,) = blocks.add_up("scales of covariates", sums_of(lambda block: offsets(block) ** 2))
    scale = np.sqrt(squares / weight)
    line = replace(line, scale=np.where(scale > 1e-12 * np.abs(level), scale, np.inf))
    (about,) = blocks.add_up("means of offsets", sums_of(line.offsets))
    line = replace(line, centre=about / weight)

    def products(block: RowBlock) -> Sums:
        offset, left = line.offsets(block), line.left(block)
        weighted = block.row_weights[:, None] * offset
        return weighted.T @ offset, weighted.T @ left

    gram, cross = blocks.add_up("products of covariates", products)
    penalty = RIDGE * weight * np.eye(len(sums))
    return replace(line, slopes=np.linalg.solve(gram + penalty, cross))
