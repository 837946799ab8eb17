"""Experiments online: sticky arms, honest propensities, results, and the loop that closes."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient
from service_world import World, unit
from sklearn.linear_model import LinearRegression
from sqlalchemy import update

from doseforest import GeneralizedCausalForest
from doseforest.pricing.experiments import assign_arms, compare_arms
from doseforest.pricing.service.live import UNIT_KEY
from doseforest.pricing.service.online_experiments import experiment_catalog
from doseforest.pricing.service.storage.service_tables import decisions, experiments, secrets

ARMS = [
    {"name": "control", "version": 1, "share": 0.5},
    {"name": "random", "version": 2, "share": 0.5},
]


@pytest.fixture
def client(world: World, started: Callable[..., TestClient]) -> TestClient:
    """The control is active; the random policy is published."""
    world.publish("control")
    world.publish("random", active=False)
    return started(world)


def start(client: TestClient, world: World, arms: Any = ARMS, name: str = "spring") -> Any:
    sent = {"name": name, "arms": arms}
    return client.post("/v1/experiments", json=sent, headers=world.headers("admin"))


def decide(client: TestClient, world: World, units: list[Any]) -> list[Any]:
    answer = client.post("/v1/decisions", json={"units": units}, headers=world.headers())
    assert answer.status_code == 200, answer.text
    return answer.json()["decisions"]


def test_cells_stay_in_their_arm_and_propensities_know_both(
    client: TestClient, world: World
) -> None:
    assert start(client, world).status_code == 201
    units = [unit(f"u{k}", cell=f"cell{k % 20}") for k in range(60)]
    found = decide(client, world, units)
    by_cell: dict[str, set[str]] = {}
    for own, sent in zip(found, units, strict=True):
        by_cell.setdefault(sent["cell"], set()).add(own["arm"])
    assert all(len(arms) == 1 for arms in by_cell.values())
    assert {arm for arms in by_cell.values() for arm in arms} == {"control", "random"}
    again = decide(client, world, units)
    assert [own["arm"] for own in again] == [own["arm"] for own in found]
    # Dose 0 is the control's always and the random arm's every other time: .5 + .5 x .5.
    chances = {0.0: 0.75, 1.0: 0.125, 2.0: 0.125}
    assert all(own["propensity"] == chances[own["dose"]] for own in found)
    assert {own["policy_version"] for own in found if own["arm"] == "random"} == {2}
    with world.database.reading.connect() as connection:
        salt = connection.execute(experiments.select()).one().salt
    named = assign_arms([own["cell"] for own in units], salt, {"control": 0.5, "random": 0.5})
    assert named.tolist() == [own["arm"] for own in found]


def test_an_experiment_runs_alone_and_stops_once(client: TestClient, world: World) -> None:
    admin = world.headers("admin")
    assert start(client, world).status_code == 201
    assert start(client, world, name="summer").status_code == 409
    assert client.post("/v1/experiments/1/stop", headers=admin).json()["stopped_at"] is not None
    assert client.post("/v1/experiments/1/stop", headers=admin).status_code == 409
    assert client.post("/v1/experiments/9/stop", headers=admin).status_code == 404
    assert start(client, world).status_code == 409  # the name is taken
    (own,) = decide(client, world, [unit()])
    assert (own["arm"], own["experiment"], own["policy_version"]) == (None, None, 1)


@pytest.mark.parametrize(
    ("arms", "status"),
    [
        (ARMS[:1], 422),
        ([ARMS[0], ARMS[0]], 409),
        ([ARMS[0], {**ARMS[1], "share": 0.4}], 409),
        ([ARMS[0], {**ARMS[1], "share": 1.5}], 422),
        ([ARMS[0], {**ARMS[1], "version": 7}], 404),
    ],
)
def test_arms_that_do_not_fit_are_refused(
    client: TestClient, world: World, arms: Any, status: int
) -> None:
    assert start(client, world, arms).status_code == status


def test_results_are_those_of_the_ab_analysis_by_cells(client: TestClient, world: World) -> None:
    rng = np.random.default_rng(0)
    cells = [f"cell{k}" for k in range(80)]
    level = dict(zip(cells, rng.normal(10, 3, len(cells)), strict=True))
    units = [unit(f"u{k}", cell=cells[k % 80]) for k in range(240)]
    before = decide(client, world, units)
    past = {
        own["decision_id"]: level[sent["cell"]] for own, sent in zip(before, units, strict=True)
    }
    report(client, world, past)
    with world.database.writing.begin() as connection:  # yesterday
        connection.execute(update(decisions).values(at=decisions.c.at - 86_400_000))
    start(client, world)
    found = decide(client, world, units)
    values = np.array(
        [level[sent["cell"]] + 2.0 * own["dose"] for own, sent in zip(found, units, strict=True)]
    )
    ids = [own["decision_id"] for own in found]
    report(client, world, dict(zip(ids, values.tolist(), strict=True)))
    url = "/v1/experiments/1/result"
    result = client.get(url, headers=world.headers("report")).json()
    (comparison,) = result["comparisons"]
    expected = compare_arms(
        values,
        [own["arm"] for own in found],
        units=[own["cell"] for own in units],
        covariates=[level[own["cell"]] for own in units],
    )
    low, high = expected.interval()
    outcome = comparison["outcome"]
    # The same numbers, but that the counts of before are a covariate too; they are all equal.
    assert outcome["absolute"] == pytest.approx(expected.increment.absolute, rel=1e-9)
    assert outcome["low"] == pytest.approx(low, rel=0.05)
    assert outcome["high"] == pytest.approx(high, rel=0.05)
    assert comparison["variance_reduction"] > 0.5
    assert sum(result["cells"].values()) == 80
    assert result["with_outcome"] == result["decisions"]
    assert result["mixed_cells"] == 0
    assert result["sample_ratio"]["holds"]


def report(client: TestClient, world: World, values: dict[str, float]) -> None:
    sent = {"outcomes": [{"decision_id": name, "value": own} for name, own in values.items()]}
    answer = client.post("/v1/outcomes", json=sent, headers=world.headers("report"))
    assert answer.status_code == 200, answer.text


def test_a_broken_ratio_and_missing_outcomes_are_said(client: TestClient, world: World) -> None:
    start(client, world)
    found = decide(client, world, [unit(f"u{k}") for k in range(200)])
    lost = [own["decision_id"] for own in found if own["arm"] == "random"][10:]
    with world.database.writing.begin() as connection:
        connection.execute(decisions.delete().where(decisions.c.id.in_(lost)))
    url = "/v1/experiments/1/result"
    result = client.get(url, headers=world.headers("report")).json()
    assert not result["sample_ratio"]["holds"]
    assert result["with_outcome"] == {"control": 0, "random": 0}
    assert (
        client.get("/v1/experiments/9/result", headers=world.headers("report")).status_code == 404
    )


def test_exported_doses_are_as_frequent_as_their_propensities(
    client: TestClient, world: World
) -> None:
    forest = world.publish("forest", active=False)
    arms = [{**ARMS[0], "name": "forest", "version": forest}, ARMS[1]]
    assert start(client, world, arms).status_code == 201
    # Without x0 the forest's arm falls back to dose 0, and the random one draws.
    decide(client, world, [{"unit": f"u{k}", "features": {"x1": 1.0}} for k in range(400)])
    text = client.get("/v1/training-table", headers=world.headers("report")).text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 400
    assert {row["propensity_of_0"] for row in rows} == {"0.75"}
    share = np.mean([float(row["dose"]) == 0.0 for row in rows])
    # Four standard errors of 400 draws; without the fallbacks it would be 0.5.
    assert abs(share - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 400)


def test_a_forest_learns_from_the_exported_table(
    world: World, started: Callable[..., TestClient]
) -> None:
    world.publish("control")
    world.publish("random", active=False)
    # Arms and doses are drawn by a salt and a secret that are random: the fit is off by 1 for some.
    with world.database.writing.begin() as connection:
        connection.execute(secrets.insert(), [{"name": UNIT_KEY, "value": "5a" * 32}])
        experiment_catalog.start_experiment(connection, "spring", ARMS, salt="known")
    client = started(world)
    rng = np.random.default_rng(1)
    x0 = rng.uniform(0, 4, 500)
    units = [unit(f"u{k}", x) for k, x in enumerate(x0.tolist())]
    found = decide(client, world, units)
    noise = rng.normal(0, 0.3, len(units))
    outcome = {
        own["decision_id"]: x * own["dose"] + e for own, x, e in zip(found, x0, noise, strict=True)
    }
    report(client, world, outcome)
    answer = client.get("/v1/training-table?format=parquet", headers=world.headers("report"))
    table = pd.read_parquet(io.BytesIO(answer.content))
    assert len(table) == len(units)
    levels = ["propensity_of_0", "propensity_of_1", "propensity_of_2"]
    assert np.allclose(table[levels], [0.75, 0.125, 0.125])
    assert dict(Counter(table["dose"])) == dict(Counter(own["dose"] for own in found))
    forest = GeneralizedCausalForest(
        n_trees=40,
        density=table[levels].to_numpy(),
        outcome_model=LinearRegression(),
        random_state=0,
    )
    X = table[["feature_x0", "feature_x1"]]
    forest.fit(X, table["outcome"], treatment=table["dose"])
    new = pd.DataFrame({"feature_x0": [0.5, 3.5], "feature_x1": [1.0, 1.0]})
    low, high = forest.effect(new, dose=2.0, baseline=0.0)
    # The effect of dose 2 is 2 x0: 1 and 7. A fit with 125 treated rows is within 1 of them, and a
    # model that took the dose for a level of its own could not tell the two units apart.
    assert abs(low - 1.0) < 1.0
    assert abs(high - 7.0) < 1.0
    text = client.get("/v1/training-table", headers=world.headers("report")).text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["decision_id"] for row in rows] == table["decision_id"].tolist()
    assert [float(row["outcome"]) for row in rows] == table["outcome"].tolist()
