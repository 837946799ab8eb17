"""Fitting the spline core: splines of the dose, terms of covariates, and products that matter.

Main effects, the linear terms of the covariates and a spline of the dose, carry next to no
penalty: shrinking them would shrink the very direction that drives the treatment, and leave its
confounding in the average curve. Products of covariate terms and dose functions, and non-linear
covariate terms, are chosen by a lasso on what the main effects leave, then refitted with a ridge.
Non-linear terms are hinges and steps at quintiles, others where a search finds that they matter
most, and parabolas and cubics, for what bends everywhere. A choice of terms is a noisy thing: a fit
is the mean of those without each fold, and fits without and with the searched terms, without and
with powers, are mixed. Penalties and the mixture are chosen by cross-validation with the search and
the choice of terms inside the folds, all of it from sums of products by fold. Terms of a binary
outcome are chosen by the least squares that improve a logistic regression on the main effects;
those chosen without each fold are refitted by likelihood, with all rows, and a fit is the mean of
these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.doses.bases.spline_products import SplineProducts
from doseforest.doses.bases.splines import Spline
from doseforest.doses.vectors import n_components
from doseforest.nuisance.outcome.covariate_terms import (
    CovariateTerms,
    fit_covariate_terms,
    has_many_values,
)
from doseforest.nuisance.outcome.fold_moments import FoldMoments, sum_moments
from doseforest.nuisance.outcome.knot_search import FoundKnots, search_knots
from doseforest.nuisance.outcome.logistic_ridge import (
    COUNTED_VARIANCE,
    fit_logistic,
    level_shift,
    linear_predictor,
)
from doseforest.nuisance.outcome.sparse_ridge import (
    Places,
    SparseFit,
    fit_sparse,
    mixing_shares,
    solve,
)
from doseforest.nuisance.outcome.spline_design import Design, best_of, screen
from doseforest.nuisance.outcome.spline_model import SplineCore

N_FOLDS = 4
CURVATURES = (1e-7, 1e-5, 1e-3, 1e-1)  # penalties on the roughness of the average curve, per row


@dataclass(frozen=True, slots=True)
class _Choice:
    """Terms that least squares has chosen, in fits that are to be mixed."""

    design: Design
    pool: NDArray[np.int64]  # candidates that the fits have chosen from
    fits: tuple[SparseFit, ...]
    shares: FloatArray  # (n_fits,)


def fit_spline_core(
    X: FloatArray,
    dose: DoseArray,
    y: FloatArray,
    *,
    weights: FloatArray | None = None,
    binary: bool = False,
    powers: bool = True,
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
    powers : bool
        Whether parabolas and cubics of covariates are among the terms to choose from.
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
    splines = Spline() if n_components(dose) == 1 else SplineProducts()
    terms = fit_covariate_terms(X, powers=powers)
    mains = Design(X, dose, terms, splines.fit(dose, weights))
    response, importance = y, weights
    if binary:
        moments = _main_moments(mains, y, weights, folds)
        penalty = mains.penalty(choose_curvature(mains, moments))
        start = fit_logistic(mains.mains, mains.n_mains, y, weights, penalty)
        response, importance = start.working(y, COUNTED_VARIANCE)
        importance = importance * weights
    choice = _choose_terms(mains, response, importance, folds)
    coefficients = np.zeros(mains.n_mains + len(choice.pool))
    for share, fit in zip(choice.shares, choice.fits, strict=True):
        if share > 0:
            own = fit.coefficients
            if binary:
                own = refit_by_likelihood(choice.design, choice.pool, fit, y, weights)
            coefficients[fit.columns] += share * own
    coefficients[0] += _level(choice, coefficients, y, weights) if binary else level
    return assemble_core(choice.design, choice.pool, coefficients, binary)


def _choose_terms(linear: Design, y: FloatArray, weights: FloatArray, folds: IntArray) -> _Choice:
    """Add terms to the main effects by least squares, of few kinds and of all."""
    mains = _main_moments(linear, y, weights, folds)
    penalty = linear.penalty(choose_curvature(linear, mains))
    hinges, steps = _search(linear, mains, penalty, y, weights, folds)
    design = replace(linear, terms=linear.terms.with_knots(hinges, steps))
    screening = screen(design, mains, y, weights, folds)
    scores = [screening.scores(fold, penalty) for fold in range(N_FOLDS)]
    screened = [
        [best_of(own, design.candidates_of(one)) for own, one in zip(scores, known, strict=True)]
        for known in known_terms(linear.terms, hinges, steps)
    ]
    pool = np.unique(np.concatenate([own for each in screened for own in each]))
    n_columns = design.n_mains + len(pool)
    moments = sum_moments(
        lambda rows: design.columns(rows, pool), n_columns, y, weights, folds, N_FOLDS
    )
    fits = fit_sparse(moments, [places_in(pool, own) for own in screened], penalty)
    return _Choice(design, pool, fits, mixing_shares(moments, fits))


def places_in(pool: IntArray, screened: Sequence[IntArray]) -> Places:
    """Places of candidates in a pool that has them all."""
    return [np.searchsorted(pool, own) for own in screened]


def _main_moments(
    design: Design, y: FloatArray, weights: FloatArray, folds: IntArray
) -> FoldMoments:
    return sum_moments(design.mains, design.n_mains, y, weights, folds, N_FOLDS)


def _search(
    design: Design,
    mains: FoldMoments,
    penalty: FloatArray,
    y: FloatArray,
    weights: FloatArray,
    folds: IntArray,
) -> tuple[FoundKnots, FoundKnots]:
    """Hinges and steps of covariates with many values, in what the main effects leave."""
    total = mains.without(None)
    coefficients = solve(total, total.weight[0] * penalty)
    residual = y - linear_predictor(design.mains, coefficients, len(y))
    functions = design.basis.evaluate(design.dose)[:, : design.n_products]
    values = design.terms.standardised(design.X)
    searched = np.array([f for f, column in enumerate(values.T) if has_many_values(column)], int)
    knots = search_knots(values, functions, residual, weights, folds, N_FOLDS, searched)
    return knots["hinge"], knots["step"]


def known_terms(
    linear: CovariateTerms, hinges: FoundKnots, steps: FoundKnots
) -> list[list[NDArray[np.bool_]]]:
    """For each fit the terms that it may choose from, those known without each fold.

    The fits are without and with powers, if there are any, each without and with searched knots.
    `linear` has the terms before a search has found any.
    """
    lines = np.ones(linear.n_linear, bool)
    at_hinges, at_steps = (
        np.ones(len(linear.hinge_knot), bool),
        np.ones(len(linear.step_knot), bool),
    )
    kinds = []
    for has_powers in (False, True) if len(linear.power_low) else (False,):
        of_powers = np.full(len(linear.power_low), has_powers)
        for own_hinges, own_steps in ((hinges.none(), steps.none()), (hinges, steps)):
            kinds.append(
                [
                    np.concatenate([lines, of_powers, at_hinges, found, at_steps, also])
                    for found, also in zip(own_hinges.found, own_steps.found, strict=True)
                ]
            )
    return kinds


def choose_curvature(design: Design, mains: FoldMoments) -> float:
    """Penalty on the roughness of the average curve with the smallest error on folds not seen."""
    errors = []
    for curvature in CURVATURES:
        error = 0.0
        for fold in range(mains.n_folds):
            rest = mains.without(fold)
            penalty = rest.weight[0] * design.penalty(curvature)
            error += mains.squared_error(fold, solve(rest, penalty))
        errors.append(error)
    return CURVATURES[int(np.argmin(errors))]


def refit_by_likelihood(
    design: Design, pool: IntArray, fit: SparseFit, y: FloatArray, weights: FloatArray
) -> FloatArray:
    """Coefficients of a fit's columns: means over the folds of refits with what each has chosen.

    `pool` has the candidates that the fit has chosen from. Every refit has all rows.
    """
    n_mains = design.n_mains
    mean = np.zeros(len(fit.columns))
    for without in fit.without:
        used = without[fit.columns] != 0
        used[:n_mains] = True
        columns = fit.columns[used]
        own, chosen = design.only(pool[columns[n_mains:] - n_mains])
        refitted = fit_logistic(
            partial(own.columns, candidates=chosen), len(columns), y, weights, fit.per_row[used]
        )
        mean[used] += refitted.coefficients / len(fit.without)
    return mean


def _level(choice: _Choice, coefficients: FloatArray, y: FloatArray, weights: FloatArray) -> float:
    """What a mixture of logistic fits lacks for their mean to be that of the outcomes."""
    n_mains = choice.design.n_mains
    used = np.flatnonzero(coefficients[n_mains:])
    design, chosen = choice.design.only(choice.pool[used])
    own = coefficients[np.concatenate([np.arange(n_mains), n_mains + used])]
    linear = linear_predictor(lambda rows: design.columns(rows, chosen), own, len(y))
    return level_shift(linear, y, weights)


def assemble_core(
    design: Design, pool: IntArray, coefficients: FloatArray, binary: bool
) -> SplineCore:
    """The fitted core of a design: coefficients of the main effects, then of the pool."""
    n_linear, n_functions = design.terms.n_linear, design.basis.n_functions
    term_coefficients = np.zeros((design.terms.n_terms, design.n_products))
    term_coefficients[:n_linear, 0] = coefficients[n_functions : design.n_mains]
    for candidate, value in zip(pool, coefficients[design.n_mains :], strict=True):
        term_coefficients[design.place(int(candidate))] = value
    used: NDArray[np.bool_] = (term_coefficients != 0).any(axis=1)
    used[:n_linear] = True
    return SplineCore(
        terms=design.terms.only(used),
        basis=design.basis,
        dose_coefficients=coefficients[:n_functions],
        term_coefficients=term_coefficients[used],
        binary=binary,
    )
