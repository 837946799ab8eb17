"""Several processes that serve behind one door; one that dies is replaced."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from doseforest.base.machine import end_with_parent
from doseforest.pricing.service.logs import log

CANNOT_START = 3  # exit code of a worker that never served: if none ever did, none will
SIGNALS = (signal.SIGTERM, signal.SIGINT)
GLANCE_SECONDS = 0.1
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds between attempts to replace a worker
Work = Callable[[Callable[[], None]], None]


class Workers:
    """Processes that run the same work until this one is told to stop.

    Parameters
    ----------
    count : int
    work : callable
        Runs in every process; it must end on SIGTERM, and call its argument once it serves.
    close_door : callable
        Called once, some time after the signal to stop.
    drain : float
        That time, in seconds.
    """

    def __init__(
        self, count: int, work: Work, close_door: Callable[[], None], drain: float
    ) -> None:
        self._count = count
        self._work, self._close_door, self._drain = work, close_door, drain
        self._context = multiprocessing.get_context("spawn")
        self._stopping = threading.Event()
        self._door_closes: float | None = None
        self._processes: list[SpawnProcess] = []
        self._due: list[float] = []  # when those that ended are to be replaced
        self._failures = 0  # workers that ended since one last said that it serves
        self._served = False  # whether one ever did
        self._heard, self._told = self._context.Pipe(duplex=False)

    def run(self) -> int:
        """Wait for a signal, or for a first worker that cannot start; returns the exit code."""
        for number in SIGNALS:
            signal.signal(number, self._stop)
        self._due = [time.monotonic()] * self._count
        code = 0
        while self._processes or (self._due and not self._stopping.is_set()):
            self._start_due()
            wait([process.sentinel for process in self._processes], timeout=GLANCE_SECONDS)
            if self._door_closes is not None and time.monotonic() >= self._door_closes:
                self._close_door()
            self._listen()
            for each in [process for process in self._processes if not process.is_alive()]:
                self._processes.remove(each)
                if self._stopping.is_set():
                    continue
                log("worker ended", logging.ERROR, process=each.pid, code=each.exitcode)
                if each.exitcode == CANNOT_START and not self._served:
                    code = CANNOT_START
                    self._stop()
                else:
                    self._due.append(time.monotonic() + self._pause())
                    self._failures += 1
        return code

    def _listen(self) -> None:
        while self._heard.poll():
            self._heard.recv_bytes()
            self._served, self._failures = True, 0

    def _pause(self) -> float:
        """Seconds until a worker is replaced: none at first, more each time that it does not help.

        While the database is away a new worker cannot start, and those that run must go on.
        """
        return min(FIRST_PAUSE * 2.0 ** (self._failures - 1), LONGEST_PAUSE) * (self._failures > 0)

    def _start_due(self) -> None:
        now = time.monotonic()
        for due in [due for due in self._due if due <= now]:
            if self._stopping.is_set():
                return
            self._due.remove(due)
            process = self._context.Process(target=_watched, args=(self._work, self._told))
            process.start()
            self._processes.append(process)
            if self._stopping.is_set():  # the signal came before this one was on the list
                process.terminate()

    def _stop(self, *_: Any) -> None:
        if not self._stopping.is_set():
            self._door_closes = time.monotonic() + self._drain
        self._stopping.set()
        for process in self._processes:
            process.terminate()


def _watched(work: Work, told: Connection) -> None:
    """Work that ends with the process that started it."""
    end_with_parent()
    work(partial(told.send_bytes, b"serves"))
