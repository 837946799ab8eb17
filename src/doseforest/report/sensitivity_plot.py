"""A picture of how far confounders of all strengths could move an effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.report.pictures import BLUE, INK, RED, plain_axes

if TYPE_CHECKING:
    from doseforest.inference.doubts.sensitivity import Sensitivity

N_STRENGTHS = 81
LEAST_DRAWN = 0.02
SHARES_LEFT = np.array([-0.5, 0.2, 0.4, 0.6, 0.8])  # of the effect, each a line


def plot_sensitivity(
    found: Sensitivity, *, most: float | None = None, ax: Any | None = None
) -> Any:
    """Contours of the effect nearest to zero; see `Sensitivity.plot`."""
    if most is not None and not 0 < most < 1:
        raise ValueError(f"The 'most' parameter must be a float in (0, 1). Got {most!r} instead.")
    ax = plain_axes(ax)
    drawn = [
        benchmark
        for benchmark in found.benchmarks
        if max(benchmark.outcome_strength, benchmark.dose_strength) < 1
    ]
    strengths = [max(each.outcome_strength, each.dose_strength) for each in drawn]
    widest = max(
        [2 * found.robustness_value, *(1.3 * strength for strength in strengths), LEAST_DRAWN]
    )
    axis = np.linspace(0.0, min(widest, 0.99) if most is None else most, N_STRENGTHS)
    of_dose, of_outcome = np.meshgrid(axis, axis)
    scale = np.sqrt(found.residual_variance * found.representer_square)
    bias = scale * np.sqrt(of_outcome * of_dose / (1 - of_dose))
    sign = 1.0 if found.value >= 0 else -1.0
    left = found.value - sign * bias
    if found.value != 0:
        levels = np.sort(found.value * SHARES_LEFT)
        style = {"colors": BLUE, "linewidths": 0.8, "linestyles": "solid"}
        lines = ax.contour(of_dose, of_outcome, left, levels=levels, **style)
        ax.clabel(lines, fontsize="x-small", fmt="%.3g")
    if left.min() < 0 < left.max():
        ax.contour(of_dose, of_outcome, left, levels=[0.0], colors=RED, linewidths=2.0)
    for each in drawn:
        ax.plot(each.dose_strength, each.outcome_strength, "o", color=INK, markersize=4)
        ax.annotate(
            each.name,
            (each.dose_strength, each.outcome_strength),
            xytext=(4, 4),
            textcoords="offset points",
            fontsize="small",
        )
    ax.set(
        xlabel="share of what is left of the dose",
        ylabel="share of what is left of the outcome",
    )
    return ax
