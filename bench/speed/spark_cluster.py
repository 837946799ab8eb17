"""A cluster of processes on this machine and what it costs: processor time, memory, shuffles."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
PROCESSES = {
    "driver, JVM": "org.apache.spark.deploy.SparkSubmit",
    "executor, JVM": "CoarseGrainedExecutorBackend",
    "executor, Python": "pyspark.daemon",
}
JOB_COLUMNS = ("jobs", "seconds", "seconds of tasks", "shuffled, MB", "spilled, MB")


@contextmanager
def cluster(n_executors: int, memory_mb: int, **settings: str) -> Iterator[Any]:
    """A session on so many executors of one core each; its files are gone afterwards."""
    from pyspark.sql import SparkSession

    os.environ["SPARK_HOME"] = linked_home()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master(f"local-cluster[{n_executors},1,{memory_mb}]")
        fixed = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.ui.retainedJobs": "10000",
            "spark.ui.retainedStages": "10000",
            "spark.log.level": "ERROR",
            "spark.driver.memory": "2g",
            "spark.executor.memory": f"{memory_mb}m",
            "spark.executorEnv.OMP_NUM_THREADS": "1",
            "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
            "spark.executorEnv.PYTHONPATH": str(Path(__file__).parent),
            "spark.local.dir": f"{folder}/local",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
        }
        for name, value in {**fixed, **settings}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()


@cache
def linked_home() -> str:
    """Links to PySpark's files: workers make their folders beside them, not in the package.

    The driver's JVM outlives a session and keeps its environment, so a process has one home.
    """
    import pyspark

    home = tempfile.mkdtemp(prefix="spark-home-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for entry in Path(pyspark.__file__).parent.iterdir():
        (Path(home) / entry.name).symlink_to(entry)
    return home


def processor_seconds() -> float:
    """Processor time of this process, the cluster and all their children."""
    total = 0
    for _, stat in _stats():
        total += sum(int(stat[place]) for place in (11, 12, 13, 14))  # own and waited-for children
    return total / TICKS


def peak_memory_mb() -> dict[str, float]:
    """Largest resident memory so far, of the driver and the largest of an executor, if alive."""
    peaks = {"driver, Python": _peak(os.getpid())}
    for pid, command in _below(os.getpid()):
        for who, sign in PROCESSES.items():
            if sign in command:
                peaks[who] = max(peaks.get(who, 0.0), _peak(pid))
    return peaks


def costs_of_jobs(session: Any) -> dict[str, dict[str, float]]:
    """What the jobs of each description cost so far; jobs of several threads run side by side."""
    store = session.sparkContext._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    costs: dict[str, dict[str, float]] = {}
    for job in _items(jobs):
        if job.description().isEmpty() or job.completionTime().isEmpty():
            continue
        text = re.sub(r"\d[\d,]*", "N", job.description().get()).removeprefix("doseforest: ")
        own = costs.setdefault(text, dict.fromkeys(JOB_COLUMNS, 0.0))
        took = job.completionTime().get().getTime() - job.submissionTime().get().getTime()
        stages = [store.lastStageAttempt(int(number)) for number in _items(job.stageIds())]
        for name, more in zip(
            JOB_COLUMNS,
            (
                1,
                took / 1000,
                sum(stage.executorRunTime() for stage in stages) / 1000,
                sum(stage.shuffleWriteBytes() for stage in stages) / 2**20,
                sum(stage.diskBytesSpilled() for stage in stages) / 2**20,
            ),
            strict=True,
        ):
            own[name] += more
    return costs


class Watch:
    """A context manager that looks at the cluster three times a second.

    `kept_mb` is the most megabytes of rows that executors kept, in memory and on disk.
    """

    def __init__(self, session: Any) -> None:
        self._context = session.sparkContext._jsc.sc()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._before = _own_ticks()
        self._ticks = dict(self._before)
        self.kept_mb = 0.0

    @property
    def processor_seconds(self) -> float:
        """Of all processes, also of workers that have ended: those that are idle for long do."""
        return (sum(self._ticks.values()) - sum(self._before.values())) / TICKS

    def _watch(self) -> None:
        while not self._ended.wait(0.3):
            self._look()

    def _look(self) -> None:
        kept = sum(own.memSize() + own.diskSize() for own in self._context.getRDDStorageInfo())
        self.kept_mb = max(self.kept_mb, kept / 2**20)
        self._ticks.update(_own_ticks())

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()
        self._look()


def _items(found: Any) -> Iterator[Any]:
    return (found.apply(place) for place in range(found.size()))


def shuffled_mb(session: Any) -> float:
    """Megabytes written to shuffles so far."""
    executors = session.sparkContext._jsc.sc().statusStore().executorList(True)
    return sum(executors.apply(k).totalShuffleWrite() for k in range(executors.size())) / 2**20


def _peak(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # it has ended
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


def _own_ticks() -> dict[tuple[int, str], int]:
    """Processor time of this process and those below it, by process and when it began."""
    return {(pid, stat[19]): int(stat[11]) + int(stat[12]) for pid, stat in _stats()}


def _stats() -> Iterator[tuple[int, list[str]]]:
    for pid in (os.getpid(), *(pid for pid, _ in _below(os.getpid()))):
        try:
            yield pid, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[-1].split()
        except OSError:  # it has ended
            continue


def _below(ancestor: int) -> list[tuple[int, str]]:
    parents, commands = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text().rsplit(")", 1)[-1].split()
            commands[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        except OSError:  # it has ended
            continue
        parents[int(entry.name)] = int(stat[1])

    def is_below(pid: int) -> bool:
        while pid in parents and pid != ancestor:
            pid = parents[pid]
        return pid == ancestor

    return [(pid, text) for pid, text in commands.items() if pid != ancestor and is_below(pid)]
