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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.data.row_blocks import OneBlock, RowBlock, RowBlocks, Sums
from doseforest.doses.bases.spline_products import fit_splines
from doseforest.nuisance.outcome.covariate_terms import (
    CovariateTerms,
    fit_covariate_terms,
    has_many_values,
)
from doseforest.nuisance.outcome.fold_moments import FoldMoments, sum_moments
from doseforest.nuisance.outcome.knot_search import (
    FoundKnots,
    KnotSearch,
    knot_edges,
    sums_above,
    sums_by_bin,
    together,
)
from doseforest.nuisance.outcome.logistic_ridge import (
    COUNTED_VARIANCE,
    fit_logistic,
    level_shift,
    linear_predictor,
    linear_predictors,
)
from doseforest.nuisance.outcome.sparse_ridge import (
    Places,
    SparseFit,
    fit_sparse,
    mixing_shares,
    solve,
)
from doseforest.nuisance.outcome.spline_design import (
    MAX_SCREENED,
    Screening,
    SplineDesign,
    best_of,
    screening_sums,
)
from doseforest.nuisance.outcome.spline_model import SplineCore

N_FOLDS = 4
CURVATURES = (1e-7, 1e-5, 1e-3, 1e-1)  # penalties on the roughness of the average curve, per row
# Once terms are known: less of what is left looks like noise, so that less smoothing may be best.
LATE_CURVATURES = (1e-9, 1e-8, *CURVATURES)


@dataclass(frozen=True, slots=True)
class TermChoice:
    """Terms that least squares has chosen, in fits that are to be mixed."""

    design: SplineDesign
    pool: NDArray[np.int64]  # candidates that the fits have chosen from
    fits: tuple[SparseFit, ...]
    shares: FloatArray  # (n_fits,)

    def mixture(self, refit: Callable[[SparseFit], FloatArray]) -> FloatArray:
        """Coefficients of the main effects, then of the pool: those of the fits, times shares."""
        coefficients = np.zeros(self.design.n_mains + len(self.pool))
        for share, fit in zip(self.shares, self.fits, strict=True):
            if share > 0:
                coefficients[fit.columns] += share * refit(fit)
        return coefficients

    def core(self, level: float) -> SplineCore:
        """The core of least squares; `level` had been taken off the outcomes."""
        coefficients = self.mixture(lambda fit: fit.coefficients)
        coefficients[0] += level
        return assemble_core(self.design, self.pool, coefficients, binary=False)


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
    folds = np.random.default_rng(seed).permutation(np.arange(len(y)) % N_FOLDS)
    terms = fit_covariate_terms(X, powers=powers)
    mains = SplineDesign(X, dose, terms, fit_splines(dose, weights))
    knots = [
        knot_edges(column) if has_many_values(column) else np.zeros(0)
        for column in terms.standardised(X).T
    ]
    rows = OneBlock(RowBlock(X, dose, y, weights, np.arange(len(y)), folds), N_FOLDS)
    if not binary:
        level = float(np.average(y, weights=weights))  # no penalty on it
        return choose_terms(rows, mains, knots, level)[-1].core(level)
    moments = _moments(rows, "products of main effects", mains, None, 0.0)
    penalty = mains.penalty(choose_curvature(mains, moments))
    start = fit_logistic(mains.mains, mains.n_mains, y, weights, penalty)
    response, importance = start.working(y, COUNTED_VARIANCE)
    block = replace(rows.block, y=response, weights=importance * weights)
    choice = choose_terms(replace(rows, block=block), mains, knots, 0.0)[-1]
    coefficients = choice.mixture(
        lambda fit: refit_by_likelihood(choice.design, choice.pool, fit, y, weights)
    )
    coefficients[0] += _level(choice, coefficients, y, weights)
    return assemble_core(choice.design, choice.pool, coefficients, binary=True)


Screened = list[NDArray[np.int64]]  # candidates for the lasso without each fold of a fit


@dataclass(frozen=True, slots=True)
class _Fit:
    """A fit to the rows of some folds: the main effects alone."""

    folds: list[int]
    mains: FoldMoments
    penalty: FloatArray  # (n_mains,) per row
    coefficients: FloatArray  # (n_mains,)


def choose_terms(
    blocks: RowBlocks,
    linear: SplineDesign,
    knots: Sequence[FloatArray],
    level: float,
    *,
    without_folds: bool = False,
    most: int = MAX_SCREENED,
) -> list[TermChoice]:
    """Add terms to the main effects by least squares, of few kinds and of all.

    One choice with all rows, after one without each fold if these are wanted: sums are by fold, so
    that four passes over the rows serve all of them.

    Parameters
    ----------
    blocks : RowBlocks
        The response is the outcome less `level`.
    linear : SplineDesign
        With the terms that are there before any search; its rows are those of the blocks.
    knots : sequence of arrays
        Where the search may put knots of each covariate; nowhere: it is not searched.
    most : int
        Candidates that go into the lasso.
    """
    every = list(range(blocks.n_folds))
    mains = _moments(blocks, "products of main effects", linear, None, level)
    left_out = [*every, None] if without_folds else [None]
    fits = [_main_effects(linear, mains, [k for k in every if k != out]) for out in left_out]
    hinges, steps = _search(blocks, linear, knots, fits, level)
    design = replace(linear, terms=linear.terms.with_knots(hinges[0], steps[0]))
    screened = _screened(blocks, linear.terms, design, fits, hinges, steps, level, most)
    pool = np.unique(np.concatenate([own for each in screened for one in each for own in one]))
    moments = _moments(blocks, f"products of {len(pool)} terms", design, pool, level)

    curvatures = [linear.penalty(curvature) for curvature in LATE_CURVATURES]

    def fitted(number: int) -> TermChoice:
        own = _of_folds(moments, fits[number].folds)
        places = [_places_in(pool, candidates) for candidates in screened[number]]
        sparse = fit_sparse(own, places, fits[number].penalty, curvatures)
        return TermChoice(design, pool, sparse, mixing_shares(own, sparse))

    return blocks.each(f"spline cores, {len(fits)} fits", fitted, range(len(fits)))


def _moments(
    blocks: RowBlocks, text: str, design: SplineDesign, pool: IntArray | None, level: float
) -> FoldMoments:
    """Sums of products of the main effects, and of the candidates in a pool, by fold."""
    n_folds, n_columns = blocks.n_folds, design.n_mains + (0 if pool is None else len(pool))

    def sums(block: RowBlock) -> Sums:
        own = design.of(block)
        columns = own.mains if pool is None else partial(own.columns, candidates=pool)
        y, weights = block.y - level, block.row_weights
        return sum_moments(columns, n_columns, y, weights, block.folds, n_folds).sums

    return FoldMoments(*blocks.add_up(text, sums))


def _of_folds(moments: FoldMoments, folds: list[int]) -> FoldMoments:
    """Sums of some folds alone."""
    return (
        moments
        if len(folds) == moments.n_folds
        else FoldMoments(*(values[folds] for values in moments.sums))
    )


def _main_effects(design: SplineDesign, mains: FoldMoments, folds: list[int]) -> _Fit:
    own = _of_folds(mains, folds)
    penalty = design.penalty(choose_curvature(design, own))
    total = own.without(None)
    return _Fit(folds, own, penalty, solve(total, total.weight[0] * penalty))


def _search(
    blocks: RowBlocks,
    design: SplineDesign,
    knots: Sequence[FloatArray],
    fits: Sequence[_Fit],
    level: float,
) -> tuple[list[FoundKnots], list[FoundKnots]]:
    """Hinges and steps of each fit in what its main effects leave; the knots of all in one list."""
    n_folds = blocks.n_folds
    coefficients = [fit.coefficients for fit in fits]
    searched = [feature for feature, edges in enumerate(knots) if len(edges)]

    def sums(block: RowBlock) -> Sums:
        own = design.of(block)
        residuals = (block.y - level) - linear_predictors(own.mains, coefficients, len(block))
        functions = own.basis.evaluate(own.dose)[:, : own.n_products]
        values, weights = own.terms.standardised(own.X), block.row_weights

        def of_covariate(feature: int) -> FloatArray:
            rows = values[:, feature], residuals, weights, block.folds, n_folds, knots[feature]
            return np.stack([sums_by_bin(function, *rows) for function in functions.T])

        return tuple(of_covariate(feature) for feature in searched)

    by_bin = blocks.add_up("search knots of the covariates", sums) if searched else ()
    searches = []
    for number, fit in enumerate(fits):
        search = KnotSearch(len(fit.folds))
        for feature, own in zip(searched, by_bin, strict=True):
            search.add(feature, knots[feature], sums_above(own[:, :, fit.folds], number))
        searches.append(search.found())
    hinges, steps = (together([own[kind] for own in searches]) for kind in ("hinge", "step"))
    return hinges, steps


def _screened(
    blocks: RowBlocks,
    linear: CovariateTerms,
    design: SplineDesign,
    fits: Sequence[_Fit],
    hinges: Sequence[FoundKnots],
    steps: Sequence[FoundKnots],
    level: float,
    most: int,
) -> list[list[Screened]]:
    """Candidates for the lasso of each fit, for each kind of terms that is mixed.

    `linear` has the terms before a search has found any, `design` all of them.
    """
    n_folds = blocks.n_folds

    def sums(block: RowBlock) -> Sums:
        own = design.of(block)
        return screening_sums(own, n_folds, block.y - level, block.row_weights, block.folds)

    summed = blocks.add_up(f"screen {design.n_candidates} terms", sums)
    out = []
    for fit, own_hinges, own_steps in zip(fits, hinges, steps, strict=True):
        screening = Screening(fit.mains, *(values[fit.folds] for values in summed))
        scores = [screening.scores(fold, fit.penalty) for fold in range(len(fit.folds))]
        out.append(
            [
                [
                    best_of(own, design.candidates_of(one), most)
                    for own, one in zip(scores, known, strict=True)
                ]
                for known in known_terms(linear, own_hinges, own_steps)
            ]
        )
    return out


def _places_in(pool: IntArray, screened: Sequence[IntArray]) -> Places:
    """Places of candidates in a pool that has them all."""
    return [np.searchsorted(pool, own) for own in screened]


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


def choose_curvature(design: SplineDesign, mains: FoldMoments) -> float:
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
    design: SplineDesign, pool: IntArray, fit: SparseFit, y: FloatArray, weights: FloatArray
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


def _level(
    choice: TermChoice, coefficients: FloatArray, y: FloatArray, weights: FloatArray
) -> float:
    """What a mixture of logistic fits lacks for their mean to be that of the outcomes."""
    n_mains = choice.design.n_mains
    used = np.flatnonzero(coefficients[n_mains:])
    design, chosen = choice.design.only(choice.pool[used])
    own = coefficients[np.concatenate([np.arange(n_mains), n_mains + used])]
    linear = linear_predictor(lambda rows: design.columns(rows, chosen), own, len(y))
    return level_shift(linear, y, weights)


def assemble_core(
    design: SplineDesign, pool: IntArray, coefficients: FloatArray, binary: bool
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
