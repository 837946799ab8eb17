"""Numeric levels of a dose: what lies between them is answered by interpolation, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.dose_values import Doses

MODELLED = "basis='legendre' (or 'spline')"  # bases that treat levels as points of a quantity
N_NAMED = 5
PACKAGE = f"{__name__.partition('.')[0]}."


class OverlapWarning(UserWarning):
    """Some doses are next to impossible for most units."""


@dataclass(frozen=True, slots=True)
class DoseLevels:
    """Levels of a dose of one component; without any the dose is a quantity.

    Parameters
    ----------
    values : tuple of float, default=()
        The levels, ascending.

    Examples
    --------
    >>> levels = DoseLevels((0.0, 5.0, 10.0))
    >>> levels.apart(np.array([5.0, 7.0]))
    array([False,  True])
    >>> levels.read(np.array([[0.0, 1.0, 3.0]]), np.array([5.0, 7.5, 12.0]))
    array([[1., 2., 3.]])
    """

    values: tuple[float, ...] = ()

    def apart(self, doses: FloatArray) -> NDArray[np.bool_]:
        """Whether each dose is none of the levels; a quantity has none apart.

        Parameters
        ----------
        doses : array
            Doses, of any shape.

        Returns
        -------
        array of bool
            One for each dose.
        """
        if not self.values:
            return np.zeros(np.shape(doses), bool)
        return ~np.isin(doses, self.values)

    def read(self, at_levels: FloatArray, doses: FloatArray) -> FloatArray:
        """Answers at doses, linear between those at the levels and constant beyond them.

        Parameters
        ----------
        at_levels : array of shape (n_units, n_levels)
            Answers at the levels.
        doses : array of shape (n_doses,) or (n_units, n_doses)
            The same for all units, or a row for each.

        Returns
        -------
        array of shape (n_units, n_doses)
            The answers. At a level they are those given, to the bit.
        """
        levels = np.array(self.values)
        right = np.clip(np.searchsorted(levels, doses), 1, len(levels) - 1)
        gaps = levels[right] - levels[right - 1]
        share = np.clip((doses - levels[right - 1]) / gaps, 0.0, 1.0)
        if doses.ndim == 1:
            low, high = at_levels[:, right - 1], at_levels[:, right]
        else:
            low = np.take_along_axis(at_levels, right - 1, axis=1)
            high = np.take_along_axis(at_levels, right, axis=1)
        between: FloatArray = (1 - share) * low + share * high
        return between

    def through(self, answer: Callable[[FloatArray], FloatArray], doses: FloatArray) -> FloatArray:
        """Answers at doses, asked for at the levels alone where some dose is none of them.

        Parameters
        ----------
        answer : callable
            From doses, as `doses` or of shape (n_levels,), to answers (n_units, n_doses).
        doses : array of shape (n_doses,) or (n_units, n_doses)
            The doses.

        Returns
        -------
        array of shape (n_units, n_doses)
            The answers.
        """
        if not self.values or not self.apart(doses).any():
            return answer(doses)
        return self.read(answer(np.array(self.values)), doses)

    def warn(self, doses: FloatArray) -> None:
        """Warn of doses that are no levels, once for all of them.

        Parameters
        ----------
        doses : array
            Doses that are asked for, of any shape.
        """
        apart = np.unique(np.asarray(doses)[self.apart(doses)])
        if len(apart):
            more = f" and {len(apart) - N_NAMED} more" if len(apart) > N_NAMED else ""
            named = ", ".join(self._place(dose) for dose in apart[:N_NAMED].tolist())
            warnings.warn(
                f"The treatment has the levels {list(self.values)}, and other doses are answered "
                f"by linear interpolation, which no row supports: {named}{more}. Ask for levels, "
                f"or fit with {MODELLED}, which models the curve between levels.",
                OverlapWarning,
                stacklevel=_frames_within(),
            )

    def require(self, doses: FloatArray, name: str = "doses") -> None:
        """Raise ValueError where a dose is no level, for answers that cannot be interpolated.

        Parameters
        ----------
        doses : array
            Doses that are asked for, of any shape.
        name : str, default="doses"
            The parameter that holds them.
        """
        apart = self.apart(doses)
        if apart.any():
            raise ValueError(
                f"The {name!r} parameter must hold levels of the treatment, "
                f"{list(self.values)}. Got {np.asarray(doses)[apart].flat[0]:g} instead: ask for "
                f"levels, or fit with {MODELLED}, which models the curve between levels."
            )

    def _place(self, dose: float) -> str:
        """The dose and its neighbours in words."""
        right = int(np.searchsorted(self.values, dose))
        if right == 0:
            return f"{dose:g} (below {self.values[0]:g}, whose answer it gets)"
        if right == len(self.values):
            return f"{dose:g} (above {self.values[-1]:g}, whose answer it gets)"
        return f"{dose:g} (between {self.values[right - 1]:g} and {self.values[right]:g})"


def _frames_within() -> int:
    """The `stacklevel` of a warning that shows the first line outside of this package."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(PACKAGE):
        frame, count = frame.f_back, count + 1
    return count


def check_component_levels(
    doses: DoseArray, levels: tuple[tuple[float, ...], ...], name: str
) -> None:
    """Raise ValueError where a component with levels is asked for something between them.

    A component of several may be an arm, whose numbers are labels: nothing lies between them.

    Parameters
    ----------
    doses : array
        Doses of several components, of any shape.
    levels : tuple of tuple of float
        Levels of each component, none where it is a quantity.
    name : str
        The parameter that holds the doses.

    Examples
    --------
    >>> asked = Doses.of_table(np.array([[0.5, 3.0]])).values
    >>> check_component_levels(asked, ((0.0, 1.0), ()), "doses")
    Traceback (most recent call last):
        ...
    ValueError: The 'doses' parameter must hold levels seen in fit, [0.0, 1.0], in component 0. ...
    """
    table = Doses.of(doses).table
    for place, values in enumerate(levels):
        apart = DoseLevels(values).apart(table[..., place])
        if apart.any():
            raise ValueError(
                f"The {name!r} parameter must hold levels seen in fit, {list(values)}, in "
                f"component {place}. Got {table[apart][0, place]:g} instead: ask for one of them; "
                "where they are amounts and no labels, fit with a 'basis' that models the "
                "component as a quantity, such as 'legendre'."
            )
