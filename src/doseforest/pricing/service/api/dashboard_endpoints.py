"""The dashboard: its page, and the numbers that it draws."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy import Connection

from doseforest.pricing.service.api.access import guarded_router
from doseforest.pricing.service.api.decision_models import TEXT
from doseforest.pricing.service.api.error_answers import RESPONSES
from doseforest.pricing.service.api.state import service_of
from doseforest.pricing.service.dashboard.dashboard_numbers import (
    NO_CURVES,
    feature_drift,
    overview,
    segment_curves,
)

reading = guarded_router("report", "dashboard")
router = APIRouter(tags=["dashboard"])

# Read once, when the service starts: no name in a request leads to a file.
KINDS = {
    "index.html": "text/html",
    "style.css": "text/css",
    "app.js": "text/javascript",
    "charts.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
STATIC = files("doseforest.pricing.service.dashboard") / "static"
PAGES = {name: (STATIC / name).read_bytes() for name in KINDS}


@router.get("/", include_in_schema=False)
async def front() -> RedirectResponse:
    """Where people who type the address alone want to go."""
    return RedirectResponse("/dashboard")


@router.get("/dashboard", include_in_schema=False)
async def page() -> Response:
    """The page; it asks for a key, and for numbers with it."""
    return Response(PAGES["index.html"], media_type=KINDS["index.html"])


@router.get("/dashboard/{name}", responses={404: RESPONSES[404]}, include_in_schema=False)
async def part(name: str) -> Response:
    """A part of the page."""
    if name not in PAGES:
        return Response(status_code=404)
    return Response(PAGES[name], media_type=KINDS[name])


@reading.get("/dashboard/overview")
async def numbers_over_time(
    request: Request, hours: Annotated[int, Query(ge=1, le=24 * 366)] = 24
) -> dict[str, Any]:
    """Decisions, spend, doses, reasons and support of the last hours."""
    return await _read(request, lambda connection: overview(connection, hours))


@reading.get("/dashboard/curves")
async def curves_by_segment(
    request: Request,
    feature: Annotated[str | None, Query(max_length=100, pattern=TEXT)] = None,
) -> dict[str, Any]:
    """Average curves of recent units, by segments of a feature."""
    served = service_of(request).live.current.deciders.policy
    if served is None:
        return NO_CURVES
    return await _read(request, lambda connection: segment_curves(connection, served, feature))


@reading.get("/dashboard/drift")
async def drift_of_features(request: Request) -> dict[str, Any]:
    """How far the features of recent units have moved."""
    served = service_of(request).live.current.deciders.policy
    if served is None:
        return {"reference": "", "rows": 0, "features": []}
    return await _read(request, lambda connection: feature_drift(connection, served.version))


async def _read(request: Request, find: Any) -> dict[str, Any]:
    def read() -> dict[str, Any]:
        with service_of(request).database.reading.connect() as connection:
            own: Connection = connection
            result: dict[str, Any] = find(own)
            return result

    return await asyncio.to_thread(read)
