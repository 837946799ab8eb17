"""A lasso chooses terms, a ridge refits them; the penalties come from folds not seen.

Everything is computed from sums of products: of the main effects, which come first and carry a
penalty of their own, and of a pool of candidates.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
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


@dataclass(frozen=True, slots=True)
class SparseFit:
    """A fit, and others with its penalties that have not seen each fold."""

    columns: NDArray[np.int64]  # (n_chosen,) the main effects, then chosen ones of the pool
    per_row: FloatArray  # (n_chosen,) penalties
    coefficients: FloatArray  # (n_chosen,)
    without: FloatArray  # (n_folds, n_columns), zero where a column was not chosen
    error: float  # sum of squares on the folds not seen


def fit_sparse(
    moments: FoldMoments, places: Mapping[int | None, IntArray], penalty: FloatArray
) -> SparseFit:
    """Fit with the step of the lasso and the ridge of the smallest error on folds not seen.

    Parameters
    ----------
    moments : FoldMoments
        Of the main effects, then of the pool.
    places : mapping of int or None to array of int
        Candidates in the pool, those found without each fold and with all.
    penalty : array of shape (n_mains,)
        On the main effects, per row.
    """
    errors = np.zeros((LASSO_STEPS, len(RIDGES)))
    fits: dict[tuple[int, int, int], FloatArray] = {}
    for fold in range(moments.n_folds):
        rest = moments.without(fold)
        for step, chosen in enumerate(lasso_paths(rest, places[fold], penalty)):
            columns = _columns(chosen, penalty)
            seen, unseen = rest.only(columns), moments.only(columns, fold)
            for r, ridge in enumerate(RIDGES):
                own = solve(seen, _ridge_penalty(seen, penalty, ridge))
                errors[step, r] += unseen.squared_error(0, own)
                fits[fold, step, r] = _spread(own, columns, moments.gram.shape[1])
    step, r = (int(place) for place in np.unravel_index(int(errors.argmin()), errors.shape))
    total = moments.without(None)
    columns = _columns(lasso_paths(total, places[None], penalty)[step], penalty)
    chosen_total = total.only(columns)
    full_penalty = _ridge_penalty(chosen_total, penalty, RIDGES[r])
    return SparseFit(
        columns=columns,
        per_row=full_penalty / total.weight[0],
        coefficients=solve(chosen_total, full_penalty),
        without=np.stack([fits[fold, step, r] for fold in range(moments.n_folds)]),
        error=float(errors[step, r]),
    )


def best_share(moments: FoldMoments, first: SparseFit, second: SparseFit) -> float:
    """Share of the second fit in the mixture with the smallest error on folds not seen."""
    middle = sum(
        moments.squared_error(fold, (first.without[fold] + second.without[fold]) / 2)
        for fold in range(moments.n_folds)
    )
    # The error is a parabola in the share, known from its values at 0, 1/2 and 1.
    bend = 2 * (first.error + second.error - 2 * middle)
    if not bend > 0:
        return float(second.error < first.error)
    return float(np.clip((first.error - second.error + bend) / (2 * bend), 0.0, 1.0))


def _columns(chosen: IntArray, penalty: FloatArray) -> NDArray[np.int64]:
    return np.concatenate([np.arange(len(penalty)), len(penalty) + chosen])


def _spread(values: FloatArray, columns: IntArray, n_columns: int) -> FloatArray:
    out = np.zeros(n_columns)
    out[columns] = values
    return out


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


def _ridge_penalty(total: FoldMoments, penalty: FloatArray, ridge: float) -> FloatArray:
    spread = np.diag(total.gram[0])[len(penalty) :]
    return np.concatenate([total.weight[0] * penalty, ridge * spread])


def solve(total: FoldMoments, penalty: FloatArray) -> FloatArray:
    """Coefficients by least squares with a penalty on each column."""
    matrix = total.gram[0].copy()
    diagonal = np.diag_indices(len(penalty))
    matrix[diagonal] += penalty + 1e-10
    # Steps and hinges can be collinear to the last digit: the jitter keeps the factor positive.
    matrix[diagonal] *= 1 + JITTER
    coefficients: FloatArray = cho_solve(cho_factor(matrix, overwrite_a=True), total.cross[0])
    return coefficients
