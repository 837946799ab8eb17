"""Bases of the dose that come from a file, checked before they are evaluated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import chain, pairwise
from typing import Any

from doseforest.doses.bases.arms import ArmsBasis
from doseforest.doses.bases.dose_basis import FittedBasis, IndicatorBasis, basis_from_json
from doseforest.doses.bases.polynomials import PolynomialBasis
from doseforest.doses.bases.spline_products import SplineProductBasis
from doseforest.doses.bases.splines import DEGREE, SplineBasis
from doseforest.doses.bases.tensor import MAX_FUNCTIONS, TensorBasis
from doseforest.doses.stored_values import FileChecks
from doseforest.doses.vectors import MAX_COMPONENTS

require = FileChecks("basis of the dose").require
MOST_SPLINES = 200  # functions of an outcome model's splines of three components


def read_basis(values: dict[str, Any]) -> FittedBasis:
    """Rebuild a fitted basis from the plain values of a file; ForestFileError if they do not fit.

    Examples
    --------
    >>> read_basis({"kind": "indicators", "levels": [0.0, 1.0], "reference": 1.0})
    IndicatorBasis(levels=(0.0, 1.0), reference=1.0)
    >>> read_basis({"kind": "indicators", "levels": [0.0, 1.0], "reference": 2.0})
    Traceback (most recent call last):
        ...
    doseforest.base.container.ForestFileError: the basis of the dose has a reference ...
    """
    return checked_basis(basis_from_json(values))


def checked_basis(basis: Any) -> FittedBasis:
    """Return a basis whose numbers are finite and fit; otherwise raise ForestFileError."""
    values = [getattr(basis, field.name) for field in fields(basis)]
    known = (int, float, tuple, IndicatorBasis)
    require(all(type(value) in known for value in values), "is not made of numbers")
    BASIS_CHECKS[type(basis)](basis)
    checked: FittedBasis = basis
    return checked


def _check_polynomials(basis: PolynomialBasis) -> None:
    _require_numbers(basis.low, basis.high, *basis.masses, *chain(*basis.recurrence))
    require(basis.low <= basis.high, "has no range of doses")
    require(_ascending(basis.masses), "has masses out of order")
    require(
        all(len(row) == k + 2 and row[-1] > 0 for k, row in enumerate(basis.recurrence)),
        "has a recurrence that cannot be followed",
    )


def _check_spline(basis: SplineBasis) -> None:
    _require_numbers(basis.low, basis.high, *basis.knots, *basis.bends, *chain(*basis.coefficients))
    require(basis.low < basis.high, "has no range of doses")
    require(
        len(basis.knots) >= 2
        and basis.knots[0] == 0
        and basis.knots[-1] == 1
        and _ascending(basis.knots),
        "has knots out of order",
    )
    require(
        len(basis.coefficients) == len(basis.knots) + DEGREE - 1
        and all(len(row) == len(basis.bends) for row in basis.coefficients),
        "has coefficients that do not fit its knots",
    )


def _check_indicators(basis: IndicatorBasis) -> None:
    _require_numbers(basis.reference, *basis.levels)
    require(_ascending(basis.levels), "has levels out of order")
    require(basis.reference in basis.levels, "has a reference that is no level")


def _check_tensor(basis: TensorBasis) -> None:
    require(2 <= len(basis.parts) <= MAX_COMPONENTS, "has no two or three components")
    for part in basis.parts:
        _check_part(part)
    require(len(basis.products) <= MAX_FUNCTIONS, "has too many functions")
    _check_products(basis.parts, basis.products)


def _check_products(parts: Sequence[FittedBasis], products: Sequence[Sequence[int]]) -> None:
    sizes = [part.n_functions for part in parts]
    require(
        len(products) > 0
        and not any(products[0])
        and all(
            len(own) == len(sizes)
            and all(type(k) is int and 0 <= k < size for k, size in zip(own, sizes, strict=True))
            for own in products
        ),
        "has products of functions that it lacks",
    )


def _check_spline_products(basis: SplineProductBasis) -> None:
    _check_tensor(TensorBasis(basis.parts, basis.products[:1]))
    _check_products(basis.parts, basis.products)
    _require_numbers(*basis.bends)
    require(
        len(basis.bends) == len(basis.products) <= MOST_SPLINES
        and type(basis.n_leading) is int
        and 1 <= basis.n_leading <= len(basis.products),
        "has bends that do not fit its functions",
    )


def _check_arms(basis: ArmsBasis) -> None:
    require(isinstance(basis.arms, IndicatorBasis), "has no arms")
    _check_indicators(basis.arms)
    require(len(basis.doses) == basis.arms.n_functions, "has not one dose per arm")
    for part in basis.doses:
        if part is not None:
            _check_part(part)


def _check_part(part: Any) -> None:
    """Refuse parts that are made of parts themselves, or are no bases."""
    require(type(part) in PART_CHECKS, "has a component of an unknown kind")
    checked_basis(part)


def _ascending(values: Sequence[float]) -> bool:
    return all(low < high for low, high in pairwise(values))


def _require_numbers(*values: Any) -> None:
    finite = all(type(value) in (int, float) and math.isfinite(value) for value in values)
    require(finite, "has something else than finite numbers")


PART_CHECKS: dict[type, Callable[[Any], None]] = {
    PolynomialBasis: _check_polynomials,
    SplineBasis: _check_spline,
    IndicatorBasis: _check_indicators,
}
BASIS_CHECKS: dict[type, Callable[[Any], None]] = {
    **PART_CHECKS,
    TensorBasis: _check_tensor,
    ArmsBasis: _check_arms,
    SplineProductBasis: _check_spline_products,
}
