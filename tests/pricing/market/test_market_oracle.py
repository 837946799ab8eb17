"""The oracle's plan against all plans there are, and against flat ones of the same cost."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from doseforest.pricing.market import LEVELS, Marketplace, oracle_plan

CELLS = np.arange(7, 5760, 160)  # 36 cells, several hours


def test_the_oracles_plan_is_the_best_of_all_but_for_the_last_view():
    own = Marketplace("mixed")
    quiet = own.draw_traffic(days=[1], cells=[4, 28], seed=0)  # early morning
    assert len(quiet) == 9  # few enough for all plans
    traffic = replace(quiet, drivers=np.array([2, 3]))  # and scarce drivers
    plans = np.array(list(itertools.product((0.0, 0.18), repeat=len(traffic))))
    found = [own.expected(traffic, plan) for plan in plans]
    orders, costs = (np.array([getattr(e, n).sum() for e in found]) for n in ("orders", "cost"))
    single = max(orders[(plans > 0).sum(axis=1) == 1]) - orders[0]
    for share in (0.3, 0.6, 0.9):
        budget = share * costs[-1]
        best = orders[costs <= budget].max()
        mine = own.expected(traffic, oracle_plan(own, traffic, budget, doses=[0.0, 0.18]))
        assert mine.cost.sum() <= budget
        assert best - single <= mine.orders.sum() <= best + 1e-12


@pytest.mark.parametrize("n_options", [1, 2])
def test_the_oracle_spends_its_budget_and_beats_plans_that_cost_the_same(n_options):
    own = Marketplace("nonlinear", n_options)
    traffic = own.draw_traffic(days=[1], cells=CELLS, seed=0)
    flat = own.expected(traffic, 0.12)
    plan = oracle_plan(own, traffic, flat.cost.sum())
    best = own.expected(traffic, plan)
    assert 0.98 * flat.cost.sum() < best.cost.sum() <= flat.cost.sum()
    none = own.expected(traffic, 0.0).orders.sum()
    assert best.orders.sum() - none > 1.2 * (flat.orders.sum() - none)
    np.testing.assert_array_equal(oracle_plan(own, traffic, 0.0), 0.0 * plan)
    assert set(np.unique(plan)) <= set(LEVELS)


@pytest.mark.parametrize(
    ("budget", "doses", "message"),
    [
        (-1.0, None, "'budget' parameter must be a number of at least 0. Got -1.0"),
        (np.nan, None, "'budget' parameter must be a number"),
        (1.0, [0.1, 0.2], "'doses' parameter must have shape .* no discount among them"),
        (1.0, [0.0, 0.4], "'doses' parameter must .* up to 0.3"),
        (1.0, [[0.0, 0.0]], r"'doses' parameter must have shape \(n_doses, 1\)"),
    ],
)
def test_bad_questions_to_the_oracle_are_refused(budget, doses, message):
    own = Marketplace()
    traffic = own.draw_traffic(days=[1], cells=[8], seed=0)
    with pytest.raises(ValueError, match=message):
        oracle_plan(own, traffic, budget, doses)
