"""Whether the service lives, whether it is ready, and its counts."""

from __future__ import annotations

import asyncio
from typing import Literal

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from doseforest import __version__
from doseforest.pricing.service.api.access import check_access
from doseforest.pricing.service.api.error_answers import RESPONSES, unavailable
from doseforest.pricing.service.api.state import Service, service_of
from doseforest.pricing.service.draining import draining
from doseforest.pricing.service.storage.databases import StorageUnavailableError

router = APIRouter(tags=["system"])


class Health(BaseModel):
    """The process answers."""

    status: Literal["alive"] = "alive"
    release: str = __version__


class Readiness(BaseModel):
    """Decisions can be made and stored."""

    status: Literal["ready"] = "ready"
    policy_version: int | None
    problems: list[str] = Field(description="What should serve and does not.")


@router.get("/healthz")
async def health() -> Health:
    """Whether the process lives. It says nothing about the database."""
    return Health()


@router.get("/readyz", responses={503: RESPONSES[503]})
async def readiness(request: Request) -> Readiness:
    """Whether the database answers and there is something to decide with."""
    service = service_of(request)
    live = service.live.current
    if draining.begun:
        raise unavailable("This process is stopping.")
    try:
        await asyncio.to_thread(_ask_database, service)
    except (SQLAlchemyError, StorageUnavailableError):
        raise unavailable("The database does not answer.") from None
    if live.deciders.policy is None and service.settings.fallback_dose is None:
        raise unavailable("No policy is active, and there is no fallback dose.")
    version = None if live.activation is None else live.activation.version
    return Readiness(policy_version=version, problems=list(live.problems))


@router.get(
    "/metrics",
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **{status: RESPONSES[status] for status in (401, 403, 429)},
    },
    response_class=Response,
)
async def metrics(request: Request) -> Response:
    """Counts for Prometheus, over all workers; with a key of the role "report"."""
    service = service_of(request)
    if not service.settings.open_metrics:
        check_access(request, "report")
    page = await asyncio.to_thread(service.metrics.page)
    return Response(page, media_type=CONTENT_TYPE_LATEST)


def _ask_database(service: Service) -> None:
    try:
        service.database.require()
    except StorageUnavailableError:
        service.writer.run(lambda _: None)  # it alone may open the file that is there now
        raise
    with service.database.reading.connect() as connection:
        connection.execute(text("SELECT 1 FROM activations LIMIT 1"))
