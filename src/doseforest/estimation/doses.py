"""The grid of doses and the baseline of a forest: the user's, or what the rows can answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.data.training_rows import TrainingRows
from doseforest.dtypes import FloatArray
from doseforest.smoothing.bandwidths import rule_of_thumb
from doseforest.smoothing.kernel_weights import effective_sample
from doseforest.smoothing.kernels import Kernel
from doseforest.treatments.grids import (
    FEW_LEVELS,
    check_doses,
    choose_baseline,
    default_grid,
    dose_sample,
)


def choose_forest_baseline(rows: TrainingRows, asked: float | None, kernel: str | Kernel) -> float:
    """The dose asked for, else 0 where enough rows speak about it, else the lowest with enough."""
    sample = dose_sample(rows.dose, rows.weights)
    if asked is not None:
        return float(check_doses(asked, sample.range(), "baseline")[0])
    levels, shares = sample.levels()
    if len(levels) <= FEW_LEVELS:
        return choose_baseline(levels, shares * rows.n_rows).dose
    width = rule_of_thumb(rows.dose, kernel, rows.weights)

    def sizes(doses: FloatArray) -> FloatArray:
        return effective_sample(rows.dose, doses, width, kernel, rows.weights)

    return choose_baseline(rows.dose, sizes).dose


def choose_grid(rows: TrainingRows, asked: Any, baseline: float) -> FloatArray:
    """The doses asked for, else about 20 over the support or the levels; the baseline is added."""
    if asked is None:
        return default_grid(rows.dose, baseline=baseline, weights=rows.weights)
    sample = dose_sample(rows.dose, rows.weights)
    doses = np.unique(check_doses(asked, sample.range()))
    levels, _ = sample.levels()
    if not len(doses) or (len(levels) <= FEW_LEVELS and not np.isin(doses, levels).all()):
        rule = f"some of the levels {levels.tolist()}" if len(doses) else "at least one dose"
        raise ValueError(
            f"The 'doses' parameter of GeneralizedCausalForest must hold {rule}. "
            f"Got {asked!r} instead."
        )
    return np.union1d(doses, baseline)
