"""The fitted spline core and how a file holds it; its fitting is in `spline_core`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.special import expit

from doseforest.base.dtypes import Array, FloatArray, IntArray
from doseforest.doses.bases.dose_basis import basis_components, read_basis
from doseforest.doses.bases.spline_products import SplineProductBasis
from doseforest.doses.bases.splines import SplineBasis
from doseforest.doses.stored_values import FLOATS, INTEGERS, ArrayTypes, FileChecks
from doseforest.nuisance.outcome.covariate_terms import POWERS, CovariateTerms

BLOCK_ROWS = 8192  # rows of (unit, own dose) at once
CHECKS = FileChecks("outcome model")
FARTHEST = 1e6  # deviations from a mean: no value of fewer than a trillion rows is as far out
_POWER_ARRAYS: ArrayTypes = {  # absent from older files
    "power_feature": (INTEGERS, 1),
    "power_degree": (INTEGERS, 1),
    "power_low": (FLOATS, 1),
    "power_high": (FLOATS, 1),
}
_TERM_ARRAYS: ArrayTypes = {
    "median": (FLOATS, 1),
    "mean": (FLOATS, 1),
    "scale": (FLOATS, 1),
    "gappy": (INTEGERS, 1),
    "hinge_feature": (INTEGERS, 1),
    "hinge_knot": (FLOATS, 1),
    "step_feature": (INTEGERS, 1),
    "step_knot": (FLOATS, 1),
}
_COEFFICIENT_ARRAYS: ArrayTypes = {
    "dose_coefficients": (FLOATS, 1),
    "term_coefficients": (FLOATS, 2),
}
_SPLINE_ARRAYS: ArrayTypes = {
    "dose_range": (FLOATS, 1),
    "knots": (FLOATS, 1),
    "basis_coefficients": (FLOATS, 2),
    "bends": (FLOATS, 1),
}
CORE_ARRAYS: ArrayTypes = {**_TERM_ARRAYS, **_SPLINE_ARRAYS, **_COEFFICIENT_ARRAYS}


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
            by_row = functions.reshape(-1, n_doses, functions.shape[1])
            out[rows] = (by_row @ self._coefficients(X[rows])[:, :, None])[:, :, 0]
        return out

    def _coefficients(self, X: FloatArray) -> FloatArray:
        """Coefficients b_k(x) of each row, (n_rows, n_functions)."""
        coefficients = np.tile(self.dose_coefficients, (len(X), 1))
        n_products = self.term_coefficients.shape[1]
        coefficients[:, :n_products] += self.terms.evaluate(X) @ self.term_coefficients
        return coefficients

    @property
    def dose_components(self) -> set[int]:
        """Number of components of the doses that it is of."""
        return {basis_components(self.basis)}

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Plain values and arrays of the core."""
        basis = self.basis
        arrays: dict[str, Array] = {
            **{name: getattr(self.terms, name) for name in (*_TERM_ARRAYS, *_POWER_ARRAYS)},
            "dose_coefficients": self.dose_coefficients,
            "term_coefficients": self.term_coefficients,
        }
        if isinstance(basis, SplineProductBasis):
            return {"binary": self.binary, "basis": basis.to_json()}, arrays
        arrays |= {
            "dose_range": np.array([basis.low, basis.high]),
            "knots": np.array(basis.knots),
            "basis_coefficients": np.array(basis.coefficients),
            "bends": np.array(basis.bends),
        }
        return {"binary": self.binary}, arrays

    @classmethod
    def from_arrays(
        cls, values: Mapping[str, Any], arrays: Mapping[str, Array], n_features: int
    ) -> SplineCore:
        """Put a core together again; ForestFileError if its parts do not fit."""
        own = CHECKS.arrays(arrays, {**_TERM_ARRAYS, **_COEFFICIENT_ARRAYS})
        powers = CHECKS.arrays(arrays, _POWER_ARRAYS) if "power_low" in arrays else _no_powers()
        terms = CovariateTerms(**{name: own[name] for name in _TERM_ARRAYS}, **powers)
        _check_terms(terms, n_features)
        basis = _product_basis(values["basis"]) if "basis" in values else _spline_basis(arrays)
        CHECKS.require(
            len(own["dose_coefficients"]) == basis.n_functions
            and len(own["term_coefficients"]) == terms.n_terms
            and own["term_coefficients"].shape[1] <= basis.n_functions,
            "has coefficients that do not fit its terms",
        )
        return cls(
            terms=terms,
            basis=basis,
            dose_coefficients=own["dose_coefficients"],
            term_coefficients=own["term_coefficients"],
            binary=CHECKS.flag(values, "binary"),
        )


def _no_powers() -> dict[str, Any]:
    return {name: np.empty(0, dtype) for name, (dtype, _) in _POWER_ARRAYS.items()}


def _check_terms(terms: CovariateTerms, n_features: int) -> None:
    CHECKS.require(
        all(len(own) == n_features for own in (terms.median, terms.mean, terms.scale))
        and len(terms.power_feature) == len(terms.power_degree)
        and len(terms.power_low) == len(terms.power_high) == len(terms.power_degree)
        and len(terms.hinge_feature) == len(terms.hinge_knot)
        and len(terms.step_feature) == len(terms.step_knot),
        "has terms that do not fit its covariates",
    )
    CHECKS.require(bool((terms.scale > 0).all()), "has a covariate without a scale")
    CHECKS.require(bool(np.isin(terms.power_degree, POWERS).all()), "has a power of unknown degree")
    fences = np.stack([terms.power_low, terms.power_high])
    CHECKS.require(
        bool((fences[0] <= fences[1]).all() and (np.abs(fences) <= FARTHEST).all()),
        "has powers with fences out of order or out of reach",
    )
    for features in (terms.gappy, terms.power_feature, terms.hinge_feature, terms.step_feature):
        _require_covariates(features, n_features)


def _spline_basis(arrays: Mapping[str, Array]) -> SplineBasis:
    own = CHECKS.arrays(arrays, _SPLINE_ARRAYS)
    CHECKS.require(len(own["dose_range"]) == 2, "has no range of doses")
    basis = SplineBasis(
        low=float(own["dose_range"][0]),
        high=float(own["dose_range"][1]),
        knots=tuple(own["knots"].tolist()),
        coefficients=tuple(map(tuple, own["basis_coefficients"].tolist())),
        bends=tuple(own["bends"].tolist()),
    )
    basis.check()
    return basis


def _product_basis(values: dict[str, Any]) -> SplineProductBasis:
    basis = read_basis(values)
    CHECKS.require(isinstance(basis, SplineProductBasis), "has splines of an unknown kind")
    return cast(SplineProductBasis, basis)


def _require_covariates(features: IntArray, n_features: int) -> None:
    inside = (features >= 0) & (features < n_features)
    CHECKS.require(bool(inside.all()), "has a term of no covariate")
