"""Without a database, or without room in it: refused, nothing lost, recovered."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path

import httpx2 as httpx
import pytest
from postgres_server import PostgresServer
from running_server import is_ready, running, stored_ids, wait_until
from service_world import World, make_world, unit

from doseforest.pricing.service.storage.databases import sqlite_url


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
