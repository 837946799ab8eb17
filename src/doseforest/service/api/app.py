"""The application: everything put together."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI

from doseforest import __version__
from doseforest.service.api import (
    dashboard,
    decisions,
    experiments,
    exports,
    outcomes,
    policies,
    system,
)
from doseforest.service.api.errors import add_error_handlers
from doseforest.service.api.middleware import Envelope
from doseforest.service.api.state import serving
from doseforest.service.settings import Settings

ROUTERS = (
    system.router,
    decisions.router,
    outcomes.router,
    policies.reading,
    policies.router,
    experiments.reading,
    experiments.router,
    exports.router,
    dashboard.reading,
    dashboard.router,
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
