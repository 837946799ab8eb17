"""A normal dose around a line of the covariates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.smoothing.kernels import KERNELS
from doseforest.nuisance.treatment.conditional_mean import LinearTerms, fit_linear_terms
from doseforest.nuisance.treatment.mixed import MixedLearner, RowsBeside

RIDGE = 1.0  # in rows, on standardised covariates


@dataclass(frozen=True, slots=True)
class Gaussian(MixedLearner):
    """Ridge mean and one variance, cut off at the ends of the dose's range.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 1))
    >>> density = Gaussian().fit(x, 2 * x[:, 0] + rng.normal(size=2000))
    >>> density.density(np.array([[1.0]]), np.array([1.0, 2.0])).round(2)
    array([[0.25, 0.4 ]])
    """

    def fit_beside(self, rows: RowsBeside) -> NormalDensity:
        """Fit the line and the variance around it."""
        terms = fit_linear_terms(rows.X)
        columns = np.column_stack([np.ones(len(rows.dose)), terms.evaluate(rows.X)])
        row_weights = rows.weights / rows.weights.mean()
        gram = columns.T @ (row_weights[:, None] * columns)
        penalty = np.full(len(gram), RIDGE)
        penalty[0] = 0.0
        solved = np.linalg.solve(
            gram + np.diag(penalty), np.column_stack([columns.T @ (row_weights * rows.dose), gram])
        )
        coefficients, spent = solved[:, 0], float(np.trace(solved[:, 1:]))
        left = (
            row_weights
            @ (rows.dose - columns @ coefficients) ** 2
            / max(len(rows.dose) - spent, 1.0)
        )
        least = 1e-6 * (
            rows.ends.high - rows.ends.low
        )  # a dose that is the line itself has no density
        deviation = max(float(np.sqrt(left)), least)
        return NormalDensity(terms, coefficients, deviation, rows.ends.low, rows.ends.high)


@dataclass(frozen=True, slots=True)
class NormalDensity:
    """N(line(x), deviation^2) given that the dose lies in its range."""

    terms: LinearTerms
    coefficients: FloatArray  # (1 + n_linear,) the intercept first
    deviation: float
    low: float
    high: float

    def values(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Densities at a grid or at each unit's own doses, (n_units, n_doses)."""
        mean = self.coefficients[0] + self.terms.evaluate(X) @ self.coefficients[1:]
        # A line may leave the range; the mass inside would vanish with it.
        mean = np.clip(mean, self.low, self.high)[:, None]
        kernel = KERNELS["gaussian"]
        inside = kernel.mass(
            (self.low - mean) / self.deviation, (self.high - mean) / self.deviation
        )
        return kernel.value((doses - mean) / self.deviation) / (self.deviation * inside)
