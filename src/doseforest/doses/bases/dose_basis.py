"""Functions of the dose that curves are made of: their form, the plain kinds, the registry.

A recipe (`DoseBasis`) is fitted to the observed doses and gives functions B_0 = 1, B_1, ... that no
longer change (`FittedBasis`). A curve is a combination of them, so another kind of treatment is
another basis. To add one: a recipe and its fitted class, a line in BASES, and a line in
STORED_BASES if a file can hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, Protocol

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.checks import as_numbers
from doseforest.doses.bases.arms import Arms, ArmsBasis
from doseforest.doses.bases.indicators import IndicatorBasis, Indicators
from doseforest.doses.bases.polynomials import Legendre, PolynomialBasis
from doseforest.doses.bases.spline_products import SplineProductBasis
from doseforest.doses.bases.splines import Spline, SplineBasis
from doseforest.doses.bases.tensor import Tensor, TensorBasis
from doseforest.doses.grids import as_doses, dose_sample

__all__ = [
    "BASES",
    "Arms",
    "ArmsBasis",
    "BasisLine",
    "DoseBasis",
    "FittedBasis",
    "IndicatorBasis",
    "Indicators",
    "Legendre",
    "PolynomialBasis",
    "Spline",
    "SplineBasis",
    "Tensor",
    "TensorBasis",
    "UserBasis",
    "UserFunctions",
    "basis_components",
    "basis_from_json",
    "basis_levels",
    "component_of",
    "own_values",
    "read_basis",
    "store_basis",
    "stored_bases",
]

DoseFunction = Callable[[FloatArray], Any]


class FittedBasis(Protocol):
    """Functions of the dose, the first of them the constant 1; they never change.

    Examples
    --------
    >>> basis = Indicators().fit([0, 1, 1])
    >>> basis.n_functions, basis.evaluate([0.0, 1.0]).tolist()
    (2, [[1.0, 1.0], [1.0, 0.0]])
    """

    @property
    def n_functions(self) -> int:
        """Number of functions, the constant B_0 included."""

    def evaluate(self, doses: Any) -> FloatArray:
        """Values of the functions.

        Parameters
        ----------
        doses : array of shape (n_doses,)
            Doses.

        Returns
        -------
        array of shape (n_doses, n_functions)
            The values, the constant first.
        """

    def derivative(self, doses: Any) -> FloatArray:
        """Derivatives of the functions by the dose.

        Parameters
        ----------
        doses : array of shape (n_doses,)
            Doses.

        Returns
        -------
        array of shape (n_doses, n_functions)
            The derivatives.

        Raises
        ------
        TypeError
            Where the functions have none.
        """

    def to_json(self) -> dict[str, Any]:
        """Describe the basis by plain values, for a file.

        Returns
        -------
        dict
            ``kind``, and the fields by name.

        Raises
        ------
        TypeError
            Where a file cannot hold it.
        """


class DoseBasis(Protocol):
    """A recipe for functions of the dose, which `fit` makes from the observed doses.

    Examples
    --------
    >>> class Root:
    ...     def fit(self, dose, weights=None):
    ...         return UserFunctions([np.sqrt]).fit(dose, weights)
    >>> Root().fit([0.0, 1.0, 4.0]).evaluate([4.0])
    array([[1., 2.]])
    """

    def fit(self, dose: Any, weights: Any = None) -> FittedBasis:
        """Make the functions from the observed doses.

        Parameters
        ----------
        dose : array of shape (n_rows,)
            Observed doses.
        weights : array of shape (n_rows,), optional
            Weights of the rows; by default 1 each.

        Returns
        -------
        FittedBasis
            Functions that no longer change.
        """


@dataclass(frozen=True, slots=True)
class UserFunctions:
    """Functions of the dose that you pass; the constant is added in front of them.

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
            f"one of {sorted(BASES)} to save."
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


@dataclass(frozen=True, slots=True)
class BasisLine:
    """A line of `BASES`: a recipe, and how files hold what it fits.

    Parameters
    ----------
    recipe : callable
        Makes the recipe, without arguments.
    fitted : class, optional
        Of what it fits: with `kind`, its name in files, and `to_json`; with `from_json`, or fields
        that the values of `to_json` fill; and with `check`, which refuses what does not fit.
        Without one no file holds the basis.
    """

    recipe: Callable[[], DoseBasis]
    fitted: Any = None

    def __call__(self) -> DoseBasis:
        """The recipe."""
        return self.recipe()


BASES: dict[str, Callable[[], DoseBasis]] = {
    "legendre": BasisLine(Legendre, PolynomialBasis),
    "point_masses": BasisLine(partial(Legendre, masses="auto"), PolynomialBasis),
    "spline": BasisLine(Spline, SplineBasis),
    "indicators": BasisLine(Indicators, IndicatorBasis),
    "tensor": BasisLine(Tensor, TensorBasis),
    "arms": BasisLine(Arms, ArmsBasis),
}


def stored_bases() -> dict[str, Any]:
    """Classes of the bases that files hold, by their kinds."""
    lines = [own.fitted for own in BASES.values() if isinstance(own, BasisLine) and own.fitted]
    return {own.kind: own for own in (*lines, SplineProductBasis)}


def store_basis(basis: FittedBasis) -> dict[str, Any]:
    """Plain values of a fitted basis, for a file; TypeError where none could be read again."""
    if isinstance(basis, UserBasis):
        basis.to_json()  # raises, with the reason
    if type(basis) not in stored_bases().values():
        raise TypeError(
            "The basis of the dose cannot be saved: a file holds numbers, not code, and no line of "
            f"BASES says how a {type(basis).__name__} becomes numbers and comes back ('to_json' "
            "and 'from_json')."
        )
    return basis.to_json()


def read_basis(values: Mapping[str, Any]) -> FittedBasis:
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
    basis: Any = basis_from_json(values)
    if hasattr(basis, "check"):
        basis.check()
    made: FittedBasis = basis
    return made


def basis_from_json(values: Mapping[str, Any]) -> FittedBasis:
    """Rebuild a fitted basis from plain values.

    Examples
    --------
    >>> basis_from_json(Indicators().fit([0, 1, 1]).to_json())
    IndicatorBasis(levels=(0.0, 1.0), reference=1.0)
    """
    return _made(values, _restored)


def _made(values: Mapping[str, Any], restored: Callable[[Any], Any]) -> FittedBasis:
    kind, classes = values.get("kind"), stored_bases()
    if kind not in classes:
        raise ValueError(
            f"The kind of a stored basis must be one of {sorted(classes)}. Got {kind!r} instead."
        )
    form = classes[kind]
    own = {name: value for name, value in values.items() if name != "kind"}
    basis: FittedBasis
    if hasattr(form, "from_json"):
        basis = form.from_json(own)
    else:
        basis = form(**{name: restored(value) for name, value in own.items()})
    return basis


def own_values(basis: FittedBasis, doses: FloatArray) -> FloatArray:
    """Values of the functions at a table of doses, (n_units, n_doses) to (..., n_functions).

    Examples
    --------
    >>> own_values(Indicators().fit([0, 0, 1]), np.array([[0.0, 1.0]]))
    array([[[1., 0.],
            [1., 1.]]])
    """
    functions = basis.evaluate(doses.ravel())
    return functions.reshape(*doses.shape, functions.shape[1])


def basis_components(basis: FittedBasis | SplineProductBasis) -> int:
    """Number of components of the doses that a basis is of.

    >>> basis_components(Indicators().fit([0, 1, 1]))
    1
    """
    return int(getattr(basis, "n_components", 1))


def component_of(basis: Any, place: int) -> Any:
    """The functions of one component of the dose, where a basis has them.

    >>> component_of(Indicators().fit([0, 1, 1]), 0)
    IndicatorBasis(levels=(0.0, 1.0), reference=1.0)
    """
    if isinstance(basis, TensorBasis):
        return basis.parts[place]
    if isinstance(basis, ArmsBasis):
        return basis.arms if place == 0 else None
    return basis


def basis_levels(basis: Any, n_components: int = 1) -> tuple[tuple[float, ...], ...]:
    """Levels of each component of the dose between which a basis has no functions.

    >>> basis_levels(Indicators().fit([0, 1, 1])), basis_levels(Legendre().fit([0, 1, 2]))
    (((0.0, 1.0),), ((),))
    """
    parts = (component_of(basis, place) for place in range(n_components))
    return tuple(part.levels if isinstance(part, IndicatorBasis) else () for part in parts)


def _restored(value: Any) -> Any:
    """Tuples in place of lists, and bases in place of the plain values of parts."""
    if isinstance(value, dict):
        return _made(value, _tuples)  # parts have no parts
    return tuple(map(_restored, value)) if isinstance(value, list) else value


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
