"""At most so many distinct doses: a menu is chosen first, then every unit's dose from it.

At the prices of the problem without this rule, the best total of a menu S is a sum over units of
the largest net value in S: an upper bound for whatever S can reach. Menus are tried in descending
order of it, until none that is left can be better.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.policy.lagrangian import Prices, net_values, revenue
from doseforest.policy.problem import DoseProblem, InfeasibleError
from doseforest.policy.solver import Solution, solve

MOST_MENUS = 300  # that are looked at one by one
MOST_SOLVED = 12

Menu = tuple[int, ...]


def solve_with_few(problem: DoseProblem, most: int) -> Solution:
    """The best choice found with at most so many distinct doses, and a bound on all such."""
    relaxed = solve(problem)
    if len(np.unique(relaxed.choice)) <= most:
        return relaxed
    every = comb(problem.n_doses, most) <= MOST_MENUS
    if every:
        menus = list(combinations(range(problem.n_doses), most))
        beyond = -np.inf
    else:
        menus, beyond = _promising(problem, relaxed.prices, most)
    fixed = revenue(problem, relaxed.prices)
    ceilings = fixed + _totals(problem, relaxed.prices, menus)
    best, bound = _best_menu(problem, menus, ceilings)
    bound = min(max(bound, beyond + fixed), relaxed.bound)
    if best is None:
        raise InfeasibleError(
            "The 'max_distinct' parameter must leave a menu of doses that meets all limits. "
            f"Got {most}, and no such menu was found, instead.",
            proven=bound == -np.inf,
        )
    return replace(best, bound=max(bound, best.value))


def _best_menu(
    problem: DoseProblem, menus: list[Menu], ceilings: FloatArray
) -> tuple[Solution | None, float]:
    """The best solution among menus, and what none of them exceeds."""
    best: Solution | None = None
    bound, n_solved = -np.inf, 0
    for place in np.argsort(-ceilings, kind="stable"):
        ceiling = float(ceilings[place])
        if ceiling == -np.inf or (best is not None and ceiling <= best.value):
            break
        if n_solved == MOST_SOLVED:
            bound = max(bound, ceiling)
            break
        try:
            result = solve(problem.with_doses(np.array(menus[place])))
        except InfeasibleError as error:
            bound = bound if error.proven else max(bound, ceiling)
            continue
        n_solved += 1
        bound = max(bound, min(result.bound, ceiling))
        if best is None or result.value > best.value:
            best = result
    return best, bound


def _totals(problem: DoseProblem, prices: Prices, menus: list[Menu]) -> FloatArray:
    """Sum of the largest net values within each menu; minus infinity where a unit has none."""
    totals = np.zeros(len(menus))
    for rows in problem.blocks():
        columns = np.ascontiguousarray(net_values(problem, prices, rows).T)
        for place, menu in enumerate(menus):
            totals[place] += columns[list(menu)].max(axis=0).sum()
    return totals


def _promising(problem: DoseProblem, prices: Prices, most: int) -> tuple[list[Menu], float]:
    """The menu that grows by the best dose each time, its neighbours, and a ceiling of all menus.

    The total of a menu has diminishing returns in its doses: no menu exceeds a given one by more
    than what the best single doses would add to that one.
    """
    floor = _floor(problem, prices)
    menu: list[int] = []
    reached = np.full(problem.n_units, floor)
    ceiling = np.inf
    for _ in range(most):
        gains = _gains(problem, prices, reached, floor)
        if menu:
            added = np.sort(gains)[::-1][:most].sum()
            ceiling = min(ceiling, float(reached.sum() + added))
        gains[menu] = -np.inf
        menu.append(int(np.argmax(gains)))
        for rows in problem.blocks():
            own = net_values(problem, prices, rows)[:, menu[-1]]
            reached[rows] = np.maximum(reached[rows], own)
    gains = _gains(problem, prices, reached, floor)
    ceiling = min(ceiling, float(reached.sum() + np.sort(gains)[::-1][:most].sum()))
    others = [dose for dose in range(problem.n_doses) if dose not in menu]
    swapped = (
        (*menu[:place], dose, *menu[place + 1 :]) for place in range(most) for dose in others
    )
    neighbours = [tuple(sorted(each)) for each in swapped]
    return [tuple(sorted(menu)), *neighbours[: MOST_MENUS - 1]], ceiling


def _floor(problem: DoseProblem, prices: Prices) -> float:
    """A net value so far below all others that menus which leave a unit without a dose lose."""
    lowest, highest = np.inf, -np.inf
    for rows in problem.blocks():
        net = net_values(problem, prices, rows)
        lowest = min(lowest, float(net[net > -np.inf].min()))
        highest = max(highest, float(net.max()))
    return lowest - problem.n_units * (highest - lowest) - 1.0


def _gains(problem: DoseProblem, prices: Prices, reached: FloatArray, floor: float) -> FloatArray:
    """What each dose would add to a menu that has reached so much for every unit, (n_doses,)."""
    gains = np.zeros(problem.n_doses)
    for rows in problem.blocks():
        net = np.maximum(net_values(problem, prices, rows), floor)
        gains += np.maximum(net - reached[rows, None], 0.0).sum(axis=0)
    return gains
