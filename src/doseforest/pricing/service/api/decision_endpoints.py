"""Decisions and curves."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

from fastapi import Request, Response
from pydantic_core import to_json

from doseforest.policy.artifact.policy_decisions import ANSWERED
from doseforest.pricing.service.api.access import guarded_router, key_of, note
from doseforest.pricing.service.api.decision_models import (
    Batch,
    BatchAnswer,
    CurvesAnswer,
    DecisionAnswer,
    Unit,
)
from doseforest.pricing.service.api.error_answers import ServiceError, responses
from doseforest.pricing.service.api.idempotency import (
    IdempotencyKey,
    Made,
    answered_once,
    json_response,
)
from doseforest.pricing.service.api.state import Service, service_of
from doseforest.pricing.service.deciding import ServedDecisions, decide, new_ids, pseudonym
from doseforest.pricing.service.logs import log_error
from doseforest.pricing.service.registry.incoming_units import ServedUnit
from doseforest.pricing.service.storage.service_tables import decisions as decisions_table
from doseforest.pricing.service.storage.service_tables import now

router = guarded_router("decide", "decisions")
INSERT_DECISIONS = decisions_table.insert()
STORED_AS_ANSWERED = ("propensity", "reason", "fallback", "arm", "supported", *ANSWERED)
SMALL = 32  # units of a request that is decided on together with others, without a thread


@router.post("/decision", response_model=DecisionAnswer, responses=responses(409))
async def decide_on_one(
    request: Request, unit: Unit, idempotency_key: IdempotencyKey = None
) -> Response:
    """Decide on one unit; the decision is on disk when the answer comes."""

    async def make() -> Made:
        answers, made = await _made(request, [unit])
        return to_json(answers[0]), *made

    return await answered_once(request, idempotency_key, make)


@router.post("/decisions", response_model=BatchAnswer, responses=responses(409))
async def decide_on_batch(
    request: Request, batch: Batch, idempotency_key: IdempotencyKey = None
) -> Response:
    """Decide on several units; all decisions are on disk when the answer comes, or none."""
    _check_count(service_of(request), batch.units)

    async def make() -> Made:
        answers, made = await _made(request, batch.units)
        return to_json({"decisions": answers}), *made

    return await answered_once(request, idempotency_key, make)


@router.post("/curves", response_model=CurvesAnswer, responses=responses(409))
async def curves(request: Request, batch: Batch) -> Response:
    """Predicted responses of units to every dose of the active policy; nothing is stored."""
    service = service_of(request)
    _check_count(service, batch.units)
    note(request, units=len(batch.units))
    served = service.live.current.deciders.policy
    if served is None:
        raise ServiceError(409, "no_policy", "No policy is active.")
    units = [ServedUnit(unit.unit, unit.unit, unit.features) for unit in batch.units]
    loop = asyncio.get_running_loop()
    try:
        response, lacking = await loop.run_in_executor(service.deciding, served.curves, units)
    except ValueError as error:
        log_error("no curves", error, request_id=request.scope["request_id"])
        raise ServiceError(409, "no_curves", "The active policy has no curves.") from error
    answers = [
        {"unit": unit.unit, "response": None if lacks else row}
        for unit, row, lacks in zip(units, response.tolist(), lacking, strict=True)
    ]
    return json_response(
        to_json({"policy_version": served.version, "doses": served.named_doses, "curves": answers})
    )


def _check_count(service: Service, units: Sequence[Unit]) -> None:
    most = service.settings.max_units
    if len(units) > most:
        raise ServiceError(413, "too_large", f"A request may have {most} units.")


async def _made(
    request: Request, units: list[Unit]
) -> tuple[list[dict[str, Any]], tuple[Any, Any]]:
    """Answers to units, with the rows to store and what to count once they are."""
    service = service_of(request)
    note(request, units=len(units))
    names = [pseudonym(unit.unit, service.unit_key) for unit in units]
    served = [  # a unit without a cell is its own
        ServedUnit(unit.unit, unit.cell or name, unit.features)
        for unit, name in zip(units, names, strict=True)
    ]
    decided = await _decided(request, service, served)
    columns, at = decided.columns(), now()
    ids = new_ids(len(units), at)
    asked = [unit.unit for unit in units]
    answers = _records({"decision_id": ids, "unit": asked, **columns})
    shared = {"at": at, "key_id": key_of(request).id}
    rows = _rows(decided, columns, ids, names, served, shared)
    return answers, ([(INSERT_DECISIONS, rows)], lambda: service.metrics.count(columns))


async def _decided(request: Request, service: Service, units: list[ServedUnit]) -> ServedDecisions:
    failures = itertools.count()

    def failed(error: Exception) -> None:
        service.metrics.policy_failures.inc()
        if next(failures) == 0:  # one line a request, however many units
            log_error("policy failed", error, request_id=request.scope["request_id"])

    if len(units) <= SMALL:
        return await service.gathering.decide(units, failed)
    deciders = service.live.current.deciders
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(service.deciding, decide, deciders, units, failed)


def _rows(
    decided: ServedDecisions,
    columns: dict[str, list[Any]],
    ids: list[str],
    names: list[str],
    units: list[ServedUnit],
    shared: dict[str, Any],
) -> list[dict[str, Any]]:
    """Rows of the table of decisions: what is answered, and what it hung on."""
    several, experiment = decided.made.components is not None, decided.experiment
    doses, none = columns["dose"], [None] * len(units)
    stored = {
        **{name: columns[name] for name in STORED_AS_ANSWERED},
        "id": ids,
        "version": decided.version,
        "experiment_id": none if experiment is None else [experiment.id] * len(units),
        "unit": names,
        "cell": [unit.cell for unit in units],
        "features": [to_json(unit.features).decode() for unit in units],
        "dose": none if several else doses,
        "doses": [to_json(dose).decode() for dose in doses] if several else none,
        "propensities": [to_json(chances).decode() for chances in decided.chances()],
    }
    return [{**shared, **row} for row in _records(stored)]


def _records(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
