"""The fitted spline core; its fitting is in `spline_core`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from doseforest.base.dtypes import FloatArray
from doseforest.doses.bases.spline_products import SplineProductBasis
from doseforest.doses.bases.splines import SplineBasis
from doseforest.nuisance.outcome.covariate_terms import CovariateTerms

BLOCK_ROWS = 8192  # rows of (unit, own dose) at once


@dataclass(frozen=True, slots=True)
class SplineCore:
    """A fitted core: ``sum_k b_k(x) B_k(t)``, through a logistic link for a binary outcome.

    Examples
    --------
    >>> from doseforest.nuisance.outcome.spline_core import fit_spline_core
    >>> x, t = np.repeat([[0.0], [1.0]], 50, axis=0), np.tile(np.linspace(0, 9, 50), 2)
    >>> core = fit_spline_core(x, t, x[:, 0] + 2 * t)
    >>> core.curves(np.array([[0.0], [1.0]]), np.array([1.0, 4.0])).round(3)
    array([[2., 8.],
           [3., 9.]])
    >>> core.curves(np.array([[0.0], [1.0]]), np.array([[1.0], [4.0]])).round(3)
    array([[2.],
           [9.]])
    """

    terms: CovariateTerms
    basis: SplineBasis | SplineProductBasis
    dose_coefficients: FloatArray  # (n_functions,), B_0 = 1 included
    term_coefficients: FloatArray  # (n_terms, n_products) of products with B_0, B_1, …
    binary: bool

    @property
    def n_features(self) -> int:
        """Number of covariates."""
        return len(self.terms.median)

    def predict(self, X: FloatArray, dose: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at its own dose."""
        return self.curves(X, dose[:, None], n_threads=n_threads)[:, 0]

    def curves(self, X: FloatArray, doses: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at each dose of a grid, or at its own doses.

        What is heavy is matrix algebra, which has its own threads: `n_threads` changes nothing.
        """
        values = self._on_grid(X, doses) if doses.ndim == 1 else self._at_own_doses(X, doses)
        return expit(values) if self.binary else values

    def _on_grid(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        functions = self.basis.evaluate(doses)
        out = np.empty((len(X), len(doses)))
        for first in range(0, len(X), BLOCK_ROWS):
            rows = slice(first, first + BLOCK_ROWS)
            out[rows] = self._coefficients(X[rows]) @ functions.T
        return out

    def _at_own_doses(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        n_doses = doses.shape[1]
        out = np.empty((len(X), n_doses))
        at_once = max(1, BLOCK_ROWS // max(1, n_doses))
        for first in range(0, len(X), at_once):
            rows = slice(first, first + at_once)
            functions = self.basis.evaluate(doses[rows].ravel())
            own = functions.reshape(-1, n_doses, self.basis.n_functions)
            out[rows] = (own @ self._coefficients(X[rows])[:, :, None])[:, :, 0]
        return out

    def _coefficients(self, X: FloatArray) -> FloatArray:
        """Coefficients b_k(x) of each row, (n_rows, n_functions)."""
        coefficients = np.tile(self.dose_coefficients, (len(X), 1))
        n_products = self.term_coefficients.shape[1]
        coefficients[:, :n_products] += self.terms.evaluate(X) @ self.term_coefficients
        return coefficients
