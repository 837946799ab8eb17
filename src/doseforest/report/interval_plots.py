"""Effects of a few units with their intervals and bands."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.report.pictures import KINDS, DoseMarks, legend_above, plain_axes

Ends = tuple[FloatArray, FloatArray]  # lower and upper, each (n_shown, n_doses)
MOST_UNITS = len(KINDS)


def plot_unit_bands(
    doses: FloatArray,
    centre: FloatArray,
    interval: Ends,
    band: Ends,
    answer: FloatArray,
    marks: DoseMarks,
    *,
    names: list[str],
    coverage: float,
    ax: Any | None = None,
) -> Any:
    """Debiased effects with intervals (dark) and bands (light), dashed what the forest answers.

    Parameters
    ----------
    doses : array of shape (n_doses,)
    centre, answer : arrays of shape (n_shown, n_doses)
        Debiased effects, and those of `effect`.
    interval, band : pairs of such arrays
        Ends at each dose, and for all doses at once.
    names : list of str
        Of the units.
    coverage : float
        Of both, for the legend.
    """
    ax = plain_axes(ax)
    line, alone = marks.places(doses)
    line = line[np.argsort(doses[line])]
    ax.axhline(0.0, color="0.6", linewidth=0.8, zorder=1)
    for unit, (name, colour) in enumerate(zip(names, KINDS, strict=False)):
        if len(line):
            for (low, high), strength in ((band, 0.12), (interval, 0.22)):
                ends = low[unit, line], high[unit, line]
                ax.fill_between(doses[line], *ends, color=colour, alpha=strength, linewidth=0)
            ax.plot(doses[line], centre[unit, line], color=colour, linewidth=2, label=name)
            ax.plot(doses[line], answer[unit, line], color=colour, linewidth=1.2, linestyle="--")
        if len(alone):
            middle = centre[unit, alone]
            reach = middle - interval[0][unit, alone], interval[1][unit, alone] - middle
            label = None if len(line) else name
            bars = {"fmt": "o", "color": colour, "capsize": 4, "label": label}
            ax.errorbar(doses[alone], middle, reach, **bars)
            ax.plot(doses[alone], answer[unit, alone], "x", color=colour)
    ax.set(xlabel=marks.dose, ylabel=marks.outcome)
    legend_above(ax, f"{coverage:.0%} at each dose, and for all doses; dashed: the forest's effect")
    return ax
