"""Grids and baselines of doses with several components."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.bases.arms import has_arms
from doseforest.doses.bases.tensor import MAX_INDICATORS
from doseforest.doses.boxes import distinct_doses, has_levels, observed_support
from doseforest.doses.dose_values import Doses, dose_text
from doseforest.doses.grids import (
    FEW_LEVELS,
    SUPPORT_SLACK,
    BaselineWarning,
    default_grid,
    dose_sample,
)

N_POINTS = {2: 8, 3: 5}  # along each component, by their number
N_WITHIN_ARM = 10
ENOUGH = 50.0  # effective rows at a baseline


def default_joint_grid(
    dose: DoseArray, weights: FloatArray | None = None, baseline: Any = None
) -> DoseArray:
    """Doses at which curves are shown and compared, ascending by component.

    The observed combinations where every component has levels; for each arm its own doses where
    arms have such; else every combination of eight values of each of two components, or five of
    each of three, with the baseline's values among them.

    >>> rng = np.random.default_rng(0)
    >>> dose = Doses.of_table(np.column_stack([rng.random(99), np.arange(99) % 2])).values
    >>> default_joint_grid(dose).shape
    (16,)
    """
    if has_levels(dose, weights):
        return distinct_doses(dose, weights)[0]
    if has_arms(dose):
        return _arm_grid(dose, weights, baseline)
    columns = Doses.of(dose).columns
    n_points = N_POINTS[len(columns)]
    starts = [None] * len(columns) if baseline is None else Doses.of(np.array(baseline)).table
    axes = [
        default_grid(column, n_points, start, weights)
        for column, start in zip(columns, starts, strict=True)
    ]
    return _observed_levels(Doses.product(axes).values, dose)


def baseline_candidates(dose: DoseArray, weights: FloatArray | None = None) -> DoseArray:
    """The doses of the default grid, and 0 in every component where that may be asked for."""
    grid = default_joint_grid(dose, weights)
    zero = Doses.of_table(np.zeros((1, Doses.of(dose).n_components))).values
    inside = observed_support(dose, weights).contains(zero, SUPPORT_SLACK)
    return np.unique(np.append(grid, zero[inside]))


def joint_baseline(candidates: DoseArray, sizes: FloatArray) -> Any:
    """The dose 0 where enough rows speak about it, otherwise the lowest dose with enough.

    Lowest by the sum of its components, each in units of its range.
    """
    table = Doses.of(candidates).table
    spread = np.maximum(np.ptp(table, axis=0), np.finfo(np.float64).tiny)
    heights = ((table - table.min(axis=0)) / spread).sum(axis=1)
    zero = (table == 0).all(axis=1)
    enough = sizes >= ENOUGH
    if (zero & enough).any():
        return candidates[int(np.argmax(zero))]
    if enough.any():
        chosen = int(np.argmin(np.where(enough, heights, np.inf)))
        taken = "is the lowest with enough"
    else:
        chosen, taken = int(np.argmax(sizes)), "has the most, though not enough either"
    dose = candidates[chosen]
    warnings.warn(
        f"The baseline dose needs an effective sample of {ENOUGH:g} rows, and the dose 0 of every "
        f"component has fewer: {dose_text(dose)}, which {taken} ({sizes[chosen]:.3g}), is taken "
        "instead. To compare with another dose give 'baseline'.",
        BaselineWarning,
        stacklevel=4,
    )
    return dose


def _arm_grid(dose: DoseArray, weights: FloatArray | None, baseline: Any) -> DoseArray:
    arm, amount = Doses.of(dose).table.T
    grids = []
    for level in np.unique(arm):
        mine = arm == level
        own = default_grid(
            amount[mine], N_WITHIN_ARM, None, None if weights is None else weights[mine]
        )
        if len(own) > N_WITHIN_ARM:  # levels of one arm
            own = np.unique(np.quantile(own, np.linspace(0, 1, N_WITHIN_ARM), method="nearest"))
        grids.append(np.column_stack([np.full(len(own), level), own]))
    grid = np.concatenate(grids)
    if baseline is not None:
        grid = np.concatenate([grid, Doses.of(np.array([baseline])).table])
    return np.unique(Doses.of_table(grid).values)


def _observed_levels(grid: DoseArray, dose: DoseArray) -> DoseArray:
    """Leave out combinations of levels that no row has."""
    columns = Doses.of(dose).columns
    few = [k for k, own in enumerate(columns) if len(dose_sample(own).levels()[0]) <= FEW_LEVELS]
    if len(few) < 2:
        return grid
    seen = np.unique(Doses.of(dose).table[:, few], axis=0)
    asked = Doses.of(grid).table[:, few]
    known: DoseArray = grid[(asked[:, None] == seen).all(axis=2).any(axis=1)]
    return known


def check_levels_of(doses: DoseArray, dose: DoseArray, name: str) -> None:
    """Raise ValueError where a component of few levels is asked for between them.

    >>> arms = Doses.of_table(np.column_stack([np.repeat([0.0, 1.0], 10), np.arange(20.0)])).values
    >>> check_levels_of(Doses.of_table(np.array([[0.5, 3.0]])).values, arms, "baseline")
    Traceback (most recent call last):
        ...
    ValueError: The 'baseline' parameter must hold levels of component 0, [0.0, 1.0]. Got 0.5 ...
    """
    for place, (asked, seen) in enumerate(
        zip(Doses.of(doses).columns, Doses.of(dose).columns, strict=True)
    ):
        levels = np.unique(seen)
        unknown = ~np.isin(asked, levels)
        if len(levels) <= MAX_INDICATORS and unknown.any():
            raise ValueError(
                f"The {name!r} parameter must hold levels of component {place}, "
                f"{levels.tolist()}. Got {asked[unknown][0]:g} instead."
            )
