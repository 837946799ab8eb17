"""Baselines with the effect API: regressors, EconML's forest, curves without heterogeneity."""

from __future__ import annotations

from doseforest.baselines.econml_forest import EconMLForest
from doseforest.baselines.kennedy_curve import KennedyCurve
from doseforest.baselines.linear_causal_forest import LinearCausalForest
from doseforest.baselines.outcome_regressors import OutcomeRegressor, boosting, random_forest
from doseforest.baselines.reference_curves import AverageCurve, ConstantCurve, ZeroEffect
from doseforest.baselines.xgboost_trees import xgboost_trees

__all__ = [
    "AverageCurve",
    "ConstantCurve",
    "EconMLForest",
    "KennedyCurve",
    "LinearCausalForest",
    "OutcomeRegressor",
    "ZeroEffect",
    "boosting",
    "random_forest",
    "xgboost_trees",
]
