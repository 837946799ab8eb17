"""Evaluation: how far curves are from a known truth, and which are closer to an unknown one."""

from __future__ import annotations

from doseforest.evaluation.dose_scores import DoseScores, randomised_scores, robust_scores
from doseforest.evaluation.effect_errors import (
    EffectErrors,
    SimulationMean,
    curve_errors,
    effect_errors,
    paired_difference,
    simulation_mean,
)
from doseforest.evaluation.estimates import RowEstimate
from doseforest.evaluation.qini.budgeted import BudgetedQini, budgeted_qini
from doseforest.evaluation.qini.curve import QiniCurve
from doseforest.evaluation.qini.judging import compare_qini, qini_curve
from doseforest.evaluation.qini.tenths import UpliftTable
from doseforest.evaluation.risks import (
    EffectRisk,
    EffectYardstick,
    effect_losses,
    effect_risk,
    fit_yardstick,
)

__all__ = [
    "BudgetedQini",
    "DoseScores",
    "EffectErrors",
    "EffectRisk",
    "EffectYardstick",
    "QiniCurve",
    "RowEstimate",
    "SimulationMean",
    "UpliftTable",
    "budgeted_qini",
    "compare_qini",
    "curve_errors",
    "effect_errors",
    "effect_losses",
    "effect_risk",
    "fit_yardstick",
    "paired_difference",
    "qini_curve",
    "randomised_scores",
    "robust_scores",
    "simulation_mean",
]
