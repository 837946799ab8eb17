"""Connections to PostgreSQL that do not wait for ever for a server that has fallen silent.

A server that is frozen, or behind a network that drops everything, neither answers nor closes a
connection, and no timeout of its own runs: only who waits can end the waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, Table, create_engine, event, func, select, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import URL

from doseforest.pricing.service.storage.databases import READERS, Backend, Database

CONNECT_SECONDS = 5
UPGRADE_LOCK = 0x646F7365  # "dose": of two services that start at once one upgrades


class ImpatientConnection(psycopg.Connection[Any]):
    """Waits so long for each answer, then is closed."""

    patience: float | None = None  # seconds

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Run an exchange with the server; one that fails or takes too long is the last."""
        try:
            return super().wait(gen, interval, self.patience if timeout is None else timeout)
        except psycopg.errors.PipelineAborted:  # an earlier statement failed; the server is well
            raise
        except psycopg.OperationalError:
            self.close()
            raise


def postgres_engine(url: URL, size: int, patience: float | None) -> Engine:
    """So many connections; `patience` is how many seconds each answer may take."""
    arguments: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS}
    if patience is not None and "options" not in url.query:  # the server then gives up, too
        arguments["options"] = f"-c statement_timeout={round(patience * 1000)}"
    engine = create_engine(url, pool_size=size, pool_pre_ping=True, connect_args=arguments)
    event.listen(engine, "do_connect", _connecting(patience))
    return engine


def _connecting(patience: float | None) -> Callable[..., ImpatientConnection]:
    def connect(_: Any, __: Any, arguments: list[Any], options: dict[str, Any]) -> Any:
        connection = ImpatientConnection.connect(*arguments, **options)
        connection.patience = patience
        return connection

    return connect


def open_postgres(url: URL, patience: float | None) -> Database:
    """One connection that writes, some that read."""
    reading, writing = (postgres_engine(url, size, patience) for size in (READERS, 1))
    return Database(url, BACKEND, reading, writing, None, [])


def continue_numbers(connection: Connection, table: Table) -> None:
    """PostgreSQL counts numbered keys on its own: it must go on after those that came in."""
    key = table.autoincrement_column
    if key is None:
        return
    result = connection.execute(
        text("SELECT pg_get_serial_sequence(:table, :column)"),
        {"table": table.name, "column": key.name},
    ).scalar()
    largest = connection.execute(select(func.max(key))).scalar()
    if result is not None and largest is not None:
        connection.execute(text("SELECT setval(:name, :value)"), {"name": result, "value": largest})


BACKEND = Backend(
    "postgresql+psycopg",
    open_postgres,
    postgresql.insert,
    lock=f"SELECT pg_advisory_xact_lock({UPGRADE_LOCK})",
    snapshot="REPEATABLE READ",
    restored=continue_numbers,
)
