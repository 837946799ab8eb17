"""Connections to a database by its URL: SQLite, the embedded default, PostgreSQL, or one of a line.

To add a backend: a file with a `Backend` and a line in `BACKENDS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Table
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from doseforest.base.late import late

READERS = 4  # connections of one process that read
FILE = "file"  # where a connection of the writer keeps which file it has open
HERE = "doseforest.pricing.service.storage"
BACKENDS: dict[str, Backend | str] = {  # by the scheme of a URL; places of what needs an extra
    "sqlite": f"{HERE}.sqlite:BACKEND",
    "postgresql": f"{HERE}.postgres:BACKEND",
}


@dataclass(frozen=True, slots=True)
class Backend:
    """What one kind of database does its own way.

    Parameters
    ----------
    driver : str
        Dialect and driver of SQLAlchemy.
    open : callable
        From a URL, and the seconds after which a silent server counts as gone, to a `Database`.
    insert : callable
        The insert of its SQL that knows ``on_conflict_do_update``, of a table.
    check : callable
        Raises ValueError for a URL that it cannot serve.
    lock : str, optional
        Statement that makes two services that start at once upgrade one after the other.
    snapshot : str, optional
        Isolation level in which a transaction sees one moment, if its transactions do not anyway.
    restored : callable, optional
        Called with a connection and each table that a backup has filled.
    """

    driver: str
    open: Callable[[URL, float | None], Database]
    insert: Callable[[Table], Any]
    check: Callable[[URL], None] = lambda url: None
    lock: str | None = None
    snapshot: str | None = None
    restored: Callable[[Connection, Table], None] | None = None


def backend_of(scheme: str) -> Backend:
    """The backend of a scheme."""
    line = BACKENDS[scheme]
    backend: Backend = late(line) if isinstance(line, str) else line
    return backend


class StorageUnavailableError(Exception):
    """The database cannot be reached or cannot store more: nothing was acknowledged."""


@dataclass(frozen=True, slots=True)
class Database:
    """One database: an engine to read, one to write, and where an embedded one lives."""

    url: URL
    backend: Backend
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
        if self.file is not None and identity_of(self.file) != identity:
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
    parsed, backend = _parsed(url)
    return backend.open(parsed, patience)


def parsed_url(url: str) -> URL:
    """A URL with its driver, checked."""
    return _parsed(url)[0]


def _parsed(url: str) -> tuple[URL, Backend]:
    """A URL with its driver, and its backend; errors do not show it: it may hold a password."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ValueError(
            "The 'database' parameter must be a URL such as sqlite:///decisions.sqlite or "
            "postgresql://user:password@host/name. Got something else instead."
        ) from None
    scheme = parsed.get_backend_name()
    if scheme not in BACKENDS:
        raise ValueError(
            "The 'database' parameter must be a URL that begins with "
            f"{': or '.join(BACKENDS)}:. Got one that begins with {scheme}: instead."
        )
    backend = backend_of(scheme)
    backend.check(parsed)
    return parsed.set(drivername=backend.driver), backend


def sqlite_url(file: Path) -> str:
    """URL of an embedded database."""
    return f"sqlite:///{file.absolute()}"


def create_file(database: Database) -> None:
    """Make the file of an embedded database where there is none; only its owner may read it."""
    if database.file is not None and not database.file.exists():
        database.file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(database.file, os.O_CREAT | os.O_WRONLY, 0o600))


def identity_of(file: Path) -> tuple[int, int] | None:
    """Device and inode of a file, None where there is none."""
    try:
        result = os.stat(file)
    except OSError:
        return None
    return result.st_dev, result.st_ino
