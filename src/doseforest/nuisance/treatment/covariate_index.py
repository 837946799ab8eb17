"""Few columns that say what covariates know of the dose: lines, and boosted means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.nuisance.treatment.conditional_mean import (
    ConditionalMean,
    LinearTerms,
    fit_conditional_mean,
    fit_linear_terms,
)

FURTHEST = 3.0  # standard deviations; weights are exponentials of these columns
LEAST_MOVEMENT = 0.03  # standard deviations of its target that a mean must move to count


@dataclass(frozen=True, slots=True)
class CovariateIndex:
    """Standardised covariates, fitted means of some targets, and the squares of those means."""

    terms: LinearTerms
    means: tuple[ConditionalMean, ...]
    centre: FloatArray  # (n_columns,)
    scale: FloatArray  # (n_columns,)
    training: FloatArray  # (n_rows, n_columns) of the training rows, with means out of fold

    def evaluate(self, X: FloatArray) -> FloatArray:
        """Columns of new rows, shape (n_rows, n_columns)."""
        drifts = [mean.predict(X) - mean.level for mean in self.means]
        return _standardised(_columns(self.terms, X, drifts), self.centre, self.scale)


def fit_covariate_index(
    X: FloatArray,
    targets: Sequence[FloatArray],
    *,
    weights: FloatArray | None = None,
    groups: IntArray | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> CovariateIndex:
    """Fit the means of the targets, (n_rows,) each, and standardise all columns.

    A mean that hardly moves, as that of a randomised dose, gives columns of zeros. Rows of a group
    share the fold that they are left out with.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 2))
    >>> index = fit_covariate_index(x, [x[:, 0] + rng.normal(size=500)])
    >>> index.training.shape, index.evaluate(x[:3]).shape
    ((500, 4), (3, 4))
    """
    terms = fit_linear_terms(X)
    means = tuple(
        fit_conditional_mean(
            X, target, weights=weights, groups=groups, seed=seed, n_threads=n_threads
        )
        for target in targets
    )
    raw = _columns(terms, X, [mean.out_of_fold - mean.level for mean in means])
    centre, deviation = _moments(raw, weights)
    n_linear = raw.shape[1] - 2 * len(means)
    least = np.zeros(raw.shape[1])
    for k, target in enumerate(targets):
        movement = LEAST_MOVEMENT * float(_moments(target[:, None], weights)[1][0])
        least[n_linear + k] = movement
        least[n_linear + len(means) + k] = movement**2
    scale = np.where(deviation > least, deviation, np.inf)
    return CovariateIndex(terms, means, centre, scale, _standardised(raw, centre, scale))


def _moments(columns: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    centre: FloatArray = np.average(columns, axis=0, weights=weights)
    deviation = np.sqrt(np.average((columns - centre) ** 2, axis=0, weights=weights))
    return centre, deviation


def _columns(terms: LinearTerms, X: FloatArray, drifts: Sequence[FloatArray]) -> FloatArray:
    squares = [drift**2 for drift in drifts]
    return np.column_stack([terms.evaluate(X), *drifts, *squares])


def _standardised(raw: FloatArray, centre: FloatArray, scale: FloatArray) -> FloatArray:
    return np.clip((raw - centre) / scale, -FURTHEST, FURTHEST)
