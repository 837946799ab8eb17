"""How long things are kept."""

from __future__ import annotations

from sqlalchemy import Column, Table, func, select

from doseforest.pricing.service.storage.databases import Database
from doseforest.pricing.service.storage.service_tables import answers, decisions, now

DAY = 86_400_000  # milliseconds
ROWS_AT_A_TIME = 5000  # so that a running service need not wait for long


def prune(database: Database, days: float, answer_days: float, *, dry: bool) -> dict[str, int]:
    """Delete decisions with their outcomes, and stored answers, that are older than so many days.

    Returns the number of rows by table; with `dry` nothing is deleted.
    """
    for name, given in (("days", days), ("answer_days", answer_days)):
        if not given > 0:
            raise ValueError(f"The {name!r} parameter must be positive. Got {given} instead.")
    at = now()
    return {
        "decisions": _prune(database, decisions, decisions.c.id, at - int(days * DAY), dry),
        "answers": _prune(database, answers, answers.c.token, at - int(answer_days * DAY), dry),
    }


def _prune(database: Database, table: Table, key: Column[str], before: int, dry: bool) -> int:
    old = table.c.at < before
    if dry:
        with database.reading.connect() as connection:
            count: int = connection.execute(
                select(func.count()).select_from(table).where(old)
            ).scalar_one()
        return count
    total = 0
    while True:
        some = select(key).where(old).limit(ROWS_AT_A_TIME)
        with database.writing.begin() as connection:
            done = connection.execute(table.delete().where(key.in_(some), old)).rowcount
        total += done
        if done == 0:
            return total
