"""Cross-fitting: what is predicted for a row never comes from a model that has seen it.

Rows have folds 0, 1, …, and every model is trained without one of them. A row of fold `HELD_OUT`
is out of them all: no model is trained on it, and the model of all other rows predicts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from doseforest.base.concurrency import side_by_side
from doseforest.base.dtypes import FloatArray, IntArray

HELD_OUT = -1

Model = TypeVar("Model")


@dataclass(frozen=True, slots=True, eq=False)
class FoldSplit:
    """Rows that a model is trained on, and rows that it predicts."""

    fold: int  # 0, 1, …, or HELD_OUT
    kept: IntArray  # rows of all other folds
    left_out: IntArray  # rows of the fold


def draw_folds(ids: IntArray, n_folds: int, seed: int) -> IntArray:
    """Fold of each row, of nearly equal numbers of ids; rows that share an id share the fold.

    Examples
    --------
    >>> np.bincount(draw_folds(np.arange(10), n_folds=4, seed=0))
    array([3, 3, 2, 2])
    """
    distinct, codes = np.unique(ids, return_inverse=True)
    places = np.random.default_rng(seed).permutation(len(distinct)) % n_folds
    return places[codes].astype(np.int64)


def split_of(folds: IntArray, fold: int) -> FoldSplit:
    """The split without one fold; without `HELD_OUT` it trains on all rows that have a fold.

    Examples
    --------
    >>> split = split_of(np.array([0, 1, 1, HELD_OUT]), HELD_OUT)
    >>> split.kept, split.left_out
    (array([0, 1, 2]), array([3]))
    """
    kept = np.flatnonzero((folds != HELD_OUT) & (folds != fold))
    return FoldSplit(fold, kept, np.flatnonzero(folds == fold))


def fold_splits(folds: IntArray) -> list[FoldSplit]:
    """A split for each fold, then one for rows that are held out, if there are any.

    Examples
    --------
    >>> [split.left_out.tolist() for split in fold_splits(np.array([0, 1, 1, HELD_OUT]))]
    [[0], [1, 2], [3]]
    """
    splits = [split_of(folds, fold) for fold in range(int(folds.max()) + 1)]
    held_out = split_of(folds, HELD_OUT)
    return [*splits, held_out] if len(held_out.left_out) else splits


@dataclass(frozen=True, slots=True, eq=False)
class FoldModels(Generic[Model]):
    """A model trained without each fold, and one of all rows that have a fold."""

    folds: IntArray  # (n_rows,)
    models: tuple[Model, ...]  # (n_folds,)
    full: Model | None  # None: nobody has asked for it, and no row is held out

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.models)

    def by_fold(self) -> Iterator[tuple[int, Model]]:
        """Folds that rows have, each with the model that has not seen it."""
        for fold in np.unique(self.folds).tolist():
            model = self.full if fold == HELD_OUT else self.models[fold]
            assert model is not None  # `cross_fit` trains it where rows are held out
            yield fold, model

    def with_rows(self) -> Iterator[tuple[Model, IntArray]]:
        """Models with the places of the rows that they have not seen."""
        for fold, model in self.by_fold():
            yield model, np.flatnonzero(self.folds == fold)

    def out_of_fold(
        self, predict: Callable[[Model, IntArray], FloatArray], *width: int
    ) -> FloatArray:
        """Predictions of the rows by models that have not seen them, (n_rows, *width).

        Parameters
        ----------
        predict : callable
            From a model and places of rows to their predictions, (n, *width).
        """
        out = np.empty((len(self.folds), *width))
        for model, rows in self.with_rows():
            out[rows] = predict(model, rows)
        return out


def cross_fit(
    fit: Callable[[IntArray], Model],
    folds: IntArray,
    *,
    full: bool = False,
    n_threads: int = 1,
    on_progress: Callable[[int], None] = lambda done: None,
) -> FoldModels[Model]:
    """Train a model without each fold.

    Parameters
    ----------
    fit : callable
        From places of rows to a model of them.
    folds : array of shape (n_rows,)
        Fold of each row, 0, 1, …, or `HELD_OUT`.
    full : bool, default=False
        Whether to train a model of all rows, too; one is trained anyway where rows are held out.
    n_threads : int, default=1
        Models that are trained side by side.
    on_progress : callable
        Called with 1 after each round of models.

    Examples
    --------
    >>> y, folds = np.array([1.0, 2.0, 4.0, 9.0]), np.array([0, 1, 1, HELD_OUT])
    >>> means = cross_fit(lambda rows: y[rows].mean(), folds)
    >>> means.out_of_fold(lambda mean, rows: np.full(len(rows), mean))
    array([3.        , 1.        , 1.        , 2.33333333])
    """
    (repeat,) = cross_fit_repeats(
        fit, folds[None], full=full, n_threads=n_threads, on_progress=on_progress
    )
    return repeat


def cross_fit_repeats(
    fit: Callable[[IntArray], Model],
    folds: IntArray,
    *,
    full: bool = False,
    n_threads: int = 1,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[FoldModels[Model], ...]:
    """Train without each fold of several draws, (n_repeats, n_rows), which hold out the same rows.

    The model of all rows is one for all draws; parameters are those of `cross_fit`.
    """
    counts = [int(drawn.max()) + 1 for drawn in folds]
    kept = [
        split_of(drawn, fold).kept
        for drawn, count in zip(folds, counts, strict=True)
        for fold in range(count)
    ]
    everyone = []
    if full or (folds[0] == HELD_OUT).any():
        everyone = [split_of(folds[0], HELD_OUT).kept]
    models = side_by_side(fit, [*everyone, *kept], n_threads, on_progress)
    whole = models[0] if everyone else None
    ends = len(everyone) + np.cumsum([0, *counts])
    return tuple(
        FoldModels(drawn, tuple(models[first:last]), whole)
        for drawn, first, last in zip(folds, ends[:-1], ends[1:], strict=True)
    )
