"""What follows from dose-response curves: effects and partial effects, one dose or one per unit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from doseforest.data.checks import LARGEST_VALUE, as_numbers
from doseforest.dtypes import FloatArray


def dose_table(doses: Any, n_units: int, name: str = "doses") -> FloatArray:
    """Doses of every unit, shape (n_units, n_doses).

    A number or a one-dimensional list is a grid that all units share; a two-dimensional array has
    a row of doses for each unit.

    Examples
    --------
    >>> dose_table([0.0, 5.0], n_units=2)
    array([[0., 5.],
           [0., 5.]])
    >>> dose_table([[1.0], [2.0]], n_units=2)
    array([[1.],
           [2.]])
    """
    table = as_numbers(doses, name).astype(np.float64)
    if table.ndim > 2 or (table.ndim == 2 and len(table) != n_units):
        raise ValueError(
            f"The {name!r} parameter must be a grid of doses or have one row per unit ({n_units}). "
            f"Got shape {table.shape} instead."
        )
    bad = ~(np.abs(table) <= LARGEST_VALUE)  # also true of NaN
    if bad.any():
        raise ValueError(
            f"The {name!r} parameter must hold finite numbers of size at most {LARGEST_VALUE:.0e}. "
            f"Got {table[bad][0]} instead."
        )
    return np.broadcast_to(np.atleast_2d(table), (n_units, np.atleast_2d(table).shape[1]))


def unit_doses(dose: Any, n_units: int, name: str = "dose") -> FloatArray:
    """One dose for each unit, shape (n_units,), of a number or of one number per unit.

    Examples
    --------
    >>> unit_doses(5, n_units=2)
    array([5., 5.])
    """
    shape = np.shape(dose)
    if shape not in ((), (n_units,)):
        raise ValueError(
            f"The {name!r} parameter must be a number or one number per unit ({n_units}). "
            f"Got shape {shape} instead."
        )
    return dose_table(np.reshape(dose, (-1, 1)) if shape else dose, n_units, name)[:, 0]


class CurveEffects(ABC):
    """Effects of a model that knows the dose-response curve of every unit.

    Examples
    --------
    >>> class Parabola(CurveEffects):
    ...     def dose_response(self, X, doses):
    ...         return dose_table(doses, len(X)) ** 2
    >>> Parabola().effect(np.zeros((2, 1)), dose=3.0, baseline=1.0)
    array([8., 8.])
    >>> Parabola().partial_effect(np.zeros((2, 1)), 1.0, 3.0)
    array([4., 4.])
    """

    @abstractmethod
    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """Expected outcome of each unit, shape (n_units, n_doses), on a grid or at own doses."""

    def effect(self, X: Any, dose: Any, baseline: Any = 0.0) -> FloatArray:
        """Theta: outcome at `dose` less outcome at `baseline`, shape (n_units,).

        Parameters
        ----------
        X : array of shape (n_units, n_features)
            Units.
        dose, baseline : float or array of shape (n_units,)
            One dose for all units, or one for each.
        """
        n_units = len(X)
        both = (unit_doses(baseline, n_units, "baseline"), unit_doses(dose, n_units))
        curves = np.asarray(self.dose_response(X, np.column_stack(both)))  # perhaps of a frame
        difference: FloatArray = curves[:, 1] - curves[:, 0]
        return difference

    def partial_effect(self, X: Any, first: Any, second: Any) -> FloatArray:
        """Change of the outcome per unit of dose between two doses, shape (n_units,)."""
        n_units = len(X)
        gap = unit_doses(second, n_units, "second") - unit_doses(first, n_units, "first")
        if (gap == 0).any():
            raise ValueError(
                "The 'second' parameter must differ from 'first'. "
                f"Got {unit_doses(second, n_units)[gap == 0][0]:g} for both instead."
            )
        slopes: FloatArray = np.asarray(self.effect(X, second, first)) / gap
        return slopes
