"""Effects and importance as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.grids import check_count
from doseforest.engine.look_inside.node_names import feature_label
from doseforest.engine.look_inside.split_importance import FeatureImportance
from doseforest.report.curve_plots import FEW_VALUES
from doseforest.report.pictures import BLUE, INK, RED, legend_above, plain_axes

if TYPE_CHECKING:
    from doseforest.evaluation.permutation_importance import PermutationImportance

BINS = 40
MEAN_BINS = 12
REACH = 1.96  # standard errors either side of an importance


def plot_effect_distribution(effects: FloatArray, *, label: str, ax: Any | None = None) -> Any:
    """Histogram of the units' effects with their mean."""
    ax = plain_axes(ax)
    mean = float(effects.mean())
    # Effects that differ by rounding alone have no room for bins.
    room = 0.01 * max(abs(mean), 1e-6)
    ends = None if np.ptp(effects) > 1e-9 * abs(mean) else (mean - room, mean + room)
    ax.hist(effects, bins=BINS, range=ends, color=BLUE, alpha=0.85)
    ax.axvline(mean, color=INK, linewidth=2, label=f"mean {mean:.3g}")
    low, high = np.quantile(effects, [0.05, 0.95])
    ax.axvspan(
        low,
        high,
        color=BLUE,
        alpha=0.12,
        linewidth=0,
        zorder=0,
        label=f"90 % of the units: {low:.3g} to {high:.3g}",
    )
    if effects.min() < 0 < effects.max():
        ax.axvline(0.0, color=INK, linewidth=1, linestyle=":")
    ax.set(xlabel=label, ylabel="units")
    legend_above(ax)
    return ax


def plot_effects_by_feature(
    effects: FloatArray, feature: FloatArray, *, label: str, name: str, ax: Any | None = None
) -> Any:
    """Effects of units over a feature, with means of parts of equal numbers of units.

    A feature of few values has a mean at each, with the middle 80 % of the units' effects.
    """
    ax = plain_axes(ax)
    known = np.isfinite(feature)
    x, y = feature[known], effects[known]
    kinds = np.unique(x)
    shared = {"s": 9, "color": BLUE, "alpha": 0.3, "linewidths": 0}
    if len(kinds) <= FEW_VALUES:
        width = 0.22 * (np.diff(kinds).min() if len(kinds) > 1 else 1.0)
        for kind in kinds:
            values = y[x == kind]
            ax.scatter(kind + np.linspace(-width, width, len(values)), values, **shared)
        means = np.array([y[x == kind].mean() for kind in kinds])
        ends = np.array([np.quantile(y[x == kind], [0.1, 0.9]) for kind in kinds]).T
        ax.vlines(kinds, *ends, color=INK, linewidth=2, label="80 % of the units")
        ax.plot(kinds, means, "o", color=INK, markersize=8, markeredgecolor="white", label="mean")
        ax.set_xticks(kinds)
    else:
        ax.scatter(x, y, **shared)
        edges = np.unique(np.quantile(x, np.linspace(0, 1, MEAN_BINS + 1)))
        part = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
        size = np.maximum(np.bincount(part, minlength=len(edges) - 1), 1)
        middles, means = (np.bincount(part, v, len(edges) - 1) / size for v in (x, y))
        ax.plot(
            middles, means, "o-", color=INK, linewidth=2, markersize=5, label="mean of units alike"
        )
    if y.min(initial=0.0) < 0 < y.max(initial=0.0):
        ax.axhline(0.0, color=INK, linewidth=1, linestyle=":")
    ax.set(xlabel=name, ylabel=label)
    legend_above(ax)
    return ax


def plot_importances(
    importance: FeatureImportance | PermutationImportance,
    *,
    n_shown: int = 15,
    ax: Any | None = None,
) -> Any:
    """Bars for the most important features; with standard errors where there are some."""
    check_count(n_shown, 1, "n_shown")
    order = np.argsort(-importance.values, kind="stable")[:n_shown][::-1]
    ax = plain_axes(ax, (6.4, 1.2 + 0.3 * len(order)))
    values = importance.values[order]
    errors = getattr(importance, "standard_errors", None)
    places = np.arange(len(order))
    ax.barh(places, values, color=BLUE, height=0.7)
    if errors is None:
        ax.set_xlabel("share of the forests' gain")
    else:
        ax.errorbar(values, places, xerr=REACH * errors[order], fmt="none", ecolor=RED, capsize=3)
        ax.set_xlabel("rise of the risk when shuffled (95 % interval)")
        ax.axvline(0.0, color=INK, linewidth=1)
    ax.set_yticks(places, [feature_label(importance.names, int(k)) for k in order])
    ax.set_ylim(-0.6, len(order) - 0.4)
    ax.tick_params(axis="y", length=0)
    return ax
