"""The application: everything put together."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI

from doseforest import __version__
from doseforest.pricing.service.api import (
    dashboard_endpoints,
    decision_endpoints,
    experiment_endpoints,
    export_endpoints,
    outcome_endpoints,
    policy_endpoints,
    system_endpoints,
)
from doseforest.pricing.service.api.error_answers import add_error_handlers
from doseforest.pricing.service.api.middleware import Envelope
from doseforest.pricing.service.api.state import serving
from doseforest.pricing.service.service_settings import Settings

ROUTERS = (
    system_endpoints.router,
    decision_endpoints.router,
    outcome_endpoints.router,
    policy_endpoints.reading,
    policy_endpoints.router,
    experiment_endpoints.reading,
    experiment_endpoints.router,
    export_endpoints.router,
    dashboard_endpoints.reading,
    dashboard_endpoints.router,
)


def create_app(settings: Settings) -> FastAPI:
    """The service as an ASGI application.

    Parameters
    ----------
    settings : Settings
        Its database must have the tables of this release: ``doseforest db upgrade``.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with serving(app, settings):
            yield

    app = FastAPI(
        title="doseforest",
        version=__version__,
        summary="Doses decided online, with everything stored that learning needs.",
        lifespan=lifespan,
        docs_url=None,  # its page would be fetched from elsewhere
        redoc_url=None,
    )
    for router in ROUTERS:
        app.include_router(router)
    add_error_handlers(app)
    app.add_middleware(Envelope, max_body=settings.max_body, max_policy=settings.max_policy)
    return app


def app_of_environment() -> FastAPI:
    """The application of a worker process."""
    return create_app(Settings.from_environment())
