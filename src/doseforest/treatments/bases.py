"""Functions of the dose that curves are made of: their form, the plain kinds, the registry.

A recipe (`DoseBasis`) is fitted to the observed doses and gives functions B_0 = 1, B_1, ... that no
longer change (`FittedBasis`). A curve is a combination of them, so another kind of treatment is
another basis. To add one: a recipe and its fitted class, a line in BASES, and a line in
STORED_BASES if a file can hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar, NoReturn, Protocol

import numpy as np

from doseforest.data.checks import as_numbers
from doseforest.dtypes import FloatArray
from doseforest.treatments.grids import as_doses, dose_sample
from doseforest.treatments.polynomials import Legendre, PolynomialBasis
from doseforest.treatments.splines import Spline, SplineBasis

__all__ = [
    "BASES",
    "STORED_BASES",
    "DoseBasis",
    "FittedBasis",
    "IndicatorBasis",
    "Indicators",
    "Legendre",
    "PolynomialBasis",
    "Spline",
    "SplineBasis",
    "UserBasis",
    "UserFunctions",
    "basis_from_json",
    "own_values",
]

MAX_LEVELS = 100  # beyond this a dose is a quantity, and a function per level a mistake
DoseFunction = Callable[[FloatArray], Any]


class FittedBasis(Protocol):
    """Functions of the dose, the first of them the constant 1; they never change."""

    @property
    def n_functions(self) -> int:
        """Number of functions, the constant B_0 included."""

    def evaluate(self, doses: Any) -> FloatArray:
        """Values of the functions, (n, n_functions)."""

    def derivative(self, doses: Any) -> FloatArray:
        """Derivatives by the dose, (n, n_functions); TypeError where there are none."""

    def to_json(self) -> dict[str, Any]:
        """Return the basis as plain values; TypeError where that cannot be."""


class DoseBasis(Protocol):
    """A recipe for functions of the dose."""

    def fit(self, dose: Any, weights: Any = None) -> FittedBasis:
        """Make the functions from the observed doses (n_rows,) and the weights of the rows."""


@dataclass(frozen=True, slots=True)
class Indicators:
    """One function per level of a discrete dose.

    B_0 = 1 stands for the level with the most weight, the lowest of equals; each other level has
    its indicator, in ascending order.

    Examples
    --------
    >>> Indicators().fit([0, 0, 5, 10]).evaluate([0, 5, 10])
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 0., 1.]])
    """

    def fit(self, dose: Any, weights: Any = None) -> IndicatorBasis:
        """Find the levels among the observed doses."""
        levels, shares = dose_sample(dose, weights).levels()
        if len(levels) > MAX_LEVELS:
            raise ValueError(
                f"The 'dose' parameter of Indicators.fit must have at most {MAX_LEVELS} distinct "
                f"values. Got {len(levels)} instead; Legendre suits a continuous dose."
            )
        return IndicatorBasis(tuple(levels.tolist()), float(levels[np.argmax(shares)]))


@dataclass(frozen=True, slots=True)
class IndicatorBasis:
    """The functions that `Indicators` fits."""

    kind: ClassVar[str] = "indicators"
    levels: tuple[float, ...]  # (n_functions,) ascending
    reference: float  # the level that the constant stands for

    @property
    def n_functions(self) -> int:
        """Number of functions, the constant B_0 included."""
        return len(self.levels)

    def evaluate(self, doses: Any) -> FloatArray:
        """Values of the functions, (n, n_functions); every dose must be one of the levels."""
        checked = as_doses(doses)
        levels = np.array(self.levels)
        unknown = ~np.isin(checked, levels)
        if unknown.any():
            raise ValueError(
                f"The 'doses' parameter must hold levels seen in fit, {list(self.levels)}. "
                f"Got {checked[unknown][0]} instead."
            )
        own = checked[:, None] == levels[levels != self.reference]
        return np.hstack([np.ones((len(checked), 1)), own])

    def derivative(self, doses: Any) -> NoReturn:
        """Raise: levels have no derivative."""
        raise TypeError(
            "Indicators of levels have no derivative. Compare two levels instead, or use a basis "
            "that treats the dose as a quantity, such as Legendre."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the basis as plain values."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True)
class UserFunctions:
    """The user's own functions of the dose; the constant is added in front of them.

    Parameters
    ----------
    functions : callable or sequence of callables
        From doses (n,) to values (n, k), or k functions to (n,) each.
    derivatives : callable or sequence of callables, optional
        Their derivatives, in the same form.

    Examples
    --------
    >>> UserFunctions([np.log1p]).fit([0.0, 1.0]).evaluate([0.0])
    array([[1., 0.]])
    """

    functions: DoseFunction | Sequence[DoseFunction]
    derivatives: DoseFunction | Sequence[DoseFunction] | None = None

    def fit(self, dose: Any, weights: Any = None) -> UserBasis:
        """Count the functions and see that none of them is constant on the observed doses."""
        doses = dose_sample(dose, weights).doses
        columns = _columns(self.functions, doses, "functions")
        constant = np.ptp(columns, axis=0) == 0
        if constant.any():
            raise ValueError(
                "The 'functions' parameter of UserFunctions must vary over the observed doses; the "
                f"constant is added to them. Got {columns[0, constant][0]} throughout from "
                f"function {int(np.argmax(constant))} instead."
            )
        return UserBasis(self.functions, self.derivatives, 1 + columns.shape[1])


@dataclass(frozen=True, slots=True)
class UserBasis:
    """The functions that `UserFunctions` was given."""

    functions: DoseFunction | Sequence[DoseFunction]
    derivatives: DoseFunction | Sequence[DoseFunction] | None
    n_functions: int

    def evaluate(self, doses: Any) -> FloatArray:
        """Values of the functions, (n, n_functions)."""
        columns = _columns(self.functions, as_doses(doses), "functions", self.n_functions - 1)
        return np.hstack([np.ones((len(columns), 1)), columns])

    def derivative(self, doses: Any) -> FloatArray:
        """Derivatives by the dose, (n, n_functions), where they were given."""
        if self.derivatives is None:
            raise TypeError(
                "A derivative of the user's functions is not known. Give 'derivatives' to "
                "UserFunctions."
            )
        columns = _columns(self.derivatives, as_doses(doses), "derivatives", self.n_functions - 1)
        return np.hstack([np.zeros((len(columns), 1)), columns])

    def to_json(self) -> NoReturn:
        """Raise: a file holds numbers, not functions."""
        raise TypeError(
            "A basis of the user's functions cannot be stored: a file holds numbers, not code. Use "
            f"one of {sorted(STORED_BASES)} to save."
        )


def _columns(
    functions: DoseFunction | Sequence[DoseFunction],
    doses: FloatArray,
    name: str,
    width: int | None = None,
) -> FloatArray:
    """Values of the user's functions, (n, k), checked."""
    if callable(functions):
        columns = as_numbers(functions(doses), name).astype(np.float64)
    else:
        columns = as_numbers([own(doses) for own in functions], name).astype(np.float64).T
    wanted = f"({len(doses)}, {'k' if width is None else width})"
    if columns.ndim != 2 or len(columns) != len(doses) or width not in (None, columns.shape[1]):
        raise ValueError(
            f"The {name!r} parameter of UserFunctions must give values of shape {wanted} for "
            f"{len(doses)} doses. Got shape {columns.shape} instead."
        )
    finite = np.isfinite(columns).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"The {name!r} parameter of UserFunctions must give finite values. "
            f"Got {columns[~finite][0].tolist()} at dose {doses[~finite][0]} instead."
        )
    return columns


BASES: dict[str, Callable[[], DoseBasis]] = {
    "legendre": Legendre,
    "point_masses": partial(Legendre, masses="auto"),
    "spline": Spline,
    "indicators": Indicators,
}
STORED_BASES: dict[str, Any] = {
    basis.kind: basis for basis in (PolynomialBasis, SplineBasis, IndicatorBasis)
}


def basis_from_json(values: dict[str, Any]) -> FittedBasis:
    """Rebuild a fitted basis from plain values.

    Examples
    --------
    >>> basis_from_json(Indicators().fit([0, 1, 1]).to_json())
    IndicatorBasis(levels=(0.0, 1.0), reference=1.0)
    """
    values = {name: _tuples(value) for name, value in values.items()}
    kind = values.pop("kind", None)
    if kind not in STORED_BASES:
        raise ValueError(
            f"The kind of a stored basis must be one of {sorted(STORED_BASES)}. "
            f"Got {kind!r} instead."
        )
    basis: FittedBasis = STORED_BASES[kind](**values)
    return basis


def own_values(basis: FittedBasis, doses: FloatArray) -> FloatArray:
    """Values of the functions at a table of doses, (n_units, n_doses) to (..., n_functions).

    Examples
    --------
    >>> own_values(Indicators().fit([0, 0, 1]), np.array([[0.0, 1.0]]))
    array([[[1., 0.],
            [1., 1.]]])
    """
    return basis.evaluate(doses.ravel()).reshape(*doses.shape, basis.n_functions)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
