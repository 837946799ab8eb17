"""The registry: published, activated, rolled back; damaged files are refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from running_server import wait_until
from service_world import NAMES, PAIRS, POLICIES, World, make_world, unit

from doseforest.pricing.service.registry import policy_catalog
from doseforest.pricing.service.storage.databases import sqlite_url


def file_of(world: World, name: str) -> bytes:
    path = world.folder / f"upload-{name}.dose"
    POLICIES[name]().save(path)
    return path.read_bytes()


def upload(client: TestClient, world: World, content: bytes, note: str = "") -> dict[str, object]:
    headers = {**world.headers("admin"), "Content-Type": "application/octet-stream"}
    answer = client.post(f"/v1/policies?note={note}", content=content, headers=headers)
    return {"status": answer.status_code, **answer.json()}


def test_a_policy_is_published_activated_and_rolled_back(client: TestClient, world: World) -> None:
    admin = world.headers("admin")
    new = upload(client, world, file_of(world, "dear"), note="dear doses")
    assert (new["status"], new["version"], new["kind"]) == (201, 2, "dose_policy")
    assert (new["active"], new["doses"], new["features"]) == (False, [0.0, 1.0, 2.0], ["x0", "x1"])
    assert upload(client, world, file_of(world, "dear"))["version"] == 2  # the same file
    before = client.post("/v1/decision", json=unit(x0=3.5), headers=admin).json()
    assert client.post("/v1/policies/2/activate", headers=admin).json() == {
        "policy_version": 2,
        "before": 1,
    }
    after = client.post("/v1/decision", json=unit(x0=3.5), headers=admin).json()
    assert (before["policy_version"], after["policy_version"]) == (1, 2)
    assert after["dose"] < before["dose"]  # doses cost more
    assert client.post("/v1/policies/rollback", headers=admin).json()["policy_version"] == 1
    again = client.post("/v1/decision", json=unit(x0=3.5), headers=admin).json()
    assert (again["policy_version"], again["dose"]) == (1, before["dose"])
    assert client.post("/v1/policies/rollback", headers=admin).status_code == 404
    found = client.get("/v1/policies", headers=world.headers("report")).json()["policies"]
    assert [(own["version"], own["active"]) for own in found] == [(2, False), (1, True)]


def test_what_fails_its_checksum_is_refused_and_the_old_one_serves_on(
    client: TestClient, world: World
) -> None:
    admin = world.headers("admin")
    version = world.publish("dear", active=False)
    with world.database.reading.connect() as connection:
        digest = policy_catalog.find_policy(connection, version).sha256
    file = world.files.folder / f"{digest}.dose"
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(bytes(content))
    refused = client.post(f"/v1/policies/{version}/activate", headers=admin)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "refused_policy")
    with world.database.writing.begin() as connection:  # from a command line that did not look
        policy_catalog.activate(connection, version, by="test")
    wait_until(lambda: client.get("/readyz").json()["problems"])
    answer = client.post("/v1/decision", json=unit(), headers=admin)
    assert answer.json()["policy_version"] == 1
    (problem,) = client.get("/readyz").json()["problems"]
    assert "fails its checksum" in problem
    file.unlink()
    time.sleep(0.2)
    assert client.post("/v1/decision", json=unit(), headers=admin).json()["policy_version"] == 1


def test_after_a_restart_the_newest_policy_that_is_whole_serves(
    tmp_path: Path, started: Callable[..., TestClient]
) -> None:
    world = make_world(tmp_path, sqlite_url(tmp_path / "decisions.sqlite"))
    world.publish("control")
    version = world.publish("dear")
    with world.database.reading.connect() as connection:
        digest = policy_catalog.find_policy(connection, version).sha256
    (world.files.folder / f"{digest}.dose").write_bytes(b"damaged")
    client = started(world)
    answer = client.post("/v1/decision", json=unit(), headers=world.headers()).json()
    assert (answer["policy_version"], answer["dose"]) == (1, 0.0)
    assert len(client.get("/readyz").json()["problems"]) == 1
    world.database.dispose()


@pytest.mark.parametrize("content", [b"", b"\x80\x04pickle", b"DOSEFRST" + b"\0" * 200])
def test_what_is_no_policy_is_not_published(
    client: TestClient, world: World, content: bytes
) -> None:
    found = upload(client, world, content)
    assert found["status"] in (409, 422)
    assert len(list(world.files.folder.glob("*"))) == 1  # the active one, and no remains


def test_doses_of_several_components_are_listed_by_name(client: TestClient, world: World) -> None:
    found = upload(client, world, file_of(world, "joint random"))
    assert (found["status"], found["kind"]) == (201, "exploration")
    assert found["doses"] == [dict(zip(NAMES, pair, strict=True)) for pair in PAIRS.tolist()]
    with world.database.reading.connect() as connection:
        assert policy_catalog.find_policy(connection, 2).components == NAMES
        assert policy_catalog.find_policy(connection, 1).components is None


def test_rolling_back_twice_goes_back_by_two(tmp_path: Path) -> None:
    world = make_world(tmp_path, sqlite_url(tmp_path / "decisions.sqlite"))
    for name in ("control", "random", "dear"):
        world.publish(name)
    with world.database.writing.begin() as connection:
        assert policy_catalog.roll_back(connection, by="test") == 2
        assert policy_catalog.roll_back(connection, by="test") == 1
        with pytest.raises(policy_catalog.UnknownPolicyError):
            policy_catalog.roll_back(connection, by="test")
        policy_catalog.activate(connection, 3, by="test")
        assert policy_catalog.roll_back(connection, by="test") == 1
    world.database.dispose()
