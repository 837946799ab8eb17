"""A lasso chooses terms, a ridge refits them; the penalties come from folds not seen.

Everything is computed from sums of products: of the main effects, which come first and carry a
penalty of their own, and of a pool of candidates.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dposv

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.nuisance.outcome.fold_moments import FoldMoments
from doseforest.nuisance.outcome.mixtures import shortest_mixture

MAX_CHOSEN = 300
LASSO_STEPS = 24
LASSO_RANGE = 1e-2  # smallest over largest penalty
LASSO_JITTER = 1e-3  # keeps nearly collinear terms apart
JITTER = 1e-9  # relative, of a diagonal
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)  # per row, on standardised terms


@dataclass(frozen=True, slots=True)
class SparseFit:
    """The mean of fits that have not seen each fold."""

    columns: NDArray[np.int64]  # (n_chosen,) the main effects, then chosen ones of the pool
    per_row: FloatArray  # (n_chosen,) penalties
    coefficients: FloatArray  # (n_chosen,)
    without: FloatArray  # (n_folds, n_columns), zero where a column was not chosen


Places: TypeAlias = Sequence[IntArray]  # (n_folds,) candidates in the pool, found without each fold


def fit_sparse(
    moments: FoldMoments,
    pools: Sequence[Places],
    penalty: FloatArray,
    others: Sequence[FloatArray] = (),
) -> tuple[SparseFit, ...]:
    """Fit to each pool with the step of the lasso and the ridge of the least error on unseen folds.

    A fit is the mean of those without each fold, by the weight that these have seen. For given
    terms that is next to the fit with all rows, and a term that is chosen by chance, or just
    missed, counts for less.

    Parameters
    ----------
    moments : FoldMoments
        Of the main effects, then of all candidates.
    pools : sequence of sequences of arrays of int
        Candidates that each fit may choose from, those found without each fold.
    penalty : array of shape (n_mains,)
        On the main effects, per row, while terms are chosen.
    others : sequence of arrays of shape (n_mains,)
        Tried in its place once they are: what units have of their own looked like noise before.
    """
    searches = [_Search(moments) for _ in pools]
    for fold in range(moments.n_folds):
        rest = moments.without(fold)  # once for all fits, as it is large
        for search, places in zip(searches, pools, strict=True):
            search.try_fold(fold, rest, places[fold], penalty)
    for fold in range(moments.n_folds if others else 0):
        rest = moments.without(fold)
        for search in searches:
            search.try_penalties(fold, rest, others)
    total = moments.without(None)
    return tuple(search.fit(total, [penalty, *others]) for search in searches)


class _Search:
    """Fits without each fold, for all steps and ridges, and what they amount to."""

    def __init__(self, moments: FoldMoments) -> None:
        self._moments = moments
        self._errors = np.zeros((LASSO_STEPS, len(RIDGES)))
        self._fits: dict[tuple[int, int, int], FloatArray] = {}
        self._columns: dict[tuple[int, int], IntArray] = {}
        self._other_errors: dict[int, float] = {}
        self._other_fits: dict[tuple[int, int], FloatArray] = {}

    def try_fold(self, fold: int, rest: FoldMoments, places: IntArray, penalty: FloatArray) -> None:
        for step, chosen in enumerate(lasso_paths(rest, places, penalty)):
            columns = _columns(chosen, penalty)
            seen, unseen = rest.only(columns), self._moments.only(columns, fold)
            self._columns[fold, step] = columns
            for r, ridge in enumerate(RIDGES):
                own = solve(seen, _ridge_penalty(seen, penalty, ridge))
                self._errors[step, r] += unseen.squared_error(0, own)
                self._fits[fold, step, r] = _spread(own, columns, rest.gram.shape[1])

    def try_penalties(self, fold: int, rest: FoldMoments, others: Sequence[FloatArray]) -> None:
        """Other penalties on the main effects, with the terms and the ridge of the least error."""
        step, r = self._best()
        columns = self._columns[fold, step]
        seen, unseen = rest.only(columns), self._moments.only(columns, fold)
        for place, penalty in enumerate(others, start=1):
            own = solve(seen, _ridge_penalty(seen, penalty, RIDGES[r]))
            error = self._other_errors.get(place, 0.0) + unseen.squared_error(0, own)
            self._other_errors[place] = error
            self._other_fits[fold, place] = _spread(own, columns, rest.gram.shape[1])

    def fit(self, total: FoldMoments, penalties: Sequence[FloatArray]) -> SparseFit:
        """The mean of the fits without each fold, at the penalties of the least error."""
        step, r = self._best()
        errors = {0: self._errors[step, r], **self._other_errors}
        place = min(errors, key=errors.__getitem__)
        folds = range(self._moments.n_folds)
        if place == 0:
            without = np.stack([self._fits[fold, step, r] for fold in folds])
        else:
            without = np.stack([self._other_fits[fold, place] for fold in folds])
        penalty = penalties[place]
        mean = np.average(without, axis=0, weights=total.weight[0] - self._moments.weight)
        columns = np.union1d(np.arange(len(penalty)), np.flatnonzero(mean))
        chosen = total.only(columns)
        return SparseFit(
            columns=columns,
            per_row=_ridge_penalty(chosen, penalty, RIDGES[r]) / total.weight[0],
            coefficients=mean[columns],
            without=without,
        )

    def _best(self) -> tuple[int, int]:
        step, r = np.unravel_index(int(self._errors.argmin()), self._errors.shape)
        return int(step), int(r)


def mixing_shares(moments: FoldMoments, fits: Sequence[SparseFit]) -> FloatArray:
    """Shares of fits in the mixture with the smallest error on folds not seen, (n_fits,)."""
    products = np.zeros((len(fits), len(fits)))  # of the errors of two fits
    for fold in range(moments.n_folds):
        coefficients = np.stack([fit.without[fold] for fit in fits], axis=1)
        explained = coefficients.T @ moments.cross[fold]
        products += moments.square[fold] - explained[:, None] - explained
        products += coefficients.T @ moments.gram[fold] @ coefficients
    values, vectors = np.linalg.eigh(products)
    return shortest_mixture(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)


def _columns(chosen: IntArray, penalty: FloatArray) -> NDArray[np.int64]:
    return np.concatenate([np.arange(len(penalty)), len(penalty) + chosen])


def _spread(values: FloatArray, columns: IntArray, n_columns: int) -> FloatArray:
    out = np.zeros(n_columns)
    out[columns] = values
    return out


def lasso_paths(total: FoldMoments, places: IntArray, penalty: FloatArray) -> list[IntArray]:
    """Pool places chosen at each step of the lasso on what the main effects leave."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lars_path_gram  # takes a while to load

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
    # LAPACK itself: of thousands of small systems, checks would take more time than solutions.
    _, coefficients, info = dposv(matrix.T, total.cross[0], overwrite_a=True)
    if info != 0 or not np.isfinite(coefficients).all():
        raise np.linalg.LinAlgError(
            f"The penalised products of {len(penalty)} terms have no Cholesky factor."
        )
    out: FloatArray = coefficients
    return out
