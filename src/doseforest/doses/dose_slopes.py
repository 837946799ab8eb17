"""Doses that the slope of a curve is taken between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.curve_effects import unit_doses
from doseforest.doses.dose_values import Doses, dose_text
from doseforest.doses.grids import check_doses

SLOPE_STEP = 0.025  # of the range of doses, on either side, over which a slope is taken


@dataclass(frozen=True, slots=True, eq=False)
class SlopeDoses:
    """A dose of each unit and its neighbours on either side, each of shape (n_units,)."""

    low: Doses
    middle: Doses
    high: Doses
    place: int  # of the component in which they differ

    @property
    def length(self) -> FloatArray:
        """From the lower to the higher neighbour."""
        ends: FloatArray = self.high.table[:, self.place] - self.low.table[:, self.place]
        return ends

    @property
    def side_by_side(self) -> Doses:
        """All three of each unit, (n_units, 3)."""
        return Doses.stack([self.low, self.middle, self.high])


def slope_doses(model: Any, dose: Any, n_units: int, component: int | None) -> SlopeDoses:
    """Neighbours of checked doses, held to the support of a forest's doses."""
    place = model.checked_component(component)
    own = unit_doses(dose, n_units, "dose", model.n_components)
    middle = _within(model, check_doses(own, model.support, "dose"))
    reach = (model.ranges[place].high - model.ranges[place].low) * SLOPE_STEP
    low, high = (_within(model, middle.moved(place, by)) for by in (-reach, reach))
    return SlopeDoses(low, middle, high, place)


def _within(model: Any, doses: Doses) -> Doses:
    return Doses(model.support.clip(doses.values))


def check_positive(outcomes: FloatArray, doses: Doses) -> None:
    """Raise ValueError where an expected outcome is not positive: it has no elasticity."""
    if (outcomes <= 0).any():
        unit = int(np.argmax(outcomes <= 0))
        raise ValueError(
            "The 'dose' parameter must have a positive expected outcome for an elasticity. "
            f"Got {outcomes[unit]:.4g} for unit {unit} at dose {dose_text(doses[unit])} "
            "instead; partial_effect has no such need."
        )
