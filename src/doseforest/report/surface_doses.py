"""What a surface over two components of the dose is drawn from."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.data.feature_table import ArrayTable
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import DoseRange, as_doses
from doseforest.report.dose_axes import DoseAxes
from doseforest.report.pictures import DoseMarks

if TYPE_CHECKING:
    from doseforest.estimator.effect_forest import EffectForest

N_POINTS = 17  # along each component


def surface_axes(model: EffectForest, axes: DoseAxes, doses: Any) -> tuple[FloatArray, FloatArray]:
    """Values of both components."""
    levels = [part.dose for part in axes.parts if not part.continuous]
    if model.n_components != 2 or axes.arms or levels:
        if model.n_components == 1:
            got, cure = "one component", "plot.dose_response"
        elif axes.arms:
            got, cure = "arms", "plot.dose_response, which draws them side by side,"
        else:
            got = f"levels of {levels[0]}" if levels else f"{model.n_components} components"
            cure = "plot.dose_response with 'component' and 'at'"
        raise ValueError(
            f"The dose must have two components, both quantities, for plot.surface. Got {got} "
            f"instead: use {cure}."
        )
    if doses is None:
        table = Doses.of(model.doses).table
        first, second = (
            _spread(np.unique(table[:, k]), part, model.ranges[k])
            for k, part in enumerate(axes.parts)
        )
        return first, second
    if isinstance(doses, str) or not hasattr(doses, "__len__") or len(doses) != 2:
        raise ValueError(
            "The 'doses' parameter of plot.surface must be a pair: values of either component. "
            f"Got {doses!r} instead."
        )
    return as_doses(doses[0], "doses"), as_doses(doses[1], "doses")


def _spread(values: FloatArray, marks: DoseMarks, observed: DoseRange) -> FloatArray:
    """Values at equal distances over those of a grid, beside masses."""
    beside = values[~np.isin(values, marks.masses)]
    low, high = (beside[0], beside[-1]) if len(beside) > 1 else (observed.low, observed.high)
    return np.linspace(low, high, N_POINTS)


def checked_unit(unit: Any, n_units: int) -> int:
    """Row of a table, or ValueError."""
    wrong = not isinstance(unit, Integral) or isinstance(unit, bool)
    if wrong or not 0 <= unit < n_units:
        raise ValueError(
            f"The 'unit' parameter must be a row of X, an int from 0 to {n_units - 1}. "
            f"Got {unit!r} instead."
        )
    return int(unit)


def coded_units(model: EffectForest, codes: FloatArray) -> ArrayTable:
    """Units that were checked before: numbers of their categories are the model's codes."""
    return ArrayTable(codes, categories=model.categories)


def mean_surface(model: EffectForest, table: FloatArray, doses: DoseArray) -> FloatArray:
    """Mean outcome of units at each dose, in blocks that memory does not feel."""
    total = np.zeros(len(doses))
    for _, block in coded_units(model, table).blocks():
        total += model.curves(block, doses).sum(axis=0)
    mean: FloatArray = total / len(table)
    return mean
