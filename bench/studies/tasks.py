"""One fit on one drawn data set, and what is measured of it."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from bench.designs import Simulation, find_design
from bench.golden import code_stamp
from bench.studies.measures import MEASURES
from bench.studies.result_keys import digest_of_draw
from bench.studies.study_methods import METHODS, state

Record = dict[str, Any]  # a line of a file of results


@dataclass(frozen=True, slots=True)
class Task:
    """A fit, and what is measured."""

    method: str  # of METHODS
    design: str  # a name that `find_design` knows
    n: int
    seed: int
    measure: str = "effects"  # of MEASURES

    def __str__(self) -> str:
        return f"{self.design}, n = {self.n}, seed {self.seed}, {self.method}"


def draw(task: Task) -> Simulation:
    """Draw the data of a task."""
    return find_design(task.design).draw(n=task.n, seed=task.seed)


def fingerprint(task: Task) -> str:
    """Digest of the data and their truth, which differs when a design was changed."""
    return _fingerprint(task.design, task.n, task.seed)


def design_digest(design: str) -> str:
    """Digest of one draw of a design, which differs when the design was changed."""
    return _fingerprint(design, 100, 0)


@cache
def _fingerprint(design: str, n: int, seed: int) -> str:
    return digest_of_draw(find_design(design), n, seed)


def version_of(task: Task) -> str:
    """The code that runs and the state of the method, which a run must not see change."""
    return f"{code_stamp()} {state(task.method, task.measure)}"


def run_task(task: Task, expected: str | None = None) -> list[Record]:
    """Fit and measure: one record for each row of the method.

    `expected` is the `version_of` the task when the run began: sources that have changed since
    would give results of one version the name of another.
    """
    if expected is not None and version_of(task) != expected:
        raise RuntimeError("The sources or packages have changed since this run began; start anew.")
    data, measure = draw(task), MEASURES[task.measure]
    start = time.perf_counter()
    models = METHODS[task.method].fit(data, task.seed)
    seconds = time.perf_counter() - start
    own = state(task.method, task.measure)
    about = asdict(task) | {"state": own, "data": fingerprint(task)}
    return [
        about | {"row": row, "fit_seconds": round(seconds, 3)} | measure(model, data, task.seed)
        for row, model in models.items()
    ]
