"""Grids of doses and candidates of a baseline, where a user names none."""

from __future__ import annotations

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.bases.arms import has_arms
from doseforest.doses.bases.tensor import MAX_INDICATORS
from doseforest.doses.boxes import distinct_doses, has_levels, observed_support
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import (
    BASELINE_CANDIDATES,
    FEW_LEVELS,
    SUPPORT_SLACK,
    DoseRange,
    default_grid,
    dose_sample,
)

N_POINTS = {2: 8, 3: 5}  # along each component, by their number
N_WITHIN_ARM = 10


def usual_grid(
    dose: Doses, weights: FloatArray | None = None, baseline: Doses | None = None
) -> Doses:
    """Doses at which curves are shown and compared, ascending by component.

    Of one component see `default_grid`. Of several the observed combinations where every component
    has levels; for each arm its own doses where arms have such; else every combination of eight
    values of each of two components, or five of each of three, with the baseline's values among
    them.

    >>> rng = np.random.default_rng(0)
    >>> dose = Doses.of_table(np.column_stack([rng.random(99), np.arange(99) % 2]))
    >>> usual_grid(dose).shape
    (16,)
    """
    starts = [None] * dose.n_components if baseline is None else baseline.table.tolist()
    if not dose.joint:
        return Doses(default_grid(dose.values, baseline=starts[0], weights=weights))
    if has_levels(dose, weights):
        return distinct_doses(dose, weights)[0]
    if has_arms(dose):
        return _arm_grid(dose, weights, baseline)
    n_points = N_POINTS[dose.n_components]
    axes = [
        default_grid(column, n_points, start, weights)
        for column, start in zip(dose.columns, starts, strict=True)
    ]
    return _observed_levels(Doses.product(axes), dose)


def baseline_candidates(dose: Doses, weights: FloatArray | None = None) -> Doses:
    """Doses over the support, and 0 in every component where that may be asked for."""
    support = observed_support(dose, weights)
    if isinstance(support, DoseRange):
        candidates = Doses(np.linspace(support.low, support.high, BASELINE_CANDIDATES))
    else:
        candidates = usual_grid(dose, weights)
    zero = Doses.of_table(np.zeros((1, dose.n_components))).values
    return Doses(np.union1d(candidates, zero[support.contains(zero, SUPPORT_SLACK)]))


def _arm_grid(dose: Doses, weights: FloatArray | None, baseline: Doses | None) -> Doses:
    arm, amount = dose.table.T
    grids = [] if baseline is None else [baseline.table[None]]
    for level in np.unique(arm):
        mine = arm == level
        own = default_grid(
            amount[mine], N_WITHIN_ARM, None, None if weights is None else weights[mine]
        )
        if len(own) > N_WITHIN_ARM:  # levels of one arm
            own = np.unique(np.quantile(own, np.linspace(0, 1, N_WITHIN_ARM), method="nearest"))
        grids.append(np.column_stack([np.full(len(own), level), own]))
    return Doses.of_table(np.concatenate(grids)).distinct


def _observed_levels(grid: Doses, dose: Doses) -> Doses:
    """Leave out combinations of levels that no row has."""
    few = [
        place
        for place, column in enumerate(dose.columns)
        if len(dose_sample(column).levels()[0]) <= FEW_LEVELS
    ]
    if len(few) < 2:
        return grid
    seen = np.unique(dose.table[:, few], axis=0)
    return grid[(grid.table[:, few][:, None] == seen).all(axis=2).any(axis=1)]


def check_levels_of(doses: Doses, dose: Doses, name: str) -> None:
    """Raise ValueError where one of several components has few levels, and others are asked for.

    >>> arms = Doses.of_table(np.column_stack([np.repeat([0.0, 1.0], 10), np.arange(20.0)]))
    >>> check_levels_of(Doses.of_table(np.array([[0.5, 3.0]])), arms, "baseline")
    Traceback (most recent call last):
        ...
    ValueError: The 'baseline' parameter must hold levels of component 0, [0.0, 1.0]. Got 0.5 ...
    """
    if not dose.joint:
        return
    for place, (asked, seen) in enumerate(zip(doses.columns, dose.columns, strict=True)):
        levels = np.unique(seen)
        unknown = ~np.isin(asked, levels)
        if len(levels) <= MAX_INDICATORS and unknown.any():
            raise ValueError(
                f"The {name!r} parameter must hold levels of component {place}, "
                f"{levels.tolist()}. Got {asked[unknown][0]:g} instead."
            )
