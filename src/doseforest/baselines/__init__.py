"""Baselines with the effect API: outcome regressors, and curves without heterogeneity."""

from __future__ import annotations

from doseforest.baselines.outcome_regressors import OutcomeRegressor, boosting, random_forest
from doseforest.baselines.reference_curves import AverageCurve, ConstantCurve, ZeroEffect

__all__ = [
    "AverageCurve",
    "ConstantCurve",
    "OutcomeRegressor",
    "ZeroEffect",
    "boosting",
    "random_forest",
]
