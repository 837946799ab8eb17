"""How each unit responds to every dose: dose-response curves by honest forests.

`GeneralizedCausalForest` estimates the curve of every unit from (features, dose, outcome);
`CurveForest`, the engine under it, grows a forest whose response is a curve. `load_forest` reads
saved ones without what fitted them, `load_policy` what decides on doses by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from doseforest.base.late import late_names

if TYPE_CHECKING:
    from doseforest.base.container import ForestFileError
    from doseforest.engine.curve_forest import CurveForest
    from doseforest.engine.forest import Forest
    from doseforest.engine.leaves.leaf_curves import MeanCurve, RatioCurve, RidgeMoments
    from doseforest.engine.splits.guards import TreatmentGuard
    from doseforest.engine.splits.mean_splits import SplitByMeans, SplitByMeanSlopes
    from doseforest.engine.splits.ratio_splits import SplitByRatios, SplitByRatioSlopes
    from doseforest.engine.splits.score_splits import SplitByScores
    from doseforest.estimator.distilled_forest import DistilledForest
    from doseforest.estimator.effect_forest import EffectForest
    from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest
    from doseforest.evaluation.tuning import tune
    from doseforest.files.forest_file import load_forest
    from doseforest.files.policy_file import load_policy

__version__ = "0.1.0"

_HOMES = {
    "CurveForest": "doseforest.engine.curve_forest",
    "DistilledForest": "doseforest.estimator.distilled_forest",
    "EffectForest": "doseforest.estimator.effect_forest",
    "Forest": "doseforest.engine.forest",
    "GeneralizedCausalForest": "doseforest.estimator.generalized_causal_forest",
    "ForestFileError": "doseforest.base.container",
    "MeanCurve": "doseforest.engine.leaves.leaf_curves",
    "RatioCurve": "doseforest.engine.leaves.leaf_curves",
    "RidgeMoments": "doseforest.engine.leaves.leaf_curves",
    "SplitByMeanSlopes": "doseforest.engine.splits.mean_splits",
    "SplitByMeans": "doseforest.engine.splits.mean_splits",
    "SplitByRatioSlopes": "doseforest.engine.splits.ratio_splits",
    "SplitByRatios": "doseforest.engine.splits.ratio_splits",
    "SplitByScores": "doseforest.engine.splits.score_splits",
    "TreatmentGuard": "doseforest.engine.splits.guards",
    "load_forest": "doseforest.files.forest_file",
    "load_policy": "doseforest.files.policy_file",
    "tune": "doseforest.evaluation.tuning",
}

__all__ = [
    "CurveForest",
    "DistilledForest",
    "EffectForest",
    "Forest",
    "ForestFileError",
    "GeneralizedCausalForest",
    "MeanCurve",
    "RatioCurve",
    "RidgeMoments",
    "SplitByMeanSlopes",
    "SplitByMeans",
    "SplitByRatioSlopes",
    "SplitByRatios",
    "SplitByScores",
    "TreatmentGuard",
    "load_forest",
    "load_policy",
    "tune",
]

__getattr__, __dir__ = late_names(__name__, _HOMES, "__version__")
