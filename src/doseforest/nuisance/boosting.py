"""Boosted trees on covariates and dose, fitted by LightGBM and kept as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.dtypes import FloatArray
from doseforest.nuisance.booster_conversion import ensemble_from_booster
from doseforest.nuisance.tree_ensemble import TreeEnsemble


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
    n_bins: int = 63  # as good as 255 on the designs, at 40 % of the time


LINEAR_TREES = BoostingRecipe(n_trees=400, n_leaves=16, linear=True)
PLAIN_TREES = BoostingRecipe(n_trees=400, n_leaves=8, linear=False, rate=0.025)


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
) -> TreeEnsemble:
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
        "max_bin": recipe.n_bins,
        "seed": seed % 2**31,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": n_threads,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(np.column_stack([X, dose]), y, weight=weights, params=parameters)
    booster = lightgbm.train(parameters, data, recipe.n_trees)
    return ensemble_from_booster(booster)
