"""Increments as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doseforest.pricing.experiments.increments import Increment
from doseforest.report.pictures import BLUE, GREY, INK, plain_axes, titled


def plot_increments(
    increments: Mapping[str, Increment],
    *,
    truths: Mapping[str, float] | None = None,
    title: str = "Relative increments",
    coverage: float = 0.95,
    ax: Any | None = None,
) -> Any:
    """Draw relative increments by name with their intervals, from top to bottom.

    Parameters
    ----------
    increments : mapping from str to Increment
        The increments.
    truths : mapping from str to float, optional
        Relative increments to mark, such as those of a simulator.
    title : str, default="Relative increments"
        Title of the picture.
    coverage : float, default=0.95
        Chance with which the intervals cover the truth.
    ax : matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib axes
        The picture.

    Examples
    --------
    >>> more = Increment(control=10.0, treatment=11.0, standard_error=0.4, relative_error=0.045)
    >>> [label.get_text() for label in plot_increments({"orders": more}).get_yticklabels()]
    ['orders']
    """
    ax = plain_axes(ax, (6.4, 1.5 + 0.5 * len(increments)))
    ax.axvline(0.0, color=GREY, linewidth=1, zorder=0)
    for place, (name, increment) in enumerate(increments.items()):
        low, high = increment.relative_interval(coverage)
        ax.plot([low, high], [place, place], color=BLUE, linewidth=3, solid_capstyle="butt")
        ax.plot([increment.relative], [place], "o", color=BLUE, markersize=7)
        ax.annotate(
            f"{increment.relative:+.1%}",
            (increment.relative, place),
            xytext=(0, 8 if truths is None else 12),
            textcoords="offset points",
            ha="center",
            fontsize="small",
            color=INK,
        )
        if truths is not None and name in truths:
            ax.plot([truths[name]], [place], "|", color=INK, markersize=18, markeredgewidth=2)
    ax.set_yticks(range(len(increments)), list(increments))
    ax.set_ylim(len(increments) - 0.5, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:+g} %" if share else "0")
    note = f"relative increments, {coverage:.0%} intervals"
    titled(ax, title, note + (", black: the truth" if truths else ""))
    return ax
