"""What follows from dose-response curves: effects and partial effects, one dose or one per unit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array, DoseArray, FloatArray
from doseforest.data.checks import LARGEST_VALUE, as_numbers
from doseforest.doses.dose_values import Doses, dose_text, is_checked


def dose_table(doses: Any, n_units: int, name: str = "doses", n_components: int = 1) -> Doses:
    """Doses of every unit, shape (n_units, n_doses), checked.

    A number or a one-dimensional list is a grid that all units share; a two-dimensional array has
    a row of doses for each unit. Where a dose has several components they are the last axis: one
    dose is a list of them.

    Examples
    --------
    >>> dose_table([0.0, 5.0], n_units=2).values
    array([[0., 5.],
           [0., 5.]])
    >>> dose_table([[1.0], [2.0]], n_units=2).values
    array([[1.],
           [2.]])
    >>> dose_table([[0.0, 5.0], [1.0, 5.0]], n_units=3, n_components=2).shape
    (3, 2)
    """
    if is_checked(doses):
        return _for_all(np.asarray(doses), n_units)
    if n_components > 1:
        return _joint_table(as_numbers(doses, name), n_units, name, n_components)
    table = as_numbers(doses, name).astype(np.float64) + 0.0  # no negative zero
    if table.ndim > 2 or (table.ndim == 2 and len(table) != n_units):
        raise ValueError(
            f"The {name!r} parameter must be a grid of doses or have one row per unit ({n_units}). "
            f"Got shape {table.shape} instead."
        )
    _require_finite(table, name)
    return _for_all(table, n_units)


def _for_all(doses: DoseArray, n_units: int) -> Doses:
    """A grid, or doses of each unit, as doses of each."""
    table = np.atleast_2d(doses)
    return Doses(np.broadcast_to(table, (n_units, table.shape[1])))


def each_its_own(doses: Any, n_components: int = 1) -> bool:
    """Whether every unit has a row of doses of its own, and not one grid with all others.

    >>> each_its_own([0.0, 5.0]), each_its_own([[0.0, 5.0]]), each_its_own([[0.0, 5.0]], 2)
    (False, True, False)
    """
    deeper = n_components > 1 and not is_checked(doses)
    return np.ndim(doses) - deeper == 2


def _joint_table(values: Array, n_units: int, name: str, n_components: int) -> Doses:
    """Doses of several components, (n_units, n_doses)."""
    table = np.atleast_2d(values.astype(np.float64) + 0.0)
    own = table.ndim == 3 and len(table) == n_units
    if table.shape[-1] != n_components or not (table.ndim == 2 or own):
        raise ValueError(
            f"The {name!r} parameter must have doses of {n_components} components: shape "
            f"({n_components},), (n_doses, {n_components}) or ({n_units}, n_doses, "
            f"{n_components}). Got shape {values.shape} instead."
        )
    _require_finite(table, name)
    return _for_all(Doses.of_table(table).values, n_units)


def _require_finite(table: FloatArray, name: str) -> None:
    bad = ~(np.abs(table) <= LARGEST_VALUE)  # also true of NaN
    if bad.any():
        raise ValueError(
            f"The {name!r} parameter must hold finite numbers of size at most {LARGEST_VALUE:.0e}. "
            f"Got {table[bad][0]} instead."
        )


def one_dose(dose: Any, name: str, n_components: int = 1) -> Doses:
    """One dose, shape (), of a number or of a list of components.

    Examples
    --------
    >>> one_dose(5, "dose").plain, one_dose([5, 1], "dose", n_components=2).plain
    (5.0, [5.0, 1.0])
    """
    if is_checked(dose):
        return Doses.of(dose)
    if np.shape(dose) != (() if n_components == 1 else (n_components,)):
        of = f" of {n_components} components" if n_components > 1 else ""
        raise ValueError(f"The {name!r} parameter must be one dose{of}. Got {dose!r} instead.")
    return dose_table(dose, 1, name, n_components)[0, 0]


def unit_doses(dose: Any, n_units: int, name: str = "dose", n_components: int = 1) -> Doses:
    """One dose for each unit, shape (n_units,), of a number or of one number per unit.

    Where a dose has several components, of a list of them or of one row of them per unit.

    Examples
    --------
    >>> unit_doses(5, n_units=2).values
    array([5., 5.])
    """
    if isinstance(dose, Doses) or (n_components > 1 and is_checked(dose)):
        return Doses(np.broadcast_to(np.asarray(dose), n_units))
    shape = np.shape(dose)
    if n_components > 1:
        if shape not in ((n_components,), (n_units, n_components)):
            raise ValueError(
                f"The {name!r} parameter must be one dose of {n_components} components, or one "
                f"per unit, shape ({n_units}, {n_components}). Got shape {shape} instead."
            )
        own = dose if len(shape) == 1 else as_numbers(dose, name)[:, None]
        return dose_table(own, n_units, name, n_components)[:, 0]
    if shape not in ((), (n_units,)):
        raise ValueError(
            f"The {name!r} parameter must be a number or one number per unit ({n_units}). "
            f"Got shape {shape} instead."
        )
    doses = as_numbers(dose, name).astype(np.float64)
    _require_finite(doses, name)
    return Doses(np.broadcast_to(doses, n_units))


def dose_gaps(first: Doses, second: Doses) -> FloatArray:
    """How much two doses of each unit differ, in the one component in which they do, or ValueError.

    Examples
    --------
    >>> dose_gaps(Doses.of([1.0, 2.0]), Doses.of([4.0, 0.0]))
    array([ 3., -2.])
    """
    gaps = second.table - first.table
    n_gaps = (gaps != 0).sum(axis=1)
    if (n_gaps != 1).any():
        rule = "differ from 'first'" + (" in one component" if gaps.shape[1] > 1 else "")
        got = dose_text(second[n_gaps != 1][0])
        raise ValueError(
            f"The 'second' parameter must {rule}. "
            f"Got {got} {'for both' if n_gaps.min() == 0 else 'that differs in more'} instead."
        )
    total: FloatArray = gaps.sum(axis=1)
    return total


class CurveEffects(ABC):
    """Effects of a model that knows the dose-response curve of every unit.

    Examples
    --------
    >>> class Parabola(CurveEffects):
    ...     def dose_response(self, X, doses):
    ...         return dose_table(doses, len(X)).values ** 2
    >>> Parabola().effect(np.zeros((2, 1)), dose=3.0, baseline=1.0)
    array([8., 8.])
    >>> Parabola().partial_effect(np.zeros((2, 1)), 1.0, 3.0)
    array([4., 4.])
    """

    @property
    def n_components(self) -> int:
        """Number of components of a dose."""
        return 1

    @abstractmethod
    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """Expected outcome of each unit at each dose.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        doses : array of shape (n_doses,) or (n_units, n_doses)
            A grid for all units, or doses for each; with several components, these along the last
            axis.

        Returns
        -------
        array of shape (n_units, n_doses)
            The curves.
        """

    def effect(self, X: Any, dose: Any, baseline: Any = 0.0) -> FloatArray:
        """Effect theta of each unit: the outcome at `dose` less that at `baseline`.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        dose, baseline : float or array of shape (n_units,)
            One dose for all units, or one for each; where a dose has several components, a list
            of them, or an array of shape (n_units, n_components).

        Returns
        -------
        array of shape (n_units,)
            The effects, in units of the outcome.
        """
        n_units, width = len(X), self.n_components
        start = unit_doses(baseline, n_units, "baseline", width)
        both = (start, unit_doses(dose, n_units, "dose", width))
        curves = np.asarray(self.dose_response(X, np.stack(both, axis=1)))  # perhaps of a frame
        difference: FloatArray = curves[:, 1] - curves[:, 0]
        return difference

    def partial_effect(self, X: Any, first: Any, second: Any) -> FloatArray:
        """Change of the outcome per unit of dose between two doses.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        first, second : float or array of shape (n_units,)
            The two doses, as in `effect`. Doses of several components may differ in one of them.

        Returns
        -------
        array of shape (n_units,)
            The changes, in units of the outcome per unit of dose.
        """
        n_units, width = len(X), self.n_components
        ends = unit_doses(second, n_units, "second", width)
        gaps = dose_gaps(unit_doses(first, n_units, "first", width), ends)
        slopes: FloatArray = np.asarray(self.effect(X, second, first)) / gaps
        return slopes
