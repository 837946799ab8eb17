"""Evaluation: how far curves are from a known truth, and which are closer to an unknown one."""

from __future__ import annotations

from doseforest.evaluation.effect_errors import (
    EffectErrors,
    SimulationMean,
    curve_errors,
    effect_errors,
    paired_difference,
    simulation_mean,
)
from doseforest.evaluation.risks import (
    EffectRisk,
    EffectYardstick,
    effect_losses,
    effect_risk,
    fit_yardstick,
)
from doseforest.evaluation.tuning import Trial, Tuning, tune

__all__ = [
    "EffectErrors",
    "EffectRisk",
    "EffectYardstick",
    "SimulationMean",
    "Trial",
    "Tuning",
    "curve_errors",
    "effect_errors",
    "effect_losses",
    "effect_risk",
    "fit_yardstick",
    "paired_difference",
    "simulation_mean",
    "tune",
]
