"""The spline core from sums over a cluster: for all rows and without each fold, in four passes.

The steps are those of `doseforest.nuisance.outcome.spline_core`. Sums of products are kept by fold,
so one pass serves every fit; penalties of a fit without a fold are chosen by its other folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray
from doseforest.doses.bases.spline_products import SplineProductBasis
from doseforest.doses.bases.splines import SplineBasis
from doseforest.nuisance.outcome.covariate_terms import CovariateTerms
from doseforest.nuisance.outcome.fold_moments import FoldMoments, sum_moments
from doseforest.nuisance.outcome.knot_search import FoundKnots, KnotSearch
from doseforest.nuisance.outcome.sparse_ridge import fit_sparse, mixing_shares, solve
from doseforest.nuisance.outcome.spline_core import (
    assemble_core,
    choose_curvature,
    known_terms,
    places_in,
)
from doseforest.nuisance.outcome.spline_design import Design, Screening, best_of, screen
from doseforest.nuisance.outcome.spline_model import SplineCore
from doseforest.spark.cluster_units import UnitBlock, Units, add_up
from doseforest.spark.feature_summaries import FeatureSummaries
from doseforest.spark.jobs import broadcast, described

MOST_TERMS = 150  # that a fit may choose from: products of all that some fit wants are summed
BLOCK_ROWS = 16_384


@dataclass(frozen=True, slots=True)
class _Subset:
    """Rows of some folds, and the fit of the main effects to them."""

    folds: tuple[int, ...]
    mains: FoldMoments
    penalty: FloatArray  # (n_mains,) per row
    coefficients: FloatArray  # (n_mains,)


def fit_cores(
    units: Units,
    summaries: FeatureSummaries,
    basis: SplineBasis | SplineProductBasis,
    level: float,
) -> tuple[SplineCore, ...]:
    """Fit a core without each fold, and last one with all rows; `level` is the mean outcome."""
    empty = np.zeros((0, units.n_numbers)), np.zeros(0)
    design = Design(*empty, summaries.terms, basis)
    subsets = _main_effects(units, design, level)
    knots = _search(units, design, summaries.knots, subsets, level)
    hinges = _together([own["hinge"] for own in knots])
    steps = _together([own["step"] for own in knots])
    richer = replace(design, terms=design.terms.with_knots(hinges[0], steps[0]))
    screened = _screened(units, design.terms, richer, subsets, hinges, steps, level)
    pool = np.unique(np.concatenate([own for each in screened for one in each for own in one]))
    moments = _moments(
        units, f"products of {len(pool)} terms", richer, len(pool) + design.n_mains, pool, level
    )

    def fit(number: int, moments: FoldMoments) -> tuple[int, SplineCore]:
        own, subset = _of_folds(moments, subsets[number].folds), subsets[number]
        return number, _fit(richer, pool, own, screened[number], subset.penalty, level)

    numbers = range(len(subsets))
    text = f"spline cores, {len(subsets)} fits"
    with described(units.context, text), broadcast(units.context, moments) as sent:
        fitted = units.context.parallelize(numbers, len(subsets)).map(
            lambda number: fit(number, sent.value)
        )
        return tuple(core for _, core in sorted(fitted.collect(), key=lambda pair: pair[0]))


def _main_effects(units: Units, design: Design, level: float) -> list[_Subset]:
    mains = _moments(units, "products of main effects", design, design.n_mains, None, level)
    subsets = []
    every = tuple(range(units.n_folds))
    for left_out in (*every, None):
        folds = tuple(fold for fold in every if fold != left_out)
        own = _of_folds(mains, folds)
        penalty = design.penalty(choose_curvature(design, own))
        total = own.without(None)
        coefficients = solve(total, total.weight[0] * penalty)
        subsets.append(_Subset(folds, own, penalty, coefficients))
    return subsets


def _moments(
    units: Units,
    text: str,
    design: Design,
    n_columns: int,
    pool: NDArray[np.int64] | None,
    level: float,
) -> FoldMoments:
    """Sums of products of the main effects, and of the candidates in a pool, by fold."""
    n_folds = units.n_folds

    def sums(block: UnitBlock) -> tuple[Any, ...]:
        own = replace(design, X=block.numbers, dose=block.dose)
        columns = own.mains if pool is None else (lambda rows: own.columns(rows, pool))
        found = sum_moments(
            columns, n_columns, block.y - level, block.own_weights, block.folds, n_folds
        )
        return found.gram, found.cross, found.square, found.weight

    return FoldMoments(*add_up(units.blocks, text, sums))


def _of_folds(moments: FoldMoments, folds: Sequence[int]) -> FoldMoments:
    """Sums of some folds alone."""
    kept = list(folds)
    return FoldMoments(
        moments.gram[kept], moments.cross[kept], moments.square[kept], moments.weight[kept]
    )


def _search(
    units: Units,
    design: Design,
    knots: Sequence[FloatArray],
    subsets: Sequence[_Subset],
    level: float,
) -> list[dict[str, FoundKnots]]:
    """Hinges and steps in what the main effects of each subset leave."""
    n_folds = units.n_folds
    coefficients = np.stack([subset.coefficients for subset in subsets], axis=1)
    searched = [feature for feature, edges in enumerate(knots) if len(edges)]

    def sums(block: UnitBlock) -> tuple[FloatArray, ...]:
        return _sums_by_bin(block, design, coefficients, knots, searched, n_folds, level)

    summed: tuple[FloatArray, ...] = ()
    if searched:
        summed = add_up(units.blocks, "search knots of the covariates", sums)
    found = []
    for number, subset in enumerate(subsets):
        search = KnotSearch(len(subset.folds))
        places = [0, 1, 2, 3, 4 + 2 * number, 5 + 2 * number]
        for feature, own in zip(searched, summed, strict=True):
            above = own[:, places][:, :, list(subset.folds)]
            search.add(feature, knots[feature], above[..., ::-1].cumsum(axis=-1)[..., ::-1])
        found.append(search.found())
    return found


def _sums_by_bin(
    block: UnitBlock,
    design: Design,
    coefficients: FloatArray,  # (n_mains, n_subsets)
    knots: Sequence[FloatArray],
    searched: Sequence[int],
    n_folds: int,
    level: float,
) -> tuple[FloatArray, ...]:
    """For each searched covariate the sums of a knot search in each bin.

    Of shape (n_functions, 4 + 2 n_subsets, n_folds, n_bins): four that subsets share, then two of
    the residuals of each.
    """
    n_functions, n_subsets = design.n_products, coefficients.shape[1]
    out = [
        np.zeros((n_functions, 4 + 2 * n_subsets, n_folds, len(knots[feature]) + 1))
        for feature in searched
    ]
    for first in range(0, len(block), BLOCK_ROWS):
        rows = np.arange(first, min(first + BLOCK_ROWS, len(block)))
        mains = replace(design, X=block.numbers, dose=block.dose).mains(rows)
        residuals = (block.y[rows] - level)[:, None] - mains @ coefficients
        weights, folds = block.own_weights[rows], block.folds[rows]
        values = design.terms.standardised(block.numbers[rows])
        for place, feature in enumerate(searched):
            column, edges = values[:, feature], knots[feature]
            cells = folds * (len(edges) + 1) + np.searchsorted(edges, column)
            shape = n_folds, len(edges) + 1
            for number, function in enumerate(mains.T[:n_functions]):
                square = weights * function**2
                summed = [weights, square, square * column, square * column**2]
                for residual in residuals.T:
                    outcome = weights * function * residual
                    summed += [outcome, outcome * column]
                for kind, own in enumerate(summed):
                    in_bin = np.bincount(cells, own, shape[0] * shape[1])
                    out[place][number, kind] += in_bin.reshape(shape)
    return tuple(out)


def _together(found: Sequence[FoundKnots]) -> list[FoundKnots]:
    """The knots of all subsets in one list, for each subset with what its own searches found."""
    pairs = [list(zip(own.feature.tolist(), own.knot.tolist(), strict=True)) for own in found]
    every = sorted({pair for own in pairs for pair in own})
    number = {pair: place for place, pair in enumerate(every)}
    features = np.array([feature for feature, _ in every], np.int64)
    knots = np.array([knot for _, knot in every], np.float64)
    out = []
    for own, mine in zip(found, pairs, strict=True):
        marks = np.zeros((len(own.found), len(every)), bool)
        marks[:, [number[pair] for pair in mine]] = own.found
        out.append(FoundKnots(features, knots, marks))
    return out


Screened = list[NDArray[np.int64]]  # without each fold of a subset


def _screened(
    units: Units,
    linear: CovariateTerms,
    design: Design,
    subsets: Sequence[_Subset],
    hinges: Sequence[FoundKnots],
    steps: Sequence[FoundKnots],
    level: float,
) -> list[list[Screened]]:
    """Candidates for the lasso of each subset, for each fit that is mixed.

    `linear` has the terms before a search has found any, `design` all of them.
    """
    every = subsets[-1].mains

    def sums(block: UnitBlock) -> tuple[FloatArray, ...]:
        own = replace(design, X=block.numbers, dose=block.dose)
        found = screen(own, every, block.y - level, block.own_weights, block.folds)
        return found.with_mains, found.with_outcome, found.squares

    text = f"screen {design.n_candidates} terms"
    with_mains, with_outcome, squares = add_up(units.blocks, text, sums)
    out = []
    for subset, own_hinges, own_steps in zip(subsets, hinges, steps, strict=True):
        kept = list(subset.folds)
        screening = Screening(subset.mains, with_mains[kept], with_outcome[kept], squares[kept])
        scores = [screening.scores(fold, subset.penalty) for fold in range(len(kept))]
        out.append(
            [
                [
                    best_of(own, design.candidates_of(one), MOST_TERMS)
                    for own, one in zip(scores, known, strict=True)
                ]
                for known in known_terms(linear, own_hinges, own_steps)
            ]
        )
    return out


def _fit(
    design: Design,
    pool: NDArray[np.int64],
    moments: FoldMoments,
    screened: Sequence[Screened],
    penalty: FloatArray,
    level: float,
) -> SplineCore:
    """Choose terms by the lasso, refit them by a ridge, and mix the fits."""
    fits = fit_sparse(moments, [places_in(pool, own) for own in screened], penalty)
    coefficients = np.zeros(design.n_mains + len(pool))
    for share, fit in zip(mixing_shares(moments, fits), fits, strict=True):
        coefficients[fit.columns] += share * fit.coefficients
    coefficients[0] += level
    return assemble_core(design, pool, coefficients, binary=False)
