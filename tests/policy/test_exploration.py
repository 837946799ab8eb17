"""Policies that draw: the shares that were asked for, and propensities that are true."""

import numpy as np
import pytest

from doseforest.policy import ConstantPolicy, DosePolicy, ExplorationPolicy, Explore, unit_table
from doseforest.policy.artifact.keyed_draws import keyed_uniform
from doseforest.policy.artifact.policy_decisions import assigned, joined
from markets import DISCOUNTS, MARGIN, SPENT, KnownCurves, market

N = 20_000
CHANCES = np.array([0.4, 0.3, 0.2, 0.1])


@pytest.fixture(name="crowd", scope="module")
def _crowd():
    return market(N)


def policy(**parameters):
    return DosePolicy(KnownCurves(), DISCOUNTS, value=MARGIN, cost=SPENT, **parameters)


def near(share, expected, n=N):
    """Within 4.5 standard errors, which a fair draw misses once in 150,000 times."""
    return abs(share - expected) < 4.5 * np.sqrt(expected * (1 - expected) / n)


def test_draws_are_uniform_and_other_salts_draw_independently():
    keys = np.arange(N)
    first, second = keyed_uniform(keys, "spring"), keyed_uniform(keys, "summer")
    for draws in (first, second, keyed_uniform([f"rider-{k}" for k in keys], "spring")):
        tenths = np.bincount((draws * 10).astype(int), minlength=10) / N
        assert all(near(share, 0.1) for share in tenths)
    assert abs(np.corrcoef(first, second)[0, 1]) < 4.5 / np.sqrt(N)
    neighbours = np.corrcoef(first[1:], first[:-1])[0, 1]
    assert abs(neighbours) < 4.5 / np.sqrt(N)


def test_a_key_is_the_same_as_text_or_number_alone_or_among_others():
    keys = np.array([3, 14, 159_265])
    draws = keyed_uniform(keys, "pi")
    for same in (keys.astype(str), keys.astype(float), np.array(keys.tolist(), object)):
        np.testing.assert_array_equal(keyed_uniform(same, "pi"), draws)
    assert keyed_uniform(["14"], "pi")[0] == draws[1]
    assert keyed_uniform(["ab", "ba", "a"], "pi").tolist() != sorted(
        keyed_uniform(["ab"] * 3, "pi")
    )
    assert len(set(keyed_uniform(["ab", "ba", "a", "b", "aa"], "pi"))) == 5


def test_exploration_draws_doses_with_its_probabilities(crowd):
    X, context = crowd
    explored = ExplorationPolicy(DISCOUNTS, CHANCES, key="rider", salt="a")
    decisions = explored.decide(X, context)
    assert all(near(c / N, p) for c, p in zip(decisions.counts(), CHANCES, strict=True))
    np.testing.assert_array_equal(decisions.propensity, CHANCES[decisions.dose_index])
    assert explored.propensities(X).shape == (N, 4)
    again = explored.decide(X[::-1], {"rider": context["rider"][::-1]})
    np.testing.assert_array_equal(again.dose_index[::-1], decisions.dose_index)
    other = ExplorationPolicy(DISCOUNTS, CHANCES, key="rider", salt="b").decide(X, context)
    assert near((other.dose_index == decisions.dose_index).mean(), (CHANCES**2).sum())


def test_a_dose_of_probability_zero_is_never_drawn(crowd):
    X, context = crowd
    for chances in ([0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]):
        drawn = ExplorationPolicy(DISCOUNTS, chances, key="rider", salt="a").decide(X, context)
        assert (np.array(chances)[drawn.dose_index] > 0).all()


def test_a_mixture_has_the_propensities_that_it_says(crowd):
    X, context = crowd
    base = policy(budget_price=0.8, max_dose="largest")
    mixed = Explore(base, share=0.3, probabilities=CHANCES, key="rider", salt="a")
    decisions, own = mixed.decide(X, context), base.decide(X, context)
    chances = mixed.propensities(X, context)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    allowed = DISCOUNTS[None] <= context["largest"][:, None]
    drawn = np.where(allowed, CHANCES, 0)
    drawn /= drawn.sum(axis=1, keepdims=True)
    expected = 0.3 * drawn + 0.7 * np.eye(4)[own.dose_index]
    np.testing.assert_allclose(chances, expected)
    np.testing.assert_allclose(decisions.propensity, expected[np.arange(N), decisions.dose_index])
    assert (decisions.dose <= context["largest"]).all()
    # Weighted by 1 / propensity each dose stands for everybody who may have it.
    for place in range(4):
        told = np.where(decisions.dose_index == place, 1 / decisions.propensity, 0.0)
        able = allowed[:, place]
        error = told[able].std() / np.sqrt(able.sum())
        assert abs(told[able].mean() - 1) < 4.5 * error
    explored = decisions.reason == "explored"
    assert (explored == (decisions.dose_index != own.dose_index)).all()
    np.testing.assert_array_equal(decisions.value[~explored], own.value[~explored])
    assert "propensity" in decisions.explain(int(np.flatnonzero(explored)[0]))


def test_an_exploring_policy_asks_its_forest_once(crowd):
    X, context = crowd

    class Counted(KnownCurves):
        times = 0

        def dose_response(self, X, doses):
            Counted.times += 1
            return super().dose_response(X, doses)

    base = DosePolicy(Counted(), DISCOUNTS, value=MARGIN, cost=SPENT, budget_price=0.8)
    mixed = Explore(base, share=0.3, probabilities=CHANCES, key="rider", salt="a")
    chances = mixed.decide(X, context).propensities
    assert Counted.times == 1
    np.testing.assert_array_equal(chances, mixed.propensities(X, context))


def test_decisions_know_the_probability_of_every_dose(crowd):
    X, context = crowd
    base = policy(budget_price=0.8)
    for each in (base, ConstantPolicy(5.0), ExplorationPolicy(DISCOUNTS, key="rider", salt="a")):
        decisions = each.decide(X, context)
        np.testing.assert_array_equal(decisions.propensities, each.propensities(X, context))
        some = decisions.at(np.array([7, 3]))
        np.testing.assert_array_equal(some.propensities, decisions.propensities[[7, 3]])
        given = decisions.propensities[np.arange(N), decisions.dose_index]
        np.testing.assert_array_equal(given, decisions.propensity)


def test_decisions_on_other_doses_are_joined_and_assigned_among_all_of_them(crowd):
    X, context = crowd
    base, control = policy(budget_price=0.8), ConstantPolicy(0.05)
    first, second = base.decide(X, context), control.decide(X)
    both = joined([first, second])
    np.testing.assert_array_equal(both.doses, np.unique([*DISCOUNTS, 0.05]))
    np.testing.assert_array_equal(both.dose, [*first.dose, *second.dose])
    assert both.explain(3) == first.explain(3)
    place = np.arange(N) % 2
    mixed = assigned([first, second], [0.3, 0.7], place)
    np.testing.assert_array_equal(mixed.dose, np.where(place, second.dose, first.dose))
    np.testing.assert_array_equal(mixed.cost[place == 0], first.cost[place == 0])
    assert np.isnan(mixed.cost[place == 1]).all()
    same = first.dose == 0.05  # where both arms would give the same dose
    expected = np.where(same, 1.0, np.where(place, 0.7, 0.3))
    np.testing.assert_allclose(mixed.propensity, expected)


def test_no_share_is_the_policy_and_the_whole_share_draws_all(crowd):
    X, context = crowd
    base = policy(budget_price=0.8)
    none = Explore(base, 0.0, key="rider", salt="a").decide(X, context)
    np.testing.assert_array_equal(none.dose_index, base.decide(X, context).dose_index)
    assert (none.propensity == 1).all()
    everybody = Explore(base, 1.0, key="rider", salt="a").decide(X, context)
    np.testing.assert_allclose(everybody.propensity, 0.25)
    assert all(near(count / N, 0.25) for count in everybody.counts())


def test_units_that_cannot_be_decided_on_are_not_explored():
    X, context = market(50)
    context["fare"][:] = np.nan
    decisions = Explore(policy(), 1.0, key="rider", salt="a").decide(X, context)
    assert (decisions.dose == 0).all()
    assert (decisions.propensity == 1).all()
    assert set(decisions.reason) == {"invalid"}


def test_policies_without_randomness_are_sure(crowd):
    X, context = crowd
    base = policy(budget_price=0.8)
    assert (base.decide(X, context).propensity == 1).all()
    np.testing.assert_array_equal(
        base.propensities(X, context).argmax(axis=1), base.decide(X, context).dose_index
    )
    assert (ConstantPolicy(0.1).decide(X).propensity == 1).all()


def explored(**parameters):
    return ExplorationPolicy([0, 1], **{"salt": "a", **parameters})


def mixture(own, share):
    return Explore(own, share, salt="a")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConstantPolicy(np.nan), "'dose' parameter must be one or more finite"),
        (lambda: explored(probabilities=[0.5, 0.6]), "'probabilities' parameter must be 2"),
        (lambda: explored(probabilities=[1.5, -0.5]), "'probabilities' parameter must be 2"),
        (lambda: explored(probabilities=[1.0]), "'probabilities' parameter must be 2"),
        (lambda: explored(key=""), "'key' parameter must be the name"),
        (lambda: explored(salt=3), "'salt' parameter must be text of the experiment's own"),
        (lambda: explored(salt=""), "'salt' parameter must be text of the experiment's own"),
        (lambda: ExplorationPolicy([0, 1]), "argument: 'salt'"),
        (lambda: Explore(policy(), 0.1), "argument: 'salt'"),
        (lambda: mixture(ConstantPolicy(1.0), 0.1), "'policy' parameter must be a DosePolicy"),
        (lambda: mixture(policy(), 1.1), "'share' parameter must be a number from 0 to 1"),
        (lambda: mixture(policy(), True), "'share' parameter must be a number from 0 to 1"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["a", None], "must have a key for every unit"),
        ([1.5, 2.0], "keys that are text or whole numbers"),
        ([np.nan, 2.0], "must have a key for every unit"),
        ([("a", 1), ("b", 2)], "keys that are text or whole numbers|one entry per unit"),
        (["a" * 1001, "b"], "at most 1000 characters"),
    ],
)
def test_bad_keys_are_named(keys, message):
    drawn = ExplorationPolicy(DISCOUNTS, key="rider", salt="a")
    with pytest.raises((TypeError, ValueError), match=message):
        drawn.decide(np.zeros((2, 1)), {"rider": keys})
    with pytest.raises(ValueError, match="must have the column 'rider'"):
        drawn.decide(np.zeros((2, 1)))


@pytest.mark.parametrize("asked", ["decide", "propensities"])
@pytest.mark.parametrize("kind", ["constant", "random", "forest", "own model"])
def test_no_units_at_all_are_refused_by_every_policy(kind, asked):
    X, _ = market(60)
    policy = {
        "constant": lambda: ConstantPolicy(0.1),
        "random": lambda: ExplorationPolicy(DISCOUNTS, CHANCES, key="rider", salt="a"),
        "forest": lambda: DosePolicy(unit_table(X, np.zeros((60, 4)), DISCOUNTS)),
        "own model": lambda: DosePolicy(KnownCurves(), DISCOUNTS),
    }[kind]()
    with pytest.raises(ValueError, match=r"'X' parameter must have at least 1 row. Got 0 rows"):
        getattr(policy, asked)(X[:0], {"rider": []})
