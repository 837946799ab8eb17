"""Gain against spend along a path of policies, the area under it, and each row's influence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.policy.hulls import hull_increments
from doseforest.policy.problem import DoseProblem


@dataclass(frozen=True, slots=True, eq=False)
class SpendPath:
    """Steps of units to other doses, in groups that are taken together, best first.

    Means over units are estimates of the population's, of spends as well as of gains: a row's
    influence on an area counts both.
    """

    spends: FloatArray  # (n_points,) per unit, ascending from 0
    gains: FloatArray  # (n_points,) per unit
    units: IntArray  # (n_steps,) who steps
    groups: IntArray  # (n_steps,) to which point of the path
    step_costs: FloatArray  # (n_steps,)
    step_gains: FloatArray  # (n_steps,) by the scores
    n_units: int

    def at(self, spend: Any) -> FloatArray:
        """Gain at spends; straight between points, the last one beyond the end."""
        return np.interp(np.asarray(spend, np.float64), self.spends, self.gains)

    def area(self, budget: float) -> tuple[float, FloatArray]:
        """Integral of the gain from 0 to a budget, and the influence of each unit on it."""
        area, by_gain, by_spend = area_derivatives(self.spends, self.gains, budget)
        ahead_gain, ahead_spend = (np.cumsum(each[::-1])[::-1] for each in (by_gain, by_spend))
        pulled = self.step_gains * ahead_gain[self.groups]
        pulled += self.step_costs * ahead_spend[self.groups]
        by_unit = np.bincount(self.units, pulled, self.n_units)
        mean = float(by_gain @ self.gains + by_spend @ self.spends)
        return area, (by_unit - mean) / self.n_units

    def influence_at(self, spend: float, window: float) -> FloatArray:
        """Influence of each unit on the gain at a spend.

        More spend brings what it brings within a window on either side; inside a large group
        that is taken together, what the group brings.
        """
        place = max(int(np.searchsorted(self.spends, spend, side="right")) - 1, 0)
        taken = (self.groups <= place).astype(np.float64)
        moving = 0.0
        if place < len(self.spends) - 1:  # at the end there is no more
            low, high = self.spends[place : place + 2]
            taken[self.groups == place + 1] = max(spend - low, 0.0) / (high - low)
            if high - low <= window:
                low, high = max(spend - window, 0.0), spend + window
            moving = float(np.diff(self.at([low, high]))[0] / (high - low))
        pulled = taken * (self.step_gains - moving * self.step_costs)
        by_unit = np.bincount(self.units, pulled, self.n_units)
        influence: FloatArray = (by_unit - by_unit.mean()) / self.n_units
        return influence


def policy_path(problem: DoseProblem, extra: FloatArray, gained: FloatArray) -> SpendPath:
    """Doses by predicted value and cost at every budget; steps of equal slope are one.

    Parameters
    ----------
    problem : DoseProblem
        Predicted values, and costs.
    extra, gained : arrays of shape (n_units, n_doses)
        Costs and scores beyond those of the baseline.
    """
    steps = hull_increments(problem, problem.cost)
    n_units = len(steps.start)
    first = np.append(True, np.diff(steps.units) != 0)[: len(steps)]
    before = np.where(first, steps.start[steps.units], np.roll(steps.doses, 1))
    gains = gained[steps.units, steps.doses] - gained[steps.units, before]
    order = np.argsort(-steps.slopes, kind="stable")
    slopes = steps.slopes[order]
    groups = 1 + np.cumsum(np.append(0, np.diff(slopes) != 0))[: len(order)]
    everyone = np.arange(n_units)
    start = gained[everyone, steps.start]  # free doses that are worth having
    return _path(
        np.concatenate([everyone, steps.units[order]]),
        np.concatenate([np.zeros(n_units, np.int64), groups]),
        np.concatenate([extra[everyone, steps.start], steps.weights[order]]),
        np.concatenate([start, gains[order]]),
        n_units,
    )


def untargeted_path(extra: FloatArray, gained: FloatArray) -> SpendPath:
    """The best without a model: shares of the units at random get doses of best mean gain."""
    n_units = len(extra)
    means = DoseProblem(
        gained.mean(axis=0)[None], extra.mean(axis=0)[None], np.arange(extra.shape[1]), None, ()
    )
    steps = hull_increments(means, means.cost)
    doses = np.append(steps.start, steps.doses).astype(np.int64)
    before = np.append(0, doses[:-1])
    return _path(
        np.tile(np.arange(n_units), len(doses)),
        np.repeat(np.arange(len(doses)), n_units),
        (extra[:, doses] - extra[:, before]).T.ravel(),
        (gained[:, doses] - gained[:, before]).T.ravel(),
        n_units,
    )


def _path(
    units: IntArray, groups: IntArray, costs: FloatArray, gains: FloatArray, n_units: int
) -> SpendPath:
    n_points = int(groups[-1]) + 1
    spends = np.cumsum(np.bincount(groups, costs, n_points)) / n_units
    reached = np.cumsum(np.bincount(groups, gains, n_points)) / n_units
    return SpendPath(spends, reached, units, groups, costs, gains, n_units)


def area_derivatives(
    spends: FloatArray, gains: FloatArray, budget: float
) -> tuple[float, FloatArray, FloatArray]:
    """Integral of a path up to a budget, and its derivatives by each gain and each spend.

    Examples
    --------
    >>> area, by_gain, by_spend = area_derivatives(np.array([0.0, 2.0]), np.array([0.0, 2.0]), 1.0)
    >>> area, by_gain, by_spend
    (0.5, array([0.75, 0.25]), array([-0.75, -0.25]))
    """
    by_gain, by_spend = np.zeros(len(spends)), np.zeros(len(spends))
    last = max(int(np.searchsorted(spends, budget, side="right")) - 1, 0)
    lengths, heights = np.diff(spends[: last + 1]), (gains[1:] + gains[:-1])[:last] / 2
    by_gain[1 : last + 1] += lengths / 2
    by_gain[:last] += lengths / 2
    by_spend[1 : last + 1] += heights
    by_spend[:last] -= heights
    area = float(lengths @ heights)
    rest = budget - float(spends[last])
    if last == len(spends) - 1:  # beyond the end the gain stays
        by_gain[last] += rest
        by_spend[last] -= gains[last]
        return area + rest * float(gains[last]), by_gain, by_spend
    length = float(spends[last + 1] - spends[last])
    climb = float(gains[last + 1] - gains[last])
    share = rest / length
    by_gain[last] += rest - rest * share / 2
    by_gain[last + 1] += rest * share / 2
    by_spend[last] += -gains[last] - share * climb + share**2 * climb / 2
    by_spend[last + 1] -= share**2 * climb / 2
    return area + rest * float(gains[last]) + rest * share * climb / 2, by_gain, by_spend
