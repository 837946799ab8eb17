"""Processes of studies: they end with the one that started them."""

import signal
import subprocess
import sys

STARTED = """
import os, time
from bench.studies.study_workers import worker_pool

with worker_pool(2) as pool:
    under_way = [pool.submit(time.sleep, 600) for _ in range(2)]
    while sum(future.running() for future in under_way) < 2:
        time.sleep(0.05)
    print("started", flush=True)
    time.sleep(600)
"""


def test_workers_of_a_killed_study_end():
    command = [sys.executable, "-c", STARTED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "started\n"
        process.kill()
        process.communicate(timeout=60)  # their ends of the pipe are closed once they ended
        assert process.returncode == -signal.SIGKILL
