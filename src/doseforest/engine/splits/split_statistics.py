"""What a split statistic is: a recipe that lays out channels, and the channels with their rule.

A recipe tells how the columns of ``y`` are read and what curves of two children are compared; it
makes a statistic, whose channels are summed over the rows of nodes. The recipes are in mean_splits,
ratio_splits and score_splits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeGuard

import numpy as np

from doseforest import _core
from doseforest.base.dtypes import Array, ChannelArray, FloatArray
from doseforest.engine.splits.distances import DistanceFunction, named_distance, trapezoid_weights
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
    """Columns, weights and settings of which a recipe makes a statistic, checked.

    Attributes
    ----------
    values : array of shape (n_rows, n_columns)
        The ``y`` of fit.
    doses : array of shape (n_doses,) or None
        The grid, ascending.
    quadrature : array of shape (n_points,)
        Weights of the points at which children are compared.
    distance : str or callable
        The ``distance`` of the forest.
    weights : array of shape (n_rows,) or None
        Weights of the rows, of mean 1.
    spread : array of shape (n_rows, 1 or 2) or None
        The ``spread`` of fit.
    zeta : float
        Weight of the positivity term.
    positivity : {"conditional", "mixture"}
        How that term measures variation.

    Examples
    --------
    >>> rows = StatisticRows(np.eye(2), doses=None, quadrature=np.ones(2), distance="l2")
    >>> rows.zeta
    0.0
    """

    values: Array  # (n_rows, n_columns)
    doses: FloatArray | None  # (n_doses,)
    quadrature: FloatArray  # (n_points,)
    distance: str | DistanceFunction
    weights: ChannelArray | None = None  # (n_rows,)
    spread: Array | None = None  # (n_rows, 1 or 2)
    zeta: float = 0.0
    positivity: Positivity = "conditional"

    def __post_init__(self) -> None:
        """Take the function of a name in `CURVE_DISTANCES` that has no compiled code."""
        object.__setattr__(self, "distance", named_distance(self.distance))


class SplitStatistic(Protocol):
    """Channels of the rows, and how a split is scored by their sums.

    A `SplitRecipe` makes it, in NumPy alone or as a `CompiledStatistic`. Growth sums the channels
    over the rows of a node, bin by bin, and asks for the curves of the two children of every cut.

    Examples
    --------
    >>> from doseforest.engine import SplitByMeans
    >>> values = np.array([[0.0, 1.0], [0.0, 3.0]])
    >>> rows = StatisticRows(values, doses=None, quadrature=np.ones(2), distance="l2")
    >>> SplitByMeans().lay_out(rows).quadrature
    array([1., 1.])
    """

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

    def child_curves(
        self, left: FloatArray, left_weight: FloatArray, total: FloatArray, total_weight: float
    ) -> tuple[FloatArray, FloatArray]:
        """Curves of the two children of each cut.

        Parameters
        ----------
        left : array of shape (n_cuts, n_channels)
            Sums of the channels over the left children.
        left_weight : array of shape (n_cuts,)
            Weights of the left children.
        total : array of shape (n_channels,)
            Sums over the node.
        total_weight : float
            Weight of the node.

        Returns
        -------
        left, right : arrays of shape (n_cuts, n_points)
            The curves to compare.
        """

    def extra_gain(
        self, left: FloatArray, left_weight: FloatArray, total: FloatArray, total_weight: float
    ) -> FloatArray:
        """What a cut gains besides the distance, such as a positivity term.

        Parameters
        ----------
        left : array of shape (n_cuts, n_channels)
            Sums of the channels over the left children.
        left_weight : array of shape (n_cuts,)
            Weights of the left children.
        total : array of shape (n_channels,)
            Sums over the node.
        total_weight : float
            Weight of the node.

        Returns
        -------
        array of shape (n_cuts,)
            The gains; zeros where there are none.
        """


class CompiledStatistic(SplitStatistic, Protocol):
    """A statistic whose cuts the compiled core can judge, too.

    Without `rule` all cuts of a node are judged in NumPy, at many times the cost.

    Examples
    --------
    >>> from doseforest.engine import SplitByMeans
    >>> rows = StatisticRows(np.eye(2), doses=None, quadrature=np.ones(2), distance="l2")
    >>> is_compiled(SplitByMeans().lay_out(rows))
    True
    """

    def rule(self, *, min_rows: int, min_fraction: float) -> _core.SplitRule:
        """Make the compiled form, for a distance that `CURVE_DISTANCES` has.

        Parameters
        ----------
        min_rows : int
            Smallest number of rows of a child.
        min_fraction : float
            Smallest child as a share of its parent's rows.

        Returns
        -------
        SplitRule
            The rule, for the compiled core.
        """


def is_compiled(statistic: SplitStatistic) -> TypeGuard[CompiledStatistic]:
    """Whether the compiled core can judge cuts: by this statistic, and by the forest's distance."""
    return isinstance(statistic.distance, str) and hasattr(statistic, "rule")


class SplitRecipe(Protocol):
    """How the columns of ``y`` become the statistic by which splits are compared.

    A new one is a class with these members, passed as ``statistic``. `SplitByMeans` is the shortest
    example; one that changes columns and leaves the rest to it is shorter still.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from doseforest.engine import CurveForest, SplitByMeans
    >>> class SplitByLogs(SplitByMeans):
    ...     def lay_out(self, rows):
    ...         return super().lay_out(replace(rows, values=np.log1p(rows.values)))
    >>> x = np.arange(200.0)[:, None]
    >>> forest = CurveForest(10, statistic=SplitByLogs(), random_state=0)
    >>> forest.fit(x, (x > 100).astype(float)).predict([[5.0], [195.0]]).ravel().round(1)
    array([0. , 0.9])
    """

    def n_doses(self, n_columns: int) -> int:
        """Count the doses that columns of ``y`` stand for.

        Parameters
        ----------
        n_columns : int
            Columns of ``y``; a number that does not fit is a ValueError.

        Returns
        -------
        int
            Number of points at which children are compared.
        """

    def point_weights(
        self, n_doses: int, doses: FloatArray | None, given: FloatArray | None
    ) -> FloatArray:
        """Weights of the points at which children are compared.

        Parameters
        ----------
        n_doses : int
            Number of doses.
        doses : array of shape (n_doses,) or None
            The ``doses`` of fit.
        given : array of shape (n_points,) or None
            The ``quadrature`` of fit.

        Returns
        -------
        array of shape (n_points,)
            The weights.
        """

    def n_channels(self, n_columns: int) -> int:
        """Count the channels that columns of ``y`` take, without weights, to plan memory.

        Parameters
        ----------
        n_columns : int
            Columns of ``y``.

        Returns
        -------
        int
            Number of channels.
        """

    def lay_out(self, rows: StatisticRows) -> SplitStatistic:
        """Make the statistic: the channels of all rows, and how their sums are compared.

        Parameters
        ----------
        rows : StatisticRows
            Columns, weights and settings, checked.

        Returns
        -------
        SplitStatistic
            What growth sums over the rows of nodes.
        """


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
