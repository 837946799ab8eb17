"""Terms of the covariates: linear, hinges and steps, for a regression that is linear in them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from doseforest.dtypes import FloatArray
from doseforest.nuisance.knot_search import FoundKnots

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

    def standardised(self, X: FloatArray) -> FloatArray:
        """Covariates without gaps, in standardised units, (n_rows, n_features)."""
        filled: FloatArray = np.where(np.isnan(X), self.median, X)
        return (filled - self.mean) / self.scale

    def linear(self, X: FloatArray) -> FloatArray:
        """Linear terms of each row, (n_rows, n_linear)."""
        return np.concatenate([self.standardised(X), np.isnan(X[:, self.gappy])], axis=1)

    def evaluate(self, X: FloatArray) -> FloatArray:
        """Terms of each row, shape (n_rows, n_terms): linear, hinges, steps."""
        values = self.linear(X)
        return np.concatenate(
            [
                values,
                np.maximum(values[:, self.hinge_feature] - self.hinge_knot, 0.0),
                values[:, self.step_feature] > self.step_knot,
            ],
            axis=1,
        )

    def with_knots(self, hinges: FoundKnots, steps: FoundKnots) -> CovariateTerms:
        """Add hinges and steps, each kind after those that were there."""
        return replace(
            self,
            hinge_feature=np.concatenate([self.hinge_feature, hinges.feature]),
            hinge_knot=np.concatenate([self.hinge_knot, hinges.knot]),
            step_feature=np.concatenate([self.step_feature, steps.feature]),
            step_knot=np.concatenate([self.step_knot, steps.knot]),
        )

    def only(self, kept: NDArray[np.bool_]) -> CovariateTerms:
        """The linear terms and those of the others that are marked among all, (n_terms,)."""
        hinges, steps = np.split(kept[self.n_linear :], [len(self.hinge_knot)])
        return replace(
            self,
            hinge_feature=self.hinge_feature[hinges],
            hinge_knot=self.hinge_knot[hinges],
            step_feature=self.step_feature[steps],
            step_knot=self.step_knot[steps],
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
        if not has_many_values(levels):
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


def has_many_values(column: FloatArray) -> bool:
    """Whether hinges and quantiles of a covariate make sense, or else a step at each value."""
    return len(np.unique(column)) > MAX_LEVELS


def _median(column: FloatArray) -> float:
    present = column[~np.isnan(column)]
    return float(np.median(present)) if len(present) else 0.0
