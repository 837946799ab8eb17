"""Runs the application: one process or several, and an end that no client notices."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FrameType

import uvicorn

from doseforest.pricing.service.draining import draining
from doseforest.pricing.service.listening_socket import HALLWAY_SECONDS, close_to_new
from doseforest.pricing.service.logs import configure_logs
from doseforest.pricing.service.service_metrics import FOLDER
from doseforest.pricing.service.service_settings import Settings
from doseforest.pricing.service.service_workers import CANNOT_START, Workers

GRACE_SECONDS = 30  # for requests that are underway when new connections are no longer taken
KEEP_ALIVE_SECONDS = 75  # longer than proxies keep idle connections, so that they close them


class DrainingServer(uvicorn.Server):
    """A server that ends in steps.

    At the signal to stop it goes on answering for a while, says that it is not ready, and asks
    clients to close their connections. Then the door is closed to new ones, and last of all it
    waits for the requests that are underway. A second signal ends the waiting; not that of one of
    several workers, which get it twice where a whole group of processes is told to stop.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        door: socket.socket,
        *,
        drain: float,
        owns_door: bool,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._door, self._owns_door = door, owns_door
        self._drain = drain
        self._signalled: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, and say so."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain, or stop at once if that has begun."""
        if self._signalled is None and self._drain > 0:
            draining.begun = True
            self._signalled = time.monotonic()
            return
        if self._signalled is not None and not self._owns_door and not self.should_exit:
            return
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Take the next step once its time has come."""
        if self._signalled is not None:
            since = time.monotonic() - self._signalled
            if since >= self._drain and self._owns_door:
                close_to_new(self._door)
            self.should_exit |= since >= self._drain + HALLWAY_SECONDS
        return await super().on_tick(counter)


@dataclass(frozen=True, slots=True)
class Listening:
    """Where and how a server listens."""

    host: str
    port: int
    proxies: str  # addresses whose ``X-Forwarded-…`` headers are believed, with commas
    log_level: str


def run(settings: Settings, listening: Listening) -> int:
    """Serve until told to stop; returns the exit code."""
    settings.to_environment()
    configure_logs(listening.log_level)
    door = _config(listening).bind_socket()
    if settings.workers == 1:
        return _served(settings, listening, door, owns_door=True)
    with tempfile.TemporaryDirectory(prefix="doseforest-metrics-") as folder:
        os.environ[FOLDER] = folder  # before workers import the library
        work = partial(_work, settings, listening, door)
        workers = Workers(settings.workers, work, partial(close_to_new, door), settings.drain)
        return workers.run()


def _work(
    settings: Settings, listening: Listening, door: socket.socket, on_ready: Callable[[], None]
) -> None:
    configure_logs(listening.log_level)
    raise SystemExit(_served(settings, listening, door, owns_door=False, on_ready=on_ready))


def _served(
    settings: Settings,
    listening: Listening,
    door: socket.socket,
    *,
    owns_door: bool,
    on_ready: Callable[[], None] = lambda: None,
) -> int:
    server = DrainingServer(
        _config(listening), door, drain=settings.drain, owns_door=owns_door, on_ready=on_ready
    )
    server.run(sockets=[door])
    return 0 if server.started else CANNOT_START


def _config(listening: Listening) -> uvicorn.Config:
    return uvicorn.Config(
        "doseforest.pricing.service.api.app:app_of_environment",
        factory=True,
        host=listening.host,
        port=listening.port,
        log_config=None,
        access_log=False,
        server_header=False,
        forwarded_allow_ips=listening.proxies,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
