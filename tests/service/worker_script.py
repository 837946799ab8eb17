"""Two workers that do nothing, or that cannot start; run by test_workers.py as a process."""

from __future__ import annotations

import os
import signal
import sys
import time

from doseforest.service.workers import CANNOT_START, Workers


def idle() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("worker", os.getpid(), flush=True)
    time.sleep(120)


def fail() -> None:
    sys.exit(CANNOT_START)


def close_door() -> None:
    print("door closed", flush=True)


if __name__ == "__main__":
    work = {"idle": idle, "fail": fail}[sys.argv[1]]
    sys.exit(Workers(2, work, close_door, drain=0.0).run())
