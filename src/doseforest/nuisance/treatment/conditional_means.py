"""Conditional means given the covariates, cross-fitted and never over-confident."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from doseforest.base.concurrency import side_by_side
from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.data.row_blocks import OneBlock, RowBlock, RowBlocks, Sums
from doseforest.nuisance.cross_fit import HELD_OUT, FoldSplit, fold_splits
from doseforest.nuisance.encoding.category_encoding import CategoryCounts, fit_encoder

BOOSTING = {
    "num_leaves": 8,
    "min_data_in_leaf": 20,
    "learning_rate": 0.06,
    "max_bin": 63,
    "deterministic": True,
    "force_col_wise": True,
    "verbosity": -1,
    "num_threads": 1,
}
N_TREES = 120


def cross_fit_means(
    X: FloatArray,
    targets: FloatArray,
    folds: IntArray,
    *,
    weights: FloatArray | None = None,
    regressor: Any = None,
    counts: CategoryCounts | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> FloatArray:
    """Means of the targets given X, shape (n_rows, n_targets), from models that missed the row.

    Each prediction is drawn towards the overall mean by its out-of-fold slope, kept to [0, 1]:
    where X tells nothing about a target, boosting's noise would only be added to it.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        NaN is missing.
    targets : array of shape (n_rows, n_targets)
    folds : array of shape (n_rows,)
        Rows of fold `HELD_OUT` are out of every fit; see `cross_fit`.
    weights : array of shape (n_rows,), optional
    regressor : regressor, optional
        Cloned for every target and fold; by default boosted trees.
    counts : mapping, optional
        Number of codes of each column of X that holds categories; models see numbers.
    n_threads : int
        Fits that run side by side, one thread each.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, folds = rng.normal(size=(1000, 2)), np.arange(1000) % 4
    >>> targets = np.column_stack([x[:, 0], rng.normal(size=1000)])  # the second is noise
    >>> means = cross_fit_means(x, targets, folds)
    >>> means.std(axis=0).round(1)
    array([1., 0.])
    """
    predicted = np.empty(targets.shape)
    seen = np.where(folds == HELD_OUT, 0.0, 1.0 if weights is None else weights)

    def fit(task: tuple[int, FoldSplit]) -> None:
        column, split = task
        kept, rows = split.kept, split.left_out
        row_weights = None if weights is None else weights[kept]
        table, queries, target = X[kept], X[rows], targets[kept, column]
        if counts:
            encoder, table = fit_encoder(
                table, counts, target[:, None], weights=row_weights, seed=seed
            )
            queries = encoder.encode(queries)
        predicted[rows, column] = _fit_predict(table, target, row_weights, queries, regressor, seed)

    splits = fold_splits(folds)
    tasks = [(column, split) for column in range(targets.shape[1]) for split in splits]
    side_by_side(fit, tasks, n_threads)
    return shrunk_to_mean(predicted, targets, seen)


@dataclass(frozen=True, slots=True, eq=False)
class Shrinkage:
    """How far predictions are drawn towards the overall means of what they predict."""

    centre: FloatArray  # (n_targets,) means of the predictions
    mean: FloatArray  # (n_targets,) means of the targets
    slope: FloatArray  # (n_targets,) of the targets by the predictions, kept to [0, 1]

    def shrunk(self, predicted: FloatArray) -> FloatArray:
        """Predictions times their slopes, around the means, (n_rows, n_targets)."""
        return self.mean + self.slope * (predicted - self.centre)


def fit_shrinkage(
    blocks: RowBlocks,
    text: str,
    rows_of: Callable[[RowBlock], tuple[FloatArray, FloatArray, FloatArray]],
) -> Shrinkage:
    """Slopes of targets by predictions out of fold, in two passes: sums about means do not cancel.

    Parameters
    ----------
    blocks : RowBlocks
    text : str
        What the passes are for.
    rows_of : callable
        From a block to predictions and targets, (n_rows, n_targets), and weights, (n_rows,).
    """

    def levels(block: RowBlock) -> Sums:
        predicted, targets, weights = rows_of(block)
        each = weights[:, None]
        return weights.sum(), _column_sums(each * predicted), _column_sums(each * targets)

    weight, *sums = blocks.add_up(text, levels)
    centre, mean = (total / weight for total in sums)

    def products(block: RowBlock) -> Sums:
        predicted, targets, weights = rows_of(block)
        centred, each = predicted - centre, weights[:, None]
        return _column_sums(each * centred**2), _column_sums(each * centred * (targets - mean))

    variance, covariance = blocks.add_up(text, products)
    slope = np.divide(covariance, variance, out=np.zeros(len(mean)), where=variance > 0)
    return Shrinkage(centre, mean, np.clip(slope, 0.0, 1.0))


def _column_sums(table: FloatArray) -> FloatArray:
    """Sums of columns, pair by pair: along the rows of a table NumPy adds one by one."""
    sums: FloatArray = np.ascontiguousarray(table.T).sum(axis=1)
    return sums


def shrunk_to_mean(
    predicted: FloatArray, targets: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Predictions times their slopes against the targets, kept to [0, 1], around their means.

    Examples
    --------
    >>> shrunk_to_mean(np.array([[-2.0], [2.0]]), np.array([[0.0], [2.0]])).ravel()
    array([0., 2.])
    """
    rows, nothing = np.arange(len(targets)), np.zeros(len(targets))
    block = RowBlock(np.empty((len(rows), 0)), nothing, nothing, weights, rows, rows)
    shrinkage = fit_shrinkage(
        OneBlock(block, n_folds=1), "slopes", lambda each: (predicted, targets, each.row_weights)
    )
    return shrinkage.shrunk(predicted)


def _fit_predict(
    X: FloatArray,
    target: FloatArray,
    weights: FloatArray | None,
    queries: FloatArray,
    regressor: Any,
    seed: int,
) -> FloatArray:
    if regressor is not None:
        model = clone(regressor)
        model.fit(X, target, **({} if weights is None else {"sample_weight": weights}))
        return np.asarray(model.predict(queries), np.float64).reshape(len(queries))
    import lightgbm

    parameters = {**BOOSTING, "seed": seed % 2**31}
    data = lightgbm.Dataset(X, target, weight=weights, params=parameters)
    booster = lightgbm.train(parameters, data, N_TREES, keep_training_booster=True)
    predicted: FloatArray = np.asarray(booster.predict(queries, num_threads=1), np.float64)
    return predicted
