"""Boosted trees on covariates and dose, fitted by LightGBM and kept as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from doseforest.base.dtypes import LEAF, DoseArray, FloatArray
from doseforest.doses.dose_values import Doses
from doseforest.nuisance.outcome.booster_conversion import ensemble_from_booster
from doseforest.nuisance.outcome.tree_ensemble import TreeEnsemble


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
    dose: DoseArray,
    y: FloatArray,
    recipe: BoostingRecipe,
    *,
    weights: FloatArray | None = None,
    binary: bool = False,
    seed: int = 0,
    n_threads: int = 1,
) -> TreeEnsemble:
    """Boost trees; a binary outcome by likelihood.

    Levels and units of covariates, dose and outcome make no difference: LightGBM sees them
    standardised (its labels and leaf regressions are float32, its penalty is of raw columns), and
    the trees are put back into the units given.

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
    table = np.column_stack([X, Doses.of(dose).table])
    units = _Units.of(table)
    label = _Units(np.zeros(1), np.ones(1)) if binary else _Units.of(y[:, None])
    data = lightgbm.Dataset(
        units.standardised(table),
        label.standardised(y[:, None])[:, 0],
        weight=weights,
        params=parameters,
    )
    # Kept as it is: written out and read back a booster is the same, and slower to make.
    booster = lightgbm.train(parameters, data, recipe.n_trees, keep_training_booster=True)
    trees = ensemble_from_booster(booster, Doses.of(dose).n_components)
    return _in_units(trees, units, label)


@dataclass(frozen=True, slots=True)
class _Units:
    """Level and spread of columns."""

    level: FloatArray  # (n_columns,)
    spread: FloatArray  # (n_columns,)

    @classmethod
    def of(cls, table: FloatArray) -> _Units:
        """Mean and standard deviation of what is not missing; 1 for a column without spread."""
        present = np.isfinite(table)
        count = np.maximum(present.sum(axis=0), 1)
        level = np.where(present, table, 0.0).sum(axis=0) / count
        offset = np.where(present, table - level, 0.0)
        spread = np.sqrt((offset**2).sum(axis=0) / count)
        # What rounding leaves of a constant is no spread.
        return cls(level, np.where(spread > 1e-12 * np.abs(level), spread, 1.0))

    def standardised(self, table: FloatArray) -> FloatArray:
        out: FloatArray = (table - self.level) / self.spread
        return out


def _in_units(trees: TreeEnsemble, units: _Units, label: _Units) -> TreeEnsemble:
    """Trees of standardised columns as trees of the columns themselves."""
    scale = float(label.spread[0])
    nodes = trees.nodes.copy()
    split = nodes["flags"] != LEAF
    feature = nodes["feature"][split]
    nodes["threshold"][split] *= units.spread[feature]
    nodes["threshold"][split] += units.level[feature]
    slopes = scale * trees.leaf_slopes / units.spread[-1]
    coefficients = scale * trees.term_coefficients / units.spread[trees.term_features]
    leaf = np.repeat(np.arange(len(slopes)), np.diff(trees.term_starts))
    moved = np.bincount(leaf, coefficients * units.level[trees.term_features], len(slopes))
    constants = scale * trees.leaf_constants - slopes * units.level[-1] - moved
    values = scale * trees.leaf_values
    end = trees.roots[1] if len(trees.roots) > 1 else len(nodes)
    n_first = int((~split[:end]).sum())  # leaves of the first tree, which takes the level
    constants[:n_first] += label.level[0]
    values[:n_first] += label.level[0]
    return replace(
        trees,
        nodes=nodes,
        leaf_values=values,
        leaf_constants=constants,
        leaf_slopes=slopes,
        term_coefficients=coefficients,
    )
