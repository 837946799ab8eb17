"""A lasso chooses terms, a ridge refits them; the penalties come from folds not seen.

Everything is computed from sums of products: of the main effects, which come first and carry a
penalty of their own, and of a pool of candidates.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path_gram

from doseforest.dtypes import FloatArray, IntArray
from doseforest.nuisance.fold_moments import FoldMoments

MAX_CHOSEN = 300
LASSO_STEPS = 24
LASSO_RANGE = 1e-2  # smallest over largest penalty
LASSO_JITTER = 1e-3  # keeps nearly collinear terms apart
JITTER = 1e-9  # relative, of a diagonal
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)  # per row, on standardised terms


def choose_penalties(
    moments: FoldMoments, places: dict[int | None, IntArray], penalty: FloatArray
) -> tuple[int, float]:
    """Step of the lasso path and ridge with the smallest error on folds not seen."""
    n_mains = len(penalty)
    errors = np.zeros((LASSO_STEPS, len(RIDGES)))
    for fold in range(moments.n_folds):
        rest = moments.without(fold)
        for step, chosen in enumerate(lasso_paths(rest, places[fold], penalty)):
            columns = np.concatenate([np.arange(n_mains), n_mains + chosen])
            for r, ridge in enumerate(RIDGES):
                full = ridge_penalty(rest, columns, penalty, ridge)
                coefficients = solve(rest, columns, full)
                errors[step, r] += moments.squared_error(fold, coefficients, columns)
    best = np.unravel_index(int(np.argmin(errors)), errors.shape)
    return int(best[0]), RIDGES[int(best[1])]


def lasso_paths(total: FoldMoments, places: IntArray, penalty: FloatArray) -> list[IntArray]:
    """Pool places chosen at each step of the lasso on what the main effects leave."""
    n_mains = len(penalty)
    if len(places) == 0:
        return [np.empty(0, np.int64)] * LASSO_STEPS
    gram, cross = total.gram[0], total.cross[0]
    candidates = n_mains + places
    factor = cho_factor(
        gram[:n_mains, :n_mains] + np.diag(total.weight[0] * penalty + 1e-10), lower=True
    )
    projected = cho_solve(factor, gram[:n_mains, candidates])
    left = gram[np.ix_(candidates, candidates)] - gram[candidates, :n_mains] @ projected
    outcome = cross[candidates] - projected.T @ cross[:n_mains]
    scale = np.sqrt(np.maximum(np.diag(left), 1e-300))
    correlation = left / np.outer(scale, scale) + LASSO_JITTER * np.eye(len(places))
    with warnings.catch_warnings():
        # Steps and hinges of one covariate are nearly collinear; some are dropped on the way.
        warnings.simplefilter("ignore", ConvergenceWarning)
        alphas, _, path = lars_path_gram(
            outcome / scale,
            correlation,
            n_samples=1,
            method="lasso",
            alpha_min=LASSO_RANGE * np.abs(outcome / scale).max(),
            max_iter=MAX_CHOSEN,
        )
    targets = alphas[0] * np.geomspace(1.0, LASSO_RANGE, LASSO_STEPS)
    chosen = []
    for target in targets:
        last = max(0, int(np.searchsorted(-alphas, -target, side="right")) - 1)
        chosen.append(places[np.flatnonzero(path[:, last])])
    return chosen


def ridge_penalty(
    total: FoldMoments, columns: IntArray, penalty: FloatArray, ridge: float
) -> FloatArray:
    """Penalties of chosen columns: those of the main effects, then of standardised terms."""
    terms = columns[len(penalty) :]
    spread = total.gram[0][terms, terms]
    return np.concatenate([total.weight[0] * penalty, ridge * spread])


def solve(total: FoldMoments, columns: IntArray, penalty: FloatArray) -> FloatArray:
    """Coefficients of chosen columns by least squares with a penalty on each."""
    matrix = total.gram[0][np.ix_(columns, columns)] + np.diag(penalty + 1e-10)
    # Steps and hinges can be collinear to the last digit: the jitter keeps the factor positive.
    matrix[np.diag_indices(len(columns))] *= 1 + JITTER
    coefficients: FloatArray = cho_solve(cho_factor(matrix), total.cross[0][columns])
    return coefficients
