"""The registry over HTTP: publish, activate, roll back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from fastapi import Body, Path, Query, Request
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from doseforest.pricing.service.api.access import guarded_router, key_of
from doseforest.pricing.service.api.error_answers import responses
from doseforest.pricing.service.api.state import Service, service_of, written
from doseforest.pricing.service.logs import log
from doseforest.pricing.service.registry import policy_catalog
from doseforest.pricing.service.served_doses import Dose

reading = guarded_router("report", "policies")
router = guarded_router("admin", "policies")

Found = TypeVar("Found")
Version = Annotated[int, Path(ge=1, le=2**31 - 1)]
Note = Annotated[str, Query(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class PolicyAnswer(BaseModel):
    """A published policy."""

    version: int
    sha256: str
    size: int = Field(description="Bytes of its file.")
    kind: str
    doses: list[Dose] = Field(description="What it may give.")
    features: list[str] = Field(description="What it asks of a unit.")
    note: str
    published_at: str
    published_by: str
    active: bool


class PoliciesAnswer(BaseModel):
    """All policies, the newest first."""

    policies: list[PolicyAnswer]
    problems: list[str] = Field(description="What should serve and does not.")


class ActivationAnswer(BaseModel):
    """The policy that serves now."""

    policy_version: int
    before: int | None


def time_text(milliseconds: int) -> str:
    """A time in UTC.

    >>> time_text(0)
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()


@reading.get("/policies", response_model=PoliciesAnswer)
async def policies(request: Request) -> PoliciesAnswer:
    """All published policies."""
    service = service_of(request)
    live = service.live.current
    result = await asyncio.to_thread(_read, service, policy_catalog.list_policies)
    active = None if live.activation is None else live.activation.version
    return PoliciesAnswer(
        policies=[_answer(each, active) for each in result], problems=list(live.problems)
    )


@router.post("/policies", response_model=PolicyAnswer, status_code=201, responses=responses(409))
async def publish(
    request: Request,
    file: Annotated[bytes, Body(media_type="application/octet-stream")],
    note: Note = "",
) -> PolicyAnswer:
    """Publish the file of a policy, as `save` wrote it; it does not serve yet."""
    service, by = service_of(request), key_of(request).id

    def stored() -> dict[str, object]:
        return policy_catalog.describe(service.files, service.files.add(file))

    described = await asyncio.to_thread(stored)
    version = await written(
        service.writer.run(
            lambda connection: policy_catalog.publish(connection, described, note=note, by=by)
        )
    )
    log("published", version=version, sha256=described["sha256"], key=by)
    result = await asyncio.to_thread(
        _read, service, lambda connection: policy_catalog.find_policy(connection, version)
    )
    live = service.live.current
    return _answer(result, None if live.activation is None else live.activation.version)


@router.post(
    "/policies/{version}/activate",
    response_model=ActivationAnswer,
    responses=responses(404, 409),
)
async def activate(request: Request, version: Version) -> ActivationAnswer:
    """Let a policy decide from now on; requests that are underway keep theirs.

    This process does at once, others within their refresh time. A file that is absent or fails its
    checksum is refused, and the policy that serves goes on.
    """
    service, by = service_of(request), key_of(request).id
    return await _changed(
        service, version, lambda connection: policy_catalog.activate(connection, version, by=by)
    )


@router.post("/policies/rollback", response_model=ActivationAnswer, responses=responses(404, 409))
async def roll_back(request: Request) -> ActivationAnswer:
    """Let the policy decide that did before the active one."""
    service, by = service_of(request), key_of(request).id
    version = await asyncio.to_thread(_read, service, policy_catalog.previous_version)
    return await _changed(
        service, version, lambda connection: policy_catalog.roll_back(connection, by=by)
    )


async def _changed(
    service: Service, version: int, change: Callable[[Connection], int]
) -> ActivationAnswer:
    """Check the file first, then write the change, then serve it."""
    before = service.live.current.activation
    await asyncio.to_thread(
        _read, service, lambda connection: service.live.check(connection, version)
    )
    active = await written(service.writer.run(change))
    await asyncio.to_thread(service.live.refresh)
    service.note()
    log("activated", version=active, before=None if before is None else before.version)
    return ActivationAnswer(
        policy_version=active, before=None if before is None else before.version
    )


def _read(service: Service, find: Callable[[Connection], Found]) -> Found:
    with service.database.reading.connect() as connection:
        return find(connection)


def _answer(own: policy_catalog.PublishedPolicy, active: int | None) -> PolicyAnswer:
    return PolicyAnswer(
        version=own.version,
        sha256=own.sha256,
        size=own.size,
        kind=own.kind,
        doses=own.doses,
        features=own.features,
        note=own.note,
        published_at=time_text(own.published_at),
        published_by=own.published_by,
        active=own.version == active,
    )
