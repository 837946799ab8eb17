"""A solution as a plan."""

from __future__ import annotations

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.policy.dose_plan import LimitTable, Plan, ShadowPrices, limit_table
from doseforest.policy.problem import DoseProblem, Limit
from doseforest.policy.solver import Solution

PRICE_FIELDS = {"budget": "budget", "group_budgets": "groups", "supply": "cells"}  # by parameter


def plan_of(
    problem: DoseProblem,
    limits: tuple[Limit, ...],
    solution: Solution,
    expected_value: float | None = None,
) -> Plan:
    """The plan of a solution of a problem with these limits."""
    every = slice(0, problem.n_units)
    prices: dict[str, float | FloatArray] = {}
    tables: dict[str, LimitTable] = {}
    budget = np.inf
    for limit, price in zip(limits, solution.prices, strict=True):
        name = PRICE_FIELDS[limit.parameter]
        if limit.parts is None:
            prices[name], budget = float(price[0]), float(limit.caps[0])
            continue
        prices[name] = price
        used = limit.sums(problem.chosen(limit.weights, solution.choice), every)
        tables[name] = limit_table(limit, used, price)
    costs = problem.chosen(problem.cost, solution.choice)
    return Plan(
        dose_index=solution.choice,
        doses=problem.doses,
        value=solution.value,
        expected_value=solution.value if expected_value is None else expected_value,
        cost=float(costs.sum()),
        bound=solution.bound,
        shadow_price=ShadowPrices(**prices),  # type: ignore[arg-type]
        unit_values=problem.chosen(problem.value, solution.choice),
        unit_costs=costs,
        budget=budget,
        by_group=tables.get("groups"),
        by_cell=tables.get("cells"),
    )
