"""The units of a fit, spread over a cluster: blocks of rows, and sums over all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.seeds import draw, stream
from doseforest.data.row_blocks import Item, Result, RowBlock, Sums
from doseforest.data.sampling import DRAW_FOLD
from doseforest.doses.dose_values import Doses
from doseforest.spark.jobs import Kept, described


@dataclass(slots=True, eq=False)
class Units:
    """All rows of a fit: an RDD with one block in every partition, kept on the executors.

    Stages add columns to the blocks. They lie in one data set, not in several side by side: a job
    that reads two of those needs two Python workers for every task.
    """

    blocks: Any  # RDD of RowBlock
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

    def add_up(self, text: str, function: Callable[[RowBlock], Sums]) -> Sums:
        """Sum a tuple of arrays over the blocks."""
        return add_up(self.blocks, text, function)

    def largest(self, text: str, function: Callable[[RowBlock], Sums]) -> Sums:
        """Elementwise maxima of a tuple of arrays over the blocks."""
        return largest(self.blocks, text, function)

    def triangles(
        self, text: str, function: Callable[[RowBlock], list[FloatArray]]
    ) -> list[FloatArray]:
        """Triangles of QR factorisations of rows that a function makes of each block, by part."""

        def merged(first: list[FloatArray], second: list[FloatArray]) -> list[FloatArray]:
            return _triangles([np.vstack(both) for both in zip(first, second, strict=True)])

        with described(self.context, text):
            result: list[FloatArray] = self.blocks.map(
                lambda block: _triangles(function(block))
            ).treeReduce(merged)
        return result

    def each(
        self, text: str, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Results of work that needs no rows, for each item, in a task of its own."""
        with described(self.context, text):
            results: list[Result] = (
                self.context.parallelize(items, len(items)).map(function).collect()
            )
        return results

    def add(
        self,
        text: str,
        make: Callable[[RowBlock], Mapping[str, Any]],
        dropped: Collection[str] = (),
    ) -> None:
        """Give every block more columns; what they replace is released."""
        before = self.blocks
        made = self.kept.keep(before.map(lambda block: block.with_columns(make(block), dropped)))
        with described(self.context, text):
            made.count()
        self.blocks = made
        self.kept.release(before)


def joined_blocks(blocks: Iterable[RowBlock], n_features: int, n_components: int = 1) -> RowBlock:
    """Put blocks without columns one behind the other; none of them make a block without rows."""
    parts = list(blocks)
    if not parts:
        none, dose = np.zeros(0, np.int64), Doses.of_table(np.zeros((0, n_components))).values
        return RowBlock(np.zeros((0, n_features)), dose, np.zeros(0), None, none, none)

    def together(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else np.concatenate(values)

    names = ("X", "dose", "y", "weights", "ids", "folds", "keys")
    return RowBlock(**{name: together(name) for name in names})


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


def _triangles(parts: list[FloatArray]) -> list[FloatArray]:
    return [np.asarray(np.linalg.qr(part, mode="r")) if len(part) else part for part in parts]
