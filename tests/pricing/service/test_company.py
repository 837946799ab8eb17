"""What becomes of a unit does not hang on who else is in its request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from service_world import DOSES, forest_policy

from doseforest.policy import DiscountCost, DosePolicy, ExplorationPolicy, Explore, PartPrices
from doseforest.pricing.service import deciding
from doseforest.pricing.service.deciding import Deciders
from doseforest.pricing.service.online_experiments.running_arms import Arm, RunningExperiment
from doseforest.pricing.service.registry.incoming_units import ServedUnit
from doseforest.pricing.service.registry.served_policy import ServedPolicy


def served(name: str = "u", **features: Any) -> ServedUnit:
    return ServedUnit(name, name, {"x0": 3.0, "x1": 1.0, **features})


def of(policy: Any) -> Deciders:
    return Deciders(ServedPolicy(1, policy), None, None)


def decide(deciders: Deciders, units: list[ServedUnit]) -> list[SimpleNamespace]:
    """Decisions one by one, as they are answered and stored."""
    decided = deciding.decide(deciders, units)
    columns = {**decided.columns(), "propensities": decided.chances()}
    return [
        SimpleNamespace(**dict(zip(columns, values, strict=True)))
        for values in zip(*columns.values(), strict=True)
    ]


def broken(*_: Any) -> None:
    raise MemoryError("no luck")


@pytest.mark.parametrize("company", [{"trip": "T-1"}, {"trip": 0.5}, {}, {"trip": True}])
def test_a_draw_does_not_hang_on_the_keys_of_others(company: dict[str, Any]) -> None:
    policies = [
        ExplorationPolicy(DOSES, salt="s", key="trip"),
        Explore(forest_policy(), share=1.0, salt="s", key="trip"),
    ]
    for policy in policies:
        units = [served(trip=trip) for trip in range(50)]
        alone = [decide(of(policy), [own])[0] for own in units]
        together = decide(of(policy), [*units, served("v", **company)])[:-1]
        assert together == alone
        expected = policy.decide(np.array([[3.0, 1.0]] * 50), {"trip": np.arange(50)})
        assert [own.dose for own in alone] == expected.dose.tolist()


def test_a_key_is_the_same_as_number_and_as_text() -> None:
    explore = of(ExplorationPolicy(DOSES, salt="s", key="trip"))
    for trip in range(20):
        forms = [served(trip=own) for own in (trip, float(trip), str(trip))]
        assert len({own.dose for own in decide(explore, forms)}) == 1


@pytest.mark.parametrize("fare", ["oops", None, 10**400], ids=["text", "nothing", "huge"])
def test_one_wrong_fare_is_the_problem_of_its_unit_alone(fare: Any) -> None:
    forest = forest_policy().forest
    policy = of(DosePolicy(forest, cost=DiscountCost("fare", 0.1), budget_price=0.5))
    (alone,) = decide(policy, [served(fare=2.0)])
    good, bad = decide(policy, [served(fare=2.0), served("v", fare=fare)])
    assert good == alone
    assert not good.fallback
    assert (bad.dose, bad.reason) == (0.0, "missing_features")


def test_labels_of_prices_are_looked_up_one_by_one() -> None:
    prices = PartPrices("zone", {7: 0.0, "north": 100.0}, unseen=100.0)
    policy = of(DosePolicy(forest_policy().forest, cost=DiscountCost(1.0), group_prices=prices))
    units = [served(zone=7), served(zone=7.0), served(zone="north")]
    alone = [decide(policy, [own])[0].dose for own in units]
    assert alone == [2.0, 2.0, 0.0]
    assert [own.dose for own in decide(policy, units)] == alone


def test_units_of_a_policy_that_fails_stay_in_their_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    arms = [ServedPolicy(2, forest_policy()), ServedPolicy(3, ExplorationPolicy(DOSES, salt="s"))]
    named = (Arm("forest", 0.5, arms[0]), Arm("random", 0.5, arms[1]))
    deciders = Deciders(None, RunningExperiment(9, "spring", "salt", named), 1.0)
    units = [served(f"u{place}") for place in range(30)]
    well = decide(deciders, units)
    monkeypatch.setattr(ServedPolicy, "choose", broken)
    failed = decide(deciders, units)
    assert {own.arm for own in failed} == {"forest", "random"}
    for before, after in zip(well, failed, strict=True):
        assert (after.dose, after.reason, after.propensities) == (1.0, "failed", [(1.0, 1.0)])
        assert after.experiment == before.experiment == "spring"
        assert (after.arm, after.policy_version) == (before.arm, before.policy_version)
