"""Connections to SQLite, the embedded default, and to PostgreSQL, by one URL."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

BUSY_SECONDS = 5  # how long SQLite waits for another process
READERS = 4  # connections of one process that read
FILE = "file"  # where a connection of the writer keeps which file it has open
KINDS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}


class StorageUnavailableError(Exception):
    """The database cannot be reached or cannot store more: nothing was acknowledged."""


@dataclass(frozen=True, slots=True)
class Database:
    """One database: an engine to read, one to write, and where an embedded one lives."""

    url: URL
    reading: Engine
    writing: Engine
    file: Path | None  # of SQLite
    opened: list[tuple[int, int] | None]  # which file the writer has open: device and inode

    def require(self) -> None:
        """Refuse where the file of an embedded database is not where it should be.

        SQLite goes on writing to a file that was moved or deleted: rows would be acknowledged
        that nobody finds again. Any thread may ask; only the writer goes on to `reopen`.
        """
        if self.opened:
            self._require(self.opened[0])

    def require_of(self, connection: Connection) -> None:
        """Refuse where the file that a connection of the writer has open is not there any more."""
        if FILE in connection.info:
            self._require(connection.info[FILE])

    def reopen(self) -> None:
        """Let go of the file that was open; the next use opens the one that is there."""
        self.opened.clear()
        self.dispose()

    def dispose(self) -> None:
        """Close the connections; the next use opens new ones."""
        self.reading.dispose()
        self.writing.dispose()

    def _require(self, identity: tuple[int, int] | None) -> None:
        if self.file is not None and _identity(self.file) != identity:
            raise StorageUnavailableError("The file of the database is gone or was replaced.")


def open_database(url: str, *, patience: float | None = None) -> Database:
    """A database by its URL; nothing is connected yet.

    Parameters
    ----------
    url : str
        ``sqlite:///folder/decisions.sqlite`` or ``postgresql://user:password@host/name``.
    patience : float or None
        Seconds after which a PostgreSQL server that does not answer counts as gone.

    Examples
    --------
    >>> open_database("mysql://localhost/doses")
    Traceback (most recent call last):
    ...
    ValueError: The 'database' parameter must be a URL that begins with sqlite: or postgresql:.
    Got one that begins with mysql: instead.
    """
    parsed = parsed_url(url)
    if parsed.get_backend_name() == "postgresql":
        from doseforest.pricing.service.storage.postgres import (
            postgres_engine,  # needs its own extra
        )

        reading = postgres_engine(parsed, READERS, patience)
        return Database(parsed, reading, postgres_engine(parsed, 1, patience), None, [])
    return _sqlite(parsed)


def parsed_url(url: str) -> URL:
    """A URL with its driver, checked; errors do not show it, as it may hold a password."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ValueError(
            "The 'database' parameter must be a URL such as sqlite:///decisions.sqlite or "
            "postgresql://user:password@host/name. Got something else instead."
        ) from None
    backend = parsed.get_backend_name()
    if backend not in KINDS:
        raise ValueError(
            "The 'database' parameter must be a URL that begins with sqlite: or postgresql:. "
            f"Got one that begins with {backend}: instead."
        )
    if backend == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise ValueError(
            "The 'database' parameter must name a file: what is kept in memory is not kept. "
            f"Got {url!r} instead."
        )
    return parsed.set(drivername=KINDS[backend])


def sqlite_url(file: Path) -> str:
    """URL of an embedded database."""
    return f"sqlite:///{file.absolute()}"


def create_file(database: Database) -> None:
    """Make the file of an embedded database where there is none; only its owner may read it."""
    if database.file is not None and not database.file.exists():
        database.file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(database.file, os.O_CREAT | os.O_WRONLY, 0o600))


def _sqlite(url: URL) -> Database:
    file = Path(str(url.database)).absolute()
    # mode=rw: a file that vanished is an error, not a new and empty database
    plain = URL.create(
        KINDS["sqlite"], database=f"file:{quote(str(file))}", query={"mode": "rw", "uri": "true"}
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
    return Database(url, reading, writing, file, opened)


def _prepare(pragmas: tuple[str, ...]) -> Callable[[Any, Any], None]:
    def prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # we begin transactions, not the driver
        connection.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")
        for pragma in pragmas:
            connection.execute(pragma)

    return prepare


def _remember(file: Path, opened: list[tuple[int, int] | None]) -> Callable[[Any, Any], None]:
    def remember(_: Any, record: Any) -> None:
        record.info[FILE] = _identity(file)
        opened[:] = [record.info[FILE]]

    return remember


def _beginner(statement: str) -> Callable[[Any], None]:
    def begin(connection: Any) -> None:
        connection.exec_driver_sql(statement)

    return begin


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino
