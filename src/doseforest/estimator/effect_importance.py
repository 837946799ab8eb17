"""Which features the forests of a correction split on, over all its forests and rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from doseforest.engine.look_inside.split_importance import (
    FeatureImportance,
    Measure,
    feature_importance,
)

if TYPE_CHECKING:
    from doseforest.estimator.effect_forest import EffectForest


def correction_importance(
    model: EffectForest,
    *,
    by: Measure = "gain",
    decay: float | Sequence[float] = 0.0,
    max_depth: int | None = None,
) -> FeatureImportance:
    """Importance of each feature in each forest, averaged by the forests' shares.

    All 0 where nothing is corrected.
    """
    totals = np.zeros(model.n_features)
    for part in model.parts:
        for forest, share in part.correction.forest_shares():
            importance = feature_importance(forest, by=by, decay=decay, max_depth=max_depth)
            totals[model.effect_columns] += share * importance.values
    total = totals.sum()
    return FeatureImportance(totals / total if total > 0 else totals, model.feature_names)
