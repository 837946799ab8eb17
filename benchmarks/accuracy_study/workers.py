"""Tasks over processes, each with one thread."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Generator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import closing
from multiprocessing import get_context

from accuracy_study.store import Store
from accuracy_study.tasks import Record, Task, run_task

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Clock:
    """Lines of progress with the time since the start."""

    def __init__(self) -> None:
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.started

    def tell(self, text: str) -> None:
        """Print a line of progress."""
        print(f"[{self.seconds:6.0f} s] {text}", file=sys.stderr, flush=True)


def run_tasks(
    tasks: list[Task], store: Store, processes: int, clock: Clock, *, fresh: bool = False
) -> tuple[list[Record], list[Task]]:
    """Run what the store does not have; return all records, and the tasks that failed."""
    done = {} if fresh else store.find(tasks)
    missing = [task for task in tasks if task not in done]
    clock.tell(f"{len(done)} of {len(tasks)} fits are done already")
    start = clock.seconds
    with closing(_finished(missing, processes)) as finished:
        for count, (task, future) in enumerate(finished, start=1):
            error = future.exception()
            if error is None:
                done[task] = future.result()
                store.add(done[task])
            outcome = f"failed: {error!r}" if error else _brief(done[task])
            left = (clock.seconds - start) / count * (len(missing) - count)
            clock.tell(f"{count}/{len(missing)}, {left / 60:.0f} min left: {task}: {outcome}")
    records = [record for task in tasks for record in done.get(task, ())]
    return records, [task for task in missing if task not in done]


def _finished(
    tasks: list[Task], processes: int
) -> Generator[tuple[Task, Future[list[Record]]], None, None]:
    """Tasks as they end; those that wait are dropped when the caller stops."""
    if not tasks:
        return
    os.environ.update(ONE_THREAD)  # before the workers load what reads them
    with ProcessPoolExecutor(processes, get_context("spawn"), _quiet) as pool:
        under_way = {pool.submit(run_task, task): task for task in tasks}
        try:
            for future in as_completed(under_way):
                yield under_way[future], future
        finally:
            pool.shutdown(cancel_futures=True)


def _quiet() -> None:
    warnings.simplefilter("ignore")  # of peers' solvers; what matters is in the errors


def _brief(records: list[Record]) -> str:
    number = "rms" if "rms" in records[0] else "estimate"
    values = ", ".join(f"{record[number]:.3f}" for record in records)
    return f"{number} {values} ({records[0]['fit_seconds']:.1f} s)"
