"""Grow a forest on a cluster of processes and kill some of them half-way; run by test_spark_faults.

A script of its own: a Python process has one Spark context, and the other tests share theirs.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

TESTS = Path(__file__).parents[:2]  # what this run and its executors import from

WORKER, EXECUTOR = "pyspark.daemon", "CoarseGrainedExecutorBackend"
VICTIMS = {1: WORKER, 3: EXECUTOR}  # by the number of rounds that are done


def processes_below(pattern):
    """Pids of this process' descendants whose command line has a pattern."""
    parents, commands = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = (entry / "stat").read_text().rsplit(")")[-1].split()[1]
            commands[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        except OSError:  # it has ended
            continue
        parents[int(entry.name)] = int(parent)

    def is_below(pid):
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    return sorted(pid for pid, text in commands.items() if pattern in text and is_below(pid))


def killing(search, killed):
    """Wrap the search of a round: a process is killed while it runs."""

    def kill(pattern):
        time.sleep(0.1)
        os.kill(processes_below(pattern)[-1], signal.SIGKILL)
        killed.append(pattern)

    def search_and_kill(engine, *arguments):
        pattern = VICTIMS.get(engine.report.n_rounds)
        if pattern is None:
            search(engine, *arguments)
            return
        thread = threading.Thread(target=kill, args=(pattern,))
        thread.start()
        search(engine, *arguments)
        thread.join()

    return search_and_kill


def main(folder):
    """Compare the forest with the local one, bit by bit."""
    sys.path += map(str, TESTS)
    import pyspark
    from test_spark_growth import SETTINGS, grow_on_spark

    from doseforest import CurveForest
    from doseforest.spark import engine
    from forests import assert_same_bits, wavy_data
    from spark_here import start_session

    home = Path(folder) / "spark"  # links to the package of PySpark, and work folders beside them
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    os.environ["SPARK_HOME"] = str(home)
    session = start_session(
        "local-cluster[2,1,2048]",
        folder,
        **{
            "spark.executor.memory": "1g",
            "spark.default.parallelism": "2",
            "spark.executorEnv.OMP_NUM_THREADS": "1",
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(map(str, TESTS)),
            "spark.task.maxFailures": "8",
        },
    )
    x, y, doses = wavy_data(n=1500, k=6)
    data = {"X": x, "y": y, "doses": doses}
    forest = CurveForest(**{**SETTINGS, "min_node_size": 40})
    killed = []
    engine.SparkEngine._search = killing(engine.SparkEngine._search, killed)
    grown, report = grow_on_spark(
        session, forest, data, n_partitions=4, mode="hybrid", task_bytes=4000
    )
    session.stop()
    assert_same_bits(forest.fit(**data).forest_, grown)
    assert killed == [WORKER, EXECUTOR], killed
    assert report.n_rounds >= 4, report
    assert report.n_tasks > 0, report
    print("the same forest")


if __name__ == "__main__":
    main(sys.argv[1])
