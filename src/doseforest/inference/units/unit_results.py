"""What is said of units' effects: estimates, standard errors, intervals and bands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.base.intervals import student_quantile
from doseforest.doses.dose_values import Doses
from doseforest.estimator.bags.bag_contrasts import band_quantiles
from doseforest.inference.units.differences import Differences

Shown = Callable[[FloatArray], Any]  # an array as the forest answers: itself, a series or a frame


@dataclass(frozen=True, slots=True, eq=False)
class UnitInference:
    """Debiased effects of units, with standard errors, intervals and bands.

    Attributes
    ----------
    differences : Differences
        Estimates of shape (n_units,) or (n_units, n_doses), with what their errors have in common.
    shown : callable
        Makes arrays what answers come in, see `set_output`.
    limits : tuple of float
        No effect lies beyond them.

    Examples
    --------
    >>> effects = UnitInference(
    ...     Differences(np.array([1.0]), np.array([0.5]), np.array([np.inf]), np.ones((1, 1, 1)))
    ... )
    >>> effects.values, effects.standard_errors
    (array([1.]), array([0.5]))
    >>> low, high = effects.interval(0.95)
    >>> low.round(2), high.round(2)
    (array([0.02]), array([1.98]))
    """

    differences: Differences
    shown: Shown = field(default=lambda values: values, repr=False)
    limits: tuple[float, float] = (-np.inf, np.inf)

    @property
    def values(self) -> Any:
        """Debiased effects, the centres of the intervals: (n_units,) or (n_units, n_doses)."""
        return self.shown(self.differences.values)

    @property
    def standard_errors(self) -> Any:
        """Their standard errors, of the same shape."""
        return self.shown(self.differences.standard_errors)

    def interval(self, coverage: float = 0.95) -> tuple[Any, Any]:
        """Intervals, each effect for itself.

        Student's quantiles are used: a standard error is estimated from as many bags as there are.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which each interval covers the effect. Raise it for fewer misses and longer
            intervals.

        Returns
        -------
        low, high : arrays of shape (n_units,) or (n_units, n_doses)
            Their ends.
        """
        return self._ends(student_quantile(self.differences.degrees, coverage))

    def band(self, coverage: float = 0.95) -> tuple[Any, Any]:
        """Bands: all doses of a unit at once; over units each is for itself.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which all effects of a unit are covered.

        Returns
        -------
        low, high : arrays of shape (n_units,) or (n_units, n_doses)
            Their ends.
        """
        own = self.differences
        apart = student_quantile(own.degrees, coverage)
        if own.values.ndim == 1:
            return self._ends(apart)
        together = band_quantiles(own.roots, np.median(own.degrees, axis=1), coverage)
        return self._ends(np.maximum(apart, together[:, None]))

    def ends(self, coverage: float = 0.95, *, band: bool = False) -> tuple[Any, Any]:
        """Ends of intervals or of bands.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which they cover.
        band : bool, default=False
            Bands, which cover all doses of a unit at once, in place of intervals.

        Returns
        -------
        low, high : arrays of shape (n_units,) or (n_units, n_doses)
            The ends.
        """
        if not isinstance(band, bool):
            raise ValueError(f"The 'band' parameter must be True or False. Got {band!r} instead.")
        return self.band(coverage) if band else self.interval(coverage)

    def _ends(self, quantile: FloatArray) -> tuple[Any, Any]:
        # An effect of a dose against itself is 0 for sure, also where nothing is known around it.
        values, errors = self.differences.values, self.differences.standard_errors
        reach = np.where(errors > 0, quantile * errors, 0.0)
        low = np.clip(values - reach, *self.limits)
        high = np.clip(values + reach, *self.limits)
        return self.shown(low), self.shown(high)


@dataclass(frozen=True, slots=True, eq=False)
class BestDoses:
    """Doses that may be the best for a unit, by the differences between all doses of a grid.

    Attributes
    ----------
    doses : array of shape (n_doses,)
        Doses that were compared.
    values : array of shape (n_units,)
        Dose with the best debiased outcome.
    plausible : array of bool of shape (n_units, n_doses)
        True where a dose is not significantly worse than another one.
    shown : callable
        Makes arrays what answers come in, see `set_output`.

    Examples
    --------
    >>> plausible = np.array([[False, True, True]])
    >>> best = BestDoses(np.array([0.0, 1.0, 2.0]), np.array([2.0]), plausible)
    >>> best.interval()
    (array([1.]), array([2.]))
    """

    doses: DoseArray  # (n_doses,)
    values: Any  # (n_units,)
    plausible: NDArray[np.bool_]  # (n_units, n_doses)
    shown: Shown = field(default=lambda values: values, repr=False)

    def interval(self) -> tuple[Any, Any]:
        """Lowest and highest plausible dose of each unit; doses must have one component.

        Returns
        -------
        low, high : arrays of shape (n_units,)
            The doses.
        """
        n_components = Doses.of(self.doses).n_components
        if n_components > 1:
            raise ValueError(
                f"The doses must have one component for an interval. Got {n_components} instead: "
                "see 'plausible'."
            )
        low = self.doses[np.argmax(self.plausible, axis=1)]
        high = self.doses[::-1][np.argmax(self.plausible[:, ::-1], axis=1)]
        return self.shown(low), self.shown(high)
