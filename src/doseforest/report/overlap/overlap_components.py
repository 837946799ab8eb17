"""Overlap of doses with several components: each given those before it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray
from doseforest.doses.dose_values import Doses
from doseforest.estimator.unit_support import within
from doseforest.nuisance.treatment.treatment_support import DoseSupport, dose_support
from doseforest.report.dose_axes import DoseAxes
from doseforest.report.overlap.covariate_balance import (
    Balance,
    correlation_balance,
    covariate_balance,
)
from doseforest.report.overlap.overlap_measures import variance_ratios


def all_within(grounds: tuple[DoseSupport, ...], doses: Doses) -> Doses:
    """Doses that can be asked about, component by component; see `within`."""
    columns = zip(grounds, doses.columns, strict=True)
    return Doses.of_table(np.column_stack([within(ground, column) for ground, column in columns]))


def beside_masses(grounds: tuple[DoseSupport, ...], dose: Doses) -> NDArray[np.bool_]:
    """Rows whose dose has a density: no component is at a point mass; of levels alone, all rows."""
    columns = zip(grounds, dose.columns, strict=True)
    apart = [~ground.at_mass(each) for ground, each in columns if ground.continuous]
    every: NDArray[np.bool_] = np.all([np.ones(len(dose), bool), *apart], axis=0)
    return every


def component_ratios(
    density: Any,
    X: FloatArray,
    dose: Doses,
    grounds: tuple[DoseSupport, ...],
    weights: FloatArray | None,
    *,
    arms: bool,
) -> FloatArray:
    """Variance of each component given covariates and the components before it over that of all.

    Shape (n_rows,), or (n_rows, n_components). The dose of an arm is compared with the doses of
    that arm; NaN where it has but one.
    """
    if len(grounds) == 1:
        return variance_ratios(density, X, dose.values, grounds[0], weights)
    table = dose.table
    out = np.full(table.shape, np.nan)
    for place, ground in enumerate(grounds):
        part, known = density.parts[place], np.column_stack([X, table[:, :place]])
        own = np.ascontiguousarray(table[:, place])
        if not (arms and place == 1):
            out[:, place] = variance_ratios(part, known, own, ground, weights)
            continue
        for arm in np.unique(table[:, 0]):
            mine = table[:, 0] == arm
            if np.ptp(own[mine]) == 0:
                continue
            counted = None if weights is None else weights[mine]
            span = dose_support(own[mine], counted)
            out[mine, place] = variance_ratios(part, known[mine], own[mine], span, counted)
    return out


def dose_balance(
    X: FloatArray,
    dose: Doses,
    r: FloatArray,
    grounds: tuple[DoseSupport, ...],
    axes: DoseAxes,
    *,
    weights: FloatArray | None,
    labels: list[str],
) -> Balance:
    """Balance of covariates against the dose, or against each of its components.

    Against several: correlations with each quantity and its squared distance from the mean, and
    with indicators of levels and point masses; with the dose within each arm.
    """
    if len(grounds) == 1:
        return covariate_balance(X, dose.values, r, grounds[0], weights=weights, labels=labels)
    row_weights = np.ones(len(dose)) if weights is None else weights
    columns = dose.columns
    targets = _targets(columns[0], grounds[0], axes.labels[0], row_weights)
    if axes.arms:
        targets |= _within_arms(columns[0], columns[1], axes.labels[1], row_weights)
    else:
        for column, ground, label in zip(columns[1:], grounds[1:], axes.labels[1:], strict=True):
            targets |= _targets(column, ground, label, row_weights)
    return correlation_balance(X, targets, r, weights=weights, labels=labels)


def _targets(
    column: FloatArray, ground: DoseSupport, label: str, weights: FloatArray
) -> dict[str, FloatArray]:
    """What covariates are compared with, by name."""
    result = {}
    if ground.continuous:
        result[label] = column
        result[f"{label} squared"] = (column - np.average(column, weights=weights)) ** 2
    for mass in ground.masses:
        result[f"{label} {mass:g}"] = (column == mass).astype(np.float64)
    return result


def _within_arms(
    arm: FloatArray, amount: FloatArray, label: str, weights: FloatArray
) -> dict[str, FloatArray]:
    """The dose of each arm less its mean there, 0 in other arms."""
    result = {}
    for level in np.unique(arm[weights > 0]):
        mine = arm == level
        if np.ptp(amount[mine]) > 0:
            mean = np.average(amount[mine], weights=weights[mine])
            result[f"{label} of arm {level:g}"] = np.where(mine, amount - mean, 0.0)
    return result
