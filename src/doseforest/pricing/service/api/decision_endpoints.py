"""Decisions and curves."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

from fastapi import Request, Response
from pydantic_core import to_json

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
from doseforest.pricing.service.deciding import Decision, decide, new_ids, pseudonym
from doseforest.pricing.service.logs import log_error
from doseforest.pricing.service.registry.incoming_units import ServedUnit
from doseforest.pricing.service.storage.service_tables import decisions as decisions_table
from doseforest.pricing.service.storage.service_tables import now

router = guarded_router("decide", "decisions")
INSERT_DECISIONS = decisions_table.insert()
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
    units = [ServedUnit(own.unit, own.unit, own.features) for own in batch.units]
    loop = asyncio.get_running_loop()
    try:
        response, lacking = await loop.run_in_executor(service.deciding, served.curves, units)
    except ValueError as error:
        log_error("no curves", error, request_id=request.scope["request_id"])
        raise ServiceError(409, "no_curves", "The active policy has no curves.") from error
    answers = [
        {"unit": own.unit, "response": None if lacks else row}
        for own, row, lacks in zip(units, response.tolist(), lacking, strict=True)
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
    names = [pseudonym(own.unit, service.unit_key) for own in units]
    served = [own.served(name) for own, name in zip(units, names, strict=True)]
    decided = await _decided(request, service, served)
    at, key_id = now(), key_of(request).id
    ids = new_ids(len(units), at)
    answers, rows = [], []
    for decision_id, unit, name, own in zip(ids, served, names, decided, strict=True):
        answers.append(_answer(decision_id, unit, own))
        rows.append(_row(decision_id, at, key_id, unit, name, own))
    return answers, ([(INSERT_DECISIONS, rows)], lambda: service.metrics.count(decided))


async def _decided(request: Request, service: Service, units: list[ServedUnit]) -> list[Decision]:
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


def _answer(decision_id: str, unit: ServedUnit, own: Decision) -> dict[str, Any]:
    return {
        "decision_id": decision_id,
        "unit": unit.unit,
        "dose": own.named_dose,
        "propensity": own.propensity,
        "reason": own.reason,
        "fallback": own.fallback,
        "policy_version": own.version,
        "experiment": own.experiment,
        "arm": own.arm,
        **own.numbers,
        "supported": own.supported,
    }


def _row(
    decision_id: str, at: int, key_id: str, unit: ServedUnit, name: str, own: Decision
) -> dict[str, Any]:
    return {
        "id": decision_id,
        "at": at,
        "key_id": key_id,
        "version": own.version,
        "experiment_id": own.experiment_id,
        "arm": own.arm,
        "unit": name,
        "cell": unit.cell,
        "features": to_json(unit.features).decode(),
        "dose": own.dose if own.components is None else None,
        "doses": None if own.components is None else to_json(own.named_dose).decode(),
        "propensity": own.propensity,
        "propensities": to_json(own.propensities).decode(),
        "reason": own.reason,
        "fallback": own.fallback,
        **own.numbers,
        "supported": own.supported,
    }
