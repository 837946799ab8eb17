"""Forests whose response is a curve: `CurveForest`, and what it is put together from.

A split recipe says what the children of a split are compared by, a distance how, a guard which
splits are refused, and a leaf curve how the averaged sums of leaves become a curve.

Examples
--------
>>> import numpy as np
>>> from doseforest.engine import CurveForest, SplitByMeanSlopes
>>> x = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
>>> curves = np.where(x[:, :1] > 0, 2.0, 1.0) * [0.0, 1.0]
>>> forest = CurveForest(20, statistic=SplitByMeanSlopes(), random_state=0)
>>> forest.fit(x, curves, doses=[0.0, 1.0]).predict(x).shape
(300, 2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from doseforest.base.late import late_names

if TYPE_CHECKING:
    from doseforest.engine.curve_forest import CurveForest
    from doseforest.engine.forest import Forest, UnseenRowsWarning
    from doseforest.engine.leaves.leaf_curves import (
        LEAF_CURVES,
        LeafCurve,
        MeanCurve,
        RatioCurve,
        RidgeMoments,
    )
    from doseforest.engine.look_inside.split_importance import FeatureImportance
    from doseforest.engine.splits.distances import CURVE_DISTANCES
    from doseforest.engine.splits.guards import TreatmentGuard
    from doseforest.engine.splits.mean_splits import SplitByMeans, SplitByMeanSlopes
    from doseforest.engine.splits.ratio_splits import SplitByRatios, SplitByRatioSlopes
    from doseforest.engine.splits.score_splits import SplitByScores
    from doseforest.engine.splits.split_statistics import SplitRecipe, SplitStatistic, StatisticRows

_HOMES = {
    "CURVE_DISTANCES": "doseforest.engine.splits.distances",
    "LEAF_CURVES": "doseforest.engine.leaves.leaf_curves",
    "CurveForest": "doseforest.engine.curve_forest",
    "FeatureImportance": "doseforest.engine.look_inside.split_importance",
    "Forest": "doseforest.engine.forest",
    "LeafCurve": "doseforest.engine.leaves.leaf_curves",
    "MeanCurve": "doseforest.engine.leaves.leaf_curves",
    "RatioCurve": "doseforest.engine.leaves.leaf_curves",
    "RidgeMoments": "doseforest.engine.leaves.leaf_curves",
    "SplitByMeanSlopes": "doseforest.engine.splits.mean_splits",
    "SplitByMeans": "doseforest.engine.splits.mean_splits",
    "SplitByRatioSlopes": "doseforest.engine.splits.ratio_splits",
    "SplitByRatios": "doseforest.engine.splits.ratio_splits",
    "SplitByScores": "doseforest.engine.splits.score_splits",
    "SplitRecipe": "doseforest.engine.splits.split_statistics",
    "SplitStatistic": "doseforest.engine.splits.split_statistics",
    "StatisticRows": "doseforest.engine.splits.split_statistics",
    "TreatmentGuard": "doseforest.engine.splits.guards",
    "UnseenRowsWarning": "doseforest.engine.forest",
}

__all__ = [
    "CURVE_DISTANCES",
    "LEAF_CURVES",
    "CurveForest",
    "FeatureImportance",
    "Forest",
    "LeafCurve",
    "MeanCurve",
    "RatioCurve",
    "RidgeMoments",
    "SplitByMeanSlopes",
    "SplitByMeans",
    "SplitByRatioSlopes",
    "SplitByRatios",
    "SplitByScores",
    "SplitRecipe",
    "SplitStatistic",
    "StatisticRows",
    "TreatmentGuard",
    "UnseenRowsWarning",
]

__getattr__, __dir__ = late_names(__name__, _HOMES)
