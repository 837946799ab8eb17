"""Debiased differences between outcomes at two doses, for units of a forest with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.base.machine import thread_count
from doseforest.doses.bases.dose_basis import own_values
from doseforest.doses.dose_values import Doses
from doseforest.estimator.bags.bag_contrasts import contrast_roots, contrast_variance
from doseforest.estimator.bags.unit_bags import CurveNoise, UnitBags


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """Differences of each unit, with what their variances are made of."""

    values: FloatArray  # (n_units, n_doses)
    standard_errors: FloatArray  # (n_units, n_doses)
    degrees: FloatArray  # (n_units, n_doses) of freedom
    roots: FloatArray  # (n_units, n_doses, n_functions)


@dataclass(frozen=True, slots=True, eq=False)
class UnitCurves:
    """Debiased curves of units on a table of doses, up to a level, and the noise of their shape."""

    curves: FloatArray  # (n_units, n_doses)
    functions: FloatArray  # (n_units, n_doses, n_functions), the constant left out
    noise: CurveNoise


def bags_of(model: Any) -> UnitBags:
    """The forest of intervals, or ValueError with the cure."""
    bags: UnitBags | None = model.bags
    if bags is None:
        raise ValueError(
            "The 'inference' parameter of GeneralizedCausalForest must be 'bags' for intervals of "
            "units' effects. Got None instead: fit the forest anew with inference='bags'."
        )
    return bags


def unit_curves(model: Any, X: FloatArray, doses: DoseArray) -> UnitCurves:
    """Curves of a block of checked units at a row of doses for each, (n_units, n_doses).

    Between levels of the dose curves and functions are interpolated: variances so are those of the
    same combination of the levels.
    """
    levels = model.dose_levels
    if levels.apart(doses).any():
        at = unit_curves(model, X, np.tile(levels.values, (len(X), 1)))
        functions = np.stack(
            [levels.read(each, doses) for each in np.moveaxis(at.functions, 2, 0)], axis=2
        )
        return UnitCurves(levels.read(at.curves, doses), functions, at.noise)
    bags, n_threads = bags_of(model), thread_count(model.n_jobs)
    noise = bags.noise(X[:, model.effect_columns], n_threads)
    functions = own_values(bags.basis, doses)[:, :, 1:]
    outcome = bags.outcome_curves(X, doses, n_threads)
    added = np.einsum("nk,nmk->nm", noise.coefficients, functions)
    return UnitCurves(outcome + added, functions, noise)


def differences(model: Any, X: Any, ends: Doses, starts: Doses) -> Differences:
    """Outcomes at `ends` less outcomes at `starts`, both of shape (n_units, n_doses).

    `starts` may have one column for all of `ends`.
    """
    table = model.checked_table(X)
    width = ends.shape[1]
    blocks = []
    for first, block in table.blocks():
        rows = slice(first, first + len(block))
        asked = np.concatenate([ends.values[rows], starts.values[rows]], axis=1)
        result = unit_curves(model, block, asked)
        contrasts = result.functions[:, :width] - result.functions[:, width:]
        variance, degrees = contrast_variance(result.noise, contrasts)
        moved = ends[rows] != starts[rows]  # else rounding would leave a little
        # Beyond the doses that functions tell apart, outcome models have the word alone.
        alike = moved & ~contrasts.any(axis=2)
        values = np.where(moved, result.curves[:, :width] - result.curves[:, width:], 0.0)
        roots = contrast_roots(result.noise, contrasts)
        blocks.append((values, np.where(alike, np.inf, np.sqrt(variance)), degrees, roots))
    return Differences(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))
