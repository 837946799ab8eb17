"""A forest grown while processes are killed is the same forest, on a cluster of real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spark_here import needs_spark

pytestmark = needs_spark


def test_killed_workers_and_executors_do_not_change_the_forest(tmp_path):
    script = Path(__file__).with_name("spark_fault_run.py")
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(script), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # so that nothing of the cluster outlives the test
    )
    try:
        output, _ = process.communicate(timeout=400)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        pytest.fail(f"the fit did not end:\n{output[-3000:]}")
    assert process.returncode == 0, output[-3000:]
    assert "the same forest" in output
