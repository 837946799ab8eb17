"""Terms of the covariates: linear, hinges and steps, for a regression that is linear in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.dtypes import FloatArray

QUINTILES = (0.2, 0.4, 0.6, 0.8)
MAX_LEVELS = 12  # a covariate with at most this many values gets a step at each of them


@dataclass(frozen=True, slots=True)
class CovariateTerms:
    """Columns made of a table: one linear term per covariate, then the others.

    Missing values take the covariate's median; a covariate that has any gets an indicator of them
    among the linear terms.
    """

    median: FloatArray  # (n_features,)
    mean: FloatArray  # (n_features,) after imputation
    scale: FloatArray  # (n_features,)
    gappy: NDArray[np.int64]  # features with missing values
    hinge_feature: NDArray[np.int64]  # (n_hinges,)
    hinge_knot: FloatArray  # (n_hinges,) in standardised units
    step_feature: NDArray[np.int64]  # (n_steps,)
    step_knot: FloatArray  # (n_steps,) in standardised units

    @property
    def n_linear(self) -> int:
        """Linear terms: the covariates and the indicators of their missing values."""
        return len(self.median) + len(self.gappy)

    @property
    def n_terms(self) -> int:
        """All terms."""
        return self.n_linear + len(self.hinge_knot) + len(self.step_knot)

    def evaluate(self, X: FloatArray) -> FloatArray:
        """Terms of each row, shape (n_rows, n_terms): linear, hinges, steps."""
        missing = np.isnan(X)
        values = (np.where(missing, self.median, X) - self.mean) / self.scale
        return np.concatenate(
            [
                values,
                missing[:, self.gappy],
                np.maximum(values[:, self.hinge_feature] - self.hinge_knot, 0.0),
                values[:, self.step_feature] > self.step_knot,
            ],
            axis=1,
        )


def fit_covariate_terms(X: FloatArray) -> CovariateTerms:
    """Choose the terms of a table (n_rows, n_features); NaN is missing.

    Examples
    --------
    >>> terms = fit_covariate_terms(np.array([[0.0], [1.0], [1.0], [np.nan]]))
    >>> terms.n_linear, terms.n_terms
    (2, 2)
    """
    missing = np.isnan(X)
    median = np.array([_median(column) for column in X.T])
    filled = np.where(missing, median, X)
    mean = filled.mean(axis=0)
    scale = filled.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    hinges: list[tuple[int, float]] = []
    steps: list[tuple[int, float]] = []
    for feature, column in enumerate(((filled - mean) / scale).T):
        levels = np.unique(column)
        if len(levels) <= MAX_LEVELS:
            # With two levels the linear term is the step already.
            middles = (levels[:-1] + levels[1:]) / 2 if len(levels) > 2 else []
            steps += [(feature, float(middle)) for middle in middles]
        else:
            knots = np.unique(np.quantile(column, QUINTILES))
            inner = knots[(knots > levels[0]) & (knots < levels[-1])]
            hinges += [(feature, float(knot)) for knot in inner]
            steps += [(feature, float(knot)) for knot in inner]
    return CovariateTerms(
        median=median,
        mean=mean,
        scale=scale,
        gappy=np.flatnonzero(missing.any(axis=0)),
        hinge_feature=np.array([feature for feature, _ in hinges], np.int64),
        hinge_knot=np.array([knot for _, knot in hinges]),
        step_feature=np.array([feature for feature, _ in steps], np.int64),
        step_knot=np.array([knot for _, knot in steps]),
    )


def _median(column: FloatArray) -> float:
    present = column[~np.isnan(column)]
    return float(np.median(present)) if len(present) else 0.0
