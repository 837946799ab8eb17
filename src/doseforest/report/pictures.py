"""What all pictures share: matplotlib itself, colours that everybody can tell apart, plain axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray

# The palette of Okabe and Ito: told apart under every common kind of colour blindness.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
)
KINDS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)
INK, PALE, GREY = "#222222", "#D9D9D9", "#B0B0B0"
SMOOTH_POINTS = 61  # doses at which a curve is drawn


def pyplot(what: str = "Pictures") -> Any:
    """Matplotlib's pyplot; ImportError names the extra where it is missing."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"{what} need matplotlib. Install it with: pip install doseforest[plot]"
        ) from error
    return pyplot


def plain_axes(ax: Any | None, size: tuple[float, float] = (6.4, 4.0)) -> Any:
    """The axes given, or those of a new figure; without the frame's top and right."""
    plt = pyplot()
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def legend_above(ax: Any, title: str | None = None) -> None:
    """A legend in a row above the axes, where it covers nothing."""
    handles, labels = ax.get_legend_handles_labels()
    if title is not None:
        handles = [ax.plot([], [], " ")[0], *handles]
        labels = [f"{title}:", *labels]
    ax.legend(
        handles,
        labels,
        frameon=False,
        fontsize="small",
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        ncols=len(labels),
        columnspacing=1.2,
        handlelength=1.6,
    )


def titled(ax: Any, title: str, note: str = "") -> None:
    """A title to the left, and a note in small letters under it."""
    ax.set_title(title, loc="left", pad=18 if note else None)
    if note:
        ax.text(0.0, 1.02, note, transform=ax.transAxes, fontsize="small", va="bottom", color=INK)


@dataclass(frozen=True, slots=True)
class DoseMarks:
    """How doses are drawn: a line over a range, dots where a dose stands alone; and axis labels.

    Examples
    --------
    >>> marks = DoseMarks(masses=(0.0,))
    >>> marks.drawn_doses(np.array([0.0, 1.0, 4.0]))[:3]
    array([0.  , 1.  , 1.05])
    >>> marks.places(np.array([0.0, 1.0, 4.0]))
    (array([1, 2]), array([0]))
    """

    masses: tuple[float, ...] = ()  # levels of the dose, or its point masses
    continuous: bool = True  # whether there are doses beside them
    dose: str = "dose"
    outcome: str = "outcome"

    def places(self, doses: FloatArray) -> tuple[IntArray, IntArray]:
        """Places of the doses on the line, and of those that stand alone."""
        alone = np.isin(doses, self.masses) | (not self.continuous)
        return np.flatnonzero(~alone), np.flatnonzero(alone)

    def drawn_doses(self, grid: FloatArray) -> FloatArray:
        """Doses at which a curve over the grid is drawn: close ones on the line, and the others."""
        line, alone = self.places(grid)
        if not len(line):
            return grid
        close = np.linspace(grid[line].min(), grid[line].max(), SMOOTH_POINTS)
        close = close[~np.isin(close, self.masses)]
        return np.concatenate([grid[alone], close])

    def strip_width(self, doses: FloatArray) -> float:
        """How far the dots of a dose that stands alone are spread."""
        _, alone = self.places(doses)
        gaps = np.diff(np.sort(doses[alone]))
        room = 0.02 * np.ptp(doses) if self.continuous or not len(gaps) else 0.25 * gaps.min()
        return float(room) if room > 0 else 0.1


def dose_strip(
    ax: Any,
    observed: FloatArray,
    marks: DoseMarks,
    weights: FloatArray | None = None,
    *,
    height: float = 0.1,
) -> None:
    """Bars along the lower edge, up to a share of the axes' height: where the doses are."""
    alone = np.isin(observed, marks.masses) | (not marks.continuous)
    row_weights = np.ones(len(observed)) if weights is None else weights
    transform = ax.get_xaxis_transform()
    style = {"color": PALE, "transform": transform, "zorder": 0}
    if (~alone).any():
        counts, edges = np.histogram(observed[~alone], bins=40, weights=row_weights[~alone])
        ax.bar(edges[:-1], height * counts / counts.max(), np.diff(edges), align="edge", **style)
    if alone.any():
        levels, place = np.unique(observed[alone], return_inverse=True)
        counts = np.bincount(place, row_weights[alone])
        width = 0.6 * marks.strip_width(np.unique(observed))
        colour = GREY if marks.continuous else PALE  # masses have a scale of their own
        ax.bar(levels, height * counts / counts.max(), width, **{**style, "color": colour})
