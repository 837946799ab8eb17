"""Who could have had which combination of doses, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.doses.dose_values import dose_text
from doseforest.report.dose_cells import DoseCells, dose_cells
from doseforest.report.pictures import BLUE, INK, plain_axes, titled

if TYPE_CHECKING:
    from doseforest.report.overlap.overlap_report import OverlapReport

MOST_BARS = 30
MOST_TEXT = 12  # values of a component beyond which cells have no room for text
TITLE = "Who could have had which dose"


def plot_joint_overlap(report: OverlapReport, *, ax: Any | None = None) -> Any:
    """Cells of two components; bars for arms, for three components and for single doses."""
    cells = None if report.arms else dose_cells(report.doses)
    return _bars(report, ax) if cells is None else _heat_map(report, cells, ax)


def _heat_map(report: OverlapReport, cells: DoseCells, ax: Any | None) -> Any:
    """Share of units in shades and per cent; rows and columns stand at equal distances."""
    ax = plain_axes(ax, (6.4, 4.8))
    shares = cells.filled(report.supported)
    shades = ax.imshow(shares.T, cmap="viridis", vmin=0, vmax=1, origin="lower", aspect="auto")
    ax.set_xticks(np.arange(len(cells.first)), [f"{each:.2g}" for each in cells.first])
    ax.set_yticks(np.arange(len(cells.second)), [f"{each:.2g}" for each in cells.second])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if max(shares.shape) <= MOST_TEXT:
        for (across, up), share in np.ndenumerate(shares):
            if np.isfinite(share):
                colour = "white" if share < 0.7 else INK
                style = {"ha": "center", "va": "center", "fontsize": "x-small"}
                ax.text(across, up, f"{share:.0%}", color=colour, **style)
    bar = ax.figure.colorbar(shades, ax=ax, pad=0.02)
    bar.ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    bar.set_label("share of units")
    bar.outline.set_visible(False)
    ax.set(xlabel=report.components[0], ylabel=report.components[1])
    titled(ax, TITLE)
    return ax


def _bars(report: OverlapReport, ax: Any | None) -> Any:
    """Share of units at each dose, with the rows that speak about it."""
    order = np.lexsort((report.weighted_sample, report.supported))
    shown = np.sort(order[:MOST_BARS])[::-1]
    ax = plain_axes(ax, (6.4, 1.2 + 0.22 * len(shown)))
    places = np.arange(len(shown))
    ax.barh(places, report.supported[shown], color=BLUE, height=0.7)
    for place, dose in zip(places, shown, strict=True):
        rows = f"{report.kernel_sample[dose]:.0f} rows, {report.weighted_sample[dose]:.0f} weighted"
        style = {"va": "center", "fontsize": "x-small", "color": INK}
        ax.text(report.supported[dose] + 0.01, place, rows, **style)
    ax.set_yticks(places, [dose_text(report.doses[k], 3) for k in shown], fontsize="small")
    ax.set_ylim(-0.6, len(shown) - 0.4)
    ax.set_xlim(0, 1.35)
    ax.set_xticks(np.linspace(0, 1, 5))
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel="share of units", ylabel=f"({', '.join(report.components)})")
    all_doses = len(shown) == len(report.doses)
    note = "" if all_doses else f"the {len(shown)} least supported of {len(report.doses)} doses"
    titled(ax, TITLE, note)
    return ax
