"""How each unit responds to every dose: dose-response curves by honest forests.

`GeneralizedCausalForest` estimates the curve of every unit from (features, dose, outcome);
`CurveForest`, the engine under it, grows a forest whose response is a curve. `load_forest` reads
saved ones without what fitted them, `load_policy` what decides on doses by them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from doseforest.curve_forest import CurveForest
    from doseforest.evaluation.tuning import tune
    from doseforest.forest import GeneralizedCausalForest
    from doseforest.growth.guards import TreatmentGuard
    from doseforest.growth.mean_splits import SplitByMeans, SplitByMeanSlopes
    from doseforest.growth.ratio_splits import SplitByRatios, SplitByRatioSlopes
    from doseforest.growth.score_splits import SplitByScores
    from doseforest.leaves.leaf_curves import MeanCurve, RatioCurve, RidgeMoments
    from doseforest.policy.artifact.policy_file import load_policy
    from doseforest.prediction.container import ForestFileError
    from doseforest.prediction.distilled_forest import DistilledForest
    from doseforest.prediction.effect_forest import EffectForest
    from doseforest.prediction.forest import Forest
    from doseforest.prediction.forest_file import load_forest

__version__ = "0.1.0"

_HOMES = {
    "CurveForest": "doseforest.curve_forest",
    "DistilledForest": "doseforest.prediction.distilled_forest",
    "EffectForest": "doseforest.prediction.effect_forest",
    "Forest": "doseforest.prediction.forest",
    "GeneralizedCausalForest": "doseforest.forest",
    "ForestFileError": "doseforest.prediction.container",
    "MeanCurve": "doseforest.leaves.leaf_curves",
    "RatioCurve": "doseforest.leaves.leaf_curves",
    "RidgeMoments": "doseforest.leaves.leaf_curves",
    "SplitByMeanSlopes": "doseforest.growth.mean_splits",
    "SplitByMeans": "doseforest.growth.mean_splits",
    "SplitByRatioSlopes": "doseforest.growth.ratio_splits",
    "SplitByRatios": "doseforest.growth.ratio_splits",
    "SplitByScores": "doseforest.growth.score_splits",
    "TreatmentGuard": "doseforest.growth.guards",
    "load_forest": "doseforest.prediction.forest_file",
    "load_policy": "doseforest.policy.artifact.policy_file",
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


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that a server which only loads forests stays small."""
    if name not in _HOMES:
        raise AttributeError(f"module 'doseforest' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
