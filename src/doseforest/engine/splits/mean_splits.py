"""Recipes of splits by mean curves, and by the slopes of mean curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import Array, FloatArray
from doseforest.engine.splits.mean_statistic import MeanCurveStatistic, mean_curve_statistic
from doseforest.engine.splits.split_statistics import StatisticRows, dose_weights, gap_weights


@dataclass(frozen=True, slots=True)
class SplitByMeans:
    """Children are compared by the means of their rows' curves; the default.

    ``y`` holds the curve of each row, a column per dose.

    Examples
    --------
    >>> SplitByMeans().n_doses(20)
    20
    """

    def n_doses(self, n_columns: int) -> int:
        """Every column is a dose."""
        return n_columns

    def n_channels(self, n_columns: int) -> int:
        """Every column is a channel."""
        return n_columns

    def point_weights(
        self, n_doses: int, doses: FloatArray | None, given: FloatArray | None
    ) -> FloatArray:
        """Weights of the doses."""
        return dose_weights(n_doses, doses, given)

    def lay_out(self, rows: StatisticRows) -> MeanCurveStatistic:
        """Make the channels."""
        return _mean_statistic(rows.values, rows)


@dataclass(frozen=True, slots=True)
class SplitByMeanSlopes:
    """Children are compared by the slopes of their mean curves between neighbouring doses.

    ``y`` holds the curve of each row, a column per dose, and ``doses`` must be given. With doubly
    robust curves this is the partial dose-response criterion (PDRF) without its confounding: the
    slopes are a linear map of the curves, made before growth. Leaves still sum the curves.

    Examples
    --------
    >>> SplitByMeanSlopes().n_doses(20)
    20
    """

    def n_doses(self, n_columns: int) -> int:
        """Every column is a dose."""
        return n_columns

    def n_channels(self, n_columns: int) -> int:
        """A slope less than there are doses."""
        return n_columns - 1

    def point_weights(
        self, n_doses: int, doses: FloatArray | None, given: FloatArray | None
    ) -> FloatArray:
        """Gaps between the doses."""
        return gap_weights(doses, given, "SplitByMeanSlopes")

    def lay_out(self, rows: StatisticRows) -> MeanCurveStatistic:
        """Make the channels."""
        assert rows.doses is not None  # the point weights were made of them
        return _mean_statistic(curve_slopes(rows.values, rows.doses), rows)


def curve_slopes(curves: Array, doses: FloatArray) -> FloatArray:
    """Slopes of curves (n_rows, n_doses) between neighbouring doses, (n_rows, n_doses - 1).

    Examples
    --------
    >>> curve_slopes(np.array([[0.0, 1.0, 5.0]]), np.array([0.0, 1.0, 3.0]))
    array([[1., 2.]])
    """
    slopes: FloatArray = np.diff(curves, axis=1) / np.diff(doses)
    return slopes


def _mean_statistic(curves: Array, rows: StatisticRows) -> MeanCurveStatistic:
    return mean_curve_statistic(
        curves,
        quadrature=rows.quadrature,
        distance=rows.distance,
        weights=rows.weights,
        spread=rows.spread,
        zeta=rows.zeta,
        positivity=rows.positivity,
    )
