"""One writer, and a database that is where it should be; on both kinds."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from running_server import wait_until
from service_world import World, make_world, unit
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import IntegrityError
from stored_rows import count

from doseforest.pricing.service.storage.databases import (
    StorageUnavailableError,
    open_database,
    sqlite_url,
)
from doseforest.pricing.service.storage.service_tables import (
    secrets,
)
from doseforest.pricing.service.storage.writer import Writer

INSERT = secrets.insert()


def secret(name: str) -> list[tuple[Any, list[dict[str, str]]]]:
    return [(INSERT, [{"name": name, "value": "v"}])]


def test_waiting_writes_share_a_commit_and_a_bad_one_fails_alone(world: World) -> None:
    writer = Writer(world.database)
    begun, gate = threading.Event(), threading.Event()
    first = writer.run(lambda connection: (begun.set(), gate.wait(30)))
    assert begun.wait(30)
    names = ["a", "b", "a", "c"]  # the third breaks the primary key
    waiting = [writer.insert(secret(name)) for name in names]
    gate.set()
    first.result(30)
    failed = [own.exception(30) for own in waiting]
    assert [type(own) for own in failed] == [type(None), type(None), IntegrityError, type(None)]
    assert writer.largest_group == 4
    writer.close()
    assert count(world.database, secrets) == 3


def test_a_queue_is_full_by_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doseforest.pricing.service.storage.writer.LARGEST_GROUP", 4)
    monkeypatch.setattr("doseforest.pricing.service.storage.writer.MOST_WAITING", 9)
    world = make_world(tmp_path, sqlite_url(tmp_path / "d.sqlite"))
    writer = Writer(world.database)
    begun, gate = threading.Event(), threading.Event()
    writer.run(lambda connection: (begun.set(), gate.wait(30)))
    assert begun.wait(30)
    rows = [[{"name": f"{k}{own}", "value": "v"} for own in range(3)] for k in range(4)]
    waiting = [writer.insert([(INSERT, own)]) for own in rows]
    assert isinstance(waiting[3].exception(30), StorageUnavailableError)  # 9 rows wait
    gate.set()
    assert [own.exception(30) for own in waiting[:3]] == [None] * 3
    writer.close()
    assert writer.largest_group == 1  # two writes would be 6 rows
    assert count(world.database, secrets) == 9
    world.database.dispose()


def test_rows_of_one_write_are_stored_together_or_not_at_all(world: World) -> None:
    writer = Writer(world.database)
    rows = [(INSERT, [{"name": name, "value": "v"} for name in ("a", "b", "a")])]
    assert isinstance(writer.insert(rows).exception(30), IntegrityError)
    writer.close()
    assert count(world.database, secrets) == 0
    late = writer.insert(secret("z")).exception(30)
    assert isinstance(late, StorageUnavailableError)


def test_sqlite_flushes_every_commit(tmp_path: Path) -> None:
    world = make_world(tmp_path, sqlite_url(tmp_path / "d.sqlite"))
    with world.database.writing.connect() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2  # FULL
        assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1
    assert (tmp_path / "d.sqlite").stat().st_mode & 0o077 == 0
    world.database.dispose()


def test_a_moved_database_is_not_written_to(tmp_path: Path) -> None:
    world = make_world(tmp_path, sqlite_url(tmp_path / "d.sqlite"))
    writer = Writer(world.database)
    writer.insert(secret("a")).result(30)
    (tmp_path / "d.sqlite").rename(tmp_path / "moved.sqlite")
    for name in ("b", "c"):
        assert isinstance(writer.insert(secret(name)).exception(30), StorageUnavailableError)
    (tmp_path / "moved.sqlite").rename(tmp_path / "d.sqlite")
    writer.insert(secret("d")).result(30)
    writer.close()
    with world.database.reading.connect() as connection:
        assert set(connection.execute(select(secrets.c.name)).scalars()) == {"a", "d"}
    world.database.dispose()


def test_a_question_in_mid_transaction_does_not_let_a_lost_row_pass(tmp_path: Path) -> None:
    world = make_world(tmp_path, sqlite_url(tmp_path / "d.sqlite"))
    writer = Writer(world.database)
    writer.insert(secret("a")).result(30)

    def write_and_move(connection: Connection) -> None:
        connection.execute(INSERT, [{"name": "lost", "value": "v"}])
        (tmp_path / "d.sqlite").rename(tmp_path / "moved.sqlite")
        for _ in range(2):  # as /readyz asks, from another thread
            with pytest.raises(StorageUnavailableError):
                world.database.require()

    assert isinstance(writer.run(write_and_move).exception(30), StorageUnavailableError)
    writer.close()
    world.database.dispose()


def test_readiness_comes_back_with_another_file_and_without_a_write(
    tmp_path: Path, started: Callable[..., TestClient]
) -> None:
    world = make_world(tmp_path, sqlite_url(tmp_path / "d.sqlite"))
    world.publish("control")
    client = started(world)
    world.database.dispose()
    client.post("/v1/decision", json=unit(), headers=world.headers())
    shutil.copy(tmp_path / "d.sqlite", tmp_path / "copy.sqlite")
    os.replace(tmp_path / "copy.sqlite", tmp_path / "d.sqlite")
    assert client.get("/readyz").status_code == 503
    wait_until(lambda: client.get("/readyz").status_code == 200)


@pytest.mark.parametrize(
    "url", ["", "nonsense", "mysql://host/db", "sqlite://", "sqlite:///:memory:"]
)
def test_urls_of_other_databases_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="The 'database' parameter must"):
        open_database(url)


def test_no_password_is_shown_in_an_error() -> None:
    with pytest.raises(ValueError, match="must be a URL") as caught:
        open_database("postgresql//doses:hunter2@host")
    assert "hunter2" not in str(caught.value)
