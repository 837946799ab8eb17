"""What the endpoints share: settings, database, writer, policies, metrics."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import FastAPI, Request

from doseforest.pricing.service.gathering import Gathering
from doseforest.pricing.service.live import UNIT_KEY, LiveState, own_secret
from doseforest.pricing.service.logs import log, log_error
from doseforest.pricing.service.registry.policy_files import PolicyFiles
from doseforest.pricing.service.security.rates import RateLimit
from doseforest.pricing.service.service_metrics import Metrics
from doseforest.pricing.service.service_settings import Settings
from doseforest.pricing.service.storage.databases import (
    Database,
    StorageUnavailableError,
    open_database,
)
from doseforest.pricing.service.storage.schema import check_schema
from doseforest.pricing.service.storage.writer import Writer

Answer = TypeVar("Answer")
DECIDING_THREADS = 2
MOST_EXPORTS = 2  # at the same time, of a process
PATIENCE_SECONDS = 20  # for each answer of the database
WRITE_SECONDS = 30


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
    gathering: Gathering  # small requests, decided on together
    deciding: ThreadPoolExecutor  # large batches, so that small requests need not wait
    underway: dict[tuple[str, str], asyncio.Future[Any]] = field(default_factory=dict)
    exporting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_EXPORTS))
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
            except Exception as error:  # whatever it is, the next look may be luckier
                self.metrics.refresh_failures.inc()
                if reachable:
                    log_error("no news from the database", error)
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


async def written(write: Future[Answer]) -> Answer:
    """What a write returns, once it is on disk; a database that hangs is one that is gone."""
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            return await asyncio.wrap_future(write)
    except TimeoutError as error:
        raise StorageUnavailableError("The database takes too long.") from error


def service_of(request: Request) -> Service:
    """The service behind a request."""
    service: Service = request.app.state.service
    return service


@contextlib.asynccontextmanager
async def serving(app: FastAPI, settings: Settings) -> AsyncIterator[None]:
    """Open everything, serve, and close it in order: what was accepted is written."""
    database = open_database(settings.database, patience=PATIENCE_SECONDS)
    await asyncio.to_thread(check_schema, database)
    files = PolicyFiles(settings.policies)
    writer, live = Writer(database), LiveState(database, files, settings.fallback_dose)
    service = Service(
        settings=settings,
        database=database,
        writer=writer,
        files=files,
        live=live,
        metrics=Metrics(),
        rates=RateLimit(settings.rate / settings.workers),
        unit_key=await asyncio.to_thread(own_secret, database, UNIT_KEY),
        gathering=Gathering(lambda: live.current.deciders, lambda: writer.busy),
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
