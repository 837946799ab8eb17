"""Limits turned into prices: every unit then decides for itself, and a bound comes out.

With prices p >= 0 on the caps the best total value within the limits is at most

    sum over caps of p x cap  +  sum over units of max over doses of (value - price x weight),

whatever the prices are. The least of these bounds is the value of the linear program in which
units may mix doses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.policy.problem import DoseProblem

Prices = tuple[FloatArray, ...]  # (n_parts,) for each limit of a problem


def no_prices(problem: DoseProblem) -> Prices:
    """Prices of zero."""
    return tuple(np.zeros(len(limit.caps)) for limit in problem.limits)


def net_values(problem: DoseProblem, prices: Prices, rows: slice | IntArray) -> FloatArray:
    """Values less what weights cost at these prices, (rows, n_doses)."""
    net = problem.values_at(rows)
    for limit, price in zip(problem.limits, prices, strict=True):
        if price.any():
            net -= limit.of_units(price, rows) * limit.weights[rows]
    return net


def revenue(problem: DoseProblem, prices: Prices) -> float:
    """Sum of prices times caps; what has no cap has no price."""
    return float(
        sum(
            (price[price > 0] * limit.caps[price > 0]).sum()
            for limit, price in zip(problem.limits, prices, strict=True)
        )
    )


def best_responses(problem: DoseProblem, prices: Prices) -> tuple[IntArray, float]:
    """The dose of each unit at these prices, the lowest index of equals, and the bound.

    Examples
    --------
    >>> value, cost = np.array([[0.0, 3.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [0.0, 1.0]])
    >>> from doseforest.policy.problem import Limit
    >>> budget = Limit("budget", cost, None, np.array([1.0]), np.array(["all"]))
    >>> problem = DoseProblem(value, cost, np.arange(2.0), None, (budget,))
    >>> best_responses(problem, (np.array([2.0]),))
    (array([1, 0]), 3.0)
    """
    choice = np.empty(problem.n_units, np.int64)
    total = revenue(problem, prices)
    for rows in problem.blocks():
        net = net_values(problem, prices, rows)
        choice[rows] = np.argmax(net, axis=1)
        total += float(np.take_along_axis(net, choice[rows, None], 1).sum())
    return choice, total


@dataclass(frozen=True, slots=True)
class SmoothBound:
    """The bound with a soft maximum: an upper estimate of it that has a gradient."""

    value: float
    gradient: Prices  # caps less expected use; 0 where there is no cap
    bound: float  # the bound itself, at the same prices


def smooth_bound(problem: DoseProblem, prices: Prices, temperature: float) -> SmoothBound:
    """Bound where units choose doses with chances proportional to exp(net value / temperature)."""
    soft, hard = 0.0, 0.0
    used = [np.zeros(len(limit.caps)) for limit in problem.limits]
    for rows in problem.blocks():
        chances = net_values(problem, prices, rows)
        best = chances.max(axis=1, keepdims=True)
        chances -= best
        chances /= temperature
        np.exp(chances, out=chances)
        total = chances.sum(axis=1, keepdims=True)
        chances /= total
        hard += float(best.sum())
        soft += temperature * float(np.log(total).sum())
        for each, limit in zip(used, problem.limits, strict=True):
            expected = np.einsum("ud,ud->u", chances, limit.weights[rows])
            each += limit.sums(expected, rows)
    gradient = tuple(
        np.where(np.isfinite(limit.caps), limit.caps - each, 0.0)
        for limit, each in zip(problem.limits, used, strict=True)
    )
    bound = hard + revenue(problem, prices)
    return SmoothBound(bound + soft, gradient, bound)
