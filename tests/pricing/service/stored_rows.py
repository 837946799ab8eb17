"""Rows of the database, for tests of storage."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select

from doseforest.pricing.service.storage.databases import Database


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
