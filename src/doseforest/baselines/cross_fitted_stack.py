"""Regressors stacked and cross-fitted: the learner of the doubly robust baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from doseforest.base.dtypes import FloatArray
from doseforest.nuisance.cross_fit import FoldModels, cross_fit, draw_folds
from doseforest.nuisance.outcome.block_predictions import predict_in_blocks
from doseforest.nuisance.outcome.mixtures import convex_weights

BLOCK_UNITS = 10_000  # whose predictions at a grid of doses are in memory at a time


@dataclass(frozen=True, slots=True)
class StackedRegressors:
    """A convex mixture of fitted regressors."""

    members: tuple[Any, ...]
    shares: FloatArray  # (n_members,)

    def predict(self, X: FloatArray) -> FloatArray:
        """Mixture of the predictions; a member without a share is not asked."""
        mixed = np.zeros(len(X))
        for share, member in zip(self.shares, self.members, strict=True):
            if share > 0:
                mixed += share * member.predict(X)
        return mixed


@dataclass(frozen=True, slots=True)
class CrossFittedStack:
    """A stack for each fold that has not seen it; or one for all rows, which has seen them."""

    models: FoldModels[StackedRegressors]
    observed: FloatArray  # (n_rows,) predictions of each row by the stack of its fold

    @property
    def shares(self) -> FloatArray:
        """Shares of the members, the same in all folds."""
        return self.models.models[0].shares

    def average(self, X: FloatArray, grid: FloatArray) -> FloatArray:
        """Mean of the training rows' predictions, by their folds' stacks, at each dose, (n_doses,).

        The last column that the members were fitted on is the dose; X has the others.
        """
        total = np.zeros(len(grid))
        for model, rows in self.models.with_rows():
            for first in range(0, len(rows), BLOCK_UNITS):
                block = X[rows[first : first + BLOCK_UNITS]]
                doses = np.broadcast_to(grid, (len(block), len(grid)))
                total += predict_in_blocks(model, block, doses).sum(axis=0)
        return total / len(X)


def cross_fit_stack(
    members: Sequence[Any],
    X: FloatArray,
    y: FloatArray,
    *,
    n_folds: int,
    seed: int,
    n_threads: int = 1,
    in_sample: bool = False,
) -> CrossFittedStack:
    """Fit regressors without each fold and mix them by their squared error out of fold.

    Parameters
    ----------
    members : sequence of regressors
        They are cloned.
    X : array of shape (n_rows, n_columns)
    y : array of shape (n_rows,)
    n_threads : int
        Folds that are fitted side by side, one thread each; never changes the result.
    in_sample : bool
        Whether the mixture is then fitted to all rows, and asked about the rows it has seen.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 60)[:, None]
    >>> stack = cross_fit_stack(line_and_forest(), x, 3 * x[:, 0], n_folds=3, seed=0)
    >>> stack.shares.round(3), np.abs(stack.observed - 3 * x[:, 0]).max().round(6)
    (array([1., 0.]), np.float64(0.0))
    """
    folds = draw_folds(np.arange(len(y)), n_folds, seed)
    shares = np.ones(1)
    if len(members) > 1 or not in_sample:
        fitted = cross_fit(
            lambda kept: tuple(clone(member).fit(X[kept], y[kept]) for member in members),
            folds,
            n_threads=n_threads,
        )
        predictions = fitted.out_of_fold(
            lambda value, rows: np.stack([member.predict(X[rows]) for member in value], axis=1),
            len(members),
        )
        if len(members) > 1:
            shares = convex_weights(predictions, y)
    if in_sample:
        whole = StackedRegressors(tuple(clone(member).fit(X, y) for member in members), shares)
        seen = FoldModels(np.zeros(len(y), dtype=folds.dtype), (whole,), whole)
        return CrossFittedStack(seen, whole.predict(X))
    by_fold = tuple(StackedRegressors(model, shares) for model in fitted.models)
    return CrossFittedStack(FoldModels(folds, by_fold, None), predictions @ shares)


def line_and_forest(seed: int = 0, *, like_ranger: bool = False) -> list[Any]:
    """A linear regression and a random forest; for the line, missing features are medians.

    Parameters
    ----------
    like_ranger : bool
        Whether the trees are those that the R package ranger grows by default, though fewer: a
        split has the choice among the root of the number of features, and every node of more than
        five rows is split.

    Examples
    --------
    >>> [type(member).__name__ for member in line_and_forest()]
    ['Pipeline', 'RandomForestRegressor']
    """
    median = SimpleImputer(strategy="median", keep_empty_features=True)
    trees = {"max_features": "sqrt", "min_samples_split": 6}
    trees = trees if like_ranger else {"min_samples_leaf": 5}
    forest = RandomForestRegressor(100, random_state=seed, **trees)
    return [make_pipeline(median, LinearRegression()), forest]
