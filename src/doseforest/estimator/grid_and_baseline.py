"""The grid of doses and the baseline of a forest: the user's, or what the rows can answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.boxes import distinct_doses, has_levels, observed_support
from doseforest.doses.curve_effects import dose_table, one_dose
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import check_doses, choose_baseline, default_grid
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.doses.smoothing.kernel_weights import effective_sample
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.estimator.joint_doses import (
    baseline_candidates,
    check_levels_of,
    default_joint_grid,
    joint_baseline,
)
from doseforest.estimator.training_rows import TrainingRows


def choose_forest_baseline(rows: TrainingRows, asked: Any, kernel: str | Kernel) -> Any:
    """The dose asked for, else 0 where enough rows speak about it, else the lowest with enough."""
    if asked is not None:
        return _one_dose(asked, rows)
    if has_levels(rows.dose, rows.weights):
        doses, shares = distinct_doses(rows.dose, rows.weights)
        sizes = shares * rows.n_rows
        if Doses.of(rows.dose).joint:
            return joint_baseline(doses, sizes)
        return choose_baseline(doses, sizes).dose
    width = rule_of_thumb(rows.dose, kernel, rows.weights)

    def sizes_at(doses: DoseArray) -> FloatArray:
        return effective_sample(rows.dose, doses, width, kernel, rows.weights)

    if Doses.of(rows.dose).joint:
        candidates = baseline_candidates(rows.dose, rows.weights)
        return joint_baseline(candidates, sizes_at(candidates))
    return choose_baseline(rows.dose, sizes_at).dose


def choose_grid(rows: TrainingRows, asked: Any, baseline: Any) -> DoseArray:
    """The doses asked for, else about 20 over the support or the levels; the baseline is added."""
    if asked is None:
        return support_grid(rows, baseline)
    table = dose_table(asked, 1, n_components=Doses.of(rows.dose).n_components)[0]
    doses = np.unique(check_doses(table, observed_support(rows.dose, rows.weights)))
    if Doses.of(doses).joint:
        check_levels_of(doses, rows.dose, "doses")
    levels, _ = distinct_doses(rows.dose, rows.weights)
    known = not has_levels(rows.dose, rows.weights) or bool(np.isin(doses, levels).all())
    if not len(doses) or not known:
        rule = f"some of the levels {levels.tolist()}" if len(doses) else "at least one dose"
        raise ValueError(
            f"The 'doses' parameter of GeneralizedCausalForest must hold {rule}. "
            f"Got {asked!r} instead."
        )
    return np.unique(np.append(doses, baseline))


def support_grid(rows: TrainingRows, baseline: Any) -> DoseArray:
    """Doses over the support and the baseline."""
    if Doses.of(rows.dose).joint:
        return default_joint_grid(rows.dose, rows.weights, baseline)
    return default_grid(rows.dose, baseline=baseline, weights=rows.weights)


def _one_dose(asked: Any, rows: TrainingRows) -> Any:
    """A baseline that the user gave, checked."""
    dose = np.atleast_1d(one_dose(asked, "baseline", Doses.of(rows.dose).n_components))
    check_doses(dose, observed_support(rows.dose, rows.weights), "baseline")
    if Doses.of(dose).joint:
        check_levels_of(dose, rows.dose, "baseline")
    return dose[0]
