"""Effects in tenths of the units by their predicted effect: lift and calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.estimates import Estimates
from doseforest.base.late import late
from doseforest.base.text_tables import text_table
from doseforest.doses.grids import check_count
from doseforest.evaluation.qini.gains import ArmGains, Gains, Ranking, ScoreGains
from doseforest.evaluation.row_estimates import RowEstimate


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UpliftTable(Estimates):
    """Effects in parts of the units, those of highest predicted effect first; printed, a table.

    Attributes
    ----------
    values : array of shape (n_parts,)
        Effects by the outcomes.
    standard_errors : array of shape (n_parts,)
        Their standard errors.
    degrees : float or array
        Degrees of freedom of the standard errors.
    predicted : array of shape (n_parts,)
        Mean prediction.
    rows : array of int of shape (n_parts,)
        Rows that count.
    average : float
        Effect of all units.

    Examples
    --------
    >>> from doseforest.evaluation import qini_curve
    >>> x, dose = np.arange(400) // 2 % 2, np.arange(400) % 2
    >>> qini_curve(x * dose + 0.0, dose, x, dose=1).uplift(n_parts=2).values
    array([1., 0.])
    """

    predicted: FloatArray  # (n_parts,)
    rows: IntArray  # (n_parts,)
    average: float

    def plot(self, *, label: str = "model", ax: Any | None = None) -> Any:
        """Draw effects as bars; needs the `plot` extra.

        Parameters
        ----------
        label : str, default="model"
            Name of the model in the legend.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        return late("doseforest.report.qini_plots:plot_lift")({label: self}, ax=ax)

    def plot_calibration(self, *, label: str = "model", ax: Any | None = None) -> Any:
        """Draw effects against predictions; needs the `plot` extra.

        Parameters
        ----------
        label : str, default="model"
            Name of the model in the legend.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        return late("doseforest.report.qini_plots:plot_calibration")({label: self}, ax=ax)

    def __str__(self) -> str:
        low, high = self.interval()
        numbers = zip(self.rows, self.predicted, self.values, low, high, strict=True)
        lines = [
            [str(place), f"{rows:,}", f"{each:.4g}", f"{effect:.4g}", f"[{one:.4g}, {other:.4g}]"]
            for place, (rows, each, effect, one, other) in enumerate(numbers, start=1)
        ]
        return "\n".join(text_table(["part", "rows", "predicted", "effect", "95 %"], lines))

    __repr__ = __str__


def uplift_table(
    ranking: Ranking, gains: Gains, clusters: IntArray | None, n_parts: int = 10
) -> UpliftTable:
    """Effects in parts; units of equal prediction share one, so that there may be fewer.

    Parts in which an arm has no row have an effect of NaN.
    """
    check_count(n_parts, 1, "n_parts")
    part = _parts(ranking, n_parts)
    result = [_effect(ranking, gains, clusters, part == each) for each in range(part[-1] + 1)]
    sizes = np.bincount(part, ranking.weights)
    return UpliftTable(
        predicted=np.bincount(part, ranking.weights * ranking.predicted) / sizes,
        values=np.array([each.value for each in result]),
        standard_errors=np.array([each.standard_error for each in result]),
        rows=np.bincount(part),
        average=float(gains.gain[-1]),
    )


def _parts(ranking: Ranking, n_parts: int) -> IntArray:
    """Part of each ranked row, by the middle of its group; without gaps."""
    starts = np.append(0, np.flatnonzero(np.diff(ranking.predicted) != 0) + 1)
    tie = np.cumsum(np.append(0, np.diff(ranking.predicted) != 0))
    sizes = np.add.reduceat(ranking.weights, starts)
    middle = np.cumsum(sizes) - sizes / 2
    part = np.minimum((n_parts * middle + 1e-9).astype(np.int64), n_parts - 1)[tie]
    return np.cumsum(np.append(0, np.diff(part) > 0))


def _effect(ranking: Ranking, gains: Gains, clusters: IntArray | None, inside: Any) -> RowEstimate:
    """Effect among some of the ranked rows."""
    weights = ranking.weights * inside
    if isinstance(gains, ArmGains):
        value, influence = 0.0, np.zeros(len(weights))
        for sign, arm in ((1.0, gains.treated), (-1.0, ~gains.treated)):
            arm_weights = weights * arm
            if not arm_weights.any():
                return RowEstimate(float("nan"), np.full(len(arm_weights), np.nan), clusters)
            mean = float(arm_weights @ gains.y / arm_weights.sum())
            value += sign * mean
            influence += sign * arm_weights * (gains.y - mean) / arm_weights.sum()
        return RowEstimate(value, influence, clusters)
    assert isinstance(gains, ScoreGains)
    mean = float(weights @ gains.scores / weights.sum())
    return RowEstimate(mean, weights * (gains.scores - mean) / weights.sum(), clusters)
