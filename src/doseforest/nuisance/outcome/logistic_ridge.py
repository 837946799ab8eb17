"""Logistic regression with a ridge penalty, by Newton's method on sums of products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from doseforest.base.dtypes import FloatArray
from doseforest.nuisance.outcome.fold_moments import fold_blocks, sum_moments
from doseforest.nuisance.outcome.sparse_ridge import solve

NEWTON_STEPS = 25
MIN_VARIANCE = 1e-6  # of an outcome, in the steps
COUNTED_VARIANCE = 1e-2  # the least in what others regress on: it tames outcomes against all odds
FARTHEST_SHIFT = 100.0  # of a level, on the scale of the link

Columns = Callable[[NDArray[np.int64]], FloatArray]  # of rows, (n_rows, n_columns)


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """A fit, and the linear predictor of its rows."""

    coefficients: FloatArray  # (n_columns,)
    linear: FloatArray  # (n_rows,)

    def working(self, y: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
        """Response and weights of the regression by least squares that improves on the fit."""
        mean = expit(self.linear)
        variance = np.maximum(mean * (1 - mean), least)
        return self.linear + (y - mean) / variance, variance


def fit_logistic(
    columns_of: Columns, n_columns: int, y: FloatArray, weights: FloatArray, penalty: FloatArray
) -> LogisticFit:
    """Fit with a penalty, per row, on each coefficient.

    Examples
    --------
    >>> y = np.repeat([0.0, 1.0], [9, 1])
    >>> fit = fit_logistic(lambda rows: np.ones((len(rows), 1)), 1, y, np.ones(10), np.zeros(1))
    >>> expit(fit.coefficients).round(6)
    array([0.1])
    """
    one_fold = np.zeros(len(y), np.int64)
    fit = LogisticFit(np.zeros(n_columns), np.zeros(len(y)))
    for _ in range(NEWTON_STEPS):
        response, variance = fit.working(y, MIN_VARIANCE)
        total = sum_moments(columns_of, n_columns, response, weights * variance, one_fold, 1)
        coefficients = solve(total, total.weight[0] * penalty)
        change = float(np.abs(coefficients - fit.coefficients).max())
        fit = LogisticFit(coefficients, linear_predictor(columns_of, coefficients, len(y)))
        if change < 1e-6 * (1 + np.abs(coefficients).max()):
            break
    return fit


def linear_predictor(columns_of: Columns, coefficients: FloatArray, n_rows: int) -> FloatArray:
    """Products of the columns and their coefficients, (n_rows,)."""
    own: FloatArray = linear_predictors(columns_of, [coefficients], n_rows)[0]
    return own


def linear_predictors(
    columns_of: Columns, coefficients: Sequence[FloatArray], n_rows: int
) -> FloatArray:
    """Products of the columns and several sets of coefficients, (n_sets, n_rows)."""
    out = np.empty((len(coefficients), n_rows))
    for _, rows in fold_blocks(np.zeros(n_rows, np.int64), 1, len(coefficients[0])):
        columns = columns_of(rows)
        for place, own in enumerate(coefficients):
            out[place, rows] = columns @ own
    return out


def level_shift(linear: FloatArray, y: FloatArray, weights: FloatArray) -> float:
    """What must be added to a linear predictor for as many successes as there are.

    Examples
    --------
    >>> shift = level_shift(np.zeros(4), np.array([0.0, 0.0, 0.0, 1.0]), np.ones(4))
    >>> float(expit(shift).round(6))
    0.25
    """

    def missing(shift: float) -> float:
        return float(weights @ (y - expit(linear + shift)))

    if not missing(-FARTHEST_SHIFT) > 0 > missing(FARTHEST_SHIFT):
        return 0.0  # all outcomes are equal: the penalty alone keeps the level finite
    return float(brentq(missing, -FARTHEST_SHIFT, FARTHEST_SHIFT))
