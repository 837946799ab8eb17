"""What a policy is worth on held-out rows: intervals that cover, promises that do not hold."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from doseforest import GeneralizedCausalForest
from doseforest.policy import (
    ConstantPolicy,
    DoseCost,
    DosePolicy,
    ExplorationPolicy,
    Explore,
    LowerBound,
    MeanVariance,
    Response,
    optimize_doses,
    policy_value,
)
from markets import DISCOUNTS, MARGIN, SPENT, KnownCurves, market


class Fooled(KnownCurves):
    """Curves with errors that differ from unit to unit, as those of a forest of noisy leaves."""

    def dose_response(self, X, doses=None):
        X = np.asarray(X)
        truth = super().dose_response(X, doses)
        own = DISCOUNTS if doses is None else np.asarray(doses)
        wrong = 0.15 * np.sin(1e4 * X[:, :1] * (1 + own)) * (own > 0)
        return np.clip(truth + wrong, 0, 1)


def experiment(n, seed):
    """Orders of riders who had a discount at random, with unequal chances."""
    rng = np.random.default_rng([seed, 1])  # not the stream that draws the riders
    X, context = market(n, seed)
    chances = np.where(X[:, :1] > 0.25, [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4])
    place = (rng.random((n, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    orders = KnownCurves().dose_response(X)
    y = (rng.random(n) < orders[np.arange(n), place]).astype(float)
    return X, context, y, place, chances, orders


def fooled_policy(**parameters):
    return DosePolicy(Fooled(), DISCOUNTS, value=Response(), cost=SPENT, **parameters)


def test_intervals_cover_the_true_value_and_the_predicted_gain_overstates_it():
    policy = fooled_policy(budget_price=0.01)
    covered, overstated = [], []
    for seed in range(200):
        X, context, y, place, chances, orders = experiment(500, seed)
        found = policy_value(
            policy, X, y, treatment=DISCOUNTS[place], propensity=chances, context=context
        )
        chosen = policy.decide(X, context).dose_index
        true_gain = (orders[np.arange(500), chosen] - orders[:, 0]).mean()
        low, high = found.gain.interval()
        covered.append(low < true_gain < high)
        overstated.append((found.predicted_gain - true_gain, found.overstated.value))
    # 200 draws of a 95 % interval: a binomial, within 3 standard deviations of .015 each.
    assert 0.90 < np.mean(covered) < 0.99
    promised, told = np.mean(overstated, axis=0)
    assert promised > 0.05  # the optimiser's curse, by the errors of .15 that were chosen
    assert told == pytest.approx(promised, abs=0.015)  # standard errors of .06 over 200 draws


def test_a_forest_that_knows_the_truth_overstates_nothing():
    X, context, y, place, chances, orders = experiment(4000, 1)
    policy = DosePolicy(KnownCurves(), DISCOUNTS, value=MARGIN, cost=SPENT, budget_price=0.5)
    found = policy_value(
        policy, X, y, treatment=DISCOUNTS[place], propensity=chances, context=context
    )
    assert abs(found.overstated.value) < 3.5 * found.overstated.standard_error
    chosen = policy.decide(X, context).dose_index
    margin = context["margin"] * orders[np.arange(4000), chosen]
    assert found.predicted_value == pytest.approx(margin.mean(), rel=1e-12)
    assert abs(found.value - margin.mean()) < 3.5 * found.standard_error
    spent = (context["fare"] * DISCOUNTS[chosen] * orders[np.arange(4000), chosen]).mean()
    assert found.predicted_cost == pytest.approx(spent, rel=1e-12)
    assert abs(found.cost.value - spent) < 3.5 * found.cost.standard_error


def test_scores_are_the_formula_by_hand():
    X, _, y, place, chances, _ = experiment(300, 2)
    found = policy_value(
        ConstantPolicy(0.2),
        X,
        y,
        treatment=DISCOUNTS[place],
        propensity=chances[np.arange(300), place],
        forest=Fooled(),
        baseline=0.1,
    )
    curves = Fooled().dose_response(X)
    scores = {}
    for k in (1, 2):
        at = place == k
        scores[k] = curves[:, k] + at * (y - curves[:, k]) / chances[:, k]
    gain = scores[2] - scores[1]
    assert found.value == pytest.approx(scores[2].mean())
    assert found.gain.value == pytest.approx(gain.mean())
    assert found.gain.standard_error == pytest.approx(gain.std(ddof=1) / np.sqrt(300))
    assert found.predicted_gain == pytest.approx((curves[:, 2] - curves[:, 1]).mean())


def test_a_plan_of_these_very_rows_and_a_policy_that_draws_are_judged_alike():
    X, context, y, place, chances, _ = experiment(1000, 3)
    shared = {"treatment": DISCOUNTS[place], "propensity": chances, "context": context}
    policy = fooled_policy(budget_price=0.01)
    by_policy = policy_value(policy, X, y, **shared)
    doses = policy.decide(X, context).dose
    own = {**shared, "propensity": chances[np.arange(1000), place]}
    by_doses = policy_value(doses, X, y, forest=Fooled(), cost=SPENT, baseline=0.0, **own)
    assert by_doses == by_policy
    mixed = policy_value(Explore(policy, 0.5, key="rider", salt="a"), X, y, **shared)
    drawn = policy_value(
        ExplorationPolicy(DISCOUNTS, key="rider", salt="a"),
        X,
        y,
        forest=Fooled(),
        baseline=0.0,
        **shared,
    )
    # Half of the policy's own value and half of what doses at random are worth.
    assert mixed.value == pytest.approx((by_policy.value + drawn.value) / 2, rel=1e-9)


def test_rows_of_a_group_count_as_one():
    X, _, y, place, chances, _ = experiment(200, 4)
    twice = [np.concatenate([own, own]) for own in (X, y, DISCOUNTS[place], chances)]
    shared = {"forest": Fooled(), "baseline": 0.0}
    once = policy_value(
        ConstantPolicy(0.2),
        X,
        y,
        treatment=DISCOUNTS[place],
        propensity=chances[np.arange(200), place],
        **shared,
    )
    own = twice[3][np.arange(400), np.tile(place, 2)]
    doubled = policy_value(
        ConstantPolicy(0.2),
        twice[0],
        twice[1],
        treatment=twice[2],
        propensity=own,
        groups=np.tile(np.arange(200), 2),
        **shared,
    )
    assert doubled.gain.standard_error == pytest.approx(once.gain.standard_error)
    weighted = policy_value(
        ConstantPolicy(0.2),
        twice[0],
        twice[1],
        treatment=twice[2],
        propensity=own,
        sample_weight=np.repeat([1.0, 0.0], 200),
        **shared,
    )
    assert weighted.gain.value == pytest.approx(once.gain.value)
    assert weighted.n_units == once.n_units


@pytest.fixture(name="observed", scope="module")
def _observed():
    """A dose that people with a large first feature have more of, whose effect is 1 + x1."""

    def draw(n, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 2))
        dose = np.clip(3 + X[:, 0] + rng.normal(size=n), 0, 6)
        return X, dose, 2 * X[:, 0] + dose * (1 + X[:, 1]) + rng.normal(size=n)

    X, dose, y = draw(600, 0)
    forest = GeneralizedCausalForest(
        n_trees=40, outcome_model=LinearRegression(), density="location_scale",
        doses=[2.0, 3.0, 4.0], baseline=3.0,
        random_state=0,
    )  # fmt: skip
    return forest.fit(X, y, treatment=dose), draw(600, 1)


def test_observed_rows_are_weighed_by_the_nuisances_of_the_forest(observed):
    forest, (X, dose, y) = observed
    policy = DosePolicy(forest, support=None)
    found = policy_value(policy, X, y, treatment=dose, forest=forest)
    chosen = policy.decide(X).dose
    truth = ((chosen - 3.0) * (1 + X[:, 1])).mean()
    # The outcome model has no interaction; without a correction for it gains would be far off.
    assert abs(found.gain.value - truth) < 3.5 * found.gain.standard_error
    assert 0 < found.gain.standard_error < 0.5 * truth
    everybody = policy_value(ConstantPolicy(4.0), X, y, treatment=dose, forest=forest)
    assert abs(everybody.gain.value - (1 + X[:, 1].mean())) < 3.5 * everybody.gain.standard_error
    assert "held-out units" in str(found)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"propensity": np.zeros(50)}, "'propensity' parameter must be above 0"),
        ({"propensity": np.ones(7)}, "'propensity' parameter must have the probability"),
        ({"propensity": None}, "'forest' parameter must be a fitted GeneralizedCausalForest"),
        ({"forest": 3.0}, "'forest' parameter must be given, with the method"),
        ({"treatment": np.zeros(50)}, "'treatment' parameter must hold every dose"),
        ({"treatment": np.zeros((50, 2))}, "'treatment' parameter must have"),
        ({"baseline": [1.0, 2.0]}, "'baseline' parameter must be one dose"),
        ({"value": 2.0}, "'value' parameter must be a rule"),
        ({"cost": "fare"}, "'cost' parameter must be a rule"),
        ({"value": DoseCost(component=1)}, "'component' parameter of a rule must be below 1"),
        ({"value": MARGIN, "context": {"margin": np.nan}}, "finite numbers in the columns"),
    ],
)
def test_bad_input_is_named(changed, message):
    X, _, y, place, _, _ = experiment(50, 5)
    given = {"treatment": DISCOUNTS[place], "propensity": np.full(50, 0.25), "forest": Fooled()}
    with pytest.raises((TypeError, ValueError), match=message):
        policy_value(ConstantPolicy(0.3), X, y, **{**given, "baseline": 0.0, **changed})


def test_plans_mind_uncertainty_as_they_are_told():
    rng = np.random.default_rng(0)
    value, errors = rng.random((50, 4)).cumsum(axis=1), rng.random((50, 4))
    cost = [0.0, 1.0, 2.0, 3.0]
    for risk, left in (
        (LowerBound(1.5), value - 1.5 * errors),
        (MeanVariance(3.0), value - 1.5 * errors**2),
    ):
        plan = optimize_doses(value, cost, budget=40.0, standard_error=errors, risk=risk)
        same = optimize_doses(left, cost, budget=40.0)
        np.testing.assert_array_equal(plan.dose_index, same.dose_index)
        assert plan.value == same.value == same.expected_value
        assert plan.expected_value == pytest.approx(value[np.arange(50), plan.dose_index].sum())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"risk": None}, "'risk' parameter must be given together with 'standard_error'"),
        ({"standard_error": None}, "'standard_error' parameter must be given together with"),
        ({"standard_error": [-1.0, 0.0]}, "'standard_error' parameter must not be negative"),
        ({"standard_error": [0.0, np.nan]}, "'standard_error' parameter must hold finite"),
        ({"standard_error": np.ones((3, 3))}, "'standard_error' parameter must have the shape"),
        ({"risk": 1.0}, "'risk' parameter must be LowerBound"),
    ],
)
def test_bad_risks_are_named(changed, message):
    given = {"standard_error": [0.0, 1.0], "risk": LowerBound(), **changed}
    with pytest.raises((TypeError, ValueError), match=message):
        optimize_doses([[0.0, 1.0]], **given)
