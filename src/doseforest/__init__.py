"""How each unit responds to every dose: dose-response curves by honest forests.

`GeneralizedCausalForest` estimates the curve of every unit from (features, dose, outcome);
`CurveForest`, the engine under it, grows a forest whose response is a curve. `load_forest` reads
saved ones without what fitted them, `load_policy` what decides on doses by them.

`doseforest.corrections` has what `correction=` takes, `doseforest.engine` what trees are made of,
`doseforest.results` the classes of answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from doseforest.base.late import late_names

if TYPE_CHECKING:
    from doseforest.base.container import ForestFileError
    from doseforest.engine.curve_forest import CurveForest
    from doseforest.estimator.effect_forest import EffectForest
    from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest
    from doseforest.evaluation.tuning import tune
    from doseforest.files.forest_file import load_forest
    from doseforest.files.policy_file import load_policy

__version__ = "0.1.0"

_HOMES = {
    "CurveForest": "doseforest.engine.curve_forest",
    "EffectForest": "doseforest.estimator.effect_forest",
    "ForestFileError": "doseforest.base.container",
    "GeneralizedCausalForest": "doseforest.estimator.generalized_causal_forest",
    "load_forest": "doseforest.files.forest_file",
    "load_policy": "doseforest.files.policy_file",
    "tune": "doseforest.evaluation.tuning",
}

__all__ = [
    "CurveForest",
    "EffectForest",
    "ForestFileError",
    "GeneralizedCausalForest",
    "load_forest",
    "load_policy",
    "tune",
]

__getattr__, __dir__ = late_names(__name__, _HOMES, "__version__")
