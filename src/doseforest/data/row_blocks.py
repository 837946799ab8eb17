"""Rows as blocks: what the steps of the algorithm are functions of.

A step makes sums over the rows of a block, which are added up, or columns of a block's rows. On one
machine all rows are one block; a cluster has one for each partition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray

Sums = tuple[Any, ...]  # arrays and numbers that add up
Item = TypeVar("Item")
Result = TypeVar("Result")
NUMBERS = "numbers"  # the column of covariates with numbers in the place of categories
LEAF_WEIGHTS = "leaf weights"  # the column of weights in leaves, where some rows only grow trees


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Some of the rows of a fit.

    Examples
    --------
    >>> rows = np.arange(4)
    >>> block = RowBlock(np.zeros((4, 1)), 2.0 * rows, np.ones(4), None, rows, rows % 2)
    >>> half = block.with_columns({"square": block.dose**2}).take(block.folds == 1)
    >>> half["square"], half.row_weights
    (array([ 4., 36.]), array([1., 1.]))
    """

    X: FloatArray  # (n_rows, n_features), codes in the place of categories; NaN is missing
    dose: DoseArray  # (n_rows,)
    y: FloatArray  # (n_rows,)
    weights: NDArray[Any] | None  # (n_rows,) of mean 1 over all rows; None: all equal
    ids: IntArray  # (n_rows,) of the row or its group: what rows are drawn by
    folds: IntArray  # (n_rows,)
    columns: Mapping[str, Any] = field(default_factory=dict)  # what stages have made of the rows
    keys: IntArray | None = None  # (n_rows,) what samples are drawn by; None: the ids

    def __len__(self) -> int:
        return len(self.y)

    @property
    def row_weights(self) -> FloatArray:
        """Weights as numbers to multiply with."""
        return np.ones(len(self)) if self.weights is None else np.asarray(self.weights, np.float64)

    @property
    def leaf_weights(self) -> FloatArray:
        """Weights of the rows in leaves: 0 for rows that only grow trees."""
        weights: FloatArray | None = self.columns.get(LEAF_WEIGHTS)
        return self.row_weights if weights is None else weights

    @property
    def groups(self) -> IntArray:
        """Numbers 0, 1, … of the ids: rows of a group are in one block."""
        return np.unique(self.ids, return_inverse=True)[1].astype(np.int64)

    @property
    def numbers(self) -> FloatArray:
        """Covariates for models that take numbers only: X itself where nothing is categorical."""
        table: FloatArray = self.columns.get(NUMBERS, self.X)
        return table

    @property
    def sample_keys(self) -> IntArray:
        """What samples of rows are drawn by: of groups one might have few or none."""
        return self.ids if self.keys is None else self.keys

    def __getitem__(self, name: str) -> Any:
        """What a stage has made of the rows, one entry each."""
        return self.columns[name]

    def with_columns(self, made: Mapping[str, Any], dropped: Collection[str] = ()) -> RowBlock:
        """Return the rows with more columns, or without some."""
        kept = {name: values for name, values in self.columns.items() if name not in dropped}
        return replace(self, columns={**kept, **made})

    def take(self, rows: Any) -> RowBlock:
        """Return some of the rows: a slice or marks of them."""
        return RowBlock(
            self.X[rows],
            self.dose[rows],
            self.y[rows],
            None if self.weights is None else self.weights[rows],
            self.ids[rows],
            self.folds[rows],
            {name: values[rows] for name, values in self.columns.items()},
            None if self.keys is None else self.keys[rows],
        )


class RowBlocks(Protocol):
    """All rows of a fit, wherever their blocks are; `text` says what a pass over them is for."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_folds(self) -> int:
        """Number of folds."""

    def add(
        self,
        text: str,
        make: Callable[[RowBlock], Mapping[str, Any]],
        dropped: Collection[str] = (),
    ) -> None:
        """Give every block more columns, in the place of some."""

    def add_up(self, text: str, function: Callable[[RowBlock], Sums]) -> Sums:
        """Sum a tuple of arrays over the blocks."""

    def triangles(
        self, text: str, function: Callable[[RowBlock], list[FloatArray]]
    ) -> list[FloatArray]:
        """Triangles of QR factorisations of rows that a function makes of each block, by part.

        They have the same least squares problems in a few rows.
        """

    def each(
        self, text: str, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Results of work that needs no rows, for each item."""


@dataclass(slots=True, eq=False)
class OneBlock:
    """All rows of a fit as one block.

    Examples
    --------
    >>> rows = np.arange(4)
    >>> block = RowBlock(np.zeros((4, 1)), 2.0 * rows, np.ones(4), None, rows, rows % 2)
    >>> OneBlock(block, n_folds=2).add_up("doses", lambda block: (block.dose.sum(), len(block)))
    (np.float64(12.0), 4)
    """

    block: RowBlock
    n_folds: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.block)

    def add(
        self,
        text: str,
        make: Callable[[RowBlock], Mapping[str, Any]],
        dropped: Collection[str] = (),
    ) -> None:
        """Give the rows more columns, in the place of some."""
        self.block = self.block.with_columns(make(self.block), dropped)

    def add_up(self, text: str, function: Callable[[RowBlock], Sums]) -> Sums:
        """Sums over all rows."""
        return function(self.block)

    def triangles(
        self, text: str, function: Callable[[RowBlock], list[FloatArray]]
    ) -> list[FloatArray]:
        """Triangles of QR factorisations of each part."""
        return [np.asarray(np.linalg.qr(part, mode="r")) for part in function(self.block)]

    def each(
        self, text: str, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Results for each item, one after the other."""
        return [function(item) for item in items]
