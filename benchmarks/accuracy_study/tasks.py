"""One fit on one drawn data set, and what is measured of it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from accuracy_study.estimators import ESTIMATORS, state
from doseforest.evaluation import effect_errors
from doseforest.simulation import DESIGNS, JOINT_DESIGNS, Design, Simulation

EVERY_DESIGN: dict[str, Design] = {**DESIGNS, **JOINT_DESIGNS}
Record = dict[str, Any]  # a line of a file of results
Measure = Callable[[Any, Simulation], dict[str, float]]


@dataclass(frozen=True, slots=True)
class Task:
    """A fit, and what is measured."""

    estimator: str  # of ESTIMATORS
    design: str  # of EVERY_DESIGN
    n: int
    seed: int
    measure: str = "effects"  # of MEASURES

    def __str__(self) -> str:
        return f"{self.design}, n = {self.n}, seed {self.seed}, {self.estimator}"


def effects(model: Any, data: Simulation) -> dict[str, float]:
    """Errors on the training units and the interior doses."""
    return asdict(effect_errors(model, data))


def average_at_zero(model: Any, data: Simulation) -> dict[str, float]:
    """Average outcome at dose 0: doubly robust where the model has it, else the mean of curves."""
    drawn = float(data.average([0.0])[0])
    if not hasattr(model, "average_dose_response"):
        estimate = float(model.dose_response(data.X, [0.0]).mean())
        return {"estimate": estimate, "drawn": drawn}
    curve = model.average_dose_response(doses=[0.0])
    error = float(curve.standard_errors[0])
    return {"estimate": float(curve.values[0]), "standard_error": error, "drawn": drawn}


MEASURES: dict[str, Measure] = {"effects": effects, "average": average_at_zero}


def draw(task: Task) -> Simulation:
    return EVERY_DESIGN[task.design].draw(n=task.n, seed=task.seed)


def fingerprint(task: Task) -> str:
    """Digest of the data and their truth, which differs when a design was changed."""
    return _fingerprint(task.design, task.n, task.seed)


@cache
def _fingerprint(design: str, n: int, seed: int) -> str:
    data = EVERY_DESIGN[design].draw(n=n, seed=seed)
    digest = hashlib.sha256()
    for values in (data.X, data.treatment, data.y, data.doses, data.effect()):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:12]


def run_task(task: Task) -> list[Record]:
    """Fit and measure: one record for each row of the estimator."""
    data, measure = draw(task), MEASURES[task.measure]
    start = time.perf_counter()
    models = ESTIMATORS[task.estimator].fit(data, task.seed)
    seconds = time.perf_counter() - start
    about = asdict(task) | {"state": state(task.estimator), "data": fingerprint(task)}
    return [
        about | {"row": row, "fit_seconds": round(seconds, 3)} | measure(model, data)
        for row, model in models.items()
    ]
