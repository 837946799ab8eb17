"""Doses for all units: the largest total value within budgets and supplies."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

from doseforest.policy.distinct_doses import solve_with_few
from doseforest.policy.dose_plan import Plan
from doseforest.policy.planning import plan_of
from doseforest.policy.policy_inputs import (
    budget_limit,
    checked_demand,
    checked_problem,
    part_limit,
    with_risk,
)
from doseforest.policy.problem import DoseProblem, Limit
from doseforest.policy.risk import Risk
from doseforest.policy.solver import Solution, solve


def optimize_doses(
    value: Any,
    cost: Any = None,
    budget: float | None = None,
    *,
    doses: Any = None,
    groups: Any = None,
    group_budgets: Any = None,
    cells: Any = None,
    supply: Any = None,
    demand: Any = None,
    allowed: Any = None,
    min_dose: Any = None,
    max_dose: Any = None,
    max_distinct: int | None = None,
    standard_error: Any = None,
    risk: Risk | None = None,
    allow_negative_cost: bool = False,
    n_units: int | None = None,
) -> Plan:
    """One dose for each unit, of largest total value within the limits, with a certified gap.

    A single budget, budgets of groups with or without one for all, or supplies alone are solved
    along the concave hulls of the units: the plan lacks at most one increment of one unit for each
    cap that binds. Budgets together with supplies are solved by dual ascent, a repair that ends
    within the limits, and moves into what is left. Units with equal reasons are served in their
    order, and of equal doses the cheaper, then the one of lower index is taken: the same input
    gives the same plan.

    Work is linear in units x doses for each pass. Memory, beside the matrices as they are given
    (single precision stays single): about 50 bytes for each increment of the hulls, 105 with
    budgets of groups; there are at most units x (doses - 1) increments.

    Parameters
    ----------
    value : array of shape (units, doses), or function
        Value of each dose for each unit, such as margins times predicted orders. A function is
        called with slices of at most 65,536 units, once each, and returns (units, doses).
    cost : array of shape (units, doses) or (doses,), or function, optional
        Expected cost of each dose. Not needed without budgets.
    budget : float, optional
        Most that all costs may add up to; zero leaves the doses that cost nothing.
    doses : array of shape (doses,) or (doses, components), optional
        What the columns stand for; by default 0, 1, 2, …
    groups, group_budgets : labels of shape (units,), and a dictionary from label to budget
        Or whole numbers, and an array that they are places in. Labels without units are fine.
    cells, supply : labels of shape (units,), and a dictionary from label to supply
        Or whole numbers and an array. The demand of a cell's units at their doses adds up to at
        most its supply.
    demand : array of shape (units, doses) or (doses,), or function
        Predicted demand at each dose, such as the chance of an order.
    allowed : booleans of shape (units, doses) or (doses,), optional
        Doses that a unit may be given.
    min_dose, max_dose : dose, or one for each unit, optional
        Ends of what a unit may be given, both included; in every component.
    max_distinct : int, optional
        Most distinct doses of the plan.
    standard_error, risk : array of shape (units, doses) or (doses,), and LowerBound or MeanVariance
        Standard errors of the values and what they take off: a lower confidence bound is
        optimised, or a trade of mean and variance. `plan.value`, `bound` and prices are of what is
        left; `plan.expected_value` is the total of the values as they were given.
    allow_negative_cost : bool, default=False
        Whether a dose may earn money, as a higher price does. Refused by default, since a cost with
        the wrong sign would otherwise go unnoticed.
    n_units : int, optional
        Number of units, where `value` is a function.

    Returns
    -------
    Plan
        The dose of every unit, shadow prices, and how far from the best plan it can be.

    Raises
    ------
    InfeasibleError
        Where limits cannot be met, with the first limit and what it would need. A ValueError.

    Examples
    --------
    >>> value = [[0, 1, 1.5], [0, 3, 3.5], [0, 1, 4]]
    >>> plan = optimize_doses(value, cost=[0, 1, 2], budget=3, doses=[0, 10, 20])
    >>> plan.dose, plan.value, plan.cost, plan.shadow_price.budget, plan.gap
    (array([ 0., 10., 20.]), 7.0, 3.0, 1.0, 0.0)
    """
    problem = checked_problem(
        value,
        cost,
        doses=doses,
        n_units=n_units,
        allowed=allowed,
        min_dose=min_dose,
        max_dose=max_dose,
        allow_negative_cost=allow_negative_cost,
    )
    expected = problem.value
    problem = with_risk(problem, standard_error, risk)
    limits: list[Limit] = []
    if budget is not None:
        _check_together(cost, "cost", "'budget'")
        limits.append(budget_limit(problem, budget))
    if groups is not None or group_budgets is not None:
        _check_together(groups, "groups", "'group_budgets'")
        _check_together(group_budgets, "group_budgets", "'groups'")
        _check_together(cost, "cost", "'group_budgets'")
        names = ("groups", "group_budgets")
        limits.append(part_limit(problem, problem.cost, groups, group_budgets, names))
    if cells is not None or supply is not None or demand is not None:
        _check_together(cells, "cells", "'supply' or 'demand'")
        _check_together(supply, "supply", "'cells' or 'demand'")
        weights = checked_demand(problem, demand)
        limits.append(part_limit(problem, weights, cells, supply, ("cells", "supply")))
    problem = replace(problem, limits=tuple(limits))
    solution = _solved(problem, max_distinct)
    total = float(problem.chosen(expected, solution.choice).sum())
    return plan_of(problem, problem.limits, solution, expected_value=total)


def _solved(problem: DoseProblem, max_distinct: int | None) -> Solution:
    if max_distinct is None:
        return solve(problem)
    is_whole = isinstance(max_distinct, Integral) and not isinstance(max_distinct, bool)
    if not is_whole or max_distinct < 1:
        raise ValueError(
            "The 'max_distinct' parameter must be a whole number of at least 1. "
            f"Got {max_distinct!r} instead."
        )
    return solve_with_few(problem, int(max_distinct))


def _check_together(given: Any, name: str, beside: str) -> None:
    if given is None:
        raise ValueError(
            f"The {name!r} parameter must be given together with {beside}. Got None instead."
        )
