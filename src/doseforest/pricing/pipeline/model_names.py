"""Names of the models that a pipeline knows; what they are is in `models`."""

from __future__ import annotations

FOREST = "forest"
MODEL_NAMES = (FOREST, "linear", "boosting", "xgboost", "random_forest")
EXTRAS = {"xgboost": ("xgboost", "baselines")}  # package and extra that a model needs
TITLES = {
    FOREST: "GCF",
    "linear": "CF (linear)",
    "boosting": "boosting",
    "xgboost": "XGBoost",
    "random_forest": "random forest",
}
