"""One budget, or budgets within a budget: increments of the hulls in descending order of slopes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.policy.hulls import Increments, hull_increments
from doseforest.policy.lagrangian import Prices, no_prices
from doseforest.policy.problem import DoseProblem, Limit

Marks = NDArray[np.bool_]
FEW = 4096  # increments that are sorted rather than halved


@dataclass(frozen=True, slots=True)
class Fill:
    """Doses that increments in descending order of slopes lead to, and the prices they end at."""

    choice: IntArray  # (n_units,)
    prices: Prices


def is_nested(limits: tuple[Limit, ...]) -> bool:
    """Whether limits are on the same weights, one of them at most with several parts."""
    several = sum(limit.parts is not None for limit in limits)
    alone = len(limits) - several
    same = all(limit.weights is limits[0].weights for limit in limits)
    return same and several <= 1 and alone <= 1


def fill_greedily(problem: DoseProblem, limits: tuple[int, ...]) -> Fill:
    """Solve a problem under nested limits; `limits` has their places, and others are ignored.

    The prices are those of the linear program. The choice is feasible up to rounding and lacks at
    most one increment of one unit for each cap that binds.
    """
    prices = list(no_prices(problem))
    steps = hull_increments(problem, problem.limits[limits[0]].weights)
    taken, weights = np.ones(len(steps), bool), steps.weights
    for place in limits:
        limit = problem.limits[place]
        if limit.parts is not None:
            parts = limit.parts[steps.units]
            taken, weights, prices[place] = take_by_parts(
                steps, parts, _room(problem, limit, steps)
            )
    for place in limits:
        limit = problem.limits[place]
        if limit.parts is None:
            room = float(_room(problem, limit, steps)[0])
            first, price = take_best(steps.slopes, weights, room)
            taken &= first
            prices[place] = np.array([price])
            for other in limits:  # the price of a part is what comes on top of the price for all
                if other != place:
                    prices[other] = np.maximum(prices[other] - price, 0.0)
    return Fill(after(steps, taken), tuple(prices))


def after(steps: Increments, taken: Marks) -> IntArray:
    """Doses of the units after these increments, of which each unit has its first ones."""
    choice = steps.start.copy()
    choice[steps.units[taken]] = steps.doses[taken]  # a unit's last increment is written last
    return choice


def take_best(slopes: FloatArray, weights: FloatArray, room: float) -> tuple[Marks, float]:
    """Steepest increments that fit into a room, up to the first that does not, and its slope.

    By halving, as in a search for a median: no sort of all increments is needed.

    Examples
    --------
    >>> take_best(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), 2.0)
    (array([ True, False, False]), 2.0)
    >>> take_best(np.array([3.0, 1.0]), np.array([1.0, 1.0]), np.inf)
    (array([ True,  True]), 0.0)
    """
    if weights.sum() <= room:
        return np.ones(len(slopes), bool), 0.0
    taken = np.zeros(len(slopes), bool)
    left = np.arange(len(slopes))
    while len(left) > FEW:
        own = slopes[left]
        middle = np.partition(own, len(own) // 2)[len(own) // 2]
        above, level = left[own > middle], left[own == middle]
        spent = weights[above].sum()
        if spent > room:
            left = above
            continue
        taken[above] = True
        room -= spent
        spent = weights[level].sum()
        if spent > room:
            left = level
            break
        taken[level] = True
        room -= spent
        left = left[own < middle]
    left = left[np.argsort(-slopes[left], kind="stable")]
    n_fit = int(np.searchsorted(np.cumsum(weights[left]), room, side="right"))
    taken[left[:n_fit]] = True
    return taken, float(slopes[left[n_fit]]) if n_fit < len(left) else 0.0


def take_by_parts(
    steps: Increments, parts: IntArray, room: FloatArray
) -> tuple[Marks, FloatArray, FloatArray]:
    """The same for every part with a room of its own.

    Returns what is taken, the weights of the linear program (of the first increment of a part that
    does not fit the share that does, then 0), and prices of the parts.
    """
    order = np.lexsort((-steps.slopes, parts))
    own = parts[order]
    spent = np.cumsum(steps.weights[order])
    n_before = np.searchsorted(own, np.arange(len(room)))
    before = np.concatenate([[0.0], spent])[n_before]
    left = room[own] - (spent - before[own])  # after the increment
    fits = left >= 0
    share = np.clip(left + steps.weights[order], 0.0, steps.weights[order])
    prices = np.zeros(len(room))
    broken = np.flatnonzero(~fits)
    first = broken[np.unique(own[broken], return_index=True)[1]]
    prices[own[first]] = steps.slopes[order[first]]
    taken, weights = np.empty(len(steps), bool), np.empty(len(steps))
    taken[order], weights[order] = fits, share
    return taken, weights, prices


def _room(problem: DoseProblem, limit: Limit, steps: Increments) -> FloatArray:
    """What the start of the hulls leaves of a limit, with half of what rounding may add."""
    spent = limit.sums(problem.chosen(limit.weights, steps.start), slice(0, problem.n_units))
    caps = (limit.caps + limit.roomy_caps) / 2
    return np.maximum(caps - spent, 0.0)
