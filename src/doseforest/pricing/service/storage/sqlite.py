"""SQLite, the embedded default: one file beside the service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import create_engine, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import URL

from doseforest.pricing.service.storage.databases import (
    FILE,
    READERS,
    Backend,
    Database,
    identity_of,
)

BUSY_SECONDS = 5  # how long it waits for another process
DRIVER = "sqlite+pysqlite"


def check_sqlite(url: URL) -> None:
    """Refuse a database in memory."""
    if url.database in (None, "", ":memory:"):
        raise ValueError(
            "The 'database' parameter must name a file: what is kept in memory is not kept. "
            f"Got {url.render_as_string()!r} instead."
        )


def open_sqlite(url: URL, patience: float | None) -> Database:
    """One connection that writes, some that read."""
    file = Path(str(url.database)).absolute()
    # mode=rw: a file that vanished is an error, not a new and empty database
    plain = URL.create(
        DRIVER, database=f"file:{quote(str(file))}", query={"mode": "rw", "uri": "true"}
    )
    options: dict[str, Any] = {"connect_args": {"check_same_thread": False}}
    reading = create_engine(plain, pool_size=READERS, **options)
    writing = create_engine(plain, pool_size=1, **options)
    opened: list[tuple[int, int] | None] = []
    event.listen(reading, "connect", _prepare(("PRAGMA query_only=ON",)))
    event.listen(reading, "begin", _beginner("BEGIN"))
    durable = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA foreign_keys=ON")
    event.listen(writing, "connect", _prepare(durable))
    event.listen(writing, "connect", _remember(file, opened))
    # Immediate: to wait for another process is possible at the beginning of a transaction alone.
    event.listen(writing, "begin", _beginner("BEGIN IMMEDIATE"))
    return Database(url, BACKEND, reading, writing, file, opened)


def _prepare(pragmas: tuple[str, ...]) -> Callable[[Any, Any], None]:
    def prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # we begin transactions, not the driver
        connection.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")
        for pragma in pragmas:
            connection.execute(pragma)

    return prepare


def _remember(file: Path, opened: list[tuple[int, int] | None]) -> Callable[[Any, Any], None]:
    def remember(_: Any, record: Any) -> None:
        record.info[FILE] = identity_of(file)
        opened[:] = [record.info[FILE]]

    return remember


def _beginner(statement: str) -> Callable[[Any], None]:
    def begin(connection: Any) -> None:
        connection.exec_driver_sql(statement)

    return begin


BACKEND = Backend(DRIVER, open_sqlite, sqlite.insert, check_sqlite)
