"""Columns of the spline core's regression: main effects, and the products it may choose from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.data.row_blocks import RowBlock
from doseforest.doses.bases.spline_products import SplineProductBasis
from doseforest.doses.bases.splines import SplineBasis
from doseforest.nuisance.outcome.covariate_terms import CovariateTerms
from doseforest.nuisance.outcome.fold_moments import FoldMoments, fold_blocks

MAIN_RIDGE = 1e-6  # per row
MAX_SCREENED = 300  # terms that go into the lasso; 500 took twice the time and gained nothing


@dataclass(frozen=True, slots=True)
class SplineDesign:
    """Columns of the regression: main effects, then candidates."""

    X: FloatArray
    dose: DoseArray
    terms: CovariateTerms
    basis: SplineBasis | SplineProductBasis

    def of(self, block: RowBlock) -> SplineDesign:
        """The same columns of other rows."""
        return replace(self, X=block.numbers, dose=block.dose)

    @property
    def n_mains(self) -> int:
        """Main effects: the dose functions and the linear terms."""
        return self.basis.n_functions + self.terms.n_linear

    @property
    def n_products(self) -> int:
        """Dose functions that terms are multiplied with, the constant included."""
        return self.basis.n_leading

    @property
    def n_candidates(self) -> int:
        """Products of terms and dose functions that are no main effects."""
        return self.n_products * self.terms.n_terms - self.terms.n_linear

    def candidates_of(self, terms: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mark the candidates of some terms, (n_candidates,)."""
        return np.tile(terms, self.n_products)[self.terms.n_linear :]

    def place(self, candidate: int) -> tuple[int, int]:
        """Term and column of `SplineCore.term_coefficients` of a candidate."""
        function, term = divmod(candidate + self.terms.n_linear, self.terms.n_terms)
        return term, function

    def only(self, candidates: IntArray) -> tuple[SplineDesign, NDArray[np.int64]]:
        """The design with no more terms than some candidates need, and their numbers in it."""
        function, term = np.divmod(candidates + self.terms.n_linear, self.terms.n_terms)
        kept = np.zeros(self.terms.n_terms, bool)
        kept[: self.terms.n_linear] = True
        kept[term] = True
        own = self.terms.only(kept)
        numbers = function * own.n_terms + (np.cumsum(kept) - 1)[term] - own.n_linear
        return replace(self, terms=own), numbers

    def mains(self, rows: IntArray) -> FloatArray:
        """Main effects of some rows."""
        functions = self.basis.evaluate(self.dose[rows])
        return np.concatenate([functions, self.terms.linear(self.X[rows])], axis=1)

    def columns(self, rows: IntArray, candidates: IntArray) -> FloatArray:
        """Main effects and the chosen candidates of some rows."""
        mains, terms = self.mains(rows), self.terms.evaluate(self.X[rows])
        functions = mains[:, : self.basis.n_functions]
        places = [self.place(int(candidate)) for candidate in candidates]
        chosen = (
            terms[:, [term for term, _ in places]]
            * functions[:, [function for _, function in places]]
        )
        return np.concatenate([mains, chosen], axis=1)

    def penalty(self, curvature: float) -> FloatArray:
        """Penalty of the main effects, per row."""
        penalty = np.full(self.n_mains, MAIN_RIDGE)
        penalty[: self.basis.n_functions] += curvature * self.basis.roughness
        return penalty


@dataclass(frozen=True, slots=True)
class Screening:
    """Moments of the main effects, and of each candidate with them and with the outcome."""

    mains: FoldMoments
    with_mains: FloatArray  # (n_folds, n_mains, n_candidates)
    with_outcome: FloatArray  # (n_folds, n_candidates)
    squares: FloatArray  # (n_folds, n_candidates)

    def scores(self, fold: int | None, penalty: FloatArray) -> FloatArray:
        """What each candidate explains once the main effects are taken out, (n_candidates,).

        A candidate that they leave nothing of has 0.

        Parameters
        ----------
        fold : int or None
            Left out.
        penalty : array of shape (n_mains,)
            On the main effects, per row.
        """
        mains = self.mains.without(fold)
        kept = [f for f in range(self.mains.n_folds) if f != fold]
        cross = self.with_mains[kept].sum(axis=0)
        factor = cho_factor(mains.gram[0] + np.diag(mains.weight[0] * penalty + 1e-10))
        projected = cho_solve(factor, cross)
        squares = self.squares[kept].sum(axis=0)
        left = squares - (cross * projected).sum(axis=0)
        outcome = self.with_outcome[kept].sum(axis=0) - projected.T @ mains.cross[0]
        usable = left > 1e-8 * np.maximum(squares, 1e-300)
        return np.where(usable, outcome**2 / np.where(usable, left, 1.0), 0.0)


def best_of(
    scores: FloatArray, allowed: NDArray[np.bool_], most: int = MAX_SCREENED
) -> NDArray[np.int64]:
    """The candidates with the largest scores among those that are allowed, in their order.

    Examples
    --------
    >>> best_of(np.array([3.0, 0.0, 9.0, 4.0]), np.array([True, True, False, True]), most=5)
    array([0, 3])
    """
    own = np.where(allowed, scores, 0.0)
    order = np.argsort(-own, kind="stable")[:most]
    return np.sort(order[own[order] > 0])


def screening_sums(
    design: SplineDesign, n_folds: int, y: FloatArray, weights: FloatArray, folds: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum what a `Screening` needs to know of all candidates beside the main effects' moments."""
    n_candidates = design.n_candidates
    with_mains = np.zeros((n_folds, design.n_mains, n_candidates))
    with_outcome = np.zeros((n_folds, n_candidates))
    squares = np.zeros((n_folds, n_candidates))
    for fold, rows in fold_blocks(folds, n_folds, design.terms.n_terms):
        own_mains, terms = design.mains(rows), design.terms.evaluate(design.X[rows])
        start = 0
        for k, multiplier in enumerate(own_mains.T[: design.n_products]):
            own = terms[:, design.terms.n_linear :] if k == 0 else terms
            stop = start + own.shape[1]
            scaled = weights[rows] * multiplier
            with_mains[fold, :, start:stop] += (own_mains * scaled[:, None]).T @ own
            with_outcome[fold, start:stop] += (scaled * y[rows]) @ own
            squares[fold, start:stop] += (scaled * multiplier) @ own**2
            start = stop
    return with_mains, with_outcome, squares
