"""A comparison of candidates as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.report.pictures import BLUE, GREY, INK, ORANGE, plain_axes, titled

if TYPE_CHECKING:
    from doseforest.evaluation.verdicts import ModelSelection


def plot_selection(found: ModelSelection, *, ax: Any | None = None) -> Any:
    """Each candidate's score less that of the best, with 95 % intervals of the paired difference.

    Those within noise of the best are orange, those behind it blue.
    """
    names = found.ranking
    ax = plain_axes(ax, (6.4, 1.2 + 0.4 * len(names)))
    for place, name in enumerate(names):
        gap = found.difference(name, found.best)
        low, high = gap.interval()
        colour = INK if name == found.best else ORANGE if name in found.tied else BLUE
        ax.plot([low, high], [place, place], color=colour, linewidth=2)
        ax.plot([gap.value], [place], "o", color=colour)
    ax.axvline(0.0, color=GREY, linewidth=0.8, zorder=0)
    ax.set_yticks(np.arange(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(f"{found.metric}, less that of {found.best}")
    title = f"{found.winner} wins" if found.winner else "No winner: the data cannot tell"
    titled(ax, title)
    return ax
