"""Fitting the spline core: splines of the dose, terms of covariates, and products that matter.

Main effects, the linear terms of the covariates and a spline of the dose, carry next to no
penalty: shrinking them would shrink the very direction that drives the treatment, and leave its
confounding in the average curve. Products of covariate terms and dose functions, and non-linear
covariate terms, are chosen by a lasso on what the main effects leave, then refitted with a ridge.
Penalties are chosen by cross-validation with the choice of terms inside the folds, all of it from
sums of products by fold.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path_gram

from doseforest.dtypes import FloatArray, IntArray
from doseforest.nuisance.covariate_terms import CovariateTerms, fit_covariate_terms
from doseforest.nuisance.fold_moments import FoldMoments, fold_blocks, sum_moments
from doseforest.nuisance.spline_model import SplineCore
from doseforest.treatments.splines import Spline, SplineBasis

N_FOLDS = 4
MAIN_RIDGE = 1e-6  # per row
CURVATURES = (1e-7, 1e-5, 1e-3, 1e-1)  # penalties on the roughness of the average curve, per row
PRODUCTS = 4  # dose functions that covariate terms are multiplied with, the constant included
MAX_SCREENED = 500  # terms that go into the lasso
MAX_CHOSEN = 300
LASSO_STEPS = 12
LASSO_RANGE = 1e-2  # smallest over largest penalty
LASSO_JITTER = 1e-3  # keeps nearly collinear terms apart
JITTER = 1e-9  # relative, of a diagonal
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)  # per row, on standardised terms
NEWTON_STEPS = 25


@dataclass(frozen=True, slots=True)
class _Design:
    """Columns of the regression: main effects, then candidates."""

    X: FloatArray
    dose: FloatArray
    terms: CovariateTerms
    basis: SplineBasis

    @property
    def n_mains(self) -> int:
        return self.basis.n_functions + self.terms.n_linear

    @property
    def n_products(self) -> int:
        """Dose functions that terms are multiplied with, the constant included."""
        return min(PRODUCTS, self.basis.n_functions)

    @property
    def n_candidates(self) -> int:
        return self.n_products * self.terms.n_terms - self.terms.n_linear

    def place(self, candidate: int) -> tuple[int, int]:
        """Term and column of `SplineCore.term_coefficients` of a candidate."""
        function, term = divmod(candidate + self.terms.n_linear, self.terms.n_terms)
        return term, function

    def mains(self, terms: FloatArray, functions: FloatArray) -> FloatArray:
        return np.concatenate([functions, terms[:, : self.terms.n_linear]], axis=1)

    def parts(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        return self.terms.evaluate(self.X[rows]), self.basis.evaluate(self.dose[rows])

    def columns(self, rows: IntArray, candidates: IntArray) -> FloatArray:
        """Main effects and the chosen candidates of some rows."""
        terms, functions = self.parts(rows)
        places = [self.place(int(candidate)) for candidate in candidates]
        chosen = (
            terms[:, [term for term, _ in places]]
            * functions[:, [function for _, function in places]]
        )
        return np.concatenate([self.mains(terms, functions), chosen], axis=1)

    def penalty(self, curvature: float) -> FloatArray:
        """Penalty of the main effects, per row."""
        penalty = np.full(self.n_mains, MAIN_RIDGE)
        penalty[: self.basis.n_functions] += curvature * self.basis.roughness
        return penalty


@dataclass(frozen=True, slots=True)
class _Screening:
    """Moments of the main effects, and of each candidate with them and with the outcome."""

    mains: FoldMoments
    with_mains: FloatArray  # (n_folds, n_mains, n_candidates)
    with_outcome: FloatArray  # (n_folds, n_candidates)
    squares: FloatArray  # (n_folds, n_candidates)

    def best(self, fold: int | None, penalty: FloatArray) -> IntArray:
        """Candidates most correlated with the outcome once the main effects are taken out."""
        mains = self.mains.without(fold)
        kept = [f for f in range(self.mains.n_folds) if f != fold]
        cross = self.with_mains[kept].sum(axis=0)
        factor = cho_factor(mains.gram[0] + np.diag(mains.weight[0] * penalty + 1e-10))
        projected = cho_solve(factor, cross)
        squares = self.squares[kept].sum(axis=0)
        left = squares - (cross * projected).sum(axis=0)
        outcome = self.with_outcome[kept].sum(axis=0) - projected.T @ mains.cross[0]
        usable = left > 1e-8 * np.maximum(squares, 1e-300)
        scores = np.where(usable, outcome**2 / np.where(usable, left, 1.0), -1.0)
        order = np.argsort(-scores, kind="stable")[:MAX_SCREENED]
        return np.sort(order[scores[order] > 0])


def fit_spline_core(
    X: FloatArray,
    dose: FloatArray,
    y: FloatArray,
    *,
    weights: FloatArray | None = None,
    binary: bool = False,
    seed: int = 0,
) -> SplineCore:
    """Fit the core; a binary outcome gets a logistic refit of the chosen terms.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        NaN is missing.
    dose : array of shape (n_rows,)
    y : array of shape (n_rows,)
    weights : array of shape (n_rows,), optional
    binary : bool
        Outcomes are zeros and ones.
    seed : int
        Of the folds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, t = rng.normal(size=(500, 2)), rng.uniform(size=500)
    >>> core = fit_spline_core(x, t, x[:, 0] + t * x[:, 1] + 0.1 * rng.normal(size=500))
    >>> core.curves(np.array([[0.0, 2.0]]), np.array([0.0, 1.0])).round(1)
    array([[0., 2.]])
    """
    weights = np.ones(len(y)) if weights is None else weights
    level = 0.0 if binary else float(np.average(y, weights=weights))  # no penalty on it
    y = y - level
    folds = np.random.default_rng(seed).permutation(np.arange(len(y)) % N_FOLDS)
    design = _Design(X, dose, fit_covariate_terms(X), Spline().fit(dose, weights))
    screening = _screen(design, y, weights, folds)
    curvature = _choose_curvature(design, screening.mains)
    penalty = design.penalty(curvature)
    screened = {fold: screening.best(fold, penalty) for fold in [None, *range(N_FOLDS)]}
    pool = np.unique(np.concatenate(list(screened.values())))
    n_columns = design.n_mains + len(pool)
    moments = sum_moments(
        lambda rows: design.columns(rows, pool), n_columns, y, weights, folds, N_FOLDS
    )
    places = {fold: np.searchsorted(pool, chosen) for fold, chosen in screened.items()}
    step, ridge = _choose_penalties(moments, places, penalty)
    paths = _lasso_paths(moments.without(None), places[None], penalty)
    chosen = paths[step]
    columns = np.concatenate([np.arange(design.n_mains), design.n_mains + chosen])
    total = moments.without(None)
    full_penalty = _ridge_penalty(total, columns, penalty, ridge)
    coefficients = _solve(total, columns, full_penalty)
    if binary:
        coefficients = _logistic_refit(
            design, pool[chosen], y, weights, full_penalty / total.weight[0]
        )
    coefficients[0] += level
    return _assemble(design, pool[chosen], coefficients, binary)


def _screen(design: _Design, y: FloatArray, weights: FloatArray, folds: IntArray) -> _Screening:
    mains = sum_moments(
        lambda rows: design.mains(*design.parts(rows)), design.n_mains, y, weights, folds, N_FOLDS
    )
    with_mains = np.zeros((N_FOLDS, design.n_mains, design.n_candidates))
    with_outcome = np.zeros((N_FOLDS, design.n_candidates))
    squares = np.zeros((N_FOLDS, design.n_candidates))
    for fold, rows in fold_blocks(folds, N_FOLDS):
        terms, functions = design.parts(rows)
        own_mains = design.mains(terms, functions)
        start = 0
        for k, multiplier in enumerate(functions.T[: design.n_products]):
            own = terms[:, design.terms.n_linear :] if k == 0 else terms
            stop = start + own.shape[1]
            scaled = weights[rows] * multiplier
            with_mains[fold, :, start:stop] += (own_mains * scaled[:, None]).T @ own
            with_outcome[fold, start:stop] += (scaled * y[rows]) @ own
            squares[fold, start:stop] += (scaled * multiplier) @ own**2
            start = stop
    return _Screening(mains, with_mains, with_outcome, squares)


def _choose_curvature(design: _Design, mains: FoldMoments) -> float:
    columns = np.arange(design.n_mains)
    errors = []
    for curvature in CURVATURES:
        error = 0.0
        for fold in range(N_FOLDS):
            rest = mains.without(fold)
            penalty = rest.weight[0] * design.penalty(curvature)
            error += mains.squared_error(fold, _solve(rest, columns, penalty), columns)
        errors.append(error)
    return CURVATURES[int(np.argmin(errors))]


def _choose_penalties(
    moments: FoldMoments, places: dict[int | None, IntArray], penalty: FloatArray
) -> tuple[int, float]:
    """Step of the lasso path and ridge with the smallest error on folds not seen."""
    n_mains = len(penalty)
    errors = np.zeros((LASSO_STEPS, len(RIDGES)))
    for fold in range(N_FOLDS):
        rest = moments.without(fold)
        for step, chosen in enumerate(_lasso_paths(rest, places[fold], penalty)):
            columns = np.concatenate([np.arange(n_mains), n_mains + chosen])
            for r, ridge in enumerate(RIDGES):
                full = _ridge_penalty(rest, columns, penalty, ridge)
                coefficients = _solve(rest, columns, full)
                errors[step, r] += moments.squared_error(fold, coefficients, columns)
    best = np.unravel_index(int(np.argmin(errors)), errors.shape)
    return int(best[0]), RIDGES[int(best[1])]


def _lasso_paths(total: FoldMoments, places: IntArray, penalty: FloatArray) -> list[IntArray]:
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


def _ridge_penalty(
    total: FoldMoments, columns: IntArray, penalty: FloatArray, ridge: float
) -> FloatArray:
    terms = columns[len(penalty) :]
    spread = total.gram[0][terms, terms]
    return np.concatenate([total.weight[0] * penalty, ridge * spread])


def _solve(total: FoldMoments, columns: IntArray, penalty: FloatArray) -> FloatArray:
    matrix = total.gram[0][np.ix_(columns, columns)] + np.diag(penalty + 1e-10)
    # Steps and hinges can be collinear to the last digit: the jitter keeps the factor positive.
    matrix[np.diag_indices(len(columns))] *= 1 + JITTER
    coefficients: FloatArray = cho_solve(cho_factor(matrix), total.cross[0][columns])
    return coefficients


def _logistic_refit(
    design: _Design, chosen: IntArray, y: FloatArray, weights: FloatArray, penalty: FloatArray
) -> FloatArray:
    """Penalised logistic regression on the chosen columns, by Newton's method."""
    n_columns = design.n_mains + len(chosen)
    coefficients = np.zeros(n_columns)
    one_fold = np.zeros(len(y), np.int64)
    for _ in range(NEWTON_STEPS):
        linear = np.concatenate(
            [design.columns(rows, chosen) @ coefficients for _, rows in fold_blocks(one_fold, 1)]
        )
        mean = expit(linear)
        variance = np.maximum(mean * (1 - mean), 1e-6)
        working = linear + (y - mean) / variance
        total = sum_moments(
            lambda rows: design.columns(rows, chosen),
            n_columns,
            working,
            weights * variance,
            one_fold,
            1,
        )
        step = _solve(total, np.arange(n_columns), total.weight[0] * penalty)
        change = float(np.abs(step - coefficients).max())
        coefficients = step
        if change < 1e-6 * (1 + np.abs(coefficients).max()):
            break
    return coefficients


def _assemble(
    design: _Design, chosen: IntArray, coefficients: FloatArray, binary: bool
) -> SplineCore:
    n_linear, n_functions = design.terms.n_linear, design.basis.n_functions
    term_coefficients = np.zeros((design.terms.n_terms, design.n_products))
    term_coefficients[:n_linear, 0] = coefficients[n_functions : design.n_mains]
    for candidate, value in zip(chosen, coefficients[design.n_mains :], strict=True):
        term_coefficients[design.place(int(candidate))] = value
    return SplineCore(
        terms=design.terms,
        basis=design.basis,
        dose_coefficients=coefficients[:n_functions],
        term_coefficients=term_coefficients,
        binary=binary,
    )
