"""Means given the covariates on a cluster: a ridge on spline terms, a forest of what it leaves.

Cross-fitted by fold, and drawn towards the overall mean where the covariates tell nothing, as local
ones are; those are boosted by LightGBM, which fits on one machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.seeds import Purpose
from doseforest.data.row_blocks import RowBlock
from doseforest.engine.forest import Forest
from doseforest.nuisance.cross_fit import FoldModels
from doseforest.nuisance.outcome.covariate_terms import CovariateTerms
from doseforest.nuisance.treatment.conditional_means import Shrinkage, fit_shrinkage
from doseforest.spark.cluster_units import Units
from doseforest.spark.fold_forests import BinnedFeatures, ForestWork, Targets, fold_forests
from doseforest.spark.jobs import broadcast

RIDGE = 1e-3  # per row and variance of a term
BLOCK_ROWS = 16_384


@dataclass(frozen=True, slots=True)
class MeanModels:
    """Means of targets given the covariates, without each fold."""

    terms: CovariateTerms
    coefficients: FloatArray  # (n_folds, 1 + n_terms, n_targets)
    forests: tuple[Forest, ...]  # (n_folds,)
    shrinkage: Shrinkage | None = None

    def predict(self, block: RowBlock) -> FloatArray:
        """Means for the rows of a block from models that have not seen them."""
        assert self.shrinkage is not None  # the models are fitted
        return self.shrinkage.shrunk(self.raw(block))

    @property
    def levels(self) -> FloatArray:
        """Means of the targets over all rows, (n_targets,)."""
        assert self.shrinkage is not None
        return self.shrinkage.mean

    def raw(self, block: RowBlock) -> FloatArray:
        """The same before they are drawn towards the mean."""
        models = tuple(zip(self.coefficients, self.forests, strict=True))

        def predict(model: tuple[FloatArray, Forest], rows: IntArray) -> FloatArray:
            line, forest = model
            linear = _linear(self.terms, line, block.numbers[rows])
            return linear + forest.average(block.X[rows], n_jobs=1)

        n_targets = self.coefficients.shape[2]
        return FoldModels(block.folds, models, None).out_of_fold(predict, n_targets)


@dataclass(slots=True, eq=False)
class MeanFitter:
    """Fits means of what units have; products of the terms are summed once."""

    units: Units
    terms: CovariateTerms
    splits: BinnedFeatures  # the covariates, as trees split on them
    gram: FloatArray | None = None  # (n_folds, k, k)
    kept: Callable[[RowBlock], NDArray[np.bool_]] | None = None  # rows to fit to; None: all

    def fit(self, targets: Targets, work: ForestWork, what: str) -> MeanModels:
        """Fit models of targets; `what` they are is told by the jobs."""
        cross, weight = self._cross(targets, what)
        coefficients = self._coefficients(cross, weight)
        terms = self.terms

        def left_by(fold: int) -> Targets:
            line = coefficients[fold]
            return lambda block: targets(block) - _linear(terms, line, block.numbers)

        forests = fold_forests(
            self.units, self.splits, work, left_by, Purpose.TREATMENT_FOREST, self.kept
        )
        return self._shrunk(MeanModels(terms, coefficients, forests), targets, what)

    def _cross(self, targets: Targets, what: str) -> tuple[FloatArray, FloatArray]:
        terms, n_folds, with_gram = self.terms, self.units.n_folds, self.gram is None
        kept = self.kept

        def sums(block: RowBlock) -> tuple[FloatArray, ...]:
            target, weights = targets(block), _weights(block, kept)
            k = 1 + terms.n_terms
            gram = np.zeros((n_folds, k, k) if with_gram else (0, 0, 0))
            cross = np.zeros((n_folds, k, target.shape[1]))
            for rows in _slices(len(block)):
                columns = _columns(terms, block.numbers[rows])
                for fold in range(n_folds):
                    row_weights = weights[rows] * (block.folds[rows] == fold)
                    weighted = columns * row_weights[:, None]
                    cross[fold] += weighted.T @ target[rows]
                    if with_gram:
                        gram[fold] += weighted.T @ columns
            return gram, cross

        text = f"{what} given the covariates: products of terms"
        gram, cross = self.units.add_up(text, sums)
        if with_gram:
            self.gram = gram
        assert self.gram is not None
        return cross, self.gram[:, 0, 0]

    def _coefficients(self, cross: FloatArray, weight: FloatArray) -> FloatArray:
        assert self.gram is not None
        out = np.empty(cross.shape)
        for fold in range(len(cross)):
            gram = self.gram.sum(axis=0) - self.gram[fold]
            n_rows = weight.sum() - weight[fold]
            penalty = RIDGE * np.diag(gram) + 1e-9 * n_rows
            penalty[0] = 0.0  # no penalty on the level
            right = cross.sum(axis=0) - cross[fold]
            out[fold] = np.linalg.solve(gram + np.diag(penalty), right)
        return out

    def _shrunk(self, plain: MeanModels, targets: Targets, what: str) -> MeanModels:
        kept = self.kept
        with broadcast(self.units.context, plain) as sent:

            def rows(block: RowBlock) -> tuple[FloatArray, FloatArray, FloatArray]:
                return sent.value.raw(block), targets(block), _weights(block, kept)

            text = f"{what} given the covariates: slopes out of fold"
            return replace(plain, shrinkage=fit_shrinkage(self.units, text, rows))


def _weights(block: RowBlock, kept: Callable[[RowBlock], NDArray[np.bool_]] | None) -> FloatArray:
    """Weights of the rows, 0 for those that are left out."""
    return block.row_weights if kept is None else np.where(kept(block), block.row_weights, 0.0)


def _columns(terms: CovariateTerms, X: FloatArray) -> FloatArray:
    return np.column_stack([np.ones(len(X)), terms.evaluate(X)])


def _linear(terms: CovariateTerms, coefficients: FloatArray, X: FloatArray) -> FloatArray:
    out = np.empty((len(X), coefficients.shape[1]))
    for rows in _slices(len(X)):
        out[rows] = _columns(terms, X[rows]) @ coefficients
    return out


def _slices(n_rows: int) -> list[slice]:
    return [slice(first, first + BLOCK_ROWS) for first in range(0, n_rows, BLOCK_ROWS)]
