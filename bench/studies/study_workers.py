"""Tasks over processes, each with one thread."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import closing
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bench.studies.store import Store
from bench.studies.tasks import Record, Task, run_task, version_of
from doseforest.base.machine import end_with_parent

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# Of glibc: arrays of up to 1 GB are taken from memory that the process keeps. Handed back and asked
# for anew, their pages took 2 of the 25 processor seconds of a fit with 1,000 rows.
KEPT_MEMORY = dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), str(2**30))
WORKERS = ONE_THREAD | KEPT_MEMORY  # environment of processes that fit side by side


class Clock:
    """The time since the start, and where lines of progress go."""

    def __init__(self, *, verbose: bool = False) -> None:
        self.started = time.perf_counter()
        self.verbose = verbose

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.started

    def tell(self, text: str) -> None:
        """Print a line of progress."""
        print(f"[{self.seconds:6.0f} s] {text}", file=sys.stderr, flush=True)

    def mention(self, text: str) -> None:
        """Print a line of progress, to those who asked for all of them."""
        if self.verbose:
            self.tell(text)


def run_tasks(
    tasks: list[Task],
    store: Store,
    processes: int,
    clock: Clock,
    *,
    fresh: bool = False,
    known: Mapping[Task, list[Record]] | None = None,
) -> tuple[list[Record], list[Task]]:
    """Run what neither the store nor `known` has; return all records, and the tasks that failed."""
    done = dict(known or {}) | ({} if fresh else store.find(tasks))
    missing = [task for task in tasks if task not in done]
    clock.mention(f"{len(done)} of {len(tasks)} fits are done already")
    with _progress() as progress, closing(_finished(missing, processes)) as finished:
        bar = progress.add_task("fits", total=len(tasks), completed=len(done))
        for count, (task, future) in enumerate(finished, start=1):
            error = future.exception()
            if error is None:
                done[task] = future.result()
                store.add(done[task])
                clock.mention(f"{count}/{len(missing)}: {task}: {_brief(done[task])}")
            else:
                clock.tell(f"{task} failed: {error!r}")
            progress.advance(bar)
    records = [record for task in tasks for record in done.get(task, ())]
    return records, [task for task in missing if task not in done]


def _progress() -> Progress:
    """A bar with the time that is left; nothing where standard error is not a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _finished(
    tasks: list[Task], processes: int
) -> Generator[tuple[Task, Future[list[Record]]], None, None]:
    """Tasks as they end; those that wait are dropped when the caller stops."""
    if not tasks:
        return
    with worker_pool(processes, _quiet) as pool:
        under_way = {pool.submit(run_task, task, version_of(task)): task for task in tasks}
        try:
            for future in as_completed(under_way):
                yield under_way[future], future
        finally:
            pool.shutdown(cancel_futures=True)


def worker_pool(processes: int, begin: Callable[[], None] = end_with_parent) -> ProcessPoolExecutor:
    """Processes with one thread each, which `begin` and end with this one, even if it is killed."""
    os.environ.update(WORKERS)  # before the workers load what reads them
    return ProcessPoolExecutor(processes, get_context("spawn"), begin)


def _quiet() -> None:
    end_with_parent()
    warnings.simplefilter("ignore")  # of peers' solvers; what matters is in the errors


def _brief(records: list[Record]) -> str:
    number = "rms" if "rms" in records[0] else "estimate"
    values = ", ".join(f"{record[number]:.3f}" for record in records)
    return f"{number} {values} ({records[0]['fit_seconds']:.1f} s)"
