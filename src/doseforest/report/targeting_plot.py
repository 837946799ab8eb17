"""Who to treat first, as a picture: the effect above average among those ranked highest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from doseforest.report.pictures import BLUE, GREY, plain_axes

if TYPE_CHECKING:
    from doseforest.inference.heterogeneity.targeting import RankedEffects


def plot_targeting(curve: RankedEffects, *, ax: Any | None = None) -> Any:
    """Draw the TOC with 95 % intervals, one for each share; returns the axes."""
    ax = plain_axes(ax)
    low, high = curve.toc.interval()
    ax.axhline(0.0, color=GREY, linewidth=0.8)
    ax.fill_between(curve.shares, low, high, color=BLUE, alpha=0.2)
    ax.plot(curve.shares, curve.toc.values, color=BLUE)
    ax.set(xlabel="share of units, those ranked highest first", ylabel="effect above average")
    return ax
