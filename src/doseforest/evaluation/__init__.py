"""Evaluation: curves against a known truth, models against each other where there is none."""

from __future__ import annotations

from doseforest.evaluation.dose_scores import DoseScores, randomised_scores, robust_scores
from doseforest.evaluation.effect_errors import (
    EffectErrors,
    curve_errors,
    effect_errors,
    paired_difference,
    simulation_mean,
)
from doseforest.evaluation.importance import effect_importance
from doseforest.evaluation.qini.budgeted_qini import BudgetedQini, budgeted_qini
from doseforest.evaluation.qini.qini_curve import QiniCurve
from doseforest.evaluation.qini.qini_table import QiniTable, qini_table
from doseforest.evaluation.qini.ranked_units import compare_qini, qini_curve
from doseforest.evaluation.qini.tenths import UpliftTable
from doseforest.evaluation.risks import (
    EffectRisk,
    EffectYardstick,
    effect_losses,
    effect_risk,
    fit_yardstick,
)
from doseforest.evaluation.row_estimates import RowEstimate, mean_of_rows
from doseforest.evaluation.selection import select_model
from doseforest.evaluation.tuning import Trial, Tuning, tune
from doseforest.evaluation.verdicts import ModelSelection

__all__ = [
    "BudgetedQini",
    "DoseScores",
    "EffectErrors",
    "EffectRisk",
    "EffectYardstick",
    "ModelSelection",
    "QiniCurve",
    "QiniTable",
    "RowEstimate",
    "Trial",
    "Tuning",
    "UpliftTable",
    "budgeted_qini",
    "compare_qini",
    "curve_errors",
    "effect_errors",
    "effect_importance",
    "effect_losses",
    "effect_risk",
    "fit_yardstick",
    "mean_of_rows",
    "paired_difference",
    "qini_curve",
    "qini_table",
    "randomised_scores",
    "robust_scores",
    "select_model",
    "simulation_mean",
    "tune",
]
