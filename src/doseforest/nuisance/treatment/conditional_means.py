"""Conditional means given the covariates, cross-fitted and never over-confident."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from doseforest.base.concurrency import side_by_side
from doseforest.base.dtypes import FloatArray, IntArray
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
        own = None if weights is None else weights[kept]
        table, queries, target = X[kept], X[rows], targets[kept, column]
        if counts:
            encoder, table = fit_encoder(table, counts, target[:, None], weights=own, seed=seed)
            queries = encoder.encode(queries)
        predicted[rows, column] = _fit_predict(table, target, own, queries, regressor, seed)

    splits = fold_splits(folds)
    tasks = [(column, split) for column in range(targets.shape[1]) for split in splits]
    side_by_side(fit, tasks, n_threads)
    shrunk = [
        shrunk_to_mean(own, target, seen)
        for own, target in zip(predicted.T, targets.T, strict=True)
    ]
    return np.stack(shrunk, axis=1)


def shrunk_to_mean(
    predicted: FloatArray, target: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Predictions times their slope against the target, kept to [0, 1], around its mean.

    Examples
    --------
    >>> shrunk_to_mean(np.array([-2.0, 2.0]), np.array([0.0, 2.0]))
    array([0., 2.])
    """
    own = np.ones(len(target)) if weights is None else weights
    centred = predicted - np.average(predicted, weights=own)
    mean = float(np.average(target, weights=own))
    variance = float((own * centred**2).sum())
    slope = float((own * centred * (target - mean)).sum()) / variance if variance > 0 else 0.0
    return mean + min(max(slope, 0.0), 1.0) * centred


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
