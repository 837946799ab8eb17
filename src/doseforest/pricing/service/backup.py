"""Backups: one file with every row and every policy, of and for both kinds of database.

A zip with one file of JSON lines for each table, the files of the policies, and a manifest with the
checksum of each, written last. It is read in one transaction, hence of one moment, while the
service goes on. What is restored is brought to the tables of this release afterwards.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, MetaData, Table, func, select

from doseforest.base.atomic_files import replacing
from doseforest.pricing.service.registry.policy_files import PolicyFiles
from doseforest.pricing.service.storage.databases import Database
from doseforest.pricing.service.storage.schema import check_schema, revision, upgrade
from doseforest.pricing.service.storage.service_tables import (
    api_keys,
    decisions,
    metadata,
    policies,
)

MANIFEST = "manifest.json"
ROWS_AT_A_TIME = 1000


class BackupError(Exception):
    """A backup that is damaged, or a database that is not empty."""


def back_up(database: Database, files: PolicyFiles, target: Path) -> dict[str, int]:
    """Write a backup, completely or not at all; returns the number of rows by table."""
    check_schema(database)
    counts: dict[str, int] = {}
    checksums: dict[str, str] = {}
    with (
        replacing(target) as draft,
        zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive,
        _snapshot(database) as connection,
    ):
        for table in metadata.sorted_tables:
            name = f"tables/{table.name}.jsonl"
            counts[table.name], checksums[name] = _write_rows(archive, name, connection, table)
        for digest in connection.execute(select(policies.c.sha256)).scalars():
            name = f"policies/{digest}.dose"
            content = files.read(digest)
            archive.writestr(name, content)
            checksums[name] = hashlib.sha256(content).hexdigest()
        manifest = {"revision": revision(database), "rows": counts, "sha256": checksums}
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
    return counts


def restore(database: Database, files: PolicyFiles, source: Path) -> dict[str, int]:
    """Fill an empty database from a backup; returns the number of rows by table."""
    try:
        with zipfile.ZipFile(source) as archive:
            manifest = json.loads(archive.read(MANIFEST))
            _check(archive, manifest["sha256"])
            for name in manifest["sha256"]:  # before the rows that name them
                if name.startswith("policies/"):
                    files.add(archive.read(name))
            upgrade(database, manifest["revision"])
            _fill(database, archive, manifest["rows"])
    except (zipfile.BadZipFile, KeyError, json.JSONDecodeError) as error:
        raise BackupError(f"{source} is no backup, or it is damaged.") from error
    upgrade(database)
    return dict(manifest["rows"])


def _snapshot(database: Database) -> Connection:
    """A transaction that sees one moment."""
    connection = database.reading.connect()
    if database.backend.snapshot is not None:
        connection = connection.execution_options(isolation_level=database.backend.snapshot)
    return connection


def _write_rows(
    archive: zipfile.ZipFile, name: str, connection: Connection, table: Table
) -> tuple[int, str]:
    digest, count = hashlib.sha256(), 0
    ordered = select(table).order_by(*table.primary_key.columns)
    rows = connection.execution_options(yield_per=ROWS_AT_A_TIME).execute(ordered)
    with archive.open(name, "w", force_zip64=True) as file:
        for row in rows.mappings():
            line = json.dumps(dict(row)).encode() + b"\n"
            digest.update(line)
            file.write(line)
            count += 1
    return count, digest.hexdigest()


def _check(archive: zipfile.ZipFile, checksums: dict[str, str]) -> None:
    for name, expected in checksums.items():
        digest = hashlib.sha256()
        with archive.open(name) as file:
            while block := file.read(1 << 20):
                digest.update(block)
        if digest.hexdigest() != expected:
            raise BackupError(f"The backup is damaged: {name} fails its checksum.")


def _fill(database: Database, archive: zipfile.ZipFile, counts: dict[str, int]) -> None:
    with database.writing.begin() as connection:
        stored = MetaData()  # the tables as they were then
        stored.reflect(connection)
        for table in (api_keys, policies, decisions):
            if connection.execute(select(func.count()).select_from(table)).scalar_one():
                raise BackupError("The database has rows already. Restore into an empty one.")
        for table in stored.sorted_tables:
            if table.name not in counts:
                continue
            connection.execute(table.delete())
            for rows in _blocks(archive, f"tables/{table.name}.jsonl"):
                connection.execute(table.insert(), rows)
            if database.backend.restored is not None:
                database.backend.restored(connection, table)


def _blocks(archive: zipfile.ZipFile, name: str) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    with archive.open(name) as file:
        for line in file:
            rows.append(json.loads(line))
            if len(rows) == ROWS_AT_A_TIME:
                yield rows
                rows = []
    if rows:
        yield rows
