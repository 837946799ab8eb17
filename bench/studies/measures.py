"""What is measured of a fitted model: to add a number of records, add a line to `MEASURES`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.designs import DESIGNS, Simulation
from bench.real_data.held_out_curves import HeldOutCurves
from bench.studies.held_out_measures import policy_error, romberg_root, root_mean_square
from bench.studies.result_keys import digest_of
from doseforest.base.dtypes import FloatArray
from doseforest.doses.curve_effects import dose_table
from doseforest.evaluation import effect_errors

N_NEW_UNITS = 1000
NEW_UNITS_SEED = 1_000_000  # on top of the simulation's
AVERAGE_DOSES = np.linspace(0.0, 20.0, 41)  # of the paper's designs, whose doses end near 20

Measure = Callable[[Any, Simulation, int], dict[str, Any]]  # of a model, its data and the seed


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


def published_ihdp(model: Any, data: Any, seed: int) -> dict[str, Any]:
    """Root mean integrated squared error of held-out curves, as GIKS has it."""
    return {"rms": root_mean_square(_held_out_curves(model, data) - data.response)}


def published_cadr(model: Any, data: Any, seed: int) -> dict[str, Any]:
    """Root of the integrated squared error of held-out curves by Romberg's rule; policy error."""
    curves = _held_out_curves(model, data)
    return {
        "rms": romberg_root(curves - data.response),
        "policy": policy_error(data.response, curves),
    }


def _held_out_curves(model: Any, data: Any) -> FloatArray:
    curves: FloatArray = np.asarray(model.dose_response(data.units, data.doses), np.float64)
    return curves


MEASURES: dict[str, Measure] = {
    "effects": effects,
    "new_units": new_units,
    "new_units_and_average": new_units_and_average,
    "average": average_at_zero,
    "published_ihdp": published_ihdp,
    "published_cadr": published_cadr,
}
HELD_OUT = ("published_ihdp", "published_cadr")  # of data with held-out curves


class ToyCurves:
    """Curves that are known without a fit."""

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """A wave that each unit's first feature moves."""
        curves: FloatArray = np.sin(dose_table(doses, len(X)).values + X[:, :1])
        return curves


class ToyAverages(ToyCurves):
    """The same with an average curve of its own, as forests have."""

    def average_dose_response(self, doses: Any) -> Any:
        """The wave, with standard errors."""
        return SimpleNamespace(values=np.sin(doses), standard_errors=np.cos(doses))


def toy_held_out(data: Simulation) -> HeldOutCurves:
    """The rows of a simulation, and their exact curves at 65 doses."""
    doses = np.linspace(0.0, 1.0, 65)
    rows = {"X": data.X, "treatment": data.treatment, "y": data.y}
    curves = data.mean(doses)
    return HeldOutCurves("toy", "", **rows, doses=doses, units=data.X, response=curves)


@cache
def digest_of_measure(name: str) -> str:
    """Digest of what is measured of two toys, which differs when the measure was changed."""
    data: Any = DESIGNS["randomised"].draw(n=50, seed=0)
    if name in HELD_OUT:
        data = toy_held_out(data)
    found = [MEASURES[name](model, data, 0) for model in (ToyCurves(), ToyAverages())]
    rounded = [{key: np.round(own, 9).tolist() for key, own in toy.items()} for toy in found]
    return digest_of(rounded)
