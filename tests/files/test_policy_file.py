"""A policy in a file decides as it did, and nothing but a policy is read as one."""

import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from doseforest import ForestFileError, GeneralizedCausalForest, load_forest, load_policy
from doseforest.policy import (
    ConstantPolicy,
    DiscountCost,
    DoseCost,
    DosePolicy,
    ExplorationPolicy,
    Explore,
    Fee,
    LowerBound,
    MeanVariance,
    PartPrices,
    Response,
    unit_table,
)
from forest_file_mutations import Parts, mutated, sealed, take_apart
from markets import DISCOUNTS, MARGIN, SPENT, KnownCurves, market
from policy_file_check import check_policy_file
from stored_policies.write_policies import decided

STORED = Path(__file__).parents[1] / "stored_policies" / "explore_format_1.dose"


def same_decisions(first, second):
    for name in ("dose_index", "value", "cost", "net", "effect", "supported", "propensity"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert first.reason.tolist() == second.reason.tolist()


@pytest.fixture(name="curves", scope="module")
def _curves():
    X, _ = market(300)
    return unit_table(X, KnownCurves().dose_response(X), DISCOUNTS)


@pytest.fixture(name="forest", scope="module")
def _forest():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=300), "city": rng.choice(["a", "b", "c"], 300)})
    far = frame["city"] == "a"
    dose = np.where(far, rng.uniform(0, 4, 300), rng.uniform(0, 10, 300))
    y = frame["size"] + dose * (1 + far) + rng.normal(size=300)
    forest = GeneralizedCausalForest(correction="none", doses=[0.0, 2.0, 5.0, 9.0], random_state=0)
    return forest.fit(frame, y, treatment=dose), frame


def test_errors_of_an_array_have_the_features_of_a_forest_of_a_frame(tmp_path):
    X, context = market(300)
    frame = pd.DataFrame(X, columns=["usual", "taste"])
    curves = unit_table(frame, KnownCurves().dose_response(X), DISCOUNTS)
    known = {"value": MARGIN, "risk": MeanVariance(2.0)}
    uncertain = 0.02 + 0.1 * X[:, :1] * DISCOUNTS
    named, unnamed = (
        DosePolicy(curves, errors=unit_table(own, uncertain, DISCOUNTS), **known)
        for own in (frame, X)
    )
    unnamed.save(tmp_path / "policy.dose")
    loaded = load_policy(tmp_path / "policy.dose")
    swapped = frame[["taste", "usual"]]
    for policy in (unnamed, loaded):
        same_decisions(policy.decide(swapped, context), named.decide(frame, context))


def test_models_of_units_may_know_other_labels_than_the_forest(forest, tmp_path):
    fitted, frame = forest
    some = frame["city"] != "c"
    errors = unit_table(
        frame[some], np.ones((some.sum(), 4)), fitted.doses, categorical_features=["city"]
    )
    policy = DosePolicy(fitted, support=None, errors=errors, risk=MeanVariance(1.0))
    policy.save(tmp_path / "policy.dose")
    same_decisions(load_policy(tmp_path / "policy.dose").decide(frame), policy.decide(frame))


@pytest.mark.parametrize("name", ["errors", "support"])
@pytest.mark.parametrize("columns", [["taste", "usual"], ["usual"], ["usual", "taste", "fare"]])
def test_models_of_units_with_other_features_than_the_forest_are_refused(name, columns):
    X, context = market(100)
    frame = pd.DataFrame(X, columns=["usual", "taste"]).assign(fare=context["fare"])
    curves = unit_table(frame[["usual", "taste"]], KnownCurves().dose_response(X), DISCOUNTS)
    table = unit_table(frame[columns], np.ones((100, 4)), DISCOUNTS)
    message = f"'{name}' parameter must be of the features of the forest: 2 features"
    with pytest.raises(ValueError, match=message):
        DosePolicy(curves, **{name: table})


def test_a_saved_policy_decides_as_before(curves, tmp_path):
    X, context = market(300)
    policy = DosePolicy(
        curves,
        value=Response("margin") - 0.5 * DiscountCost("fare") - Fee(0.01),
        cost=SPENT + DoseCost("fare"),
        budget_price=0.3,
        group_prices=PartPrices("region", {"north": 0.1, "south": 0.4}, unseen=0.2),
        cell_prices=PartPrices("cell", dict.fromkeys(range(6), 0.05)),
        demand=Response(0.9),
        min_dose=0.1,
        max_dose="largest",
        baseline=0.1,
        support=unit_table(X, (X[:, :1] < 0.4) | (DISCOUNTS < 0.2), DISCOUNTS),
        errors=unit_table(X, np.full((300, 4), 0.02), DISCOUNTS),
        risk=MeanVariance(2.0),
    )
    path = tmp_path / "policy.dose"
    policy.save(path)
    before = policy.decide(X, context)
    for memory_map in (False, True):
        same_decisions(load_policy(path, memory_map=memory_map).decide(X, context), before)
    again = tmp_path / "again.dose"
    load_policy(path).save(again)
    assert again.read_bytes() == path.read_bytes()
    assert len(set(before.reason)) > 1


def test_every_kind_of_policy_comes_back(curves, tmp_path):
    X, context = market(50)
    base = DosePolicy(curves, value=MARGIN, cost=SPENT, budget_price=0.3)
    policies = [
        ConstantPolicy(0.2),
        ConstantPolicy([1.0, 2.0]),
        ExplorationPolicy(DISCOUNTS, [0.1, 0.2, 0.3, 0.4], key="rider", salt="s"),
        Explore(base, 0.5, [0.0, 0.2, 0.3, 0.5], key="rider", salt="s"),
    ]
    for policy in policies:
        policy.save(tmp_path / "policy.dose")
        loaded = load_policy(tmp_path / "policy.dose")
        assert type(loaded) is type(policy)
        same_decisions(loaded.decide(X, context), policy.decide(X, context))


def test_a_fitted_forest_with_categories_and_its_support_is_kept(forest, tmp_path):
    fitted, frame = forest
    policy = DosePolicy(fitted, cost=DoseCost(), budget_price=0.5)
    decisions = policy.decide(frame)
    # Units of city a never had more than 4: they get no more, though the curve rises.
    assert (decisions.dose[frame["city"] == "a"] <= 5.0).all()
    assert (decisions.dose[frame["city"] != "a"] == 9.0).all()
    assert (decisions.supported == 1).all()
    direct = fitted.supported(frame)
    kept = policy.alternatives(frame).supported
    assert (kept == direct).mean() > 0.95  # a forest of flags blurs their edges
    for served in (policy, DosePolicy(fitted.distill(verbose=False), [0.0, 2.0, 5.0, 9.0])):
        served.save(tmp_path / "policy.dose")
        loaded = load_policy(tmp_path / "policy.dose")
        same_decisions(loaded.decide(frame), served.decide(frame))


def test_a_distilled_forest_can_have_the_support_of_the_one_it_came_from(forest):
    fitted, frame = forest
    small = fitted.distill(verbose=False)
    held = DosePolicy(small, [0.0, 2.0, 5.0, 9.0], support=fitted).decide(frame)
    free = DosePolicy(small, [0.0, 2.0, 5.0, 9.0]).decide(frame)
    far = (frame["city"] == "a").to_numpy()
    assert (free.dose[far] == 9.0).mean() > 0.9
    assert (held.dose[far] <= 5.0).all()


def test_policies_and_forests_are_not_taken_for_each_other(curves, tmp_path):
    curves.save(tmp_path / "forest.dose")
    ConstantPolicy(1.0).save(tmp_path / "policy.dose")
    with pytest.raises(ForestFileError, match=r"holds a 'distilled_forest'.*load_forest"):
        load_policy(tmp_path / "forest.dose")
    with pytest.raises(ForestFileError, match=r"holds a 'policy'.*load_policy"):
        load_forest(tmp_path / "policy.dose")


def test_code_is_not_saved(tmp_path):
    with pytest.raises(TypeError, match="'forest' parameter must be a GeneralizedCausalForest"):
        DosePolicy(KnownCurves(), DISCOUNTS).save(tmp_path / "policy.dose")
    assert not list(tmp_path.iterdir())


def test_an_older_file_is_still_read():
    policy = load_policy(STORED)
    assert policy.policy.risk == LowerBound(1.0)
    context = {"margin": 1.0, "fare": 2.0, "region": 2, "cell": 1, "largest": 0.1, "rider": "ann"}
    decisions = policy.decide([[3.0, 0.0]], context)
    assert decisions.shadow_price[0] == 0.7
    assert decisions.propensity[0] in map(pytest.approx, (0.94, 0.04, 0.06))


@pytest.mark.parametrize("path", sorted(STORED.parent.glob("*.dose")), ids=lambda path: path.name)
def test_stored_policies_of_every_kind_decide_as_they_did(path):
    """Written by tests/stored_policies/write_policies.py."""
    found, expected = decided(load_policy(path)), np.load(path.with_suffix(".decisions.npz"))
    assert set(found) == set(expected)
    for name in found:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, err_msg=name)


def test_damaged_files_are_refused(tmp_path):
    whole = STORED.read_bytes()
    path = tmp_path / "policy.dose"
    for file in (whole[:-64], whole[:-1] + b"\1", whole[:200] + b"x" + whole[201:]):
        path.write_bytes(file)
        with pytest.raises(ForestFileError):
            load_policy(path)


FORGED = [
    (("policy", "budget_price"), -1.0, "'budget_price' parameter must be a finite number"),
    (("policy", "value", "kind"), "sum", "The rule must be one of"),
    (("policy", "cost", "price"), None, "'price' parameter must be a finite number or the name"),
    (("policy", "risk", "kind"), "none", "The risk must be one of"),
    (("policy", "baseline"), 0.15, "'baseline' parameter must be one of the doses"),
    (("policy", "forest"), None, "has no forest"),
    (("policy", "support", "kind"), "forest", "has a support of another kind"),
    (("policy", "group_prices", "prices"), [["a", 1.0], ["a", 2.0]], "name each label once"),
    (("probabilities",), [0.5, 0.5, 0.5], "'probabilities' parameter must be 3 numbers"),
    (("share",), 1.5, "'share' parameter must be a number from 0 to 1"),
    (("kind",), "secret", "is of the unknown kind"),
]


@pytest.mark.parametrize(("where", "value", "message"), FORGED)
def test_forged_contents_are_refused(where, value, message, tmp_path):
    parts = take_apart(STORED.read_bytes())
    owner = parts.metadata["policy"]
    for key in where[:-1]:
        owner = owner[key]
    owner[where[-1]] = value
    path = tmp_path / "policy.dose"
    path.write_bytes(sealed(Parts(parts.metadata, parts.pieces)))
    with pytest.raises(ForestFileError, match=message):
        load_policy(path)


def test_changed_files_are_refused_or_decide(tmp_path):
    def flipped(data, most):
        rng = random.Random(data[:200])
        changed = bytearray(data)
        changed[rng.randrange(len(changed))] = rng.randrange(256)
        return bytes(changed[:most])

    files = {mutated(STORED.read_bytes(), 100_000, number, flipped) for number in range(300)}
    loaded = [check_policy_file(file, tmp_path / "policy.dose") for file in files]
    assert 0.05 < np.mean(loaded) < 0.8  # changes reach past the checksums
