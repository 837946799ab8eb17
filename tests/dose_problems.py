"""Small problems of choosing doses, and their best values: a linear program, or trying all."""

from itertools import product

import numpy as np
from scipy.optimize import linprog


def draw_problem(seed, *, kinds=("budget", "groups", "cells"), n_units=None, n_doses=None):
    """Arguments of `optimize_doses` with some kinds of limits; the lowest doses meet them all."""
    rng = np.random.default_rng(seed)
    n = n_units or int(rng.integers(3, 25))
    k = n_doses or int(rng.integers(2, 6))
    steps = rng.integers(0, 4, (n, k)) if seed % 4 == 0 else rng.random((n, k))  # whole ones tie
    cost = steps.cumsum(axis=1) * 1.0
    cost -= cost[:, :1]
    if seed % 3 == 0:
        value = rng.normal(size=(n, k)).cumsum(axis=1)
    else:
        value = 3 * rng.random((n, 1)) * np.sqrt(cost) + 0.1 * rng.normal(size=(n, k))
    demand = 0.3 * rng.random((n, 1)) + cost * rng.random((n, 1))
    given = {"value": value, "cost": cost}
    if "budget" in kinds:
        given["budget"] = float(0.6 * rng.random() * cost[:, -1].sum())
    if "groups" in kinds:
        groups = rng.integers(0, 3, n)
        given["groups"] = groups
        given["group_budgets"] = np.bincount(groups, cost[:, -1], 3) * rng.random(3)
    if "cells" in kinds:
        cells = rng.integers(0, 4, n)
        low, high = (np.bincount(cells, demand[:, j], 4) for j in (0, -1))
        given |= {"cells": cells, "demand": demand}
        given["supply"] = low + (high - low) * rng.uniform(0.05, 0.9, 4)
    return given


def limits_of(given):
    """Weights and cap of each limit, (n_units, n_doses) and a number."""
    cost, value = np.asarray(given.get("cost")), np.asarray(given["value"])
    if "budget" in given:
        yield cost, given["budget"]
    if "groups" in given:
        for group, cap in enumerate(given["group_budgets"]):
            yield cost * (given["groups"] == group)[:, None], cap
    if "cells" in given:
        for cell, cap in enumerate(given["supply"]):
            yield given["demand"] * (given["cells"] == cell)[:, None] + 0 * value, cap


def linear_program(given):
    """The largest value where units may mix doses; None where nothing meets the limits."""
    value = np.asarray(given["value"], np.float64)
    n, k = value.shape
    limits = list(limits_of(given))
    highest = given.get("allowed", np.ones((n, k), bool)).ravel() * 1.0
    found = linprog(
        -value.ravel(),
        A_ub=np.array([weights.ravel() for weights, _ in limits]) if limits else None,
        b_ub=[cap for _, cap in limits] or None,
        A_eq=np.kron(np.eye(n), np.ones((1, k))),
        b_eq=np.ones(n),
        bounds=np.column_stack([np.zeros(n * k), highest]),
        method="highs",
    )
    return -found.fun if found.status == 0 else None


def brute_force(given, max_distinct=None):
    """The largest value of all choices that meet the limits; None where none does."""
    value = np.asarray(given["value"], np.float64)
    n, k = value.shape
    limits = list(limits_of(given))
    allowed = given.get("allowed", np.ones((n, k), bool))
    choices = np.array(list(product(range(k), repeat=n)))
    units = np.arange(n)
    fine = allowed[units, choices].all(axis=1)
    for weights, cap in limits:
        fine &= weights[units, choices].sum(axis=1) <= cap + 1e-9
    if max_distinct is not None:
        distinct = np.array([len(set(choice)) for choice in choices.tolist()])
        fine &= distinct <= max_distinct
    return value[units, choices[fine]].sum(axis=1).max() if fine.any() else None


def meets_limits(given, plan):
    """Whether the doses of a plan meet all limits, by sums of their own."""
    units = np.arange(len(plan.dose_index))
    return all(
        weights[units, plan.dose_index].sum() <= cap + 1e-9 * max(1.0, abs(cap))
        for weights, cap in limits_of(given)
    )
