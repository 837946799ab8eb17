"""Doses of several components, such as discounts of two mobility options; on both databases."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient
from service_world import NAMES, PAIRS, World, joint_policy, make_world, unit
from sklearn.linear_model import LinearRegression
from sqlalchemy import select

from doseforest import GeneralizedCausalForest
from doseforest.pricing.service.storage.databases import sqlite_url
from doseforest.pricing.service.storage.service_tables import decisions

Started = Callable[..., TestClient]
COLUMNS = [f"dose_{name}" for name in NAMES]


def named(pair: Any) -> dict[str, float]:
    return dict(zip(NAMES, map(float, pair), strict=True))


def post(client: TestClient, world: World, path: str, sent: Any, role: str = "decide") -> Any:
    return client.post(f"/v1/{path}", json=sent, headers=world.headers(role))


def decide(client: TestClient, world: World, units: list[Any]) -> list[Any]:
    answer = post(client, world, "decisions", {"units": units})
    assert answer.status_code == 200, answer.text
    return answer.json()["decisions"]


def stored(world: World) -> list[Any]:
    with world.database.reading.connect() as connection:
        return list(connection.execute(select(decisions).order_by(decisions.c.id)).mappings())


def test_decisions_and_curves_name_the_components(world: World, started: Started) -> None:
    world.publish("joint")
    client = started(world)
    x0 = [0.5, 3.5]
    units = [unit(f"u{k}", x) for k, x in enumerate(x0)]
    found = decide(client, world, [*units, {"unit": "bob", "features": {}}])
    policy, table = joint_policy(), np.array([[x, 1.0] for x in x0])
    expected = policy.decide(table)
    # Premium's discount pays for everybody, that of express where x0 is above 2.
    assert expected.dose.tolist() == [(0.0, 5.0), (5.0, 5.0)]
    assert [own["dose"] for own in found] == [
        named(own) for own in [*expected.dose.tolist(), (0, 0)]
    ]
    assert [own["reason"] for own in found] == ["best", "best", "missing_features"]
    assert [own["effect"] for own in found[:2]] == expected.effect.tolist()
    assert [own["cost"] for own in found[:2]] == [5.0, 10.0]
    for row, own in zip(stored(world), found, strict=True):
        assert row["dose"] is None
        assert json.loads(row["doses"]) == own["dose"]
        assert json.loads(row["propensities"]) == [[list(own["dose"].values()), 1.0]]
    curves = post(client, world, "curves", {"units": units}).json()
    assert curves["doses"] == [named(pair) for pair in PAIRS]
    assert [own["response"] for own in curves["curves"]] == policy.forest.dose_response(
        table, PAIRS
    ).tolist()


def test_the_dashboard_counts_pairs_and_draws_along_each_component(
    world: World, started: Started
) -> None:
    world.publish("joint")
    client = started(world)
    found = decide(client, world, [unit(f"u{k}", x) for k, x in enumerate(np.linspace(0, 4, 60))])
    report = world.headers("report")
    own = client.get("/v1/dashboard/overview?hours=1", headers=report).json()
    high = sum(one["dose"] == named((5, 5)) for one in found)
    assert own["components"] == list(NAMES)
    assert own["doses"] == [
        {"name": "(0, 5)", "count": 60 - high},
        {"name": "(5, 5)", "count": high},
    ]
    assert sum(own["spend"]) == pytest.approx(sum(one["cost"] for one in found))
    curves = client.get("/v1/dashboard/curves?feature=x0", headers=report).json()
    # With the other discount at the baseline, 0: (0, 0) and (5, 0), and (0, 0) and (0, 5).
    assert curves["axes"] == [
        {"component": "express", "places": [0, 2]},
        {"component": "premium", "places": [0, 1]},
    ]
    assert [len(one["curve"]) for one in curves["segments"]] == [4, 4, 4]


def test_a_fallback_dose_has_the_components_of_what_decides(
    tmp_path: Path, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise MemoryError("no luck")

    def serve(name: str, dose: Any) -> tuple[World, TestClient]:
        url = sqlite_url(tmp_path / name / "decisions.sqlite")
        world = make_world(tmp_path / name, url, fallback_dose=dose)
        return world, started(world)

    asked = {"premium": 5.0, "express": 0.0}
    for fallback, expected, problems in ((asked, asked, 0), (1.0, named((0, 0)), 1)):
        world, client = serve(f"with {problems}", fallback)
        (own,) = decide(client, world, [unit()])
        assert (own["dose"], own["reason"]) == (fallback, "no_policy")
        version = world.publish("joint", active=False)
        answer = post(client, world, f"policies/{version}/activate", None, "admin")
        assert answer.status_code == 200
        assert len(client.get("/readyz").json()["problems"]) == problems
        served = client.app.state.service.live.current.deciders.policy
        with monkeypatch.context() as patched:
            patched.setattr(type(served), "choose", broken)
            (own,) = decide(client, world, [unit()])
        assert (own["dose"], own["reason"]) == (expected, "failed")
        assert list(json.loads(stored(world)[-1]["doses"])) == list(NAMES)  # in the policy's order
        world.database.dispose()
    told = client.get("/readyz").json()["problems"]
    assert told == [
        "The fallback dose 1 does not serve: doses of policy 1 have other components "
        "(express, premium)."
    ]


def test_arms_of_different_components_are_refused(tmp_path: Path, started: Started) -> None:
    world = make_world(tmp_path, sqlite_url(tmp_path / "decisions.sqlite"))
    for name in ("joint control", "control", "other names"):
        world.publish(name)
    client = started(world)
    for version, has in ((2, "one without a name"), (3, "bus, bike")):
        arms = [arm("a", 1), arm("b", version)]
        refused = post(client, world, "experiments", {"name": "x", "arms": arms}, "admin")
        assert refused.status_code == 409
        assert refused.json()["error"]["message"] == (
            "Arms must give doses of the same components, in the same order. "
            f"Arm 'a' has express, premium, arm 'b' {has}."
        )
    world.database.dispose()


def arm(name: str, version: int) -> dict[str, Any]:
    return {"name": name, "version": version, "share": 0.5}


def experiment(world: World, client: TestClient) -> tuple[Any, list[Any]]:
    """Everybody gets nothing, or pairs at random; discounts bring .2 x0 and .4 for each unit."""
    sent = {"name": "spring", "arms": [arm("control", 1), arm("random", 2)]}
    assert post(client, world, "experiments", sent, "admin").status_code == 201
    rng = np.random.default_rng(1)
    x0 = rng.uniform(0, 4, 500)
    found = decide(client, world, [unit(f"u{k}", x) for k, x in enumerate(x0.tolist())])
    given = np.array([list(own["dose"].values()) for own in found])
    value = 0.2 * x0 * given[:, 0] + 0.4 * given[:, 1] + rng.normal(0, 0.3, 500)
    outcomes = [
        {"decision_id": own["decision_id"], "value": v}
        for own, v in zip(found, value.tolist(), strict=True)
    ]
    assert post(client, world, "outcomes", {"outcomes": outcomes}, "report").status_code == 200
    return table_of(world, client, "parquet"), found


def table_of(world: World, client: TestClient, format: str) -> Any:
    asked = {"format": format}
    answer = client.get("/v1/training-table", params=asked, headers=world.headers("report"))
    read = {"parquet": pd.read_parquet, "csv": pd.read_csv}[format]
    return read(io.BytesIO(answer.content))


def test_exported_pairs_have_the_propensities_of_arms_and_draws(
    world: World, started: Started
) -> None:
    world.publish("joint control")
    world.publish("joint random", active=False)
    client = started(world)
    table, found = experiment(world, client)
    # Half of the cells get nothing; the others draw nothing four times in ten, else a discount.
    chances = {
        "express=0,premium=0": 0.7,
        "express=0,premium=5": 0.1,
        "express=5,premium=0": 0.1,
        "express=5,premium=5": 0.1,
    }
    assert table[COLUMNS].to_numpy().tolist() == [list(own["dose"].values()) for own in found]
    assert "dose" not in table
    levels = [f"propensity_of_{dose}" for dose in chances]
    assert [name for name in table if name.startswith("propensity_of_")] == levels
    np.testing.assert_allclose(table[levels], [list(chances.values())] * 500)
    given = ["express={:g},premium={:g}".format(*own) for own in table[COLUMNS].to_numpy()]
    np.testing.assert_allclose(table["propensity"], [chances[own] for own in given])
    np.testing.assert_array_equal([own["propensity"] for own in found], table["propensity"])
    same = table_of(world, client, "csv")
    assert same.columns.tolist() == table.columns.tolist()
    np.testing.assert_array_equal(same[COLUMNS], table[COLUMNS])


def test_plain_doses_and_pairs_in_one_table_have_columns_of_their_own(
    tmp_path: Path, started: Started
) -> None:
    world = make_world(tmp_path, sqlite_url(tmp_path / "decisions.sqlite"), refresh=3600)
    world.publish("control")
    client = started(world)
    decide(client, world, [unit("ann")])
    version = world.publish("joint control", active=False)
    post(client, world, f"policies/{version}/activate", None, "admin").raise_for_status()
    decide(client, world, [unit("ann")])
    table = table_of(world, client, "csv")
    assert table["dose"].tolist()[:1] == [0.0]
    assert table[["dose", *COLUMNS]].isna().to_numpy().tolist() == [
        [False, True, True],
        [True, False, False],
    ]
    assert table[["propensity_of_0", "propensity_of_express=0,premium=0"]].to_numpy().tolist() == [
        [1.0, 0.0],
        [0.0, 1.0],
    ]
    world.database.dispose()


def test_a_forest_learns_from_an_experiment_with_pairs(tmp_path: Path, started: Started) -> None:
    world = make_world(tmp_path, sqlite_url(tmp_path / "decisions.sqlite"))
    world.publish("joint control")
    world.publish("joint random", active=False)
    table, _ = experiment(world, started(world))
    new = pd.DataFrame({"feature_x0": [0.5, 3.5], "feature_x1": [1.0, 1.0]})
    for density in ("none", "auto"):  # all rows have the same propensities, or they are estimated
        forest = GeneralizedCausalForest(
            n_trees=100,  # enough that every row is left out by some tree
            density=density,
            outcome_model=LinearRegression(),
            random_state=0,
        )
        forest.fit(table[["feature_x0", "feature_x1"]], table["outcome"], treatment=table[COLUMNS])
        low, high = forest.effect(new, dose=[5.0, 0.0], baseline=[0.0, 0.0])
        # The discount of express brings x0: .5 and 3.5, by about 50 rows that had it alone. A model
        # that took both discounts for one could not tell the two units apart.
        assert abs(low - 0.5) < 1.0
        assert abs(high - 3.5) < 1.0
        both = forest.effect(new, dose=[5.0, 5.0], baseline=[5.0, 0.0])
        assert np.abs(both - 2.0).max() < 1.0
    world.database.dispose()
