"""The service as a process: killed, stopped, swapped under load, without its database."""

from __future__ import annotations

import os
import resource
import shutil
import signal
from pathlib import Path

import httpx2 as httpx
import pytest
from postgres_server import PostgresServer
from running_server import Load, is_ready, running, wait_until
from service_world import World, make_world, unit
from sqlalchemy import select

from doseforest.service.storage.databases import sqlite_url
from doseforest.service.storage.tables import decisions


def stored_ids(world: World) -> set[str]:
    with world.database.reading.connect() as connection:
        return set(connection.execute(select(decisions.c.id)).scalars())


def test_a_killed_service_has_every_row_that_it_acknowledged(world: World) -> None:
    world.publish("control")
    acknowledged: list[str] = []
    for _ in range(3):
        with running(world) as server, Load(server, world, units=50) as load:
            wait_until(lambda load=load: len(load.acknowledged) >= 1000)
            server.signal(signal.SIGKILL)
        acknowledged += load.acknowledged
    assert len(acknowledged) >= 3000
    assert set(acknowledged) <= stored_ids(world)


def test_swapping_policies_and_stopping_fail_no_request(world: World) -> None:
    versions = [world.publish("control"), world.publish("random")]
    with running(world) as server:
        admin = httpx.Client(base_url=server.url, headers=world.headers("admin"))
        with admin, Load(server, world) as load:
            for swap in range(6):
                seen = len(load.acknowledged)
                answer = admin.post(f"/v1/policies/{versions[swap % 2]}/activate")
                assert answer.status_code == 200, answer.text
                wait_until(lambda seen=seen: len(load.acknowledged) > seen + 50)
            server.terminate()
            assert server.wait() == 0
    assert load.failures == []
    assert set(load.versions) == set(versions)
    assert set(load.acknowledged) == stored_ids(world)


def test_several_workers_count_and_follow_together(world: World) -> None:
    first, second = world.publish("random"), world.publish("control")
    with running(world, "--workers", "2") as server, httpx.Client(base_url=server.url) as client:
        admin = world.headers("admin")
        wait_until(lambda: _version(server.url) == second)
        with Load(server, world, units=1, clients=4) as load:
            wait_until(lambda: len(load.acknowledged) >= 60)
        page = client.get("/metrics", headers=admin).text
        counted = sum(
            float(line.split()[-1])
            for line in page.splitlines()
            if line.startswith("doseforest_decisions_total{")
        )
        assert counted == len(load.acknowledged) == len(stored_ids(world))
        client.post("/v1/policies/rollback", headers=admin).raise_for_status()
        # Every worker swaps: twenty new connections in a row find none that has not.
        wait_until(lambda: all(_version(server.url) == first for _ in range(20)))
        server.terminate()
        server.wait()
    assert load.failures == []


def _version(url: str) -> int | None:
    version: int | None = httpx.get(f"{url}/readyz").json()["policy_version"]
    return version


def test_without_its_database_it_refuses_and_then_recovers(
    world: World, request: pytest.FixtureRequest
) -> None:
    world.publish("control")
    is_embedded = world.database.file is not None
    away = Path(f"{world.folder}-away")
    headers = world.headers()
    with running(world) as server, httpx.Client(base_url=server.url, timeout=30) as client:
        first = client.post("/v1/decision", json=unit(), headers=headers)
        if is_embedded:
            world.database.dispose()
            shutil.move(world.folder, away)
        else:
            postgres: PostgresServer = request.getfixturevalue("postgres")
            postgres.stop()
        refused = [client.post("/v1/decision", json=unit(), headers=headers) for _ in range(3)]
        health = [client.get(path).status_code for path in ("/readyz", "/healthz")]
        if is_embedded:
            shutil.move(away, world.folder)
        else:
            postgres.start()
        wait_until(lambda: is_ready(server))
        again = client.post("/v1/decision", json=unit(), headers=headers)
        assert [answer.status_code for answer in refused] == [503] * 3
        assert refused[0].json()["error"]["code"] == "unavailable"
        assert refused[0].headers["retry-after"] == "1"
        assert health == [503, 200]
        assert again.status_code == 200, again.text
    kept = {first.json()["decision_id"], again.json()["decision_id"]}
    assert kept == stored_ids(world)


def test_a_full_disk_is_a_503_until_there_is_room(tmp_path: Path) -> None:
    world = make_world(tmp_path, sqlite_url(tmp_path / "decisions.sqlite"))
    world.publish("control")
    sent = {"units": [unit(f"u{place}") for place in range(200)]}
    with running(world) as server, httpx.Client(base_url=server.url, timeout=30) as client:
        statuses, acknowledged = [], []
        process, roomy = server.process.pid, resource.RLIM_INFINITY
        used = max(own.stat().st_size for own in tmp_path.glob("decisions.sqlite*"))
        resource.prlimit(process, resource.RLIMIT_FSIZE, (used + 200_000, roomy))
        for _ in range(8):
            answer = client.post("/v1/decisions", json=sent, headers=world.headers())
            statuses.append(answer.status_code)
            acknowledged += answer.json().get("decisions", [])
        resource.prlimit(process, resource.RLIMIT_FSIZE, (roomy, roomy))
        answer = client.post("/v1/decisions", json=sent, headers=world.headers())
        acknowledged += answer.json()["decisions"]
        assert os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG) is None  # it lives
    assert set(statuses) == {200, 503}
    assert {own["decision_id"] for own in acknowledged} == stored_ids(world)
