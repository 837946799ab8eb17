"""What is said of units' effects: estimates, standard errors, intervals and bands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.base.intervals import student_quantile
from doseforest.doses.vectors import is_record, n_components
from doseforest.estimator.bags.bag_contrasts import band_quantiles
from doseforest.inference.units.differences import Differences

Shown = Callable[[FloatArray], Any]  # an array as the forest answers: itself, a series or a frame


@dataclass(frozen=True, slots=True, eq=False)
class UnitInference:
    """Debiased effects of units and how sure they are.

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

    differences: Differences  # of shape (n_units,) or (n_units, n_doses)
    shown: Shown = field(default=lambda values: values, repr=False)
    limits: tuple[float, float] = (-np.inf, np.inf)  # that no effect lies beyond

    @property
    def values(self) -> Any:
        """Debiased effects, the centres of the intervals: (n_units,) or (n_units, n_doses)."""
        return self.shown(self.differences.values)

    @property
    def standard_errors(self) -> Any:
        """Their standard errors, of the same shape."""
        return self.shown(self.differences.standard_errors)

    def interval(self, coverage: float = 0.95) -> tuple[Any, Any]:
        """Lower and upper ends, each effect on its own.

        Student's quantiles are used: a standard error is known from as many bags as there are.
        """
        return self._ends(student_quantile(self.differences.degrees, coverage))

    def band(self, coverage: float = 0.95) -> tuple[Any, Any]:
        """The same for all doses of a unit at once; over units each is on its own."""
        own = self.differences
        apart = student_quantile(own.degrees, coverage)
        if own.values.ndim == 1:
            return self._ends(apart)
        together = band_quantiles(own.roots, np.median(own.degrees, axis=1), coverage)
        return self._ends(np.maximum(apart, together[:, None]))

    def ends(self, coverage: float = 0.95, *, band: bool = False) -> tuple[Any, Any]:
        """Ends of intervals, or with `band` of bands."""
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
    """Doses that may be the best for a unit, by the differences between all doses of a grid."""

    doses: DoseArray  # (n_doses,) that were compared
    values: Any  # (n_units,) dose with the best debiased outcome
    plausible: NDArray[np.bool_]  # (n_units, n_doses) not significantly worse than another dose
    shown: Shown = field(default=lambda values: values, repr=False)

    def interval(self) -> tuple[Any, Any]:
        """Lowest and highest plausible dose of each unit, which must have one component."""
        if is_record(self.doses):
            raise ValueError(
                "The doses must have one component for an interval. Got "
                f"{n_components(self.doses)} instead: see 'plausible'."
            )
        low = self.doses[np.argmax(self.plausible, axis=1)]
        high = self.doses[::-1][np.argmax(self.plausible[:, ::-1], axis=1)]
        return self.shown(low), self.shown(high)
