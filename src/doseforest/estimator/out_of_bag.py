"""Corrected curves of training rows whose covariates were changed, by what has not seen the rows.

Which models and trees have seen a row depends on its place in the table, not on its covariates. So
a training row can be asked about with other covariates than its own and still be answered out of
fold and out of bag.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.engine.forest import Forest
from doseforest.estimator.trained_parts import TrainedPart
from doseforest.nuisance.outcome.cross_fitted_outcome import CrossFittedOutcome


@dataclass(frozen=True, slots=True, eq=False)
class UnseenTrees:
    """A forest that answers each training row by the trees that have not seen it."""

    forest: Forest
    row_ids: IntArray  # (n_rows,) what the rows were drawn by

    @property
    def fallback(self) -> FloatArray:
        """Mean over all rows."""
        return self.forest.fallback

    def average(self, X: FloatArray, *, n_jobs: int | None = None) -> FloatArray:
        """Leaf channels averaged over the trees that have not seen a row."""
        return self.forest.average_oob(X, row_ids=self.row_ids, n_jobs=n_jobs)

    def average_codes(self, X: FloatArray, n_threads: int) -> FloatArray:
        """The same of checked rows."""
        return self.average(X, n_jobs=n_threads)

    def predict(self, X: FloatArray, *, n_jobs: int | None = None) -> FloatArray:
        """Curves from the trees that have not seen a row."""
        return self.forest.predict_oob(X, row_ids=self.row_ids, n_jobs=n_jobs)


@dataclass(frozen=True, slots=True, eq=False)
class UnseenFolds:
    """An outcome model that answers each training row by the fit that has not seen it."""

    outcome: CrossFittedOutcome

    def curves(self, X: FloatArray, doses: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Curves of the training rows, with the covariates given."""
        return self.outcome.curves_out_of_fold(X, doses, n_threads)

    def predict(self, X: FloatArray, dose: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Outcomes of the training rows at one dose each."""
        return self.curves(X, dose[:, None], n_threads=n_threads)[:, 0]


def changed_curves(
    parts: tuple[TrainedPart, ...], X: FloatArray, doses: FloatArray, n_threads: int = 1
) -> FloatArray:
    """Out-of-bag curves of the training rows with covariates X, shape (n_rows, n_doses).

    With the rows' own covariates it is `corrections.parts.out_of_bag`, but for what is added for
    everyone alike: there the row itself has its 1/n of a say.
    """
    curves = _changed_part(parts[0], X, doses, n_threads)
    for part in parts[1:]:
        assert part.rows.grows is not None  # several parts are halves
        unseen = ~part.rows.grows
        curves[unseen] = _changed_part(part, X, doses, n_threads)[unseen]
    return curves


def _changed_part(
    part: TrainedPart, X: FloatArray, doses: FloatArray, n_threads: int
) -> FloatArray:
    rows = part.rows
    correction = part.fitted.correction.with_forests(lambda value: UnseenTrees(value, rows.ids))
    splits = np.ascontiguousarray(X[:, rows.effect_columns])
    return correction.curves(UnseenFolds(part.outcome), X, splits, doses, n_threads)
