"""A PostgreSQL server that is frozen: it neither answers nor goes away."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from postgres_server import PostgresServer
from psycopg import OperationalError
from psycopg.errors import PipelineAborted
from running_server import stored_ids, wait_until
from service_world import World, make_world, unit

from doseforest.pricing.service.api.app import create_app
from doseforest.pricing.service.storage.databases import StorageUnavailableError, open_database
from doseforest.pricing.service.storage.service_tables import secrets
from doseforest.pricing.service.storage.writer import Writer


@pytest.fixture
def world(new_database: Callable[[str], str], tmp_path: Path) -> Iterator[World]:
    own = make_world(tmp_path, new_database("postgresql"))
    own.publish("control")
    own.database.dispose()
    yield own
    own.database.dispose()


@contextmanager
def frozen(server: PostgresServer) -> Iterator[None]:
    """All of its processes stop at once, and go on afterwards."""
    mother = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{mother}/task/{mother}/children").read_text().split()
    processes = [mother, *map(int, children)]
    try:
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        yield
    finally:
        for process in reversed(processes):
            os.kill(process, signal.SIGCONT)


def test_a_frozen_database_is_a_503_and_then_serves_on(
    world: World, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("doseforest.pricing.service.api.state.PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(
        "doseforest.pricing.service.storage.postgres.CONNECT_SECONDS", 2
    )  # its least
    with TestClient(create_app(world.settings)) as client:
        first = client.post("/v1/decision", json=unit(), headers=world.headers())
        with frozen(postgres):
            refused = client.post("/v1/decision", json=unit(), headers=world.headers())
            ready = client.get("/readyz")
        wait_until(lambda: client.get("/readyz").status_code == 200)
        again = client.post("/v1/decision", json=unit(), headers=world.headers())
    assert (refused.status_code, ready.status_code, again.status_code) == (503, 503, 200)
    assert {own.json()["decision_id"] for own in (first, again)} <= stored_ids(world)


def test_a_writer_ends_although_the_database_is_frozen(
    world: World, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("doseforest.pricing.service.storage.writer.LARGEST_GROUP", 1)
    database = open_database(str(world.settings.database), patience=0.5)
    writer = Writer(database)
    rows = [[(secrets.insert(), [{"name": f"n{place}", "value": "v"}])] for place in range(50)]
    writer.insert(rows[0]).result(30)
    with frozen(postgres):
        waiting = [writer.insert(own) for own in rows[1:]]
        writer.close()  # one by one they would take 49 timeouts
        failed = [type(own.exception(30)) for own in waiting]
    assert failed == [StorageUnavailableError] * 49
    database.dispose()


def test_a_statement_that_breaks_a_rule_does_not_close_the_connection(world: World) -> None:
    def failed(error: type[Exception]) -> Iterator[None]:
        raise error("of the exchange with the server")
        yield

    with world.database.writing.connect() as connection:
        own = connection.connection.driver_connection
        with pytest.raises(PipelineAborted):  # what is left of a pipeline after its first error
            own.wait(failed(PipelineAborted))
        assert not own.closed
        with pytest.raises(OperationalError):
            own.wait(failed(OperationalError))
        assert own.closed
        connection.invalidate()
