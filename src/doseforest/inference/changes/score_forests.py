"""Heterogeneity of a change of doses: an honest forest on its doubly robust scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.engine.curve_forest import CurveForest
from doseforest.estimator.effect_forest import EffectForest
from doseforest.inference.changes.dose_changes import AverageChange, ChangeScores


@dataclass(frozen=True, slots=True, eq=False)
class ChangeForest:
    """The change of each unit's outcome, given its covariates: means of scores over neighbours.

    A unit's own dose plays no part: it is the mean change of units like it, at the doses that they
    have. Made by `PopulationShifts.forest` and `derivative_forest`.
    """

    forest: CurveForest
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
            out[first : first + len(block)] = self.forest.predict(splits)
        return out


def grow_change_forest(
    scores: ChangeScores,
    model: EffectForest,
    growth: Mapping[str, Any],
    *,
    n_trees: int,
    min_node_size: int,
    seed: int,
) -> ChangeForest:
    """Grow an honest forest on the scores, on the covariates that trees may split on.

    Parameters
    ----------
    growth : mapping
        Parameters of `CurveForest` that the caller's other forests have.
    """
    rows = scores.rows
    forest = CurveForest(
        **{
            **growth,
            "n_trees": n_trees,
            "min_node_size": min_node_size,
            "honesty": "tree",
            "random_state": seed % 2**32,
        }
    )
    forest.fit(rows.effect_features, scores.values, sample_weight=rows.weights, groups=rows.ids)
    out_of_bag = forest.predict_oob(rows.effect_features)
    return ChangeForest(forest, model, scores.values, out_of_bag, scores.average())
