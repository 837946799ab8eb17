"""Policies of a forest: the plan's doses at the plan's prices, and reasons where there are none."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from doseforest.policy import (
    DiscountCost,
    DoseCost,
    DosePolicy,
    Fee,
    LowerBound,
    MeanVariance,
    PartPrices,
    Response,
    optimize_doses,
    unit_table,
)
from markets import DISCOUNTS, MARGIN, SPENT, KnownCurves, market

INDEX = np.arange(400)


def matrices(X, context):
    """Value, cost and demand by hand."""
    orders = KnownCurves().dose_response(X)
    fare = context["fare"][:, None]
    return 0.25 * fare * orders, fare * DISCOUNTS * orders, orders


def draft(**parameters):
    return DosePolicy(KnownCurves(), DISCOUNTS, value=MARGIN, cost=SPENT, **parameters)


def test_rules_are_the_matrices_that_one_would_write_by_hand():
    X, context = market()
    weighed = draft().alternatives(X, context)
    value, cost, orders = matrices(X, context)
    np.testing.assert_allclose(weighed.value, value, rtol=1e-12)
    np.testing.assert_allclose(weighed.cost, cost, rtol=1e-12)
    np.testing.assert_allclose(weighed.response, orders, rtol=1e-12)


@pytest.mark.parametrize(
    ("rule", "by_hand"),
    [
        (Response(2.0), lambda r, f, d: 2 * r),
        (DiscountCost("fare", share=0.01), lambda r, f, d: 0.01 * f * d * r),
        (DoseCost("fare"), lambda r, f, d: f * d),
        (Fee(3.0), lambda r, f, d: 3.0 * (d > 0) + 0 * r),
        (Response("margin") - DiscountCost("fare"), lambda r, f, d: (0.25 - d) * f * r),
        (2 * Response() + Fee("fare") - DoseCost(), lambda r, f, d: 2 * r + f * (d > 0) - d),
        (-Response(), lambda r, f, d: -r),
    ],
)
def test_every_rule_and_sum_of_rules_is_its_formula(rule, by_hand):
    X, context = market(50)
    weighed = DosePolicy(KnownCurves(), DISCOUNTS, value=rule).alternatives(X, context)
    fare = context["fare"][:, None]
    expected = by_hand(weighed.response, fare, DISCOUNTS[None])
    np.testing.assert_allclose(weighed.value, expected, rtol=1e-12, atol=1e-12)


def test_at_the_prices_of_a_plan_units_get_the_doses_of_the_plan():
    X, context = market()
    value, cost, _ = matrices(X, context)
    plan = optimize_doses(value, cost, budget=150.0, doses=DISCOUNTS)
    policy = plan.policy(KnownCurves(), value=MARGIN, cost=SPENT)
    decisions = policy.decide(X, context)
    # The marginal unit is torn between two doses, and what it left over moved one or two others.
    assert (decisions.dose_index != plan.dose_index).sum() <= 3
    assert decisions.cost.sum() == pytest.approx(150, rel=0.02)
    assert (decisions.shadow_price == plan.shadow_price.budget).all()


def test_prices_of_groups_and_cells_are_looked_up_by_label():
    X, context = market()
    value, cost, orders = matrices(X, context)
    supply = {cell: 1.2 * orders[context["cell"] == cell, 0].sum() for cell in range(6)}
    limits = {
        "groups": context["region"],
        "group_budgets": {"north": 40.0, "south": 90.0},
        "cells": context["cell"],
        "supply": supply,
        "demand": orders,
    }
    plan = optimize_doses(value, cost, doses=DISCOUNTS, **limits)
    policy = plan.policy(
        KnownCurves(), value=MARGIN, cost=SPENT, group_column="region", cell_column="cell"
    )
    decisions = policy.decide(X, context)
    # At most one unit is torn for each of the eight caps; the repair moves a few more.
    assert (decisions.dose_index == plan.dose_index).mean() > 0.93
    prices = dict(zip(plan.by_group.labels.tolist(), plan.by_group.prices, strict=True))
    assert decisions.shadow_price[0] == prices[context["region"][0]]
    assert (decisions.cell_price == plan.by_cell.prices[context["cell"]]).all()
    net = value - decisions.shadow_price[:, None] * cost - decisions.cell_price[:, None] * orders
    assert (net[INDEX, decisions.dose_index] >= net.max(axis=1) - 1e-9).all()


def test_every_decision_is_the_best_of_all_allowed_doses_by_brute_force():
    X, context = market(200, seed=3)
    value, cost, _ = matrices(X, context)
    policy = draft(budget_price=0.8, min_dose=0.1, max_dose="largest")
    decisions = policy.decide(X, context)
    for unit in range(200):
        allowed = [k for k, d in enumerate(DISCOUNTS) if 0.1 <= d <= context["largest"][unit]]
        nets = {k: value[unit, k] - 0.8 * cost[unit, k] for k in allowed}
        best = max(allowed, key=nets.get)
        assert decisions.dose_index[unit] == best
        rest = [k for k in allowed if k != best]
        assert decisions.runner_up[unit] == (max(rest, key=nets.get) if rest else -1)
        assert decisions.unpriced[unit] == max(allowed, key=lambda k, u=unit: value[u, k])
        every = value[unit] - 0.8 * cost[unit]
        assert decisions.reason[unit] == ("best" if every.argmax() == best else "limited")


def test_of_equal_doses_the_cheapest_then_the_lowest_is_taken():
    class Flat(KnownCurves):
        def dose_response(self, X, doses=None):
            return np.ones((len(X), len(DISCOUNTS)))

    flat = DosePolicy(Flat(), DISCOUNTS)
    assert flat.decide(np.zeros((1, 2))).dose_index[0] == 0
    dear = DosePolicy(Flat(), DISCOUNTS, cost=DoseCost(-1.0))  # larger doses are cheaper
    assert dear.decide(np.zeros((1, 2))).dose_index[0] == 3


def test_one_unit_at_a_time_gets_the_same_as_all_together():
    X, context = market(30)
    policy = draft(budget_price=0.8)
    together = policy.decide(X, context)
    for unit in range(30):
        alone = policy.decide(X[[unit]], {k: v[unit] for k, v in context.items()})
        assert alone.dose[0] == together.dose[unit]
        assert alone.net[0] == pytest.approx(together.net[unit], rel=1e-12)


def test_frames_hold_features_and_columns_side_by_side():
    X, context = market(300)
    curves = unit_table(
        pd.DataFrame(X, columns=["usual", "taste"]), KnownCurves().dose_response(X), DISCOUNTS
    )
    policy = DosePolicy(curves, value=MARGIN, cost=SPENT, budget_price=0.5)
    table = {"fare": context["fare"], "taste": X[:, 1], "usual": X[:, 0]}
    table["margin"] = context["margin"]
    expected = policy.decide(X, context).dose_index
    for frame in (pd.DataFrame(table), pl.DataFrame(table)):
        np.testing.assert_array_equal(policy.decide(frame).dose_index, expected)
    assert policy.columns == ("margin", "fare")
    on_a_feature = DosePolicy(curves, value=Response("taste"))
    assert on_a_feature.decide(X).value[0] == pytest.approx(
        X[0, 1] * on_a_feature.decide(X).response[0]
    )


def test_blocks_of_many_units_are_one_answer():
    X, context = market(300)
    curves = unit_table(X, KnownCurves().dose_response(X), DISCOUNTS)
    policy = DosePolicy(curves, value=MARGIN, cost=SPENT, budget_price=0.5)
    once = policy.decide(X, context)
    many = policy.decide(np.tile(X, (300, 1)), {k: np.tile(v, 300) for k, v in context.items()})
    assert len(many) == 90_000
    np.testing.assert_array_equal(many.dose_index, np.tile(once.dose_index, 300))
    np.testing.assert_array_equal(many.net, np.tile(once.net, 300))


def test_a_unit_that_cannot_be_decided_on_gets_the_baseline_and_says_why():
    X, context = market(300)
    curves = unit_table(X, KnownCurves().dose_response(X), DISCOUNTS)
    policy = DosePolicy(
        curves,
        value=MARGIN,
        cost=SPENT,
        group_prices=PartPrices("region", {"north": 0.1, "south": 0.2}),
        max_dose="largest",
        baseline=0.1,
    )
    X, context = X[:8].copy(), {name: own[:8].copy() for name, own in context.items()}
    sound = policy.decide(X, context)
    X[1, 0] = np.inf
    X[2] = np.nan
    context["fare"][3] = np.nan
    context["region"] = np.array(
        [*context["region"][:4], "west", None, *context["region"][6:]], object
    )
    context["largest"][6] = np.nan
    context["largest"][7] = -1.0
    decisions = policy.decide(X, context)
    expected = ["invalid"] * 3 + ["unseen"] * 2 + ["invalid", "no_dose"]
    assert decisions.reason[1:].tolist() == expected
    assert (decisions.dose[1:] == 0.1).all()
    assert decisions.dose[0] == sound.dose[0]
    assert (decisions.propensity == 1).all()
    for unit, reason in ((1, "missing or infinite"), (4, "no price"), (7, "within its limits")):
        assert reason in decisions.explain(unit)


def test_unseen_labels_have_the_price_that_was_asked_for():
    X, context = market(5)
    context["region"] = np.array(["north", "west", None, "south", "north"], object)
    prices = PartPrices("region", {"north": 0.5, "south": 0.0}, unseen=2.0)
    decisions = draft(group_prices=prices).decide(X, context)
    assert decisions.shadow_price.tolist() == [0.5, 2.0, 2.0, 0.0, 0.5]


def test_no_dose_without_support_unless_it_is_asked_for():
    X, context = market(400)
    shares = np.ones((400, 4))
    shares[X[:, 0] > 0.3, 2:] = 0.0  # who orders often was never given much
    curves = unit_table(X, KnownCurves().dose_response(X), DISCOUNTS)
    support = unit_table(X, shares, DISCOUNTS)
    free = DosePolicy(curves, value=MARGIN, support=None).decide(X, context)
    held = DosePolicy(curves, value=MARGIN, support=support).decide(X, context)
    often, seldom = X[:, 0] > 0.32, X[:, 0] < 0.28
    assert (free.dose == 0.3).all()
    assert np.isnan(free.supported).all()
    assert (held.dose[often] <= 0.1).all()
    assert set(held.reason[often]) == {"supported"}
    assert (held.dose[seldom] == 0.3).all()
    nobody = DosePolicy(curves, value=MARGIN, support=unit_table(X, 0 * shares, DISCOUNTS))
    assert set(nobody.decide(X, context).reason) == {"no_support"}
    assert (nobody.decide(X, context).supported == 0).all()


def test_uncertain_doses_are_given_less_the_more_one_minds():
    X, context = market(400)
    errors = unit_table(X, np.tile([0.0, 0.0, 0.05, 0.4], (400, 1)), DISCOUNTS)
    mean = {}
    for risk in (None, LowerBound(0.5), LowerBound(2.0), MeanVariance(5.0)):
        policy = draft(errors=errors, risk=risk, budget_price=0.2)
        decisions = policy.decide(X, context)
        mean[risk] = decisions.dose.mean()
        low, high = decisions.interval(0.95)
        width = (high - low) / (2 * 1.959964)
        np.testing.assert_allclose(width, decisions.standard_error, rtol=1e-6)
    assert mean[None] > mean[LowerBound(0.5)] > mean[LowerBound(2.0)]
    assert mean[None] > mean[MeanVariance(5.0)]
    weighed = draft(errors=errors, risk=LowerBound(2.0)).alternatives(X, context)
    taken = 2 * context["margin"] * 0.05
    np.testing.assert_allclose((weighed.value - weighed.adjusted_value)[:, 2], taken, rtol=1e-6)


def test_decisions_come_as_frames_and_sentences():
    X, context = market(20)
    decisions = draft(budget_price=0.8).decide(X, context)
    frame = decisions.to_frame()
    assert frame["dose"].tolist() == decisions.dose.tolist()
    assert decisions.to_frame("polars").shape == frame.shape
    text = decisions.explain(0)
    assert text.startswith(f"dose {decisions.dose[0]:g}: the best of all doses")
    assert "at prices of 0.8 per unit of cost" in text
    assert "20 units" in str(decisions)
    assert decisions.at(np.array([3, 5])).dose.tolist() == decisions.dose[[3, 5]].tolist()


def test_joint_doses_are_decided_on_by_their_components():
    rng = np.random.default_rng(0)
    X = rng.random((200, 1))
    doses = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    curves = unit_table(X, X * [0.0, 1.0, 2.0, 2.5], doses)
    policy = DosePolicy(curves, cost=DoseCost(1.0, component=1), max_dose=[0.0, 1.0])
    assert set(policy.decide(X).dose.tolist()) == {(0.0, 1.0)}
    priced = DosePolicy(curves, cost=DoseCost(1.0, component=1), budget_price=9.0)
    assert set(priced.decide(X).dose.tolist()) == {(1.0, 0.0)}
    assert list(priced.decide(X).to_frame().columns[:2]) == ["dose_0", "dose_1"]


BAD = [
    ({"doses": [0.0, 0.0]}, "'doses' parameter must be ascending and distinct"),
    ({"doses": []}, "'doses' parameter must be one or more finite doses"),
    ({"value": lambda x: x}, "'value' parameter must be a rule"),
    ({"cost": 3.0}, "'cost' parameter must be a rule"),
    ({"budget_price": -1.0}, "'budget_price' parameter must be a finite number of at least 0"),
    ({"budget_price": np.nan}, "'budget_price' parameter must be a finite number"),
    ({"cost": None, "budget_price": 1.0}, "'cost' parameter must be given where"),
    ({"group_prices": {"a": 1.0}}, "'group_prices' parameter must be PartPrices"),
    ({"min_dose": np.nan}, "'min_dose' parameter must be a number, a column's name"),
    ({"max_dose": [0.1, 0.2]}, "'max_dose' parameter must be a number, a column's name"),
    ({"baseline": 0.17}, "'baseline' parameter must be one of the doses 0, 0.1, 0.2, 0.3"),
    ({"support": "always"}, "'support' parameter must be what `unit_table` returns"),
    ({"errors": np.ones((3, 4))}, "'errors' parameter must be what `unit_table` returns"),
    ({"risk": LowerBound(1.0)}, "'errors' parameter must be given together with 'risk'"),
    ({"risk": 2.0}, "'risk' parameter must be LowerBound"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD)
def test_bad_parameters_are_named(parameters, message):
    own = {"doses": DISCOUNTS, "value": MARGIN, "cost": SPENT, **parameters}
    with pytest.raises((TypeError, ValueError), match=message):
        DosePolicy(KnownCurves(), **own)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Response(np.nan), "'scale' parameter must be a finite number or the name"),
        (lambda: Response(""), "'scale' parameter must be a finite number or the name"),
        (lambda: DiscountCost("fare", share=np.inf), "'share' parameter must be a finite number"),
        (lambda: DoseCost(1.0, component=-1), "'component' parameter must be the place"),
        (lambda: Fee(1.0, free=None), "'free' parameter must be a finite number"),
        (lambda: Response() * "x", "'factor' parameter must be a finite number"),
        (lambda: Response() + 3.0, "'other' parameter must be a rule"),
        (lambda: PartPrices("", {}), "'column' parameter must be the name"),
        (lambda: PartPrices("cell", {("a", 1): 0.0}), "labels that are text or finite numbers"),
        (lambda: PartPrices("cell", {"a": -1.0}), "'prices' parameter must hold finite prices"),
        (lambda: PartPrices("cell", {}, unseen="zero"), "'unseen' parameter must hold finite"),
        (lambda: LowerBound(-1.0), "'z' parameter must be a number from 0"),
        (lambda: MeanVariance(np.nan), "'aversion' parameter must be a number from 0"),
        (lambda: DosePolicy(3.0, DISCOUNTS), "'forest' parameter must have the method"),
    ],
)
def test_bad_rules_and_prices_are_named(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_missing_and_misshapen_columns_are_named():
    X, context = market(10)
    with pytest.raises(ValueError, match="must have the column 'fare' that the policy needs"):
        draft().decide(X, {"margin": context["margin"]})
    with pytest.raises(ValueError, match="column 'fare' must have one entry per unit"):
        draft().decide(X, {**context, "fare": np.ones(3)})
    with pytest.raises(TypeError, match="'fare' parameter must hold real numbers"):
        draft().decide(X, {**context, "fare": np.array(["much"] * 10)})
    with pytest.raises(TypeError, match="'context' parameter must be a mapping"):
        draft().decide(X, 3.0)
    with pytest.raises(ValueError, match="'component' parameter of a rule must be below 1"):
        DosePolicy(KnownCurves(), DISCOUNTS, value=Response() + DoseCost(component=1))
    with pytest.raises(ValueError, match="'unit' parameter must be the place of one of 10"):
        draft().decide(X, context).explain(10)
    curves = unit_table(*market(100)[:1], np.ones((100, 4)), DISCOUNTS)
    with pytest.raises(ValueError, match="'X' parameter must have the 2 features"):
        DosePolicy(curves).decide(np.ones((3, 5)))
    with pytest.raises(ValueError, match="'doses' parameter"):
        DosePolicy(curves, [0.0, 0.9])  # the forest knows doses up to 0.3


def test_a_plan_of_other_doses_or_limits_is_refused():
    X, context = market(20)
    value, cost, _ = matrices(X, context)
    plan = optimize_doses(value, cost, budget=5.0)
    with pytest.raises(ValueError, match="'plan' parameter must be of the policy's doses"):
        draft().at_prices(plan)
    plan = optimize_doses(value, cost, budget=5.0, doses=DISCOUNTS)
    with pytest.raises(ValueError, match="'cell_column' parameter must be left out of a plan"):
        draft().at_prices(plan, cell_column="cell")
    grouped = optimize_doses(
        value, cost, doses=DISCOUNTS, groups=np.zeros(20, int), group_budgets=[5.0]
    )
    with pytest.raises(ValueError, match="'group_column' parameter must be given for a plan with"):
        draft().at_prices(grouped)


def test_tables_of_arrow_hold_features_and_columns():
    pa = pytest.importorskip("pyarrow")
    X, context = market(50)
    curves = unit_table(
        pd.DataFrame(X, columns=["usual", "taste"]), KnownCurves().dose_response(X), DISCOUNTS
    )
    policy = DosePolicy(curves, value=MARGIN, cost=SPENT, budget_price=0.3)
    columns = {"usual": X[:, 0], "taste": X[:, 1]}
    table = pa.table(columns | {name: context[name] for name in ("fare", "margin")})
    expected = policy.decide(pd.DataFrame(columns), context)
    np.testing.assert_array_equal(policy.decide(table).dose, expected.dose)
    beside = pa.table({name: context[name] for name in ("fare", "margin")})
    np.testing.assert_array_equal(policy.decide(X, beside).dose, expected.dose)
    with pytest.raises(ValueError, match="Got the columns usual, taste, fare instead"):
        policy.decide(table.drop_columns(["margin"]))


def test_totals_are_of_the_units_that_could_be_decided_on():
    X, context = market(20)
    context["fare"][:5] = np.nan
    decisions = draft().decide(X, context)
    known = decisions.value[5:].sum(), decisions.cost[5:].sum()
    told = f"20 units: value {known[0]:.6g}, cost {known[1]:.6g} (5 without a value or cost)"
    assert str(decisions).splitlines()[0] == told
    table = decisions.by_segment(np.repeat(["few", "most"], [4, 16]))
    assert np.isnan(table.cost[0])
    assert table.cost[1] == pytest.approx(known[1])
    assert table.unknown.tolist() == [4, 1]
