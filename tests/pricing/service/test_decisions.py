"""Decisions: what is answered is what the policy says, and it is stored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from service_world import World, forest_policy, unit
from sqlalchemy import select

from doseforest.policy.artifact.policy_decisions import ANSWERED
from doseforest.pricing.service.api.decision_models import DecisionAnswer
from doseforest.pricing.service.registry.incoming_units import ServedUnit
from doseforest.pricing.service.storage.service_tables import decisions


def stored(world: World) -> list[Any]:
    with world.database.reading.connect() as connection:
        rows = connection.execute(select(decisions).order_by(decisions.c.id))
        return list(rows.mappings())


def test_a_decision_is_the_policys_and_is_stored(client: TestClient, world: World) -> None:
    answer = client.post("/v1/decision", json=unit("ann", 1.5), headers=world.headers())
    assert answer.status_code == 200, answer.text
    own = answer.json()
    expected = forest_policy().decide(np.array([[1.5, 1.0]]))
    assert own["dose"] == expected.dose[0] == 1.0
    assert own["effect"] == expected.effect[0]
    assert own["cost"] == 1.0
    assert own["shadow_price"] == 1.0
    assert (own["reason"], own["fallback"], own["propensity"]) == ("best", False, 1.0)
    assert (own["policy_version"], own["arm"], own["low"]) == (1, None, None)
    (row,) = stored(world)
    assert row["id"] == own["decision_id"]
    assert json.loads(row["features"]) == {"x0": 1.5, "x1": 1.0}
    assert json.loads(row["propensities"]) == [[1.0, 1.0]]
    assert row["unit"] != "ann"
    assert "ann" not in (row["unit"], row["cell"])


def test_a_batch_is_answered_in_the_order_of_its_units(client: TestClient, world: World) -> None:
    x0 = [0.2, 3.5, 1.7, None] * 15  # more than are decided on without a thread
    units = [unit(f"u{place}", x) for place, x in enumerate(x0)]
    answer = client.post("/v1/decisions", json={"units": units}, headers=world.headers())
    found = answer.json()["decisions"]
    values = np.array([[np.nan if x is None else x, 1.0] for x in x0])
    assert [own["dose"] for own in found] == forest_policy().decide(values).dose.tolist()
    assert [own["unit"] for own in found] == [own["unit"] for own in units]
    assert len(stored(world)) == len(units)


def test_numbers_of_the_record_are_answered_and_stored_under_their_names() -> None:
    """A number more is a field of the record, one of the answer, and a column by a migration."""
    fields = DecisionAnswer.model_fields
    numbers = [name for name, field in fields.items() if field.annotation == float | None]
    assert tuple(numbers) == ANSWERED
    columns = [column.name for column in decisions.columns]
    assert [name for name in columns if name in ANSWERED] == list(ANSWERED)
    made = forest_policy().decide(np.array([[1.5, 1.0]]))
    assert all(getattr(made, name).shape == (1,) for name in ANSWERED)


@pytest.mark.parametrize("features", [{}, {"x0": 1.0}, {"x0": "high", "x1": 1.0}])
def test_a_unit_without_a_feature_gets_the_baseline_and_hears_so(
    client: TestClient, world: World, features: dict[str, Any]
) -> None:
    sent = {"units": [{"unit": "bob", "features": features}, unit("ann", 1.5)]}
    first, second = client.post("/v1/decisions", json=sent, headers=world.headers()).json()[
        "decisions"
    ]
    assert (first["dose"], first["fallback"], first["reason"]) == (0.0, True, "missing_features")
    assert (second["dose"], second["fallback"]) == (1.0, False)


def test_without_a_policy_there_is_the_fallback_dose_or_a_503(
    world: World, started: Callable[..., TestClient]
) -> None:
    client = started(world)
    refused = client.post("/v1/decision", json=unit(), headers=world.headers())
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "no_policy"
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200
    assert stored(world) == []


def choosy(choose: Any, sizes: list[int]) -> Any:
    """Chooses as it would, but not for those called poison; notes how many units it was asked."""

    def choose_or_fail(policy: Any, units: Any) -> Any:
        sizes.append(len(units))
        if any(own.unit == "poison" for own in units):
            raise MemoryError("no luck")
        return choose(policy, units)

    return choose_or_fail


def test_a_policy_that_fails_is_not_the_clients_problem(
    client: TestClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise MemoryError("no luck")

    served = client.app.state.service.live.current.deciders.policy
    monkeypatch.setattr(type(served), "choose", broken)
    own = client.post("/v1/decision", json=unit(), headers=world.headers()).json()
    assert (own["dose"], own["fallback"], own["reason"]) == (0.0, True, "failed")
    page = client.get("/metrics", headers=world.headers("report")).text
    assert "doseforest_policy_failures_total 1.0" in page
    assert 'doseforest_fallbacks_total{reason="failed"} 1.0' in page


def test_a_policy_fails_on_one_unit_of_a_batch_alone(
    client: TestClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = client.app.state.service.live.current.deciders.policy
    monkeypatch.setattr(type(served), "choose", choosy(type(served).choose, []))
    names = [f"u{place}" for place in range(40)]  # too many to be gathered with others
    names[17] = "poison"
    sent = {"units": [unit(name, 3.5) for name in names]}
    found = client.post("/v1/decisions", json=sent, headers=world.headers()).json()["decisions"]
    assert [own["unit"] for own in found] == names
    assert [own["unit"] for own in found if own["reason"] == "failed"] == ["poison"]
    assert {own["dose"] for own in found if own["unit"] != "poison"} == {2.0}


def test_draws_are_stored_with_all_their_probabilities(
    world: World, started: Callable[..., TestClient]
) -> None:
    world.publish("random")
    client = started(world)
    sent = {"units": [unit(f"u{place}") for place in range(40)]}
    first = client.post("/v1/decisions", json=sent, headers=world.headers()).json()["decisions"]
    again = client.post("/v1/decisions", json=sent, headers=world.headers()).json()["decisions"]
    assert [own["dose"] for own in first] == [own["dose"] for own in again]  # sticky by unit
    chances = {0.0: 0.5, 1.0: 0.25, 2.0: 0.25}
    assert {own["dose"] for own in first} == set(chances)
    assert all(own["propensity"] == chances[own["dose"]] for own in first)
    assert all(dict(json.loads(row["propensities"])) == chances for row in stored(world))


def test_curves_are_the_forests(client: TestClient, world: World) -> None:
    sent = {"units": [unit("ann", 1.5), {"unit": "bob", "features": {}}]}
    found = client.post("/v1/curves", json=sent, headers=world.headers()).json()
    policy = forest_policy()
    expected = policy.forest.dose_response(np.array([[1.5, 1.0]]), policy.plain_doses)
    assert found["doses"] == [0.0, 1.0, 2.0]
    assert found["curves"][0]["response"] == expected[0].tolist()
    assert found["curves"][1]["response"] is None
    assert stored(world) == []


def test_outcomes_are_stored_once_and_the_last_report_counts(
    client: TestClient, world: World
) -> None:
    own = client.post("/v1/decision", json=unit(), headers=world.headers()).json()
    report = world.headers("report")
    for value in (1.0, 1.0, 2.5):
        sent = {"outcomes": [{"decision_id": own["decision_id"], "value": value}]}
        answer = client.post("/v1/outcomes", json=sent, headers=report)
        assert answer.json() == {"stored": 1}
    from doseforest.pricing.service.storage.service_tables import outcomes

    with world.database.reading.connect() as connection:
        rows = connection.execute(select(outcomes.c.metric, outcomes.c.value)).all()
    assert rows == [("outcome", 2.5)]


def test_an_outcome_of_no_decision_is_refused_and_nothing_stored(
    client: TestClient, world: World
) -> None:
    own = client.post("/v1/decision", json=unit(), headers=world.headers()).json()
    both = [own["decision_id"], "0" * 32]
    sent = {"outcomes": [{"decision_id": name, "value": 1} for name in both]}
    refused = client.post("/v1/outcomes", json=sent, headers=world.headers("report"))
    assert refused.status_code == 404
    assert "1 of the outcomes" in refused.json()["error"]["message"]
    from doseforest.pricing.service.storage.service_tables import outcomes

    with world.database.reading.connect() as connection:
        assert connection.execute(select(outcomes)).all() == []


def test_the_same_request_is_done_once(client: TestClient, world: World) -> None:
    headers = {**world.headers(), "Idempotency-Key": "order-17"}
    first = client.post("/v1/decision", json=unit(), headers=headers)
    second = client.post("/v1/decision", json=unit(), headers=headers)
    assert first.json() == second.json()
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    assert len(stored(world)) == 1
    other = client.post("/v1/decision", json=unit("bob"), headers=headers)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "other_request")
    admin = {**world.headers("admin"), "Idempotency-Key": "order-17"}  # another key, another token
    assert client.post("/v1/decision", json=unit("bob"), headers=admin).status_code == 200
    assert len(stored(world)) == 2


def test_requests_that_come_together_are_decided_on_together_and_fail_alone(
    client: TestClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = client.app.state.service
    served = service.live.current.deciders.policy
    sizes: list[int] = []
    monkeypatch.setattr(type(served), "choose", choosy(type(served).choose, sizes))
    units = [[unit(name, x0)] for name, x0 in (("ann", 1.5), ("poison", 3.5), ("bob", 3.5))]
    served_units = [
        [ServedUnit(own["unit"], "c", own["features"]) for own in sent] for sent in units
    ]
    failures: list[Exception] = []

    async def together() -> Any:
        asked = [service.gathering.decide(own, failures.append) for own in served_units]
        return await asyncio.gather(*asked)

    found = client.portal.call(together)
    assert [own.made.reason.tolist() for own in found] == [["best"], ["failed"], ["best"]]
    assert [own.made.dose.tolist() for own in found] == [[1.0], [0.0], [2.0]]
    assert sizes == [3, 1, 1, 1]
    assert len(failures) == 1
