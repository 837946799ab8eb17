"""The Qini curve of one dose against its baseline: areas, bands, parts, pictures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.intervals import normal_quantile
from doseforest.base.late import late
from doseforest.doses.dose_values import dose_text
from doseforest.evaluation.qini.gains import Gains, Ranking
from doseforest.evaluation.qini.scored import Scored
from doseforest.evaluation.qini.tenths import UpliftTable, uplift_table
from doseforest.evaluation.row_estimates import RowEstimate, without_rounding
from doseforest.inference.heterogeneity.targeting import RankedEffects, ranked_effects

BAND_SHARES = np.arange(1, 21) / 20  # at which bands are told
WINDOW = 0.05  # shares on either side for the effect of those next in line
BY_SCORES = "scores"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QiniCurve(Scored):
    """Gain per unit of treating a share of the units, those of highest predicted effect first.

    `score` is the area between the curve and the straight line to its end, which treating units
    at random would give: the mean over shares of what the ranking gains per unit of the
    population. 0 says that the ranking is worth nothing, less than 0 that it is worse than none.
    `qini_curve` makes it.

    Attributes
    ----------
    shares : array of shape (n_points,)
        Shares of the units, from 0 to 1.
    gain : array of shape (n_points,)
        Gain per unit, from 0 to the average effect.
    estimate : RowEstimate
        The score with its standard error.
    dose, baseline : dose
        The two doses that are compared.
    estimator : {"means", "radcliffe", "scores"}
        How arms are compared.
    n_treated, n_control : int
        Rows at the dose and at the baseline; with scores, all.
    bandwidth : float or None
        Bandwidth of a continuous dose.
    rows : str
        Digest of outcomes (or scores), weights and groups: only results on the same rows can be
        compared.
    ranking : Ranking
        Order of the units.
    gains : Gains
        What the gain is computed from.

    Examples
    --------
    >>> from doseforest.evaluation import qini_curve
    >>> curve = qini_curve([1, 0, 0, 0], [1, 0, 1, 0], [2, 2, 1, 1], dose=1)
    >>> curve.shares, curve.gain
    (array([0. , 0.5, 1. ]), array([0. , 0.5, 0.5]))
    """

    shares: FloatArray  # (n_points,)
    gain: FloatArray  # (n_points,)
    estimate: RowEstimate
    dose: Any
    baseline: Any
    estimator: str
    n_treated: int
    n_control: int
    bandwidth: float | None
    rows: str = field(repr=False)
    ranking: Ranking = field(repr=False)
    gains: Gains = field(repr=False)

    @property
    def random(self) -> FloatArray:
        """Gain of treating as many units at random, (n_points,)."""
        line: FloatArray = self.shares * self.gain[-1]
        return line

    @property
    def question(self) -> str:
        """What is asked of the rows: curves with the same question can be compared."""
        return f"{self.estimator} {self.dose} {self.baseline} {self.rows}"

    @property
    def auuc(self) -> RowEstimate:
        """Area under the curve itself, random line included, per unit."""
        return self._estimate(_area_weights(self.shares))

    @property
    def average_effect(self) -> RowEstimate:
        """Gain of treating all."""
        return self._estimate(_last(len(self.gain) - 1), moving=False)

    @property
    def coefficient(self) -> float:
        """Radcliffe's q0 for outcomes of 0 and 1: the score as a share of the best one.

        The best curve rises one for one up to the average effect u and stays there, as if nobody
        were harmed: u (1 - u) / 2 above the line. NaN where treating all gains nothing.
        """
        end = float(self.gain[-1])
        return self.score / (end * (1.0 - end) / 2) if 0 < end < 1 else float("nan")

    def at(self, shares: Any) -> FloatArray:
        """Gain at any shares of the units.

        Parameters
        ----------
        shares : float or array
            Shares from 0 to 1.

        Returns
        -------
        array of the shape of `shares`
            Gains, straight between points.
        """
        return np.interp(np.asarray(shares, np.float64), self.shares, self.gain)

    def standard_errors(self, shares: Any = BAND_SHARES) -> FloatArray:
        """Standard errors of the gain at shares, one by one.

        Who is in the share is estimated too: moving its end by a unit changes the gain by the
        effect of those next in line, here that within five points of it.

        Parameters
        ----------
        shares : float or array, optional
            Shares from 0 to 1; by default those of the picture.

        Returns
        -------
        array of the shape of `shares`
            The standard errors.
        """
        asked = np.atleast_1d(np.asarray(shares, np.float64))
        return np.array([self._error_at(float(share)) for share in asked])

    def band(self, coverage: float = 0.95, shares: Any = BAND_SHARES) -> tuple[FloatArray, ...]:
        """Pointwise intervals of the gain.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which each interval covers the truth.
        shares : array, optional
            Shares from 0 to 1; by default those of the picture.

        Returns
        -------
        shares, low, high : arrays of one shape
            Shares, and ends of the gain there, each for itself.
        """
        asked = np.atleast_1d(np.asarray(shares, np.float64))
        reach = normal_quantile(coverage) * self.standard_errors(asked)
        middle = self.at(asked)
        return asked, middle - reach, middle + reach

    def uplift(self, n_parts: int = 10) -> UpliftTable:
        """Effect in parts of the units by predicted effect.

        Parameters
        ----------
        n_parts : int, default=10
            Number of parts. Fewer parts have smaller standard errors.

        Returns
        -------
        UpliftTable
            A line for each part, the highest predictions first.
        """
        return uplift_table(self.ranking, self.gains, self._ranked_clusters(), n_parts)

    def rate(
        self, weighting: str = "autoc", *, n_bootstrap: int = 200, random_state: int = 0
    ) -> RankedEffects:
        """TOC and RATE of the same ranking on the same rows (Yadlowsky et al., 2021).

        Parameters
        ----------
        weighting : {"autoc", "qini"}, default="autoc"
            "autoc" counts every share alike, "qini" by its size: the score, but for the way in
            which the outcomes of the two arms are compared. "autoc" sees small groups of large
            effect.
        n_bootstrap : int, default=200
            Half-samples of the standard error. More of them take longer and change it less by
            chance.
        random_state : int, default=0
            Seed of the half-samples.

        Returns
        -------
        RankedEffects
            The curve, and its area with a standard error.
        """
        return ranked_effects(
            self.gains.measured(),
            self.ranking.predicted,
            weighting=weighting,
            weights=self.ranking.weights,
            clusters=self._ranked_clusters(),
            n_bootstrap=n_bootstrap,
            seed=random_state,
        )

    def plot(self, *, label: str | None = None, ax: Any | None = None) -> Any:
        """Draw the curve with its 95 % band and the random line; needs the `plot` extra.

        Parameters
        ----------
        label : str, optional
            Name of the model in the legend.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        return late("doseforest.report.qini_plots:plot_qini")({label or "model": self}, ax=ax)

    def __str__(self) -> str:
        low, high = self.interval()
        arms = f"{self.n_treated:,} rows"
        if self.estimator != BY_SCORES:
            arms = f"{self.n_treated:,} rows at the dose, {self.n_control:,} at the baseline"
        return (
            f"Qini score of {dose_text(self.dose, 4)} against {dose_text(self.baseline, 4)}: "
            f"{self.score:.4g} [{low:.4g}, {high:.4g}], average effect {self.gain[-1]:.4g} "
            f"({arms})"
        )

    __repr__ = __str__

    def _ranked_clusters(self) -> IntArray | None:
        clusters = self.estimate.clusters
        return None if clusters is None else clusters[self.ranking.order]

    def _error_at(self, share: float) -> float:
        """Of the gain between the two points on either side of a share."""
        if not 0 < share <= 1:
            return 0.0
        after = min(int(np.searchsorted(self.shares, share)), len(self.shares) - 1)
        length = float(self.shares[after] - self.shares[after - 1])
        beyond = (share - float(self.shares[after - 1])) / length
        at = np.zeros(len(self.shares))
        at[after - 1 : after + 1] = 1.0 - beyond, beyond
        low, high = max(share - WINDOW, 0.0), min(share + WINDOW, 1.0)
        if length > WINDOW:  # many with the same prediction are next in line
            low, high = self.shares[after - 1 : after + 1]
        next_in_line = float(np.diff(self.at([low, high]))[0]) / float(high - low)
        at = at[1:]  # nobody is treated at the first point
        influence = self.gains.influence(at) - next_in_line * self.ranking.share_influence(at)
        return self._on_rows(0.0, influence).standard_error

    def _estimate(self, weights: FloatArray, *, moving: bool = True) -> RowEstimate:
        """Weighted sum of the gains after each group, as an estimate."""
        influence = self.gains.influence(weights)
        if moving:
            influence += self.ranking.share_influence(_share_weights(self.gain))
        return self._on_rows(float(weights @ self.gain[1:]), influence)

    def _on_rows(self, value: float, influence: FloatArray) -> RowEstimate:
        rows = np.zeros(len(self.estimate.influence))
        rows[self.ranking.order] = influence
        return RowEstimate(value, rows, self.estimate.clusters)


def make_curve(
    ranking: Ranking,
    gains: Gains,
    clusters: IntArray | None,
    n_rows: int,
    doses: tuple[Any, Any],
    estimator: str,
    counts: tuple[int, int],
    bandwidth: float | None,
    rows: str,
) -> QiniCurve:
    """Curve and score of ranked rows.

    Parameters
    ----------
    n_rows : int
        Rows that were given, ranked or not.
    doses : tuple
        Dose and baseline.
    counts : tuple of ints
        Rows at each of them.
    rows : str
        Digest of what is known of the rows.
    """
    shares, gain = np.append(0.0, ranking.shares), np.append(0.0, gains.gain)
    weights = _area_weights(shares) - 0.5 * _last(len(ranking.shares))
    influence = np.zeros(n_rows)
    influence[ranking.order] = gains.influence(weights) + ranking.share_influence(
        _share_weights(gain)
    )
    estimate = RowEstimate(float(weights @ gain[1:]), influence, clusters)
    estimate = without_rounding(estimate, float(np.abs(gain).max()))
    asked = *doses, estimator, *counts, bandwidth, rows
    return QiniCurve(shares, gain, estimate, *asked, ranking, gains)


def _area_weights(shares: FloatArray) -> FloatArray:
    """Weights of the gains after each group in the area under the curve, by trapezoids."""
    steps = np.append(np.diff(shares), 0.0)
    weights: FloatArray = (steps[:-1] + steps[1:]) / 2
    return weights


def _share_weights(gain: FloatArray) -> FloatArray:
    """How that area moves with the share of each group, the last of which is 1 for certain."""
    after = np.append(gain[2:], gain[-1])
    moves: FloatArray = (gain[:-1] - after) / 2
    moves[-1] = 0.0
    return moves


def _last(n_groups: int) -> FloatArray:
    one = np.zeros(n_groups)
    one[-1] = 1.0
    return one
