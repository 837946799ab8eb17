"""The grid of doses and the baseline of a forest: the user's, or what the rows can answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.doses.boxes import distinct_doses, has_levels, observed_support
from doseforest.doses.curve_effects import dose_table, one_dose
from doseforest.doses.default_doses import baseline_candidates, check_levels_of, usual_grid
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import check_doses, choose_baseline
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.doses.smoothing.kernel_weights import effective_sample
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.estimator.training_rows import TrainingRows


def choose_forest_baseline(rows: TrainingRows, asked: Any, kernel: str | Kernel) -> Doses:
    """The dose asked for, else 0 where enough rows speak about it, else the lowest with enough."""
    dose, weights = rows.dose, rows.weights
    if asked is not None:
        checked = one_dose(asked, "baseline", dose.n_components)
        check_doses(checked, observed_support(dose, weights), "baseline")
        check_levels_of(checked, dose, "baseline")
        return checked
    if has_levels(dose, weights):
        candidates, shares = distinct_doses(dose, weights)
        sizes = shares * rows.n_rows
    else:
        width = rule_of_thumb(rows.dose, kernel, weights)
        candidates = baseline_candidates(dose, weights)
        sizes = effective_sample(rows.dose, candidates.values, width, kernel, weights)
    return choose_baseline(candidates, sizes).dose


def choose_grid(rows: TrainingRows, asked: Any, baseline: Doses) -> Doses:
    """The doses asked for, else about 20 over the support or the levels; the baseline is added."""
    dose, weights = rows.dose, rows.weights
    if asked is None:
        return usual_grid(dose, weights, baseline)
    table = dose_table(asked, 1, n_components=dose.n_components)
    doses = check_doses(table.distinct, observed_support(dose, weights))
    check_levels_of(doses, dose, "doses")
    levels, _ = distinct_doses(dose, weights)
    known = not has_levels(dose, weights) or bool(np.isin(doses, levels).all())
    if not len(doses) or not known:
        rule = f"some of the levels {levels.values.tolist()}" if len(doses) else "at least one dose"
        raise ValueError(
            f"The 'doses' parameter of GeneralizedCausalForest must hold {rule}. "
            f"Got {asked!r} instead."
        )
    return Doses(np.append(doses, baseline)).distinct


def correction_grid(rows: TrainingRows, grid: Doses, baseline: Doses) -> Doses:
    """Doses at which leaves hold curves: those of the forest; of several components, all usual.

    A baseline between levels is left out: no row is there.
    """
    if grid.joint:
        return usual_grid(rows.dose, rows.weights, baseline)
    if not has_levels(rows.dose, rows.weights):
        return grid
    levels, _ = distinct_doses(rows.dose, rows.weights)
    return grid[np.isin(grid, levels)]
