"""Qini curves, lift by tenths and calibration as pictures, several models side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.doses.dose_values import dose_text
from doseforest.report.pictures import (
    GREY,
    INK,
    KINDS,
    legend_above,
    plain_axes,
    pyplot,
    titled,
)

if TYPE_CHECKING:
    from doseforest.evaluation.qini.budgeted_qini import BudgetedQini
    from doseforest.evaluation.qini.qini_curve import QiniCurve
    from doseforest.evaluation.qini.tenths import UpliftTable

MOST_POINTS = 1001  # of a curve that are drawn


def plot_qini(curves: Mapping[str, QiniCurve], *, ax: Any | None = None) -> Any:
    """Curves of several models for the same dose, each with its 95 % band and score."""
    ax = plain_axes(ax)
    for (name, curve), colour in zip(curves.items(), _colours(len(curves)), strict=True):
        shares, low, high = curve.band()
        edges = np.append(0.0, shares), np.append(0.0, low), np.append(0.0, high)
        ax.fill_between(*edges, color=colour, alpha=0.15, linewidth=0)
        drawn = np.linspace(0.0, 1.0, MOST_POINTS)
        shown = (curve.shares, curve.gain)
        if len(curve.shares) > MOST_POINTS:
            shown = (drawn, curve.at(drawn))
        label = f"{name} {curve.score:.3g}"
        ax.plot(*shown, color=colour, linewidth=1.8, label=label)
    first = next(iter(curves.values()))
    ax.plot([0, 1], [0, first.gain[-1]], "--", color=INK, linewidth=1, label="at random")
    ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=0)
    ax.set(xlabel="share of units, highest predicted effect first", ylabel="gain per unit")
    ax.set_xlim(0, 1)
    titled(ax, f"{dose_text(first.dose, 4)} against {dose_text(first.baseline, 4)}")
    _legend_inside(ax)
    return ax


def plot_budgeted(curves: Mapping[str, BudgetedQini], *, ax: Any | None = None) -> Any:
    """Gain against spend of several models, with the best that needs no model."""
    ax = plain_axes(ax)
    for (name, curve), colour in zip(curves.items(), _colours(len(curves)), strict=True):
        shown = np.linspace(0.0, curve.budget, 201)
        ax.plot(
            shown,
            curve.at(shown),
            color=colour,
            linewidth=1.8,
            label=f"{name} {curve.score:.3g}",
        )
        spends, low, high = curve.band()
        ax.fill_between(
            np.append(0.0, spends),
            np.append(0.0, low),
            np.append(0.0, high),
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
    first = next(iter(curves.values()))
    shown = np.linspace(0.0, first.budget, 201)
    ax.plot(shown, first.untargeted(shown), "--", color=INK, linewidth=1, label="no model")
    ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=0)
    ax.set(xlabel="spend per unit", ylabel="gain per unit")
    ax.set_xlim(0, first.budget)
    titled(ax, "What spending by each model gains")
    _legend_inside(ax)
    return ax


def plot_lift(tables: Mapping[str, UpliftTable], *, ax: Any | None = None) -> Any:
    """Effect in each tenth of the units, bars with 95 % intervals, models side by side."""
    ax = plain_axes(ax)
    width = 0.8 / len(tables)
    for place, ((name, table), colour) in enumerate(
        zip(tables.items(), _colours(len(tables)), strict=True)
    ):
        at = np.arange(1, len(table.values) + 1) + (place - (len(tables) - 1) / 2) * width
        reach = 1.959964 * table.standard_errors
        ax.bar(at, table.values, 0.9 * width, color=colour, alpha=0.85, label=name)
        ax.errorbar(at, table.values, reach, fmt="none", ecolor=INK, elinewidth=0.8)
    first = next(iter(tables.values()))
    ax.axhline(first.average, color=INK, linestyle="--", linewidth=1, label="all units")
    ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=0)
    ax.set_xticks(np.arange(1, len(first.values) + 1))
    ax.set(xlabel="tenth of the units, highest predicted effect first", ylabel="effect")
    if len(first.values) != 10:
        ax.set_xlabel("part of the units, highest predicted effect first")
    legend_above(ax)
    return ax


def plot_calibration(tables: Mapping[str, UpliftTable], *, ax: Any | None = None) -> Any:
    """Effect against mean prediction in each tenth; on the diagonal predictions are right."""
    ax = plain_axes(ax, (5.0, 4.4))
    ends = []
    for (name, table), colour in zip(tables.items(), _colours(len(tables)), strict=True):
        reach = 1.959964 * table.standard_errors
        ax.errorbar(
            table.predicted,
            table.values,
            reach,
            fmt="o-",
            color=colour,
            elinewidth=0.9,
            linewidth=1,
            markersize=4,
            label=name,
        )
        ends += [float(table.predicted.min()), float(table.predicted.max())]
    ax.plot([min(ends), max(ends)], [min(ends), max(ends)], "--", color=INK, linewidth=1)
    ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=0)
    ax.set(xlabel="mean predicted effect", ylabel="effect")
    legend_above(ax)
    return ax


def side_by_side(n: int, *, size: tuple[float, float] = (4.6, 3.6), columns: int = 3) -> Any:
    """Axes for n pictures in rows of three, those beyond n switched off, shape (n,)."""
    plt = pyplot()
    across = min(n, columns)
    down = -(-n // across)
    _, axes = plt.subplots(
        down,
        across,
        figsize=(size[0] * across, size[1] * down),
        layout="constrained",
        squeeze=False,
    )
    for extra in axes.ravel()[n:]:
        extra.set_axis_off()
    return axes.ravel()[:n]


def _legend_inside(ax: Any) -> None:
    """A legend in the upper left, which curves from the lower left to the upper right leave."""
    ax.legend(
        frameon=False, fontsize="small", loc="upper left", title="score", title_fontsize="small"
    )
    ax.get_legend().set_alignment("left")
    low, high = ax.get_ylim()
    lines = len(ax.get_legend().get_texts()) + 1
    ax.set_ylim(low, high + 0.05 * lines * (high - low))  # room for it


def _colours(n: int) -> list[str]:
    return [KINDS[place % len(KINDS)] for place in range(n)]
