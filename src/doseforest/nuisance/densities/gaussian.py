"""A normal dose around a line of the covariates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.dtypes import FloatArray
from doseforest.nuisance.densities.conditional_mean import LinearTerms, fit_linear_terms
from doseforest.nuisance.densities.mixed import MixedDensity, fit_mixed
from doseforest.nuisance.densities.support import DoseSupport
from doseforest.smoothing.kernels import KERNELS
from doseforest.treatments.grids import DoseRange

RIDGE = 1.0  # in rows, on standardised covariates


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Ridge mean and one variance, cut off at the ends of the dose's range.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 1))
    >>> density = Gaussian().fit(x, 2 * x[:, 0] + rng.normal(size=2000))
    >>> density.density(np.array([[1.0]]), np.array([1.0, 2.0])).round(2)
    array([[0.25, 0.4 ]])
    """

    def fit(
        self,
        X: FloatArray,
        dose: FloatArray,
        *,
        support: DoseSupport | None = None,
        weights: FloatArray | None = None,
        seed: int = 0,
        n_threads: int = 1,
    ) -> MixedDensity:
        """Fit the line and the variance around it."""
        return fit_mixed(_fit_normal, X, dose, support, weights, seed, n_threads)


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


def _fit_normal(
    X: FloatArray,
    dose: FloatArray,
    ends: DoseRange,
    weights: FloatArray,
    seed: int,
    n_threads: int,
) -> NormalDensity:
    terms = fit_linear_terms(X)
    columns = np.column_stack([np.ones(len(dose)), terms.evaluate(X)])
    own = weights / weights.mean()
    gram = columns.T @ (own[:, None] * columns)
    penalty = np.full(len(gram), RIDGE)
    penalty[0] = 0.0
    solved = np.linalg.solve(
        gram + np.diag(penalty), np.column_stack([columns.T @ (own * dose), gram])
    )
    coefficients, spent = solved[:, 0], float(np.trace(solved[:, 1:]))
    left = own @ (dose - columns @ coefficients) ** 2 / max(len(dose) - spent, 1.0)
    least = 1e-6 * (ends.high - ends.low)  # a dose that is the line itself has no density
    return NormalDensity(terms, coefficients, max(float(np.sqrt(left)), least), ends.low, ends.high)
