"""Boosted trees on covariates and dose, by LightGBM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.dtypes import FloatArray

PREDICTED_ROWS = 262_144  # rows of (unit, dose) that are scored at once


@dataclass(frozen=True, slots=True)
class BoostingRecipe:
    """How trees are boosted."""

    n_trees: int
    n_leaves: int
    linear: bool  # a ridge regression in each leaf in place of a constant
    rate: float = 0.05
    subsample: float = 0.7
    min_leaf: int = 20
    ridge: float = 1.0  # of the regressions in the leaves


LINEAR_TREES = BoostingRecipe(n_trees=400, n_leaves=16, linear=True)
PLAIN_TREES = BoostingRecipe(n_trees=200, n_leaves=8, linear=False)


@dataclass(frozen=True, slots=True)
class BoostedTrees:
    """A fitted booster of covariates and dose."""

    booster: Any  # lightgbm.Booster
    n_trees: int

    def predict(self, X: FloatArray, dose: FloatArray) -> FloatArray:
        """Mean outcome of each row at its own dose."""
        out = np.empty(len(X))
        for first in range(0, len(X), PREDICTED_ROWS):
            rows = slice(first, first + PREDICTED_ROWS)
            table = np.column_stack([X[rows], dose[rows]])
            out[rows] = self.booster.predict(table, num_iteration=self.n_trees)
        return out

    def curves(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Mean outcome of each row at each dose, shape (n_rows, n_doses)."""
        out = np.empty((len(X), len(doses)))
        at_once = max(1, PREDICTED_ROWS // len(doses))
        for first in range(0, len(X), at_once):
            block = X[first : first + at_once]
            repeated = np.repeat(block, len(doses), axis=0)
            values = self.predict(repeated, np.tile(doses, len(block)))
            out[first : first + at_once] = values.reshape(len(block), len(doses))
        return out

    def shorter(self, n_trees: int) -> BoostedTrees:
        """Return the same booster cut after its first trees."""
        return BoostedTrees(self.booster, n_trees)


def fit_boosting(
    X: FloatArray,
    dose: FloatArray,
    y: FloatArray,
    recipe: BoostingRecipe,
    *,
    weights: FloatArray | None = None,
    binary: bool = False,
    seed: int = 0,
    n_threads: int = 1,
) -> BoostedTrees:
    """Boost trees; a binary outcome by likelihood.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, t = rng.normal(size=(400, 1)), rng.uniform(size=400)
    >>> trees = fit_boosting(x, t, x[:, 0] * t, LINEAR_TREES)
    >>> trees.curves(np.array([[1.0]]), np.array([0.2, 0.8])).round(1)
    array([[0.2, 0.8]])
    """
    import lightgbm

    parameters = {
        "objective": "binary" if binary else "regression",
        "num_leaves": recipe.n_leaves,
        "min_data_in_leaf": recipe.min_leaf,
        "learning_rate": recipe.rate,
        "bagging_fraction": recipe.subsample,
        "bagging_freq": 1,
        "linear_tree": recipe.linear,
        "linear_lambda": recipe.ridge,
        "seed": seed % 2**31,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": n_threads,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(np.column_stack([X, dose]), y, weight=weights, params=parameters)
    booster = lightgbm.train(parameters, data, recipe.n_trees)
    return BoostedTrees(booster, recipe.n_trees)
