"""The service as a process of its own, and clients that keep it busy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx
from postgres_server import free_port
from service_world import World, unit
from sqlalchemy import select

from doseforest.pricing.service.storage.service_tables import decisions

DEADLINE = 60.0  # seconds for what should take one: machines of continuous integration are slow


@dataclass
class RunningServer:
    """A started `doseforest serve`."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def signal(self, number: int) -> None:
        os.killpg(self.process.pid, number)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        return self.process.wait(DEADLINE)


@contextmanager
def running(world: World, *options: str, ready: bool = True) -> Iterator[RunningServer]:
    """Start it, wait until it is ready, and make sure that it ends."""
    port = free_port()
    log = world.folder / f"server-{port}.log"
    own = world.settings
    program = "import typer; from doseforest.pricing.cli.serve import serve; typer.run(serve)"
    command = [sys.executable, "-c", program, "--port", str(port)]
    command += ["--data", str(world.folder), "--refresh", "0.1", "--rate", "0"]
    command += ["--drain", str(own.drain), *options]
    environment = {**os.environ, "DOSEFOREST_DATABASE": own.database}
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command, stderr=output, stdout=output, env=environment, start_new_session=True
        )
    server = RunningServer(process, f"http://127.0.0.1:{port}", log)
    try:
        if ready:
            wait_until(lambda: is_ready(server))
        yield server
    finally:
        if process.poll() is None:
            server.signal(signal.SIGKILL)
        process.wait()


def is_ready(server: RunningServer) -> bool:
    assert server.process.poll() is None, server.log.read_text()
    try:
        return httpx.get(f"{server.url}/readyz", timeout=5.0).status_code == 200
    except httpx.TransportError:
        return False


def stored_ids(world: World) -> set[str]:
    with world.database.reading.connect() as connection:
        return set(connection.execute(select(decisions.c.id)).scalars())


def wait_until(happened: Any) -> None:
    end = time.monotonic() + DEADLINE
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@dataclass
class Load:
    """Clients that ask for decisions until they are stopped, and what became of it."""

    server: RunningServer
    world: World
    units: int = 5
    clients: int = 3
    acknowledged: list[str] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    refused: int = 0  # connections that were not taken: nothing was asked
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Load:
        self._threads = [
            threading.Thread(target=self._ask, args=(number,)) for number in range(self.clients)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(DEADLINE)

    def _ask(self, number: int) -> None:
        sent = {"units": [unit(f"{number}-{place}") for place in range(self.units)]}
        with httpx.Client(base_url=self.server.url, headers=self.world.headers()) as client:
            while not self._stop.is_set():
                try:
                    answer = client.post("/v1/decisions", json=sent, timeout=DEADLINE)
                except httpx.ConnectError:
                    self.refused += 1
                    return
                except httpx.TransportError as error:
                    self.failures.append(repr(error))
                    return
                if answer.status_code != 200:
                    self.failures.append(f"{answer.status_code} {answer.text}")
                    continue
                for own in answer.json()["decisions"]:
                    self.acknowledged.append(own["decision_id"])
                    self.versions.append(own["policy_version"])
