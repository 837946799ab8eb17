"""One thread that writes: what waits is committed together, and acknowledged once it is on disk.

While one transaction is being flushed to disk the next ones queue up and share the flush after it
(group commit), so throughput does not hang on the time of a flush. A row that breaks a rule of the
tables fails alone: its group is then written one by one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.sql import Executable

from doseforest.pricing.service.storage.databases import Database, StorageUnavailableError

Inserts = Sequence[tuple[Executable, list[dict[str, Any]]]]
Answer = TypeVar("Answer")

LARGEST_GROUP = 2_000  # rows that share a commit, but for a write that has more
MOST_WAITING = 50_000  # rows; beyond, the service is overloaded and says so


@dataclass(slots=True)
class Write:
    """Rows to insert, or a function that writes; `done` is told when it is on disk."""

    inserts: Inserts = ()
    work: Callable[[Connection], Any] | None = None
    done: Future[Any] = field(default_factory=Future)

    @property
    def rows(self) -> int:
        """How much it is; a function counts as one row."""
        return max(sum(len(rows) for _, rows in self.inserts), 1)


class Writer:
    """The only one of a process that writes.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from doseforest.pricing.service.storage.databases import open_database, sqlite_url
    >>> from doseforest.pricing.service.storage.schema import upgrade
    >>> from doseforest.pricing.service.storage.service_tables import secrets
    >>> database = open_database(sqlite_url(pathlib.Path(tempfile.mkdtemp()) / "doses.sqlite"))
    >>> upgrade(database)
    >>> writer = Writer(database)
    >>> writer.insert([(secrets.insert(), [{"name": "salt", "value": "pepper"}])]).result()
    >>> writer.close()
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[Write] = deque()
        self._rows = 0  # of those that wait
        self._wake = threading.Condition()
        self._closing = False
        self.largest_group = 0
        self.busy = False  # whether something is being written right now
        self._thread = threading.Thread(target=self._run, name="doseforest-writer", daemon=True)
        self._thread.start()

    def insert(self, inserts: Inserts) -> Future[None]:
        """Rows that go to disk together with those of others, all of them or none."""
        return self._submit(Write(inserts=inserts))

    def run(self, work: Callable[[Connection], Answer]) -> Future[Answer]:
        """A function that writes in a transaction; it may be called again if that fails."""
        return self._submit(Write(work=work))

    @property
    def waiting(self) -> int:
        """Number of writes that have not been taken up."""
        return len(self._waiting)

    def close(self) -> None:
        """Write what waits, then end; once the database cannot be written, only end."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def _submit(self, write: Write) -> Future[Any]:
        with self._wake:
            if self._closing or self._rows >= MOST_WAITING:
                why = "is closing" if self._closing else "has too much to write"
                write.done.set_exception(StorageUnavailableError(f"The service {why}."))
            else:
                self._waiting.append(write)
                self._rows += write.rows
                self._wake.notify()
        return write.done

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._waiting and not self._closing:
                    self._wake.wait()
                if not self._waiting:
                    return
                group = self._next_group()
            self.largest_group = max(self.largest_group, len(group))
            # Whoever no longer waits is left out; from here on nobody can go away.
            kept = [each for each in group if each.done.set_running_or_notify_cancel()]
            if kept:
                self.busy = True
                self._write(kept)
                self.busy = False

    def _next_group(self) -> list[Write]:
        group = [self._waiting.popleft()]
        rows = group[0].rows
        while self._waiting and rows + self._waiting[0].rows <= LARGEST_GROUP:
            group.append(self._waiting.popleft())
            rows += group[-1].rows
        self._rows -= rows
        return group

    def _write(self, group: list[Write]) -> None:
        try:
            answers = self._commit(group)
        except Exception as error:
            if len(group) > 1 and not _unavailable(error):
                for write in group:
                    self._write([write])
                return
            failure = _explained(error)
            for write in group:
                write.done.set_exception(failure)
            if self._closing and isinstance(failure, StorageUnavailableError):
                self._give_up(failure)
            return
        for write, answer in zip(group, answers, strict=True):
            write.done.set_result(answer)

    def _give_up(self, failure: StorageUnavailableError) -> None:
        """Refuse what waits: at the end nobody has time to try one after the other."""
        with self._wake:
            while self._waiting:
                write = self._waiting.popleft()
                if write.done.set_running_or_notify_cancel():
                    write.done.set_exception(failure)

    def _commit(self, group: list[Write]) -> list[Any]:
        """Everything in one transaction; returns once it is on disk."""
        try:
            self._database.require()
            with self._database.writing.connect() as connection:
                with connection.begin():
                    for statement, rows in _merged(group):
                        connection.execute(statement, rows)
                    answers = [
                        None if each.work is None else each.work(connection) for each in group
                    ]
                self._database.require_of(connection)  # on disk, and where one looks for it
        except StorageUnavailableError:
            self._database.reopen()
            raise
        return answers


def _merged(group: list[Write]) -> list[tuple[Executable, list[dict[str, Any]]]]:
    """Rows of the same statement together, in the order in which statements first come."""
    merged: dict[int, tuple[Executable, list[dict[str, Any]]]] = {}
    for write in group:
        for statement, rows in write.inserts:
            merged.setdefault(id(statement), (statement, []))[1].extend(rows)
    return list(merged.values())


def _unavailable(error: Exception) -> bool:
    """Whether it is the database's fault: trying the rows of a group one by one would not help."""
    if isinstance(error, StorageUnavailableError | OperationalError | InterfaceError):
        return True
    return isinstance(error, DBAPIError) and error.connection_invalidated


def _explained(error: Exception) -> Exception:
    if isinstance(error, SQLAlchemyError) and _unavailable(error):
        unavailable = StorageUnavailableError("The database cannot be written.")
        unavailable.__cause__ = error
        return unavailable
    return error
