"""Heterogeneity of a change of doses: an honest forest on its doubly robust scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.engine.grow_forest import GrownForest, grow_forest
from doseforest.engine.growth.forest_settings import GrowthSettings, sampling_seed
from doseforest.estimator.effect_forest import EffectForest
from doseforest.inference.changes.dose_changes import AverageChange, ChangeScores


@dataclass(frozen=True, slots=True, eq=False)
class ChangeForest:
    """The change of each unit's outcome, given its covariates: means of scores over neighbours.

    A unit's own dose plays no part: it is the mean change of units like it, at the doses that they
    have. Made by `PopulationShifts.forest` and `derivative_forest`.
    """

    forest: GrownForest
    model: EffectForest  # which reads tables of units
    scores: FloatArray  # (n_rows,) doubly robust, of the training rows
    out_of_bag: FloatArray  # (n_rows,) predictions from trees that have not seen the row
    average: AverageChange

    def predict(self, X: Any) -> FloatArray:
        """Mean change of units like each of these, shape (n_units,)."""
        table = self.model.checked_table(X)
        out = np.empty(table.n_rows)
        for first, block in table.blocks():
            splits = np.ascontiguousarray(block[:, self.model.effect_columns])
            out[first : first + len(block)] = self.forest.forest.predict(splits)[:, 0]
        return out


def grow_change_forest(
    scores: ChangeScores,
    model: EffectForest,
    growth: GrowthSettings,
    *,
    n_trees: int,
    min_node_size: int,
    seed: int,
) -> ChangeForest:
    """Grow an honest forest on the scores, on the covariates that trees may split on.

    Parameters
    ----------
    growth : GrowthSettings
        Of the caller's other forests.
    """
    rows = scores.rows
    settings = replace(
        growth,
        n_trees=n_trees,
        min_node_size=min_node_size,
        honesty="tree",
        seed=sampling_seed(seed),
    )
    in_bins = replace(rows.split_rows, grows=None)
    forest = grow_forest(in_bins, scores.values[:, None], settings)
    out_of_bag = forest.predict_oob(rows.split_rows.table)[:, 0]
    return ChangeForest(forest, model, scores.values, out_of_bag, scores.average())
