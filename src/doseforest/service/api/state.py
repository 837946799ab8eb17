"""What the endpoints share: settings, database, writer, policies, metrics."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from sqlalchemy.exc import SQLAlchemyError

from doseforest.service.live import UNIT_KEY, LiveState, own_secret
from doseforest.service.logs import log, log_error
from doseforest.service.metrics import Metrics
from doseforest.service.registry.files import PolicyFiles
from doseforest.service.security.rates import RateLimit
from doseforest.service.settings import Settings
from doseforest.service.storage.databases import Database, open_database
from doseforest.service.storage.schema import check_schema
from doseforest.service.storage.writer import Writer

DECIDING_THREADS = 2


@dataclass(slots=True, eq=False)
class Service:
    """Everything that lives as long as the process serves."""

    settings: Settings
    database: Database
    writer: Writer
    files: PolicyFiles
    live: LiveState
    metrics: Metrics
    rates: RateLimit
    unit_key: bytes
    deciding: ThreadPoolExecutor  # large batches, so that small requests need not wait
    underway: dict[tuple[str, str], asyncio.Future[Any]] = field(default_factory=dict)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self) -> None:
        """Look for changes, again and again."""
        reachable = True
        while not self.stopping.is_set():
            try:
                before = self.live.current
                await asyncio.to_thread(self.live.refresh)
                self.note(before.problems)
                if not reachable:
                    log("database is back")
                reachable = True
            except SQLAlchemyError as error:
                self.metrics.refresh_failures.inc()
                if reachable:
                    log_error("database cannot be read", error)
                reachable = False
            self.metrics.waiting.set(self.writer.waiting)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), self.settings.refresh)

    def note(self, earlier_problems: tuple[str, ...] = ()) -> None:
        """Let metrics and logs know what serves."""
        now = self.live.current
        self.metrics.version.set(now.activation.version if now.activation else 0)
        self.metrics.problems.set(len(now.problems))
        for problem in now.problems:
            if problem not in earlier_problems:
                log("refused", logging.ERROR, problem=problem)


def service_of(request: Request) -> Service:
    """The service behind a request."""
    service: Service = request.app.state.service
    return service


@contextlib.asynccontextmanager
async def serving(app: FastAPI, settings: Settings) -> AsyncIterator[None]:
    """Open everything, serve, and close it in order: what was accepted is written."""
    database = open_database(settings.database)
    await asyncio.to_thread(check_schema, database)
    files = PolicyFiles(settings.policies)
    service = Service(
        settings=settings,
        database=database,
        writer=Writer(database),
        files=files,
        live=LiveState(database, files, settings.fallback_dose),
        metrics=Metrics(),
        rates=RateLimit(settings.rate / settings.workers),
        unit_key=await asyncio.to_thread(own_secret, database, UNIT_KEY),
        deciding=ThreadPoolExecutor(DECIDING_THREADS, "doseforest-deciding"),
    )
    app.state.service = service
    await asyncio.to_thread(service.live.refresh)
    service.note()
    following = asyncio.create_task(service.follow())
    log("serving", version=getattr(service.live.current.activation, "version", None))
    try:
        yield
    finally:
        service.stopping.set()
        await following
        await asyncio.to_thread(service.writer.close)
        service.deciding.shutdown()
        database.dispose()
        log("stopped")
