"""Evaluation: how far estimated curves are from the truth, and which model is closer."""

from __future__ import annotations

from doseforest.evaluation.effect_errors import (
    EffectErrors,
    SimulationMean,
    curve_errors,
    effect_errors,
    paired_difference,
    simulation_mean,
)
from doseforest.evaluation.risks import effect_losses, effect_risk

__all__ = [
    "EffectErrors",
    "SimulationMean",
    "curve_errors",
    "effect_errors",
    "effect_losses",
    "effect_risk",
    "paired_difference",
    "simulation_mean",
]
