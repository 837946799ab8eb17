"""Which doses may be the best for a unit: those that no other dose is surely better than."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray
from doseforest.doses.dose_values import Doses
from doseforest.estimator.bags.bag_contrasts import (
    contrast_roots,
    contrast_variance,
    rise_quantiles,
)
from doseforest.inference.units.differences import UnitCurves, unit_curves
from doseforest.inference.units.unit_results import BestDoses


def best_doses(model: Any, X: Any, grid: Doses, coverage: float, *, minimize: bool) -> BestDoses:
    """Compare all doses of a grid, for each unit.

    A dose is left out where the largest of the other doses' gains over it, in standard errors, is
    beyond what the gains' joint noise explains. Were it the best, that would happen with
    probability 1 - `coverage` at most: what is left holds the best dose with that coverage.
    """
    table, doses = model.checked_table(X), grid.values
    best = np.empty(table.n_rows, np.int64)
    plausible = np.empty((table.n_rows, len(doses)), bool)
    sign = -1.0 if minimize else 1.0
    for first, block in table.blocks():
        rows = slice(first, first + len(block))
        own = np.broadcast_to(doses, (len(block), len(doses)))
        result = unit_curves(model, block, own)
        best[rows] = np.argmax(sign * result.curves, axis=1)
        plausible[rows] = not_beaten(result, sign, coverage)
    return BestDoses(doses, doses[best], plausible)


def not_beaten(found: UnitCurves, sign: float, coverage: float) -> NDArray[np.bool_]:
    """Doses that may be the best, (n_units, n_doses)."""
    n_doses = found.curves.shape[1]
    kept = np.empty(found.curves.shape, bool)
    roots = contrast_roots(found.noise, sign * found.functions)
    for place in range(n_doses):
        contrasts = sign * (found.functions - found.functions[:, place : place + 1])
        gains = sign * (found.curves - found.curves[:, place : place + 1])
        variance, degrees = contrast_variance(found.noise, contrasts)
        against = roots - roots[:, place : place + 1]
        limits = rise_quantiles(against, np.median(degrees, axis=1), coverage)
        kept[:, place] = _largest_gain(gains, np.sqrt(variance)) <= np.maximum(limits, 0.0)
    return kept


def _largest_gain(gains: FloatArray, errors: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(errors > 0, gains / errors, 0.0)
    largest: FloatArray = steps.max(axis=1)
    return largest
