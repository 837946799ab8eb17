"""One budget: the linear program, its path, and what holds whatever the numbers are."""

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from dose_problems import brute_force, draw_problem, linear_program, meets_limits
from doseforest.doses.dose_values import Doses
from doseforest.policy import InfeasibleError, budget_path, optimize_doses
from doseforest.policy.hulls import hull_increments
from doseforest.policy.problem import DoseProblem

ROUNDING = 1e-9


def largest_increment(value, cost):
    """Of any step along the hull of a unit."""
    steps = hull_increments(DoseProblem(value, cost, np.arange(value.shape[1]), None, ()), cost)
    return (steps.slopes * steps.weights).max(initial=0.0)


@pytest.mark.parametrize("block", range(10))
def test_a_budget_is_spent_as_the_linear_program_says_up_to_one_increment(block):
    for seed in range(20 * block, 20 * block + 20):
        given = draw_problem(seed, kinds=("budget",))
        plan = optimize_doses(**given)
        best = linear_program(given)
        scale = ROUNDING * (1 + abs(best))
        assert plan.bound == pytest.approx(best, abs=100 * scale)  # HiGHS has tolerances of 1e-7
        assert meets_limits(given, plan)
        assert plan.value <= best + 100 * scale
        assert plan.gap <= largest_increment(given["value"], given["cost"]) + scale


@pytest.mark.parametrize("seed", range(30))
def test_no_choice_of_all_is_better_than_the_gap_allows(seed):
    given = draw_problem(seed, kinds=("budget",), n_units=5, n_doses=4)
    plan = optimize_doses(**given)
    best = brute_force(given)
    assert plan.value <= best + ROUNDING <= plan.bound + 2 * ROUNDING
    assert plan.value == pytest.approx(given["value"][np.arange(5), plan.dose_index].sum())
    assert plan.cost == pytest.approx(given["cost"][np.arange(5), plan.dose_index].sum())


def test_costs_in_any_order_and_masks_are_the_linear_programs_too():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, k = 12, 5
        value, cost = rng.normal(size=(n, k)), rng.random((n, k)).round(seed % 3 + 1)
        allowed = rng.random((n, k)) < 0.6
        allowed[np.arange(n), rng.integers(0, k, n)] = True
        lowest = np.where(allowed, cost, np.inf).min(axis=1).sum()
        given = {"value": value, "cost": cost, "allowed": allowed, "budget": lowest + rng.random()}
        plan = optimize_doses(**given)
        assert allowed[np.arange(n), plan.dose_index].all()
        assert plan.bound == pytest.approx(linear_program(given), abs=1e-6)
        assert meets_limits(given, plan)


def test_negative_costs_earn_money_where_they_are_allowed():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        value, cost = rng.normal(size=(10, 4)), rng.normal(size=(10, 4))
        budget = cost.min(axis=1).sum() + 3 * rng.random()
        given = {"value": value, "cost": cost, "budget": budget}
        plan = optimize_doses(**given, allow_negative_cost=True)
        assert plan.bound == pytest.approx(linear_program(given), abs=1e-6)
        assert meets_limits(given, plan)


@pytest.mark.parametrize("seed", range(8))
def test_the_path_has_the_value_of_the_linear_program_at_every_budget(seed):
    given = draw_problem(seed, kinds=("budget",))
    path = budget_path(given["value"], given["cost"])
    assert (np.diff(path.budgets) > 0).all()
    assert (np.diff(path.values) > 0).all()
    assert (np.diff(path.shadow_prices) <= 0).all()
    for share in (0.0, 0.1, 0.35, 0.8, 1.2):
        budget = share * path.budgets[-1]
        best = linear_program({**given, "budget": budget})
        assert path.bound(budget) == pytest.approx(best, abs=1e-6)
        plan = path.at(budget)
        assert plan.bound == pytest.approx(best, abs=1e-6)
        assert meets_limits({**given, "budget": budget}, plan)
        assert plan.value <= optimize_doses(given["value"], given["cost"], budget).value + ROUNDING


def test_the_path_at_its_vertices_has_no_gap():
    given = draw_problem(7, kinds=("budget",))
    path = budget_path(given["value"], given["cost"])
    for place in range(len(path)):
        plan = path.at(path.budgets[place])
        assert plan.value == pytest.approx(path.values[place])
        assert plan.gap <= 1e-9
        assert plan.shadow_price.budget == path.shadow_prices[place]


@settings(max_examples=60, deadline=None)
@drawn(st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1))
def test_more_budget_never_has_less_bound_and_the_plan_keeps_to_it(seed, first, second):
    given = draw_problem(seed, kinds=("budget",))
    top = given["cost"].max(axis=1).sum()
    low, high = sorted([first, second])
    plans = [optimize_doses(given["value"], given["cost"], share * top) for share in (low, high)]
    assert plans[0].bound <= plans[1].bound + ROUNDING * (1 + abs(plans[1].bound))
    assert plans[0].shadow_price.budget >= plans[1].shadow_price.budget
    assert plans[0].value - ROUNDING <= plans[1].bound
    assert all(
        plan.cost <= share * top + 1e-9 for plan, share in zip(plans, (low, high), strict=True)
    )


@pytest.mark.parametrize("seed", range(5))
def test_scales_of_values_and_costs_change_no_dose(seed):
    given = draw_problem(seed, kinds=("budget",))
    value, cost, budget = given["value"], given["cost"], given["budget"]
    plan = optimize_doses(value, cost, budget)
    scaled = optimize_doses(4 * value, 8 * cost, 8 * budget)  # powers of two: the same bits
    assert (plan.dose_index == scaled.dose_index).all()
    assert scaled.shadow_price.budget == plan.shadow_price.budget / 2
    moved = optimize_doses(value + 3.0 * np.arange(len(value))[:, None], cost, budget)
    assert moved.bound - plan.bound == pytest.approx(3.0 * np.arange(len(value)).sum())


def test_many_units_take_the_same_doses_as_a_sort_of_all_increments():
    # More increments than are sorted at once, with many equal slopes.
    rng = np.random.default_rng(0)
    value = rng.integers(0, 6, (20_000, 4)).cumsum(axis=1)
    cost = rng.integers(1, 3, (20_000, 4)).cumsum(axis=1)
    path = budget_path(value, cost)
    for share in (0.1, 0.5, 0.9):
        budget = path.budgets[0] + share * np.ptp(path.budgets)
        plan, slow = optimize_doses(value, cost, budget), path.at(budget)
        assert plan.bound == pytest.approx(slow.bound)
        assert plan.value >= slow.value
        assert plan.cost <= budget
        assert plan.shadow_price.budget == slow.shadow_price.budget
        assert (plan.dose_index != slow.dose_index).sum() <= 2  # what the rest of the budget buys


def test_a_budget_of_zero_gives_the_best_of_the_free_doses():
    value = np.array([[0.0, 5.0, 9.0], [1.0, 0.5, 9.0], [2.0, 2.0, 9.0]])
    cost = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    plan = optimize_doses(value, cost, 0)
    assert plan.dose_index.tolist() == [1, 0, 0]
    assert plan.cost == 0
    assert plan.gap == 0


def test_an_infinite_budget_and_none_give_everyone_the_best_dose():
    rng = np.random.default_rng(0)
    value, cost = rng.normal(size=(50, 4)), rng.random((50, 4))
    for budget in (None, np.inf):
        plan = optimize_doses(value, cost, budget)
        assert (plan.dose_index == value.argmax(axis=1)).all()
        assert plan.shadow_price.budget == 0
        assert plan.gap == 0
    assert optimize_doses(value).value == plan.value


def test_of_equal_doses_the_lowest_and_of_equal_units_the_first_is_served():
    value = np.array([[0.0, 2.0, 2.0]] * 4)
    plan = optimize_doses(value, [0, 1, 1], 2)
    assert plan.dose_index.tolist() == [1, 1, 0, 0]


def test_no_units_make_an_empty_plan():
    plan = optimize_doses(np.empty((0, 3)), np.empty((0, 3)), 5)
    assert plan.dose_index.shape == (0,)
    assert (plan.value, plan.cost, plan.gap) == (0, 0, 0)
    path = budget_path(np.empty((0, 3)), [0, 1, 2])
    assert path.budgets.tolist() == [0]
    assert path.at(1).value == 0
    assert "0 units" in str(plan)


def test_a_budget_below_the_cheapest_doses_says_what_it_needs():
    with pytest.raises(InfeasibleError, match=r"'budget' parameter must be at least 3, .* Got 2 "):
        optimize_doses(np.ones((3, 2)), [1, 2], 2)
    with pytest.raises(InfeasibleError, match=r"'budget' parameter must be at least 3, .* Got 2 "):
        budget_path(np.ones((3, 2)), [1, 2]).at(2)


def test_the_sum_of_costs_is_a_budget_for_them_in_any_order():
    # The budget of a plan, summed in another order, must afford that plan.
    rng = np.random.default_rng(3)
    value = rng.random((5000, 2)) + np.array([0, 1])
    cost = np.column_stack([np.zeros(5000), rng.random(5000)])
    budget = sum(cost[::-1, 1].tolist())
    assert (optimize_doses(value, cost, budget).dose_index == 1).all()


def test_single_precision_and_functions_give_the_plan_of_the_same_numbers():
    rng = np.random.default_rng(1)
    value = rng.random((300, 5)).cumsum(axis=1).astype(np.float32)
    cost = rng.random((300, 5)).cumsum(axis=1).astype(np.float32)
    wide = optimize_doses(value.astype(np.float64), cost.astype(np.float64), 500)
    asked = []

    def values(rows):
        asked.append(rows)
        return value[rows]

    narrow = optimize_doses(value, cost, 500)
    called = optimize_doses(values, lambda rows: cost[rows], 500, n_units=300)
    for plan in (narrow, called):
        assert (plan.dose_index == wide.dose_index).all()
        assert plan.value == wide.value
    assert asked == [slice(0, 300)]


def test_inputs_are_left_alone():
    given = draw_problem(5)
    copies = {name: np.copy(own) for name, own in given.items()}
    optimize_doses(**given)
    for name, own in given.items():
        np.testing.assert_array_equal(own, copies[name])


def test_ends_of_doses_hold_for_units_and_components():
    value = np.tile([0.0, 1.0, 2.0, 3.0], (3, 1))
    plan = optimize_doses(value, doses=[0, 5, 10, 15], min_dose=5, max_dose=[5, 10, 99])
    assert plan.dose.tolist() == [5, 10, 15]
    pairs = np.array([[0.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 2.0]])
    plan = optimize_doses(value, doses=pairs, max_dose=[[1, 1], [0, 2], [1, 2]])
    assert plan.dose.tolist() == [(1.0, 0.0), (0.0, 2.0), (1.0, 2.0)]
    same = optimize_doses(
        value, doses=Doses.of_table(pairs).values, max_dose=[[1, 1], [0, 2], [1, 2]]
    )
    assert (same.dose == plan.dose).all()
    assert plan.by_segment([0, 0, 1]).mean_dose.tolist() == [[0.5, 1.0], [1.0, 2.0]]
