"""The support of doses with several components: a range for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.dose_values import AnyDoses, Doses
from doseforest.doses.grids import FEW_LEVELS, DoseRange, dose_sample


@dataclass(frozen=True, slots=True)
class DoseBox:
    """Doses whose components each lie in a range.

    >>> box = DoseBox((DoseRange(0.0, 1.0), DoseRange(0.0, 10.0)))
    >>> box.contains(Doses.of_table(np.array([[0.5, 5.0], [2.0, 5.0]])).values)
    array([ True, False])
    """

    ranges: tuple[DoseRange, ...]

    @property
    def n_components(self) -> int:
        """Number of components of a dose."""
        return len(self.ranges)

    def contains(self, doses: DoseArray, slack: float = 0.0) -> NDArray[np.bool_]:
        """Whether each dose lies in the box, widened by that share of its edges at both ends."""
        table = Doses.of(doses).table
        inside = [own.contains(table[..., k], slack) for k, own in enumerate(self.ranges)]
        every: NDArray[np.bool_] = np.all(inside, axis=0)
        return every

    def clip(self, doses: DoseArray) -> DoseArray:
        """Nearest doses in the box."""
        table = Doses.of(doses).table
        low, high = self.corners
        return Doses.of_table(np.clip(table, low, high)).values

    @property
    def corners(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest value of each component, (n_components,) each."""
        low = np.array([own.low for own in self.ranges])
        return low, np.array([own.high for own in self.ranges])

    def __str__(self) -> str:
        """Ranges as text."""
        return " x ".join(str(own) for own in self.ranges)


def observed_support(dose: AnyDoses, weights: FloatArray | None = None) -> DoseRange | DoseBox:
    """Range of the observed doses, or of each of their components.

    >>> observed_support(np.array([3.0, 1.0]))
    DoseRange(low=1.0, high=3.0)
    """
    ranges = tuple(dose_sample(column, weights).range() for column in Doses.of(dose).columns)
    return ranges[0] if len(ranges) == 1 else DoseBox(ranges)


def has_levels(dose: AnyDoses, weights: FloatArray | None = None) -> bool:
    """Whether every component has few distinct values.

    >>> has_levels(np.array([0.0, 1.0, 1.0])), has_levels(np.arange(99.0))
    (True, False)
    """
    samples = (dose_sample(column, weights) for column in Doses.of(dose).columns)
    return all(len(sample.levels()[0]) <= FEW_LEVELS for sample in samples)


def distinct_doses(dose: AnyDoses, weights: FloatArray | None = None) -> tuple[Doses, FloatArray]:
    """Distinct doses of positive weight in ascending order, and their shares of it.

    >>> levels, shares = distinct_doses(np.array([1.0, 0.0, 1.0, 1.0]))
    >>> levels.plain, shares
    (array([0., 1.]), array([0.25, 0.75]))
    """
    own = np.ones(len(dose)) if weights is None else weights
    distinct, places = np.unique(Doses.of(dose).values[own > 0], return_inverse=True)
    return Doses(distinct), np.bincount(places.ravel(), own[own > 0]) / own.sum()
