"""The units of a fit, spread over a cluster: blocks of rows, and sums over all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import ChannelArray, DoseArray, FloatArray, IntArray
from doseforest.data.sampling import DRAW_FOLD, draw, stream
from doseforest.doses.vectors import vectors
from doseforest.spark.jobs import Kept, described

Sums = tuple[Any, ...]  # arrays and numbers that add up
NUMBERS = "numbers"  # the column of covariates with numbers in the place of categories


@dataclass(frozen=True, slots=True)
class UnitBlock:
    """Rows of one partition."""

    X: FloatArray  # (n_rows, n_features), codes in the place of categories; NaN is missing
    dose: DoseArray  # (n_rows,)
    y: FloatArray  # (n_rows,)
    weights: ChannelArray | None  # (n_rows,) positive, of mean 1 over all rows; None: all equal
    ids: IntArray  # (n_rows,) of the row or its group: what rows are drawn by
    folds: IntArray  # (n_rows,)
    columns: Mapping[str, Any] = field(default_factory=dict)  # what stages have made of the rows
    keys: IntArray | None = None  # (n_rows,) what samples are drawn by; None: the ids

    def __len__(self) -> int:
        return len(self.y)

    @property
    def own_weights(self) -> FloatArray:
        """Weights as numbers to multiply with."""
        return np.ones(len(self)) if self.weights is None else self.weights.astype(np.float64)

    @property
    def numbers(self) -> FloatArray:
        """Covariates for models that take numbers only: X itself where nothing is categorical."""
        found: FloatArray = self.columns.get(NUMBERS, self.X)
        return found

    @property
    def sample_keys(self) -> IntArray:
        """What samples of rows are drawn by: of groups one might have few or none."""
        return self.ids if self.keys is None else self.keys

    def __getitem__(self, name: str) -> Any:
        """What a stage has made of the rows, one entry each."""
        return self.columns[name]

    def with_columns(self, made: Mapping[str, Any], dropped: Collection[str] = ()) -> UnitBlock:
        """Return the rows with more columns, or without some."""
        kept = {name: own for name, own in self.columns.items() if name not in dropped}
        return replace(self, columns={**kept, **made})

    def take(self, rows: Any) -> UnitBlock:
        """Return some of the rows: a slice or marks of them."""
        return UnitBlock(
            self.X[rows],
            self.dose[rows],
            self.y[rows],
            None if self.weights is None else self.weights[rows],
            self.ids[rows],
            self.folds[rows],
            {name: own[rows] for name, own in self.columns.items()},
            None if self.keys is None else self.keys[rows],
        )

    @staticmethod
    def join(blocks: Iterable[UnitBlock], n_features: int, n_components: int = 1) -> UnitBlock:
        """Put blocks one behind the other; none of them make a block without rows."""
        parts = list(blocks)
        if not parts:
            none, dose = np.zeros(0, np.int64), vectors(np.zeros((0, n_components)))
            return UnitBlock(np.zeros((0, n_features)), dose, np.zeros(0), None, none, none)
        weights = keys = None
        if parts[0].weights is not None:
            weights = np.concatenate([part.weights for part in parts if part.weights is not None])
        if parts[0].keys is not None:
            keys = np.concatenate([part.keys for part in parts if part.keys is not None])
        return UnitBlock(
            np.concatenate([part.X for part in parts]),
            np.concatenate([part.dose for part in parts]),
            np.concatenate([part.y for part in parts]),
            weights,
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.folds for part in parts]),
            keys=keys,
        )


@dataclass(slots=True, eq=False)
class Units:
    """All rows of a fit: an RDD with one block in every partition, kept on the executors.

    Stages add columns to the blocks. They lie in one data set, not in several side by side: a job
    that reads two of those needs two Python workers for every task.
    """

    blocks: Any  # RDD of UnitBlock
    kept: Kept
    n_rows: int
    n_features: int
    n_folds: int
    seed: int
    weighted: bool
    n_numbers: int = 0  # of the covariates as numbers

    def __post_init__(self) -> None:
        self.n_numbers = self.n_numbers or self.n_features

    @property
    def context(self) -> Any:
        """The Spark context."""
        return self.blocks.context

    def add(
        self,
        text: str,
        make: Callable[[UnitBlock], Mapping[str, Any]],
        dropped: Collection[str] = (),
    ) -> None:
        """Give every block more columns; what they replace is released."""
        before = self.blocks
        made = self.kept.keep(before.map(lambda own: own.with_columns(make(own), dropped)))
        with described(self.context, text):
            made.count()
        self.blocks = made
        self.kept.release(before)


def fold_of(ids: IntArray, n_folds: int, seed: int) -> IntArray:
    """Fold of each id: a hash, so rows of a group share it and nothing has to be stored.

    Examples
    --------
    >>> np.bincount(fold_of(np.arange(1000), 4, seed=0)).tolist()
    [253, 242, 259, 246]
    """
    key = stream(seed, DRAW_FOLD, np.zeros(1, np.uint64))
    hashes: NDArray[np.uint64] = draw(key, ids.astype(np.uint64))
    return (hashes % np.uint64(n_folds)).astype(np.int64)


def add_up(data: Any, text: str, function: Callable[[Any], Sums]) -> Sums:
    """Sum a tuple of arrays over the elements of an RDD; partial sums merge on executors."""
    with described(data.context, text):
        total: Sums = data.map(function).treeReduce(_added)
    return total


def largest(data: Any, text: str, function: Callable[[Any], Sums]) -> Sums:
    """Elementwise maxima of a tuple of arrays over the elements of an RDD."""
    with described(data.context, text):
        total: Sums = data.map(function).treeReduce(_larger)
    return total


def _added(first: Sums, second: Sums) -> Sums:
    return tuple(a + b for a, b in zip(first, second, strict=True))


def _larger(first: Sums, second: Sums) -> Sums:
    return tuple(np.maximum(a, b) for a, b in zip(first, second, strict=True))


def triangle(data: Any, text: str, function: Callable[[Any], FloatArray]) -> FloatArray:
    """Triangles of QR factorisations of rows that a function makes of each element of an RDD.

    The function returns (n_parts, n_rows, n_columns), the result is (n_parts, n_columns,
    n_columns): the same least squares problems in a few rows.
    """
    with described(data.context, text):
        found: FloatArray = data.map(lambda own: _triangles(function(own))).treeReduce(
            lambda first, second: _triangles(np.concatenate([first, second], axis=1))
        )
    return found


def _triangles(rows: FloatArray) -> FloatArray:
    """Triangle of each part, padded with rows of zeros."""
    n_columns = rows.shape[2]
    out = np.zeros((len(rows), n_columns, n_columns))
    for part, own in enumerate(rows):
        found = np.asarray(np.linalg.qr(own, mode="r"))
        out[part, : len(found)] = found
    return out
