"""Outcomes: what came of decisions."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql import Executable

from doseforest.pricing.service.api.access import guarded_router, note
from doseforest.pricing.service.api.decision_models import Number, Strict
from doseforest.pricing.service.api.error_answers import ServiceError, responses
from doseforest.pricing.service.api.state import Service, service_of, written
from doseforest.pricing.service.storage.databases import Backend
from doseforest.pricing.service.storage.service_tables import decisions, now, outcomes

router = guarded_router("report", "outcomes")
MetricName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,40}$")]
OUTCOME = "outcome"


class Outcome(Strict):
    """What came of one decision."""

    decision_id: str = Field(pattern=r"^[0-9a-f]{32}$")
    value: Number
    metric: MetricName = OUTCOME


class OutcomeBatch(Strict):
    """Several outcomes."""

    outcomes: list[Outcome] = Field(min_length=1, max_length=10_000)


class OutcomesAnswer(BaseModel):
    """How many are stored."""

    stored: int


@cache
def _upsert(backend: Backend) -> Executable:
    """An insert that takes the place of what is there; one for all, so that writes share it."""
    insert = backend.insert(outcomes)
    changed = {"value": insert.excluded.value, "at": insert.excluded.at}
    statement: Executable = insert.on_conflict_do_update(
        index_elements=["decision_id", "metric"], set_=changed
    )
    return statement


@router.post("/outcomes", response_model=OutcomesAnswer, responses=responses(404))
async def report_outcomes(request: Request, batch: OutcomeBatch) -> OutcomesAnswer:
    """Report outcomes; all are on disk when the answer comes, or none.

    A later report of the same decision and metric takes the place of the earlier one, so that
    reporting twice does no harm.
    """
    service = service_of(request)
    note(request, outcomes=len(batch.outcomes))
    at = now()
    newest = {(outcome.decision_id, outcome.metric): outcome.value for outcome in batch.outcomes}
    rows = [
        {"decision_id": decision_id, "metric": metric, "value": value, "at": at}
        for (decision_id, metric), value in newest.items()
    ]
    statement = _upsert(service.database.backend)
    try:
        await written(service.writer.insert([(statement, rows)]))
    except IntegrityError as error:
        unknown = await asyncio.to_thread(_unknown, service, [place for place, _ in newest])
        if unknown == 0:
            raise
        text = f"{unknown} of the outcomes are of decisions that are not stored. Nothing was."
        raise ServiceError(404, "unknown_decision", text) from error
    service.metrics.outcomes.inc(len(rows))
    return OutcomesAnswer(stored=len(rows))


def _unknown(service: Service, ids: list[str]) -> int:
    """How many of the ids have no decision."""
    known = 0
    distinct = sorted(set(ids))
    with service.database.reading.connect() as connection:
        for first in range(0, len(distinct), 500):
            wanted = select(decisions.c.id).where(decisions.c.id.in_(distinct[first : first + 500]))
            known += len(connection.execute(wanted).all())
    return len(distinct) - known
