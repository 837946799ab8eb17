"""Several processes that serve behind one door; one that dies is replaced."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any

from doseforest.service.logs import log

CANNOT_START = 3  # exit code of a worker that never served: another one would not either
SIGNALS = (signal.SIGTERM, signal.SIGINT)
GLANCE_SECONDS = 0.1


class Workers:
    """Processes that run the same work until this one is told to stop.

    Parameters
    ----------
    count : int
    work : callable
        Runs in every process; it must end on SIGTERM.
    close_door : callable
        Called once, some time after the signal to stop.
    drain : float
        That time, in seconds.
    """

    def __init__(
        self, count: int, work: Callable[[], None], close_door: Callable[[], None], drain: float
    ) -> None:
        self._work, self._close_door, self._drain = work, close_door, drain
        self._context = multiprocessing.get_context("spawn")
        self._stopping = threading.Event()
        self._door_closes: float | None = None
        self._processes: list[SpawnProcess] = [self._started() for _ in range(count)]

    def run(self) -> int:
        """Wait for a signal or for a worker that cannot start; returns the exit code."""
        for number in SIGNALS:
            signal.signal(number, self._stop)
        code = 0
        while self._processes:
            wait([own.sentinel for own in self._processes], timeout=GLANCE_SECONDS)
            if self._door_closes is not None and time.monotonic() >= self._door_closes:
                self._close_door()
            for own in [own for own in self._processes if not own.is_alive()]:
                self._processes.remove(own)
                if self._stopping.is_set():
                    continue
                log("worker ended", logging.ERROR, process=own.pid, code=own.exitcode)
                if own.exitcode == CANNOT_START:
                    code = CANNOT_START
                    self._stop()
                else:
                    self._processes.append(self._started())
        return code

    def _started(self) -> SpawnProcess:
        process = self._context.Process(target=self._work)
        process.start()
        return process

    def _stop(self, *_: Any) -> None:
        if not self._stopping.is_set():
            self._door_closes = time.monotonic() + self._drain
        self._stopping.set()
        for own in self._processes:
            own.terminate()
