"""Dose-response curves as pictures: of units, with their average on top; and average curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.report.pictures import (
    BLUE,
    INK,
    KINDS,
    PALE,
    DoseMarks,
    legend_above,
    plain_axes,
    pyplot,
)

if TYPE_CHECKING:
    from doseforest.estimator.averages.average_curves import AverageDoseResponse

FEW_VALUES = 6  # a feature with at most so many values has a colour for each
MIDDLE = (0.05, 0.95)  # colours are spread over these quantiles; what is beyond has the last ones


@dataclass(frozen=True, slots=True, eq=False)
class UnitColours:
    """What units are coloured by."""

    values: FloatArray  # (n_units,)
    label: str


def spread_units(values: FloatArray, n_shown: int) -> IntArray:
    """Places of units at equal distances in the order of their values, so that all kinds are shown.

    Examples
    --------
    >>> spread_units(np.array([5.0, 1.0, 9.0, 7.0, 3.0]), 3)
    array([0, 1, 2])
    """
    order = np.argsort(values, kind="stable")
    picked = np.linspace(0, len(order) - 1, min(n_shown, len(order))).round().astype(np.int64)
    return np.sort(order[picked])


def plot_unit_curves(
    doses: FloatArray,
    curves: FloatArray,
    marks: DoseMarks,
    *,
    average: FloatArray,
    colours: UnitColours | None = None,
    ax: Any | None = None,
) -> Any:
    """Thin lines for units, dots where a dose stands alone, and the average of all on top.

    Parameters
    ----------
    doses : array of shape (n_doses,)
    curves : array of shape (n_shown, n_doses)
    average : array of shape (n_doses,)
    colours : UnitColours, optional
        Of the shown units.
    """
    from matplotlib.collections import LineCollection

    ax = plain_axes(ax)
    line, alone = marks.places(doses)
    line = line[np.argsort(doses[line])]
    paint = _unit_paint(ax, colours, len(curves))
    faint = float(np.clip(12 / np.sqrt(max(len(curves), 1)) / 2, 0.25, 0.8))
    if len(line):
        segments = [np.column_stack([doses[line], curve[line]]) for curve in curves]
        lines = LineCollection(segments, colors=paint, linewidths=0.9, alpha=faint, zorder=2)
        ax.add_collection(lines)
        ax.plot(doses[line], average[line], color="white", linewidth=5, zorder=3)
        ax.plot(doses[line], average[line], color=INK, linewidth=2.5, zorder=4, label="average")
    if len(alone):
        width = marks.strip_width(doses)
        beside = np.linspace(-width, width, len(curves) + 2)[1:-1]
        for place in alone:
            ax.scatter(
                doses[place] + beside,
                curves[:, place],
                s=10,
                c=paint,
                alpha=faint,
                linewidths=0,
                zorder=2,
            )
        label = None if len(line) else "average"
        dots = {"color": INK, "markeredgecolor": "white", "markersize": 9, "zorder": 5}
        ax.plot(doses[alone], average[alone], "o", label=label, **dots)
        if not len(line):
            ax.set_xticks(doses[alone])
    ax.autoscale_view()
    ax.set(xlabel=marks.dose, ylabel=marks.outcome)
    kinds = ax.get_legend_handles_labels()[1]
    legend_above(ax, colours.label if colours is not None and len(kinds) > 1 else None)
    return ax


def _unit_paint(ax: Any, colours: UnitColours | None, n_units: int) -> Any:
    """A colour for each unit, told by a legend or a colour bar."""
    if colours is None:
        return [BLUE] * n_units
    plt = pyplot()
    known = np.isfinite(colours.values)
    kinds = np.unique(colours.values[known])
    if len(kinds) <= FEW_VALUES:
        for kind, colour in zip(kinds, KINDS, strict=False):
            ax.plot([], [], color=colour, label=f"{kind:g}")
        painted = np.array([PALE] * n_units, dtype=object)
        for kind, colour in zip(kinds, KINDS, strict=False):
            painted[colours.values == kind] = colour
        return painted.tolist()
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    # The last yellow of the map is hard to see on white.
    shades = ListedColormap(plt.get_cmap("viridis")(np.linspace(0.0, 0.92, 256)))
    norm = Normalize(*np.quantile(colours.values[known], MIDDLE))
    bar = ax.figure.colorbar(ScalarMappable(norm, shades), ax=ax, extend="both", pad=0.02)
    bar.set_label(colours.label)
    bar.outline.set_visible(False)
    return np.where(known[:, None], shades(norm(colours.values)), (0.85, 0.85, 0.85, 1.0))


def plot_curve_bands(
    doses: FloatArray,
    curves: FloatArray,
    marks: DoseMarks,
    *,
    quantiles: Sequence[float],
    average: FloatArray,
    ax: Any | None = None,
) -> Any:
    """Bands between the quantiles of the units' curves at each dose, and their average.

    Quantiles pair up from the outside in; one in the middle is a line of its own.
    """
    shares = np.sort(np.asarray(quantiles, np.float64).ravel())
    if len(shares) < 2 or not ((shares > 0) & (shares < 1)).all():
        raise ValueError(
            "The 'quantiles' parameter must hold at least two numbers in (0, 1). "
            f"Got {quantiles!r} instead."
        )
    ax = plain_axes(ax)
    line, alone = marks.places(doses)
    line = line[np.argsort(doses[line])]
    levels = np.quantile(curves, shares, axis=0)
    for pair in range(len(shares) // 2):
        low, high = levels[pair], levels[-1 - pair]
        label = f"{shares[pair]:.0%} to {shares[-1 - pair]:.0%} of the units"
        strength = 0.15 + 0.2 * pair
        if len(line):
            ax.fill_between(
                doses[line],
                low[line],
                high[line],
                color=BLUE,
                alpha=strength,
                linewidth=0,
                label=label,
            )
        if len(alone):
            ax.vlines(
                doses[alone],
                low[alone],
                high[alone],
                color=BLUE,
                alpha=strength + 0.1,
                linewidth=10,
                label=None if len(line) else label,
            )
    if len(line):
        ax.plot(doses[line], average[line], color=INK, linewidth=2.5, label="average")
    if len(alone):
        ax.plot(
            doses[alone],
            average[alone],
            "o",
            color=INK,
            markersize=8,
            markeredgecolor="white",
            label=None if len(line) else "average",
        )
        if not len(line):
            ax.set_xticks(doses[alone])
    ax.set(xlabel=marks.dose, ylabel=marks.outcome)
    legend_above(ax)
    return ax


def plot_average_curve(
    curve: AverageDoseResponse, marks: DoseMarks, *, level: float = 0.95, ax: Any | None = None
) -> Any:
    """An average curve with its pointwise band; dots with bars where a dose stands alone."""
    if not isinstance(level, float) or not 0 < level < 1:
        raise ValueError(f"The 'level' parameter must be a float in (0, 1). Got {level!r} instead.")
    ax = plain_axes(ax)
    line, alone = marks.places(curve.doses)
    line = line[np.argsort(curve.doses[line])]
    reach = NormalDist().inv_cdf((1 + level) / 2) * curve.standard_errors
    label = f"{level:.0%} interval at each dose"
    if len(line):
        x, middle = curve.doses[line], curve.values[line]
        ax.fill_between(
            x,
            middle - reach[line],
            middle + reach[line],
            color=BLUE,
            alpha=0.25,
            linewidth=0,
            label=label,
        )
        ax.plot(x, middle, color=BLUE, linewidth=2.5, label=f"average {marks.outcome}")
    if len(alone):
        ax.errorbar(
            curve.doses[alone],
            curve.values[alone],
            reach[alone],
            fmt="o",
            color=BLUE,
            markersize=8,
            elinewidth=2,
            capsize=4,
            label=None if len(line) else f"average {marks.outcome}, {label}",
        )
        if not len(line):
            ax.set_xticks(curve.doses[alone])
    ax.set(xlabel=marks.dose, ylabel=f"average {marks.outcome}")
    legend_above(ax)
    return ax
