"""Storage: one writer, migrations, backups, retention; on both kinds of database."""

from __future__ import annotations

import json
import os
import shutil
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from fastapi.testclient import TestClient
from running_server import wait_until
from service_world import World, make_world, unit
from sqlalchemy import Connection, func, insert, inspect, select, text
from sqlalchemy.exc import IntegrityError

from doseforest.service.registry.files import PolicyFiles
from doseforest.service.storage.backup import BackupError, back_up, restore
from doseforest.service.storage.databases import (
    Database,
    StorageUnavailableError,
    open_database,
    sqlite_url,
)
from doseforest.service.storage.retention import DAY, prune
from doseforest.service.storage.schema import (
    SchemaError,
    check_schema,
    newest_revision,
    revision,
    upgrade,
)
from doseforest.service.storage.tables import (
    activations,
    answers,
    decisions,
    metadata,
    now,
    outcomes,
    secrets,
)
from doseforest.service.storage.writer import Writer

INSERT = secrets.insert()


def decision_row(name: str, at: int) -> dict[str, Any]:
    return {
        "id": name * 32,
        "at": at,
        "key_id": "k",
        "unit": "u",
        "cell": "c",
        "features": '{"x0": 1.5}',
        "dose": 1.0,
        "propensity": 0.25,
        "propensities": "[[0.0, 0.75], [1.0, 0.25]]",
        "reason": "best",
        "fallback": False,
    }


def count(database: Database, table: Any) -> int:
    with database.reading.connect() as connection:
        found: int = connection.execute(select(func.count()).select_from(table)).scalar_one()
        return found


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
    monkeypatch.setattr("doseforest.service.storage.writer.LARGEST_GROUP", 4)
    monkeypatch.setattr("doseforest.service.storage.writer.MOST_WAITING", 9)
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


def test_migrations_make_the_tables_that_the_code_declares(database_url: str) -> None:
    database = open_database(database_url)
    upgrade(database)
    with database.writing.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, metadata) == []
    check_schema(database)
    database.dispose()


def test_rows_of_the_first_schema_survive_the_upgrade(database_url: str) -> None:
    database = open_database(database_url)
    upgrade(database, "0001")
    with database.writing.begin() as connection:
        first = inspect(connection).get_columns("decisions")
        assert "arm" not in {own["name"] for own in first}
        columns = [own["name"] for own in first]
        row = decision_row("a", 5)
        known = {name: row.get(name) for name in columns}
        places = ", ".join(f":{name}" for name in columns)
        connection.execute(
            text(f"INSERT INTO decisions ({', '.join(columns)}) VALUES ({places})"), known
        )
    with pytest.raises(SchemaError, match="doseforest db upgrade"):
        check_schema(database)
    upgrade(database)
    upgrade(database)  # once more does nothing
    assert revision(database) == newest_revision()
    with database.reading.connect() as connection:
        (kept,) = connection.execute(select(decisions)).mappings()
    assert {name: kept[name] for name in row} == row
    assert (kept["arm"], kept["experiment_id"]) == (None, None)
    database.dispose()


def test_a_database_of_a_newer_release_is_refused(world: World) -> None:
    with world.database.writing.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaError, match="newer release"):
        check_schema(world.database)


def test_a_backup_restores_into_both_kinds_of_database(world: World, tmp_path: Path) -> None:
    world.publish("control")
    world.publish("forest")
    with world.database.writing.begin() as connection:
        connection.execute(insert(decisions), [decision_row(name, 5) for name in "abc"])
        row = {"decision_id": "a" * 32, "metric": "outcome", "value": 0.1 + 0.2, "at": 6}
        connection.execute(insert(outcomes), [row])
    backup = tmp_path / "backup.zip"
    counts = back_up(world.database, world.files, backup)
    assert (counts["decisions"], counts["policies"], counts["api_keys"]) == (3, 2, 3)
    other = open_database(sqlite_url(tmp_path / "other" / "d.sqlite"))
    files = PolicyFiles(tmp_path / "other" / "policies")
    assert restore(other, files, backup) == counts
    for table in metadata.sorted_tables:
        ordered = select(table).order_by(*table.primary_key.columns)
        with world.database.reading.connect() as one, other.reading.connect() as two:
            assert one.execute(ordered).all() == two.execute(ordered).all()
    assert {own.name for own in files.folder.iterdir()} == {
        own.name for own in world.files.folder.iterdir()
    }
    with pytest.raises(BackupError, match="rows already"):
        restore(other, files, backup)
    other.dispose()


def test_a_restored_database_goes_on_counting(
    world: World, database_url: str, tmp_path: Path
) -> None:
    """Of SQLite into the kind at hand, in the other direction."""
    source = make_world(tmp_path / "source", sqlite_url(tmp_path / "source" / "d.sqlite"))
    source.publish("control")
    backup = tmp_path / "backup.zip"
    back_up(source.database, source.files, backup)
    with world.database.writing.begin() as connection:
        connection.execute(text("DELETE FROM api_keys"))
    restore(world.database, world.files, backup)
    assert world.publish("random") == 2
    assert count(world.database, activations) == 2
    source.database.dispose()


def test_a_restore_without_room_for_policies_stores_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(tmp_path, sqlite_url(tmp_path / "d.sqlite"))
    world.publish("control")
    counts = back_up(world.database, world.files, tmp_path / "b.zip")
    other = open_database(sqlite_url(tmp_path / "other" / "d.sqlite"))
    files = PolicyFiles(tmp_path / "other" / "policies")

    def full(*_: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(PolicyFiles, "add", full)
        with pytest.raises(OSError, match="no space"):
            restore(other, files, tmp_path / "b.zip")
    assert restore(other, files, tmp_path / "b.zip") == counts
    world.database.dispose()
    other.dispose()


def test_a_damaged_backup_is_refused_before_anything_is_stored(
    world: World, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.zip", tmp_path / "bad.zip"
    back_up(world.database, world.files, good)
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(bad, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            changed = content.replace(b'"admin"', b'"owner"') if "api_keys" in name else content
            target.writestr(name, changed)
    other = open_database(sqlite_url(tmp_path / "other" / "d.sqlite"))
    with pytest.raises(BackupError, match="fails its checksum"):
        restore(other, world.files, bad)
    assert other.file is not None
    assert not other.file.exists()
    (tmp_path / "no.zip").write_bytes(b"nothing")
    with pytest.raises(BackupError, match="is no backup"):
        restore(other, world.files, tmp_path / "no.zip")


def test_what_is_old_is_forgotten_with_its_outcomes(world: World) -> None:
    at = now()
    with world.database.writing.begin() as connection:
        old, new = decision_row("a", at - 40 * DAY), decision_row("b", at - 20 * DAY)
        connection.execute(insert(decisions), [old, new])
        connection.execute(
            insert(outcomes),
            [{"decision_id": name * 32, "metric": "o", "value": 1, "at": at} for name in "ab"],
        )
        for age in (1, 3):
            row = {"key_id": "k", "token": f"t{age}", "fingerprint": "f", "body": "{}"}
            connection.execute(insert(answers), [{**row, "at": at - age * DAY}])
    assert prune(world.database, 30, 2, dry=True) == {"decisions": 1, "answers": 1}
    assert count(world.database, decisions) == 2
    assert prune(world.database, 30, 2, dry=False) == {"decisions": 1, "answers": 1}
    assert [count(world.database, own) for own in (decisions, outcomes, answers)] == [1, 1, 1]
    with pytest.raises(ValueError, match="'days' parameter must be positive"):
        prune(world.database, 0, 2, dry=True)


def test_a_manifest_says_which_tables_wrote_it(world: World, tmp_path: Path) -> None:
    back_up(world.database, world.files, tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        assert json.loads(archive.read("manifest.json"))["revision"] == newest_revision()


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
