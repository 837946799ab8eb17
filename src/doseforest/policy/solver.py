"""From a problem to a feasible choice with prices and a proven bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from doseforest.base.dtypes import IntArray
from doseforest.policy.dual_ascent import ascend
from doseforest.policy.exchange import exchange
from doseforest.policy.greedy import fill_greedily, is_nested
from doseforest.policy.lagrangian import Prices, best_responses, no_prices, revenue
from doseforest.policy.problem import DoseProblem, InfeasibleError, cheapest, check_each_limit
from doseforest.policy.small_problems import is_small, solve_small
from doseforest.policy.unit_moves import improve, repair

PROVEN = 1e-9  # of what is added up: a bound below that is below zero


@dataclass(frozen=True, slots=True)
class Solution:
    """A feasible choice, the prices that led to it, and the bound that they prove."""

    choice: IntArray  # (n_units,)
    prices: Prices
    value: float
    bound: float


def solve(problem: DoseProblem) -> Solution:
    """Exact but for single increments where limits are nested, else by dual ascent and repair."""
    binding = tuple(
        place for place, limit in enumerate(problem.limits) if np.isfinite(limit.caps).any()
    )
    if not binding or not problem.n_units:
        choice, bound = best_responses(problem, no_prices(problem))
        return _solution(problem, choice, no_prices(problem), bound)
    check_each_limit(problem)
    limits = tuple(problem.limits[place] for place in binding)
    if is_nested(limits):
        fill = fill_greedily(problem, binding)
        _, bound = best_responses(problem, fill.prices)
        choice = _feasible(problem, fill.choice, fill.prices)
        return _improved(problem, choice, fill.prices, bound)
    start = _start(problem, binding)
    choice, bound = best_responses(problem, start)
    prices, ascended = ascend(problem, start)
    if ascended < bound:
        choice, bound = best_responses(problem, prices)
    else:
        prices = start
    return _improved(problem, _feasible(problem, choice, prices), prices, bound)


def _start(problem: DoseProblem, binding: tuple[int, ...]) -> Prices:
    """Prices of the first limits that are nested, as if there were no others."""
    weights = problem.limits[binding[0]].weights
    nested = tuple(place for place in binding if problem.limits[place].weights is weights)
    if not is_nested(tuple(problem.limits[place] for place in nested)):
        return no_prices(problem)
    return fill_greedily(problem, nested).prices


def _improved(problem: DoseProblem, choice: IntArray, prices: Prices, bound: float) -> Solution:
    better = improve(problem, choice)
    kept = better if problem.meets_limits(better) else choice  # sums may differ by rounding
    return _solution(problem, kept, prices, bound)


def _solution(problem: DoseProblem, choice: IntArray, prices: Prices, bound: float) -> Solution:
    value = float(problem.chosen(problem.value, choice).sum())
    return Solution(choice, prices, value, max(bound, value))


def _feasible(problem: DoseProblem, choice: IntArray, prices: Prices) -> IntArray:
    """A choice within the limits, near the given one if possible."""
    for candidate, each in _candidates(problem, choice, prices):
        result = repair(problem, candidate, each)
        if result is None:
            result = exchange(problem, candidate)
        if result is not None:
            return result
    raise InfeasibleError(
        f"The {_names(problem)} parameters must be possible to meet together. Each is by itself, "
        "but no plan was found that meets all of them.",
        proven=False,
    )


def _candidates(
    problem: DoseProblem, choice: IntArray, prices: Prices
) -> Iterator[tuple[IntArray, Prices]]:
    """Choices to repair, one after the other; the last ones care for the limits alone."""
    yield choice, prices
    if is_small(problem):
        best, proven = solve_small(problem)
        if best is not None:
            yield best, prices
        elif proven:
            raise _impossible(problem)
    worthless = replace(problem, value=np.broadcast_to(np.zeros(1), problem.value.shape))

    def prove(prices: Prices, bound: float) -> bool:
        """Whether prices rule out that a feasible choice, which has the value zero, exists."""
        return bound < -PROVEN * revenue(problem, prices)

    strict, bound = ascend(worthless, no_prices(problem), prove)
    if prove(strict, bound):
        raise _impossible(problem)
    yield best_responses(worthless, strict)[0], strict
    for limit in problem.limits:
        yield cheapest(problem, limit.weights)[0], no_prices(problem)


def _impossible(problem: DoseProblem) -> InfeasibleError:
    return InfeasibleError(
        f"The {_names(problem)} parameters must be possible to meet together. Each is by itself, "
        "but no choice of doses meets all of them."
    )


def _names(problem: DoseProblem) -> str:
    names = [repr(limit.parameter) for limit in problem.limits]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
