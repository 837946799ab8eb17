"""Heterogeneity of a change of doses: an honest forest on its doubly robust scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.seeds import Purpose, derive
from doseforest.engine.grow_forest import GrownForest, grow_forest
from doseforest.engine.growth.forest_settings import GrowthSettings
from doseforest.estimator.effect_forest import EffectForest
from doseforest.inference.changes.dose_changes import AverageChange, ChangeScores


@dataclass(frozen=True, slots=True, eq=False)
class ChangeForest:
    """The change of each unit's outcome, given its covariates: means of scores over neighbours.

    The dose of a unit plays no part: it is the mean change of units like it, at the doses that they
    have. `PopulationShifts.forest` and `derivative_forest` make it.

    Attributes
    ----------
    forest : Forest
        The honest forest of the scores.
    model : EffectForest
        What reads tables of units.
    scores : array of shape (n_rows,)
        Doubly robust scores of the training rows.
    out_of_bag : array of shape (n_rows,)
        Predictions from trees that have not seen the row.
    average : AverageChange
        Mean of the scores.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from doseforest import GeneralizedCausalForest
    >>> from doseforest.datasets import DESIGNS
    >>> data = DESIGNS["linear"].draw(n=300, seed=0)  # a slope of 2 for everyone
    >>> forest = GeneralizedCausalForest(
    ...     correction="none", outcome_model=LinearRegression(), density="none", random_state=0,
    ...     baseline=0.0,
    ... ).fit(data.X, data.y, treatment=data.treatment)
    >>> forest.shifts.forest(0.5, n_trees=20).scores.shape
    (300,)
    """

    forest: GrownForest
    model: EffectForest
    scores: FloatArray  # (n_rows,)
    out_of_bag: FloatArray  # (n_rows,)
    average: AverageChange

    def predict(self, X: Any) -> FloatArray:
        """Mean change of units like each of these.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.

        Returns
        -------
        array of shape (n_units,)
            The changes, in units of the outcome.
        """
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
        seed=derive(seed, Purpose.CHANGE_FOREST),
    )
    in_bins = replace(rows.split_rows, grows=None)
    forest = grow_forest(in_bins, scores.values[:, None], settings)
    out_of_bag = forest.predict_oob(rows.split_rows.table)[:, 0]
    return ChangeForest(forest, model, scores.values, out_of_bag, scores.average())
