"""Changes of everyone's dose: by so much more, by a factor, by a hair for a slope."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray
from doseforest.doses.grids import DoseRange, dose_sample

AT_EDGE = ("clip", "stay")
SLOPE_STEP = 0.03  # of the spread of the doses, on either side, over which a slope is taken
SAME_LEVEL = 1e-9  # of the range, within which a moved level is taken for another level

AtEdge = Literal["clip", "stay"]


@dataclass(frozen=True, slots=True)
class Move:
    """A dose t becomes ``factor * t + delta``, as far as the range of the doses allows.

    Examples
    --------
    >>> doses = np.array([1.0, 9.0])
    >>> Move(2.0, 1.0, DoseRange(0.0, 10.0), "clip").apply(doses)
    array([ 3., 10.])
    >>> Move(2.0, 1.0, DoseRange(0.0, 10.0), "stay").apply(doses)
    array([3., 9.])
    """

    delta: float
    factor: float
    within: DoseRange
    at_edge: AtEdge  # a dose beyond an end becomes that end, or nothing changes for the unit
    levels: tuple[float, ...] = ()  # of a dose that has nothing else

    def apply(self, dose: FloatArray) -> FloatArray:
        """New dose of each unit."""
        held = (
            self.within.clip(dose) if self.at_edge == "stay" else self.within.clip(self._to(dose))
        )
        moved: FloatArray = np.where(self.in_full(dose), self._snapped(self._to(dose)), held)
        return moved

    def in_full(self, dose: FloatArray) -> NDArray[np.bool_]:
        """Whether each unit is moved all the way."""
        return self.within.contains(self._snapped(self._to(dose)))

    def origin(self, dose: FloatArray) -> FloatArray:
        """Dose that each dose would come from."""
        return self._snapped((dose - self.delta) / self.factor)

    def _to(self, dose: FloatArray) -> FloatArray:
        return dose * self.factor + self.delta

    def _snapped(self, dose: FloatArray) -> FloatArray:
        """Doses that miss a level by rounding alone, as that level."""
        if not self.levels:
            return dose
        levels = np.array(self.levels)
        nearest = levels[np.abs(dose[..., None] - levels).argmin(axis=-1)]
        close = np.abs(dose - nearest) <= SAME_LEVEL * (self.within.high - self.within.low)
        return np.where(close, nearest, dose)


@dataclass(frozen=True, slots=True)
class Contrast:
    """A weighted sum of a unit's outcomes at moved doses; `per_dose` divides by their distance.

    Examples
    --------
    >>> everything = DoseRange(0.0, 10.0)
    >>> nothing, more = Move(0.0, 1.0, everything, "stay"), Move(2.0, 1.0, everything, "clip")
    >>> doses, shares = Contrast(nothing, more).at(np.array([1.0, 9.0]))
    >>> doses, shares[0]
    (array([[ 1.,  3.],
           [ 9., 10.]]), array([-1.,  1.]))
    """

    first: Move
    second: Move
    per_dose: bool = False

    @property
    def moves(self) -> tuple[Move, Move]:
        """Both moves."""
        return self.first, self.second

    def at(self, dose: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Doses and their shares in the sum, (n_units, 2) each."""
        doses = np.stack([move.apply(dose) for move in self.moves], axis=1)
        shares = np.tile([-1.0, 1.0], (len(dose), 1))
        if self.per_dose:
            shares /= (doses[:, 1] - doses[:, 0])[:, None]
        return doses, shares


def shift_of(
    delta: Any,
    factor: Any,
    at_edge: Any,
    within: DoseRange,
    levels: tuple[float, ...] = (),
) -> Move:
    """Check what a user asks for: `delta` more for everyone, or `factor` times as much.

    >>> shift_of(None, 1.1, "clip", DoseRange(0.0, 10.0)).apply(np.array([5.0]))
    array([5.5])
    """
    if at_edge not in AT_EDGE:
        raise ValueError(
            f"The 'at_edge' parameter must be one of {', '.join(AT_EDGE)}. Got {at_edge!r} instead."
        )
    if (delta is None) == (factor is None):
        raise ValueError(
            "The 'delta' parameter must be given, or 'factor' in its place, and not both. "
            f"Got delta={delta!r} and factor={factor!r} instead."
        )
    length = within.high - within.low
    if delta is not None and not (_is_number(delta) and 0 < abs(delta) < length):
        raise ValueError(
            f"The 'delta' parameter must be a number other than 0, of size below {length:g}, the "
            f"length of the range of doses. Got {delta!r} instead."
        )
    if factor is not None and not (_is_number(factor) and 0 < factor < np.inf and factor != 1):
        raise ValueError(
            "The 'factor' parameter must be a positive number other than 1. "
            f"Got {factor!r} instead."
        )
    move = Move(
        0.0 if delta is None else float(delta),
        1.0 if factor is None else float(factor),
        within,
        at_edge,
        levels,
    )
    _check_levels(move, "factor" if delta is None else "delta", delta if factor is None else factor)
    return move


def shift_contrast(move: Move) -> Contrast:
    """Outcome after a move less the outcome before."""
    return Contrast(Move(0.0, 1.0, move.within, "stay", move.levels), move)


def slope_contrast(
    dose: FloatArray, weights: FloatArray | None, levels: tuple[float, ...] = ()
) -> Contrast:
    """Slope of the outcome at each unit's own dose, by a difference over a small step.

    At an end of the range the step is to one side only, where its slope is off by half the bend of
    the curve over it: so it is short.

    >>> slope_contrast(np.linspace(0.0, 10.0, 101), None).at(np.array([0.0, 5.0]))[0].round(2)
    array([[0.  , 0.11],
           [4.89, 5.11]])
    """
    if levels:
        raise ValueError(
            "The 'treatment' parameter of fit must be a quantity for a derivative. Got the levels "
            f"{list(levels)} instead: compare two of them by average_effect, or ask for a shift "
            "from level to level."
        )
    sample = dose_sample(dose, weights)
    within = sample.range()
    lower, upper = sample.quantiles(np.array([0.25, 0.75]))
    spread = (upper - lower) / 1.349
    if not spread > 0:  # half of the rows share one dose
        mean = np.average(dose, weights=weights)
        spread = np.sqrt(np.average((dose - mean) ** 2, weights=weights))
    step = float(min(SLOPE_STEP * spread, (within.high - within.low) / 4))
    return Contrast(
        Move(-step, 1.0, within, "stay"), Move(step, 1.0, within, "stay"), per_dose=True
    )


def _check_levels(move: Move, name: str, value: Any) -> None:
    levels = np.array(move.levels)
    landed = move.apply(levels)
    lost = ~np.isin(landed, levels)
    if lost.any():
        place = int(np.argmax(lost))
        raise ValueError(
            f"The {name!r} parameter must move every level of the dose to another level, "
            f"{list(move.levels)}: nothing is known between them. Got {value!r}, which moves "
            f"{levels[place]:g} to {landed[place]:g}, instead."
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and abs(float(value)) < np.inf
