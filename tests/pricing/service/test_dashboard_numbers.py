"""The dashboard's numbers, on both kinds of database; drift by its definition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from service_world import World, forest_policy, unit

from doseforest.pricing.service.dashboard.drift import drift, profile_of_file, profile_rows, verdict


def test_numbers_are_those_of_the_stored_decisions(client: TestClient, world: World) -> None:
    x0 = np.linspace(0.1, 3.9, 120)
    units = [unit(f"u{k}", x) for k, x in enumerate(x0.tolist())]
    units.append({"unit": "bob", "features": {"x1": 1.0}})
    sent = {"units": units}
    found = client.post("/v1/decisions", json=sent, headers=world.headers()).json()["decisions"]
    report = world.headers("report")
    own = client.get("/v1/dashboard/overview?hours=1", headers=report).json()
    assert sum(own["decisions"]) == 121
    assert sum(own["fallbacks"]) == 1
    assert sum(own["spend"]) == pytest.approx(sum(one["cost"] or 0.0 for one in found))
    assert own["reasons"] == [
        {"name": "best", "count": 120},
        {"name": "missing_features", "count": 1},
    ]
    doses = {one["name"]: one["count"] for one in own["doses"]}
    assert doses == {f"{d:g}": sum(one["dose"] == d for one in found) for d in (0.0, 1.0, 2.0)}
    assert own["support"] == {"supported": 0, "unsupported": 0, "unknown": 121}
    curves = client.get("/v1/dashboard/curves?feature=x0", headers=report).json()
    policy = forest_policy()
    table = np.column_stack([x0, np.ones(120)])
    response = policy.forest.dose_response(table, policy.plain_doses)
    assert [one["units"] for one in curves["segments"]] == [40, 40, 40]
    for k, one in enumerate(curves["segments"]):
        expected = response[40 * k : 40 * (k + 1)].mean(axis=0)
        assert one["curve"] == pytest.approx(expected.tolist())
    moved = client.get("/v1/dashboard/drift", headers=report).json()
    assert moved["rows"] == 60
    # The first half of the units had small x0, the second large ones.
    assert {one["name"]: one["verdict"] for one in moved["features"]} == {
        "x0": "drifted",
        "x1": "steady",
    }


def test_without_a_policy_there_is_nothing_to_show(
    world: World, started: Callable[..., TestClient]
) -> None:
    client = started(world)
    report = world.headers("report")
    for path in ("curves", "drift"):
        assert client.get(f"/v1/dashboard/{path}", headers=report).status_code == 200
    own = client.get("/v1/dashboard/overview", headers=report).json()
    assert sum(own["decisions"]) == 0


def test_the_stability_index_is_the_sum_that_defines_it() -> None:
    reference = [{"zone": "a"}] * 50 + [{"zone": "b"}] * 50
    now = [{"zone": "a"}] * 80 + [{"zone": "b"}] * 20
    expected = 0.3 * np.log(0.8 / 0.5) - 0.3 * np.log(0.2 / 0.5)
    found = drift(profile_rows(reference), now)
    assert found == {"zone": pytest.approx(expected)}
    assert verdict(found["zone"]) == "drifted"


def test_missing_values_and_new_labels_are_drift() -> None:
    reference = [{"x": float(k), "zone": "a"} for k in range(100)]
    profile = profile_rows(reference)
    steady = drift(profile, reference)
    assert steady == {"x": 0.0, "zone": 0.0}
    missing = [{**row, "x": None} if k < 30 else row for k, row in enumerate(reference)]
    new = [{**row, "zone": "b"} if k < 30 else row for k, row in enumerate(reference)]
    text = [{**row, "x": "many"} for row in reference]
    assert drift(profile, missing)["x"] > 0.25
    assert drift(profile, new)["zone"] > 0.25
    assert drift(profile, text)["x"] > 0.25


def test_training_rows_are_read_from_csv_and_parquet(tmp_path: Path) -> None:
    import pandas as pd

    table = pd.DataFrame({"x0": [1.0, 2.0, None, 4.0], "zone": ["a", "b", "b", "a"]})
    table.to_csv(tmp_path / "rows.csv", index=False)
    table.to_parquet(tmp_path / "rows.parquet")
    first, second = (profile_of_file(tmp_path / f"rows.{kind}") for kind in ("csv", "parquet"))
    assert first == second
    assert first["x0"]["shares"][0] == 0.25  # missing
    with pytest.raises(ValueError, match=r"must be a \.csv or \.parquet file"):
        profile_of_file(tmp_path / "rows.xlsx")
    (tmp_path / "empty.csv").write_text("x0,zone\n")
    with pytest.raises(ValueError, match="has no rows"):
        profile_of_file(tmp_path / "empty.csv")
