"""Columns made of the covariates for a linear regression: lines, powers, hinges, steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.nuisance.outcome.knot_search import FoundKnots

QUINTILES = (0.2, 0.4, 0.6, 0.8)
POWERS = (2, 3)
FENCE = 3.0  # times the distance of the quartiles, outside of them: Tukey's outer fence
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
    power_feature: NDArray[np.int64]  # (n_powers,)
    power_degree: NDArray[np.int64]  # (n_powers,) of POWERS
    power_low: FloatArray  # (n_powers,) a line from here down, in standardised units
    power_high: FloatArray  # (n_powers,) a line from here up
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
        return self.n_linear + len(self.power_low) + len(self.hinge_knot) + len(self.step_knot)

    def standardised(self, X: FloatArray) -> FloatArray:
        """Covariates without gaps, in standardised units, (n_rows, n_features)."""
        filled: FloatArray = np.where(np.isnan(X), self.median, X)
        return (filled - self.mean) / self.scale

    def linear(self, X: FloatArray) -> FloatArray:
        """Linear terms of each row, (n_rows, n_linear)."""
        return np.concatenate([self.standardised(X), np.isnan(X[:, self.gappy])], axis=1)

    def evaluate(self, X: FloatArray) -> FloatArray:
        """Terms of each row, shape (n_rows, n_terms): linear, powers, hinges, steps."""
        values = self.linear(X)
        of_powers = values[:, self.power_feature]
        return np.concatenate(
            [
                values,
                hermite(of_powers, self.power_degree, self.power_low, self.power_high),
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
        n_powers, n_hinges = len(self.power_low), len(self.hinge_knot)
        own, hinges, steps = np.split(kept[self.n_linear :], [n_powers, n_powers + n_hinges])
        return replace(
            self,
            power_feature=self.power_feature[own],
            power_degree=self.power_degree[own],
            power_low=self.power_low[own],
            power_high=self.power_high[own],
            hinge_feature=self.hinge_feature[hinges],
            hinge_knot=self.hinge_knot[hinges],
            step_feature=self.step_feature[steps],
            step_knot=self.step_knot[steps],
        )


def fit_covariate_terms(X: FloatArray, *, powers: bool = True) -> CovariateTerms:
    """Choose the terms of a table (n_rows, n_features), with `powers` or not; NaN is missing.

    Examples
    --------
    >>> terms = fit_covariate_terms(np.array([[0.0], [1.0], [1.0], [np.nan]]))
    >>> terms.n_linear, terms.n_terms
    (2, 2)
    >>> terms = fit_covariate_terms(np.linspace(0.0, 1.0, 101)[:, None])
    >>> terms.n_linear, len(terms.power_low), len(terms.hinge_knot), len(terms.step_knot)
    (1, 2, 4, 4)
    """
    missing = np.isnan(X)
    median = np.array([_median(column) for column in X.T])
    filled = np.where(missing, median, X)
    mean = filled.mean(axis=0)
    scale = filled.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    fenced: list[tuple[int, int, float, float]] = []
    hinges: list[tuple[int, float]] = []
    steps: list[tuple[int, float]] = []
    for feature, column in enumerate(((filled - mean) / scale).T):
        levels = np.unique(column)
        if not has_many_values(levels):
            # With two levels the linear term is the step already.
            middles = (levels[:-1] + levels[1:]) / 2 if len(levels) > 2 else []
            steps += [(feature, float(middle)) for middle in middles]
        else:
            low, high = _fences(column, levels)
            # Where most rows have one value, all is outside of the fences: nothing but a line.
            degrees = POWERS if powers and low < high else ()
            fenced += [(feature, degree, low, high) for degree in degrees]
            knots = np.unique(np.quantile(column, QUINTILES))
            inner = knots[(knots > levels[0]) & (knots < levels[-1])]
            hinges += [(feature, float(knot)) for knot in inner]
            steps += [(feature, float(knot)) for knot in inner]
    return CovariateTerms(
        median=median,
        mean=mean,
        scale=scale,
        gappy=np.flatnonzero(missing.any(axis=0)),
        power_feature=np.array([feature for feature, _, _, _ in fenced], np.int64),
        power_degree=np.array([degree for _, degree, _, _ in fenced], np.int64),
        power_low=np.array([low for _, _, low, _ in fenced]),
        power_high=np.array([high for _, _, _, high in fenced]),
        hinge_feature=np.array([feature for feature, _ in hinges], np.int64),
        hinge_knot=np.array([knot for _, knot in hinges]),
        step_feature=np.array([feature for feature, _ in steps], np.int64),
        step_knot=np.array([knot for _, knot in steps]),
    )


def hermite(values: FloatArray, degree: IntArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Hermite polynomials of standardised columns, (n_rows, n_powers), lines outside of fences.

    Of a normal covariate one says nothing of the other, nor of a line.

    Examples
    --------
    >>> values = np.repeat([[0.0], [2.0], [4.0]], 2, axis=1)
    >>> hermite(values, np.array([2, 3]), np.full(2, -3.0), np.full(2, 3.0))
    array([[-1.,  0.],
           [ 3.,  2.],
           [14., 42.]])
    """
    within = np.clip(values, low, high)
    parabolas = within * (2 * values - within) - 1
    cubics = within**2 * (3 * values - 2 * within) - 3 * values
    out: FloatArray = np.where(degree == 2, parabolas, cubics)
    return out


def _fences(column: FloatArray, levels: FloatArray) -> tuple[float, float]:
    """Tukey's outer fences, or the least and the largest value where these are inside."""
    lower, upper = np.quantile(column, (0.25, 0.75))
    reach = FENCE * (upper - lower)
    return float(max(levels[0], lower - reach)), float(min(levels[-1], upper + reach))


def has_many_values(column: FloatArray) -> bool:
    """Whether hinges and quantiles of a covariate make sense, or else a step at each value."""
    return len(np.unique(column)) > MAX_LEVELS


def _median(column: FloatArray) -> float:
    present = column[~np.isnan(column)]
    return float(np.median(present)) if len(present) else 0.0
