"""The mean of a variable given covariates, shrunk to what holds out of sample.

A ridge line and trees boosted on what it leaves, fitted without each of a few folds. How much of
either is believed, a convex stack of the predictions out of fold decides, with the plain mean among
its members: a dose that is randomised gets a constant. The fits without a fold also serve new
units, as an average, so residuals out of fold come for free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.concurrency import side_by_side
from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.nuisance.cross_fit import FoldSplit, draw_folds, fold_splits
from doseforest.nuisance.outcome.fold_moments import FoldMoments, sum_moments
from doseforest.nuisance.outcome.mixtures import convex_weights

FURTHEST = 4.0  # standard deviations to which covariates are clipped in a line
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # per row, on standardised covariates
MANY_ROWS = 20_000  # from here on two folds do
FEWEST_ROWS = 40  # below, the plain mean
TREES: dict[str, Any] = {
    "num_leaves": 8,
    "min_data_in_leaf": 20,
    "learning_rate": 0.08,
    "lambda_l2": 1.0,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "feature_fraction": 0.7,
    "max_bin": 63,
}
N_TREES = 100


@dataclass(frozen=True, slots=True)
class LinearTerms:
    """Standardised covariates, clipped, with indicators of missing values."""

    median: FloatArray  # (n_features,) stands in for missing values
    mean: FloatArray  # (n_features,)
    scale: FloatArray  # (n_features,)
    gappy: IntArray  # features with missing values

    def evaluate(self, X: FloatArray) -> FloatArray:
        """Columns of each row, shape (n_rows, n_features + n_gappy)."""
        values = X
        if np.isnan(X).any():
            values = np.where(np.isnan(X), self.median, X)
        values = np.clip((values - self.mean) / self.scale, -FURTHEST, FURTHEST)
        return np.concatenate([values, np.isnan(X[:, self.gappy])], axis=1)


def fit_linear_terms(X: FloatArray) -> LinearTerms:
    """Standardise the covariates of a table.

    >>> fit_linear_terms(np.array([[0.0], [0.0], [3.0], [3.0]])).evaluate(np.array([[99.0]]))
    array([[4.]])
    """
    missing = np.isnan(X)
    gappy = np.flatnonzero(missing.any(axis=0))
    median, filled = np.zeros(X.shape[1]), X
    if len(gappy):
        filled = X.copy()
        for feature in gappy:
            present = X[~missing[:, feature], feature]
            median[feature] = np.median(present) if len(present) else 0.0
            filled[missing[:, feature], feature] = median[feature]
    scale = filled.std(axis=0)
    return LinearTerms(median, filled.mean(axis=0), np.where(scale > 0, scale, 1.0), gappy)


@dataclass(frozen=True, slots=True)
class ConditionalMean:
    """A fitted mean: ``level``, a line, and trees on what the line leaves, in convex shares."""

    level: float
    terms: LinearTerms
    coefficients: FloatArray  # (1 + n_linear,) the intercept first
    boosters: tuple[Any, ...]  # lightgbm.Booster of each fold's complement
    shares: FloatArray  # (3,) of the level, the line, the line with trees
    out_of_fold: FloatArray  # (n_rows,) of the training rows

    def predict(self, X: FloatArray) -> FloatArray:
        """Mean of each row."""
        out = np.full(len(X), self.level)
        if self.shares[1:].any():
            line = self.coefficients[0] + self.terms.evaluate(X) @ self.coefficients[1:]
            out += self.shares[1:].sum() * (line - self.level)
        if self.shares[2] > 0:
            for booster in self.boosters:
                out += self.shares[2] / len(self.boosters) * booster.predict(X, num_threads=1)
        return out


def fit_conditional_mean(
    X: FloatArray,
    y: FloatArray,
    *,
    weights: FloatArray | None = None,
    groups: IntArray | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> ConditionalMean:
    """Fit the mean of y given X.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        NaN is missing.
    y : array of shape (n_rows,)
    weights : array of shape (n_rows,), optional
    groups : array of shape (n_rows,), optional
        Rows of a group share the fold that they are left out with.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1000, 3))
    >>> mean = fit_conditional_mean(x, 2 * x[:, 0] + rng.normal(size=1000))
    >>> mean.predict(np.array([[1.0, 0.0, 0.0]])).round(1)
    array([2.])
    """
    n = len(y)
    row_weights = np.ones(n) if weights is None else weights
    level = float(np.average(y, weights=row_weights))
    terms = fit_linear_terms(X)
    columns = terms.evaluate(X)
    if n < FEWEST_ROWS:
        nothing, only_level = np.zeros(1 + columns.shape[1]), np.array([1.0, 0.0, 0.0])
        return ConditionalMean(level, terms, nothing, (), only_level, np.full(n, level))
    n_folds = 4 if n < MANY_ROWS else 2
    folds = np.random.default_rng(seed).permutation(np.arange(n) % n_folds)
    if groups is not None:
        folds = draw_folds(groups, n_folds, seed)
    lines = _lines(columns, y, row_weights, folds, n_folds)
    # One level for all folds: the means without a fold would be an indicator of the fold.
    predictions = np.full((n, 3), level)

    def fit_without(split: FoldSplit) -> Any:
        kept, out = split.kept, split.left_out
        line = lines[split.fold, 0] + columns @ lines[split.fold, 1:]
        booster = boosted(X[kept], (y - line)[kept], row_weights[kept], seed=seed)
        predictions[out, 1] = line[out]
        predictions[out, 2] = line[out] + booster.predict(X[out], num_threads=1)
        return booster

    boosters = side_by_side(fit_without, fold_splits(folds), n_threads)
    shares = convex_weights(predictions, y, row_weights)
    return ConditionalMean(
        level, terms, lines.mean(axis=0), tuple(boosters), shares, predictions @ shares
    )


def boosted(X: FloatArray, y: FloatArray, weights: FloatArray, *, seed: int) -> Any:
    """Boost a few small trees."""
    import lightgbm

    parameters = {
        **TREES,
        "objective": "regression",
        "seed": seed % 2**31,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(X, y, weight=weights, params=parameters)
    return lightgbm.train(parameters, data, N_TREES)


def _lines(
    columns: FloatArray, y: FloatArray, weights: FloatArray, folds: IntArray, n_folds: int
) -> FloatArray:
    """Ridge lines without each fold, (n_folds, 1 + n_columns), with the best penalty for all."""
    wide = np.column_stack([np.ones(len(y)), columns])
    moments = sum_moments(wide.__getitem__, wide.shape[1], y, weights, folds, n_folds)
    tried = [
        np.array([_ridge(moments.without(fold), ridge) for fold in range(n_folds)])
        for ridge in RIDGES
    ]
    errors = [
        sum(moments.squared_error(fold, line) for fold, line in enumerate(lines)) for lines in tried
    ]
    return tried[int(np.argmin(errors))]


def _ridge(total: FoldMoments, ridge: float) -> FloatArray:
    penalty = np.full(len(total.cross[0]), ridge * total.weight[0])
    penalty[0] = 0.0
    line: FloatArray = np.linalg.solve(total.gram[0] + np.diag(penalty), total.cross[0])
    return line
