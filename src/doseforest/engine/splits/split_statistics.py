"""What a split statistic is: a recipe that lays out channels, and the channels with their rule.

A recipe tells how the columns of ``y`` are read and what curves of two children are compared; it
makes a statistic, whose channels are summed over the rows of nodes. The recipes are in mean_splits,
ratio_splits and score_splits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from doseforest import _core
from doseforest.base.dtypes import Array, ChannelArray, FloatArray
from doseforest.engine.splits.distances import DistanceFunction, trapezoid_weights
from doseforest.engine.splits.positivity import Positivity

# enum Statistic of cpp/layout.hpp
STATISTIC_CODES: dict[str, int] = {
    "mean": 0,
    "ratio": 1,
    "differences": 2,
    "derivative": 3,
    "scores": 4,
}


@dataclass(frozen=True, slots=True)
class StatisticRows:
    """What a recipe makes a statistic of, checked."""

    values: Array  # (n_rows, n_columns), the y of fit
    doses: FloatArray | None  # (n_doses,), ascending
    quadrature: FloatArray  # (n_points,) weights of the points at which children are compared
    distance: str | DistanceFunction
    weights: ChannelArray | None = None  # (n_rows,) of mean 1
    spread: Array | None = None  # (n_rows, 1 or 2)
    zeta: float = 0.0
    positivity: Positivity = "conditional"


class SplitStatistic(Protocol):
    """Channels of the rows and how a split is judged by their sums."""

    @property
    def channels(self) -> ChannelArray:
        """Channels on the exact grid, (n_rows, padded)."""

    @property
    def quadrature(self) -> FloatArray:
        """Weights of the points at which children are compared."""

    @property
    def distance(self) -> str | DistanceFunction:
        """Distance between the children's curves."""

    @property
    def weight_channel(self) -> int:
        """Channel of the row weights, or -1."""

    @property
    def noise_per_row(self) -> float:
        """A gain below this, per row of the node, is rounding noise."""

    def rule(self, *, min_rows: int, min_fraction: float) -> _core.SplitRule:
        """Return the compiled form, for a distance of the table."""

    def child_curves(
        self, left: FloatArray, left_weight: FloatArray, total: FloatArray, total_weight: float
    ) -> tuple[FloatArray, FloatArray]:
        """Curves of the children of each cut, (n_cuts, n_points), from the sums on the left."""

    def extra_gain(
        self, left: FloatArray, left_weight: FloatArray, total: FloatArray, total_weight: float
    ) -> FloatArray:
        """What a cut gains besides the distance, (n_cuts,)."""


class SplitRecipe(Protocol):
    """How the columns of ``y`` become a statistic. A new one is a class with these members."""

    def n_doses(self, n_columns: int) -> int:
        """Doses that so many columns of ``y`` stand for; raises ValueError where none fit."""

    def point_weights(
        self, n_doses: int, doses: FloatArray | None, given: FloatArray | None
    ) -> FloatArray:
        """Weights of the points at which children are compared, by the grid or as given."""

    def n_channels(self, n_columns: int) -> int:
        """Channels that so many columns of ``y`` take, without weights; for counting memory."""

    def lay_out(self, rows: StatisticRows) -> SplitStatistic:
        """Make the channels."""


def dose_weights(n_doses: int, doses: FloatArray | None, given: FloatArray | None) -> FloatArray:
    """Weights of the points of a curve: as given, by the trapezoid rule, or 1 each.

    >>> dose_weights(3, np.array([0.0, 1.0, 3.0]), None)
    array([0.5, 1.5, 1. ])
    """
    if given is not None:
        return given
    return np.ones(n_doses) if doses is None else trapezoid_weights(doses)


def gap_weights(doses: FloatArray | None, given: FloatArray | None, recipe: str) -> FloatArray:
    """Weights of slopes between neighbouring doses: the gaps.

    >>> gap_weights(np.array([0.0, 1.0, 3.0]), None, "SplitByMeanSlopes")
    array([1., 2.])
    """
    if doses is None or len(doses) < 2:
        raise ValueError(
            f"The 'doses' parameter must be two or more doses with {recipe}, which compares slopes "
            f"between them. Got {doses} instead."
        )
    if given is not None:
        raise ValueError(
            f"The 'quadrature' parameter must be None with {recipe}: a slope weighs as much as the "
            f"gap between its doses. Got {given} instead."
        )
    return np.diff(doses)


def refuse_positivity(rows: StatisticRows, recipe: str, *, mixture: bool = False) -> None:
    """Refuse a positivity term; with `mixture`, only the one that is in units of mean curves."""
    if rows.zeta > 0 and not (mixture and rows.positivity == "mixture"):
        unless = " unless positivity='mixture'" if mixture else ""
        raise ValueError(
            f"The 'zeta' parameter of CurveForest must be 0 with {recipe}{unless}; a guard keeps "
            f"the treatment varied there. Got {rows.zeta} instead."
        )
