"""Gain of treating the units ranked highest, and what each row has to do with it.

Rows come in descending order of the prediction; rows of equal prediction form a group and enter
together. A kind of gain knows its value after each group and, for any weights on those values, the
influence of each row on the weighted sum: standard errors of areas and of single points follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Rows of positive weight by descending prediction, in groups of equal ones."""

    order: IntArray  # (n_ranked,) places of the rows
    groups: IntArray  # (n_ranked,) from 0
    weights: FloatArray  # (n_ranked,) of sum 1
    predicted: FloatArray  # (n_ranked,) descending

    @property
    def ends(self) -> IntArray:
        """Last row of each group, (n_groups,)."""
        return np.flatnonzero(np.append(np.diff(self.groups) > 0, True))

    @property
    def shares(self) -> FloatArray:
        """Share of the units up to each group, (n_groups,)."""
        shares: FloatArray = np.cumsum(self.weights)[self.ends]
        shares[-1] = 1.0
        return shares

    def totals(self, values: FloatArray) -> FloatArray:
        """Weighted sums of values up to each group, (n_groups,)."""
        sums: FloatArray = np.cumsum(self.weights * values)[self.ends]
        return sums

    def from_own_group_on(self, values: FloatArray) -> FloatArray:
        """For each row the sum of values over its own group and those after it, (n_ranked,)."""
        sums: FloatArray = np.cumsum(values[::-1])[::-1][self.groups]
        return sums

    def share_influence(self, values: FloatArray) -> FloatArray:
        """Influence of each row on the sum of values x shares, (n_ranked,)."""
        influence: FloatArray = self.weights * (
            self.from_own_group_on(values) - float(values @ self.shares)
        )
        return influence


def rank_rows(
    predicted: FloatArray, weights: FloatArray, treated: NDArray[np.bool_] | None = None
) -> Ranking:
    """Rank rows; with `treated`, the first groups are one until both arms have a row.

    Examples
    --------
    >>> ranking = rank_rows(np.array([1.0, 3.0, 1.0, 0.0]), np.ones(4))
    >>> ranking.order, ranking.groups, ranking.shares
    (array([1, 0, 2, 3]), array([0, 1, 1, 2]), array([0.25, 0.75, 1.  ]))
    """
    kept = np.flatnonzero(weights > 0)
    order = kept[np.argsort(-predicted[kept], kind="stable")]
    groups = np.cumsum(np.append(0, np.diff(predicted[order]) != 0))
    if treated is not None:
        arm = treated[order]
        both = max(int(np.argmax(arm)), int(np.argmax(~arm)))
        groups = np.maximum(groups - groups[both], 0)
    row_weights = weights[order]
    return Ranking(order, groups, row_weights / row_weights.sum(), predicted[order])


class Gains(Protocol):
    """A kind of gain."""

    @property
    def gain(self) -> FloatArray:
        """Gain per unit of treating the units up to each group, (n_groups,)."""

    def influence(self, values: FloatArray) -> FloatArray:
        """Influence of each ranked row on the sum of values x gain, shares held, (n_ranked,)."""

    def measured(self) -> FloatArray:
        """A noisy measurement of each ranked row's effect: means over many are right."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoreGains:
    """Mean of scores, each an unbiased if noisy measurement of its unit's effect.

    gain = sum of w_i Gamma_i over the units up to a group / sum of all w_i.
    """

    ranking: Ranking
    scores: FloatArray  # (n_ranked,)

    @property
    def gain(self) -> FloatArray:
        """See `Gains`."""
        return self.ranking.totals(self.scores)

    def influence(self, values: FloatArray) -> FloatArray:
        """See `Gains`."""
        gained = self.scores * self.ranking.from_own_group_on(values)
        influence: FloatArray = self.ranking.weights * (gained - float(values @ self.gain))
        return influence

    def measured(self) -> FloatArray:
        """See `Gains`."""
        return self.scores


@dataclass(frozen=True, slots=True, eq=False)
class ArmGains:
    """What both kinds by arms need: sums of weights and outcomes up to each group."""

    ranking: Ranking
    y: FloatArray  # (n_ranked,)
    treated: NDArray[np.bool_]  # (n_ranked,)

    def _arm(self, arm: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        """Weight and mean outcome of an arm up to each group, (n_groups,) each."""
        size = self.ranking.totals(arm.astype(np.float64))
        return size, self.ranking.totals(arm * self.y) / size

    def measured(self) -> FloatArray:
        """See `Gains`: difference of the arms' means, plus what the row's own outcome adds."""
        measured = np.zeros(len(self.y))
        for sign, arm in ((1.0, self.treated), (-1.0, ~self.treated)):
            size, mean = self._arm(arm)
            measured += sign * (mean[-1] + arm * (self.y - mean[-1]) / size[-1])
        return measured

    def _mean_influence(self, arm: NDArray[np.bool_], values: FloatArray) -> FloatArray:
        """Influence on the sum of values x mean outcome of an arm."""
        size, mean = self._arm(arm)
        ahead = self.ranking.from_own_group_on
        gained = self.y * ahead(values / size) - ahead(values * mean / size)
        influence: FloatArray = self.ranking.weights * arm * gained
        return influence


class MeanGains(ArmGains):
    """Share of units x difference of the arms' mean outcomes among them (the default)."""

    @property
    def gain(self) -> FloatArray:
        """See `Gains`."""
        return self.ranking.shares * self._difference()

    def _difference(self) -> FloatArray:
        difference: FloatArray = self._arm(self.treated)[1] - self._arm(~self.treated)[1]
        return difference

    def influence(self, values: FloatArray) -> FloatArray:
        """See `Gains`; the share of the formula is that of the units, which is estimated too."""
        scaled = values * self.ranking.shares
        arms = self._mean_influence(self.treated, scaled)
        arms -= self._mean_influence(~self.treated, scaled)
        return arms + self.ranking.share_influence(values * self._difference())


class RadcliffeGains(ArmGains):
    """Radcliffe's (2007) incremental outcomes, R_t - R_c N_t / N_c, per treated unit."""

    @property
    def gain(self) -> FloatArray:
        """See `Gains`."""
        size, mean = self._arm(self.treated)
        gain: FloatArray = size * (mean - self._arm(~self.treated)[1]) / size[-1]
        return gain

    def influence(self, values: FloatArray) -> FloatArray:
        """See `Gains`."""
        size = self._arm(self.treated)[0]
        control = self._arm(~self.treated)[1]
        ahead = self.ranking.from_own_group_on
        influence = self.y * ahead(values) - ahead(values * control) - float(values @ self.gain)
        arms: FloatArray = self.ranking.weights * self.treated * influence / size[-1]
        arms -= self._mean_influence(~self.treated, values * size / size[-1])
        return arms


ARM_GAINS: dict[str, type[MeanGains] | type[RadcliffeGains]] = {
    "means": MeanGains,
    "radcliffe": RadcliffeGains,
}
