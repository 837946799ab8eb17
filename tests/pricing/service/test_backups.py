"""Backups, restores and what is forgotten; on both kinds of database."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from service_world import World, make_world
from sqlalchemy import insert, select, text
from stored_rows import count, decision_row

from doseforest.pricing.service.backup import BackupError, back_up, restore
from doseforest.pricing.service.registry.policy_files import PolicyFiles
from doseforest.pricing.service.storage.databases import (
    open_database,
    sqlite_url,
)
from doseforest.pricing.service.storage.retention import DAY, prune
from doseforest.pricing.service.storage.schema import (
    newest_revision,
)
from doseforest.pricing.service.storage.service_tables import (
    activations,
    answers,
    decisions,
    metadata,
    now,
    outcomes,
)


def test_a_backup_restores_into_both_kinds_of_database(world: World, tmp_path: Path) -> None:
    world.publish("control")
    world.publish("forest")
    with world.database.writing.begin() as connection:
        connection.execute(insert(decisions), [decision_row(name, 5) for name in "ab"])
        joint = {"dose": None, "doses": '{"express": 0.1, "premium": 5.0}'}
        connection.execute(insert(decisions), [decision_row("c", 5) | joint])
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
