"""Counts of several processes: what the dead counted stays, what they were does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from doseforest.pricing.service.service_metrics import FOLDER

PROGRAM = """
from doseforest.pricing.service.service_metrics import Metrics
own = Metrics()
own.version.set({value}); own.problems.set({value}); own.outcomes.inc()
print(own.page().decode())
"""


def page_of(value: int, folder: Path) -> list[str]:
    environment = {**os.environ, FOLDER: str(folder)}  # it must be set before the import
    command = [sys.executable, "-c", PROGRAM.format(value=value)]
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return found.stdout.splitlines()


def test_gauges_of_processes_that_ended_are_forgotten(tmp_path: Path) -> None:
    for value in (1, 9):  # one below and one above the process that lives
        page_of(value, tmp_path)
    page = page_of(5, tmp_path)
    assert "doseforest_active_version 5.0" in page
    assert "doseforest_problems 5.0" in page
    assert "doseforest_outcomes_total 3.0" in page
