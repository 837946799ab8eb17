"""Two workers that do nothing, or that cannot start; run by test_workers.py as a process."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from doseforest.pricing.service.service_workers import CANNOT_START, Workers


def idle(ready: Callable[[], None]) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ready()
    print("worker", os.getpid(), flush=True)
    time.sleep(120)


def fail(_: Callable[[], None]) -> None:
    sys.exit(CANNOT_START)


def flaky(ready: Callable[[], None]) -> None:
    """Serves as long as the file is not there that the second argument names."""
    if Path(sys.argv[2]).exists():
        print("failed", os.getpid(), flush=True)
        sys.exit(CANNOT_START)
    idle(ready)


def close_door() -> None:
    print("door closed", flush=True)


if __name__ == "__main__":
    work = {"idle": idle, "fail": fail, "flaky": flaky}[sys.argv[1]]
    sys.exit(Workers(2, work, close_door, drain=0.0).run())
