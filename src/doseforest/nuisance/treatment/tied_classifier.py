"""Multinomial logistic regression with a ridge, its logits tied over the classes by loadings.

Class k of row i has the logit ``offset_k + sum_l loading_kl (b_l + z_i' beta_l)``. Loadings of an
identity give the usual model; a few smooth functions of the class number give ordered classes
far fewer coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from doseforest.base.dtypes import FloatArray, IntArray

RIDGES = (1.0, 10.0, 100.0, 1000.0, 1e5)  # on standardised columns; the last allows next to nothing
CHOICE_ROWS = 10_000  # enough rows to choose a ridge
HELD_OUT = 4  # every fourth of those
MAX_STEPS = 200


@dataclass(frozen=True, slots=True)
class Multinomial:
    """A fitted regression."""

    offsets: FloatArray  # (n_classes,)
    loadings: FloatArray  # (n_classes, n_loadings)
    coefficients: FloatArray  # (1 + n_columns, n_loadings), the intercept first
    ridge: float

    def log_probabilities(self, columns: FloatArray) -> FloatArray:
        """Log-probability of each class, (n_rows, n_classes)."""
        linear = self.coefficients[0] + columns @ self.coefficients[1:]
        values: FloatArray = log_softmax(self.offsets + linear @ self.loadings.T, axis=1)
        return values


def fit_multinomial(
    columns: FloatArray,
    labels: IntArray,
    loadings: FloatArray,
    *,
    weights: FloatArray | None = None,
    ridge: float | None = None,
    start: FloatArray | None = None,
    seed: int = 0,
) -> Multinomial:
    """Fit by penalised likelihood.

    Parameters
    ----------
    columns : array of shape (n_rows, n_columns)
        About standardised.
    labels : array of shape (n_rows,)
        Class of each row, 0, 1, …; classes without a row keep half a row's probability.
    loadings : array of shape (n_classes, n_loadings)
    weights : array of shape (n_rows,), optional
    ridge : float, optional
        Penalty; by default the best on held-out rows.
    start : array of shape (1 + n_columns, n_loadings), optional
        Coefficients to start from.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(5000, 1))
    >>> labels = (rng.random(5000) < 1 / (1 + np.exp(-2 * z[:, 0]))).astype(int)
    >>> fitted = fit_multinomial(z, labels, np.array([[0.0], [1.0]]))
    >>> fitted.coefficients.ravel().round(1)
    array([0., 2.])
    """
    row_weights = np.ones(len(labels)) if weights is None else weights / weights.mean()
    shares = np.bincount(labels, row_weights, len(loadings)) + 0.5
    offsets = np.log(shares / shares.sum())
    if ridge is None:
        ridge = _best_ridge(columns, labels, loadings, offsets, row_weights, seed)
    coefficients = _solve(columns, labels, loadings, offsets, row_weights, ridge, start)
    return Multinomial(offsets, loadings, coefficients, ridge)


def _best_ridge(
    columns: FloatArray,
    labels: IntArray,
    loadings: FloatArray,
    offsets: FloatArray,
    weights: FloatArray,
    seed: int,
) -> float:
    """Ridge of the largest held-out likelihood; it is a matter of signal, not of sample size."""
    chosen = np.random.default_rng(seed).permutation(len(labels))[:CHOICE_ROWS]
    out, kept = chosen[::HELD_OUT], np.delete(chosen, np.s_[::HELD_OUT])
    best, best_loss = RIDGES[-1], np.inf
    start = None
    for ridge in reversed(RIDGES):
        start = _solve(columns[kept], labels[kept], loadings, offsets, weights[kept], ridge, start)
        fitted = Multinomial(offsets, loadings, start, ridge)
        likelihoods = fitted.log_probabilities(columns[out])[np.arange(len(out)), labels[out]]
        loss = -float(weights[out] @ likelihoods)
        if loss > best_loss:
            break
        best, best_loss = ridge, loss
    return best


def _solve(
    columns: FloatArray,
    labels: IntArray,
    loadings: FloatArray,
    offsets: FloatArray,
    weights: FloatArray,
    ridge: float,
    start: FloatArray | None = None,
) -> FloatArray:
    n_loadings = loadings.shape[1]
    shape = (1 + columns.shape[1], n_loadings)
    total = weights.sum()
    rows = np.arange(len(labels))
    wanted = loadings[labels]  # (n_rows, n_loadings)
    penalty = np.full((shape[0], 1), ridge / total)
    penalty[0] = 1e-8

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        coefficients = flat.reshape(shape)
        linear = coefficients[0] + columns @ coefficients[1:]
        logs = log_softmax(offsets + linear @ loadings.T, axis=1)
        gap = (np.exp(logs) @ loadings - wanted) * (weights / total)[:, None]
        slope = np.vstack([gap.sum(axis=0), columns.T @ gap]) + penalty * coefficients
        value = -(weights @ logs[rows, labels]) / total + (penalty * coefficients**2).sum() / 2
        return float(value), slope.ravel()

    first = np.zeros(shape) if start is None else start
    result = minimize(
        loss,
        first.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MAX_STEPS, "gtol": 1e-6, "ftol": 1e-9},
    )
    solution: FloatArray = result.x.reshape(shape)
    return solution
