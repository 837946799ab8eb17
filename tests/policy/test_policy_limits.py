"""Several limits: beside linear programs and all choices, never beyond a limit."""

import numpy as np
import pytest

from dose_problems import brute_force, draw_problem, linear_program, meets_limits
from doseforest.policy import InfeasibleError, optimize_doses
from doseforest.policy.lagrangian import best_responses, smooth_bound
from doseforest.policy.problem import DoseProblem, Limit

KINDS = [
    ("groups",),
    ("budget", "groups"),
    ("cells",),
    ("budget", "cells"),
    ("groups", "cells"),
    ("budget", "groups", "cells"),
]


@pytest.mark.parametrize("kinds", KINDS, ids="+".join)
def test_plans_equal_the_linear_program_within_their_gap(kinds):
    n_seeds = 40
    distances = []
    for seed in range(n_seeds):
        given = draw_problem(seed, kinds=kinds)
        plan = optimize_doses(**given)
        best = linear_program(given)
        rounding = 1e-7 * (1 + abs(best))  # HiGHS's own tolerance
        assert meets_limits(given, plan)
        assert plan.value <= best + rounding
        assert best <= plan.bound + rounding
        largest = np.ptp(given["value"], axis=1).max()
        # The bound is the linear program's own where limits are nested; dual ascent stops within
        # a few hundredths of one unit's range.
        nested = "cells" not in kinds or kinds == ("cells",)
        assert plan.bound - best <= (0 if nested else 0.05 * largest) + rounding
        # A vertex of the linear program mixes the doses of at most one unit for each cap.
        n_caps = 1 * ("budget" in kinds) + 3 * ("groups" in kinds) + 4 * ("cells" in kinds)
        assert plan.gap <= n_caps * largest + rounding
        distances.append(plan.gap / largest)
    assert np.median(distances) < 1.0  # in practice single increments are lost


@pytest.mark.parametrize("kinds", KINDS, ids="+".join)
def test_no_choice_of_all_exceeds_the_bound_nor_falls_short_of_the_plan(kinds):
    for seed in range(12):
        given = draw_problem(seed, kinds=kinds, n_units=6, n_doses=3)
        plan = optimize_doses(**given)
        best = brute_force(given)
        assert plan.value <= best + 1e-9
        assert best <= plan.bound + 1e-9
        assert meets_limits(given, plan)


def test_costs_and_demands_that_pull_apart_still_end_within_the_limits():
    # Cheap doses have high demand here: neither the cheapest nor the least demanded doses of all
    # units meet both limits, so that a repair must look for a way.
    solved, possible = 0, 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        value, cost = rng.random((20, 4)), rng.random((20, 4))
        demand = np.clip(1 - cost + 0.2 * rng.random((20, 4)), 0, None)
        cells = rng.integers(0, 2, 20)
        share = 0.44 + 0.12 * seed / 30  # a half is about what it takes
        low, high = (np.bincount(cells, ends, 2) for ends in (demand.min(1), demand.max(1)))
        given = {"value": value, "cost": cost, "cells": cells, "demand": demand}
        given["supply"] = low + share * (high - low)
        given["budget"] = cost.min(axis=1).sum() + share * np.ptp(cost, axis=1).sum()
        best = linear_program(given)
        if best is None:
            with pytest.raises(InfeasibleError):
                optimize_doses(**given)
            continue
        possible += 1
        try:
            plan = optimize_doses(**given)
        except InfeasibleError:  # the linear program may mix doses, a plan may not
            continue
        solved += 1
        assert meets_limits(given, plan)
        assert plan.value - 1e-7 <= best <= plan.bound + 1e-7
    assert 15 < possible < 30
    # All of them in so small problems, but for those that only mixtures can solve.
    assert solved >= possible - 2


def test_larger_problems_that_pull_apart_are_repaired_without_an_integer_program():
    rng = np.random.default_rng(0)
    value, cost = rng.random((2000, 4)), rng.random((2000, 4))
    demand = np.clip(1 - cost + 0.2 * rng.random((2000, 4)), 0, None)
    cells = rng.integers(0, 20, 2000)
    low, high = (np.bincount(cells, ends, 20) for ends in (demand.min(1), demand.max(1)))
    given = {"value": value, "cost": cost, "cells": cells, "demand": demand}
    given["supply"] = low + 0.5 * (high - low)
    given["budget"] = cost.min(axis=1).sum() + 0.5 * np.ptp(cost, axis=1).sum()
    plan = optimize_doses(**given)
    assert meets_limits(given, plan)
    assert plan.gap < 21  # one unit's range for each cap


def test_limits_that_cannot_be_met_together_are_named():
    # Half of the units must pay 1 for the demand to fit, and the budget is for a quarter.
    cost, demand = np.tile([0.0, 1.0], (8, 1)), np.tile([1.0, 0.0], (8, 1))
    given = {"value": np.zeros((8, 2)), "cost": cost, "cells": np.zeros(8, int), "demand": demand}
    with pytest.raises(
        InfeasibleError, match=r"'budget' and 'supply' .* no choice of doses"
    ) as got:
        optimize_doses(**given, budget=2, supply=[4])
    assert got.value.proven
    assert optimize_doses(**given, budget=4, supply=[4]).cost == 4


def test_a_limit_that_is_too_low_by_itself_is_named_with_what_it_needs():
    value, cells = np.ones((4, 2)), ["a", "a", "b", "b"]
    with pytest.raises(InfeasibleError, match=r"'supply' .* at least 2 for 'b'.* Got 1 instead"):
        optimize_doses(value, cells=cells, demand=[1, 2], supply={"a": 2, "b": 1})
    with pytest.raises(InfeasibleError, match=r"'group_budgets' .* at least 6 for 'a'.* Got 0 ins"):
        optimize_doses(value, [3, 4], groups=cells, group_budgets={"a": 0, "b": 9})
    with pytest.raises(InfeasibleError, match=r"at least 6 for 'a'.* \(2 parts are too low\)"):
        optimize_doses(value, [3, 4], groups=cells, group_budgets={"a": 0, "b": 1})


def test_labels_and_places_say_the_same_and_empty_groups_are_fine():
    given = draw_problem(2, kinds=("budget", "groups"))
    plain = optimize_doses(**given)
    names = np.array(["north", "south", "west"])
    caps = dict(zip(names.tolist(), given["group_budgets"].tolist(), strict=True))
    named = {**given, "groups": names[given["groups"]], "group_budgets": {**caps, "nobody": 0.0}}
    plan = optimize_doses(**named)
    assert (plan.dose_index == plain.dose_index).all()
    assert plan.by_group.labels.tolist() == ["north", "south", "west", "nobody"]
    assert plan.by_group.units.tolist() == [*np.bincount(given["groups"], minlength=3), 0]
    assert plan.by_group.used[-1] == 0
    np.testing.assert_array_equal(plan.by_group.prices, plan.shadow_price.groups)
    spent = np.bincount(given["groups"], plan.unit_costs, 3)
    np.testing.assert_allclose(plan.by_group.used[:3], spent)
    assert "nobody" in str(plan.by_group)


def test_limits_without_bite_change_nothing():
    given = draw_problem(11, kinds=("budget",))
    n, k = given["value"].shape
    plain = optimize_doses(**given)
    loose = optimize_doses(
        **given,
        groups=np.zeros(n, int),
        group_budgets=[np.inf],
        cells=np.zeros(n, int),
        demand=np.ones((n, k)),
        supply=[np.inf],
    )
    assert (plain.dose_index == loose.dose_index).all()
    assert plain.bound == loose.bound
    assert loose.shadow_price.cells.tolist() == [0]


def test_shadow_prices_are_what_units_decide_by():
    given = draw_problem(5, n_units=200, n_doses=5)
    plan = optimize_doses(**given)
    prices = plan.shadow_price
    per_cost = prices.budget + prices.groups[given["groups"]]
    per_demand = prices.cells[given["cells"]]
    net = given["value"] - per_cost[:, None] * given["cost"]
    net -= per_demand[:, None] * given["demand"]
    # All but the few units at which caps break: eight caps, and repairs around them.
    assert (net.argmax(axis=1) == plan.dose_index).mean() > 0.85
    fixed = prices.budget * given["budget"] + prices.groups @ given["group_budgets"]
    fixed += prices.cells @ given["supply"]
    assert plan.bound == pytest.approx(fixed + net.max(axis=1).sum())


def test_two_solves_are_the_same_bit_by_bit():
    given = draw_problem(9, n_units=300)
    first, second = optimize_doses(**given), optimize_doses(**given)
    assert (first.dose_index == second.dose_index).all()
    assert (first.value, first.bound) == (second.value, second.bound)


def test_the_smooth_bound_has_the_gradient_it_says_and_is_above_the_bound():
    given = draw_problem(4)
    cost, demand = given["cost"], given["demand"]
    limits = (
        Limit("budget", cost, None, np.array([given["budget"]]), np.array(["all"])),
        Limit("supply", demand, given["cells"], given["supply"], np.arange(4)),
    )
    problem = DoseProblem(given["value"], cost, np.arange(cost.shape[1]), None, limits)
    prices = (np.array([0.4]), np.array([0.1, 0.5, 0.3, 0.2]))
    smooth = smooth_bound(problem, prices, 0.3)
    assert smooth.bound == pytest.approx(best_responses(problem, prices)[1])
    assert smooth.bound < smooth.value
    for which in range(2):
        for part in range(len(prices[which])):
            ends = []
            for sign in (-1, 1):
                moved = [own.copy() for own in prices]
                moved[which][part] += sign * 1e-5
                ends.append(smooth_bound(problem, tuple(moved), 0.3).value)
            slope = (ends[1] - ends[0]) / 2e-5
            assert slope == pytest.approx(smooth.gradient[which][part], abs=1e-5)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_few_distinct_doses_are_the_best_few_within_the_gap(most):
    for seed in range(12):
        given = draw_problem(seed, kinds=("budget",), n_units=5, n_doses=4)
        plan = optimize_doses(**given, max_distinct=most)
        best = brute_force(given, max_distinct=most)
        assert len(np.unique(plan.dose_index)) <= most
        assert meets_limits(given, plan)
        assert plan.value <= best + 1e-9
        assert best <= plan.bound + 1e-9
        assert plan.bound <= optimize_doses(**given).bound + 1e-9


def test_few_of_many_doses_are_bounded_without_a_look_at_every_menu():
    # 20 doses have 15,504 menus of five; without a budget the best menu of a small case is known.
    rng = np.random.default_rng(0)
    value = rng.normal(size=(400, 20)) + 3 * np.exp(-0.5 * (np.arange(20) - 9) ** 2 / 40)
    plan = optimize_doses(value, max_distinct=5)
    assert len(np.unique(plan.dose_index)) == 5
    by_hand = value[:, np.unique(plan.dose_index)].max(axis=1).sum()
    assert plan.value == pytest.approx(by_hand)
    free = value.max(axis=1).sum()
    assert plan.value <= plan.bound <= free + 1e-9
    others = [rng.choice(20, 5, replace=False) for _ in range(300)]
    assert plan.value >= max(value[:, menu].max(axis=1).sum() for menu in others)


def test_few_doses_that_leave_a_unit_without_any_are_refused():
    allowed = np.eye(3, dtype=bool)
    with pytest.raises(InfeasibleError, match=r"'max_distinct' .* Got 2, and no such menu"):
        optimize_doses(np.ones((3, 3)), max_distinct=2, allowed=allowed)
    assert optimize_doses(np.ones((3, 3)), max_distinct=3, allowed=allowed).value == 3
