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

__all__ = [
    "EffectErrors",
    "SimulationMean",
    "curve_errors",
    "effect_errors",
    "paired_difference",
    "simulation_mean",
]
