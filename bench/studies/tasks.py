"""One fit on one drawn data set, and what is measured of it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from bench.designs import DESIGNS, JOINT_DESIGNS, Design, Simulation
from bench.studies.study_methods import METHODS, state
from doseforest.evaluation import effect_errors

EVERY_DESIGN: dict[str, Design] = {**DESIGNS, **JOINT_DESIGNS}
N_NEW_UNITS = 1000
NEW_UNITS_SEED = 1_000_000  # on top of the simulation's
AVERAGE_DOSES = np.linspace(0.0, 20.0, 41)  # of the paper's designs, whose doses end near 20

Record = dict[str, Any]  # a line of a file of results
Measure = Callable[[Any, Simulation, int], dict[str, Any]]  # of a model, its data and the seed


@dataclass(frozen=True, slots=True)
class Task:
    """A fit, and what is measured."""

    method: str  # of METHODS
    design: str  # of EVERY_DESIGN
    n: int
    seed: int
    measure: str = "effects"  # of MEASURES

    def __str__(self) -> str:
        return f"{self.design}, n = {self.n}, seed {self.seed}, {self.method}"


def effects(model: Any, data: Simulation, seed: int) -> dict[str, Any]:
    """Errors on the training units and the interior doses."""
    return asdict(effect_errors(model, data))


def new_units(model: Any, data: Simulation, seed: int) -> dict[str, Any]:
    """Errors on new units of the same population."""
    units = data.draw_units(N_NEW_UNITS, seed=NEW_UNITS_SEED + seed)
    return asdict(effect_errors(model, data, X=units))


def new_units_and_average(model: Any, data: Simulation, seed: int) -> dict[str, Any]:
    """The same, and the average of the new units' curves at `AVERAGE_DOSES`."""
    units = data.draw_units(N_NEW_UNITS, seed=NEW_UNITS_SEED + seed)
    doses = AVERAGE_DOSES[data.support[1] >= AVERAGE_DOSES]
    average = np.asarray(model.dose_response(units, doses)).mean(axis=0)
    return new_units(model, data, seed) | {"average": average.round(4).tolist()}


def average_at_zero(model: Any, data: Simulation, seed: int) -> dict[str, Any]:
    """Average outcome at dose 0: doubly robust where the model has it, else the mean of curves."""
    drawn = float(data.average([0.0])[0])
    if not hasattr(model, "average_dose_response"):
        estimate = float(model.dose_response(data.X, [0.0]).mean())
        return {"estimate": estimate, "drawn": drawn}
    curve = model.average_dose_response(doses=[0.0])
    error = float(curve.standard_errors[0])
    return {"estimate": float(curve.values[0]), "standard_error": error, "drawn": drawn}


MEASURES: dict[str, Measure] = {
    "effects": effects,
    "new_units": new_units,
    "new_units_and_average": new_units_and_average,
    "average": average_at_zero,
}


def draw(task: Task) -> Simulation:
    """Draw the data of a task."""
    return EVERY_DESIGN[task.design].draw(n=task.n, seed=task.seed)


def fingerprint(task: Task) -> str:
    """Digest of the data and their truth, which differs when a design was changed."""
    return _fingerprint(task.design, task.n, task.seed)


def design_digest(design: str) -> str:
    """Digest of one draw of a design, which differs when the design was changed."""
    return _fingerprint(design, 100, 0)


@cache
def _fingerprint(design: str, n: int, seed: int) -> str:
    data = EVERY_DESIGN[design].draw(n=n, seed=seed)
    digest = hashlib.sha256()
    for values in (data.X, data.treatment, data.y, data.doses, data.effect()):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:12]


def run_task(task: Task, expected: str | None = None) -> list[Record]:
    """Fit and measure: one record for each row of the method.

    `expected` is the state of the method when the run began: sources that have changed since would
    give results of one version the name of another.
    """
    if expected is not None and state(task.method) != expected:
        raise RuntimeError("The sources or packages have changed since this run began; start anew.")
    data, measure = draw(task), MEASURES[task.measure]
    start = time.perf_counter()
    models = METHODS[task.method].fit(data, task.seed)
    seconds = time.perf_counter() - start
    about = asdict(task) | {"state": state(task.method), "data": fingerprint(task)}
    return [
        about | {"row": row, "fit_seconds": round(seconds, 3)} | measure(model, data, task.seed)
        for row, model in models.items()
    ]
