"""Plans as pictures: what budgets buy, how many units have each dose, who gets what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.dose_values import dose_text
from doseforest.policy.problem import InfeasibleError
from doseforest.report.pictures import BLUE, GREY, INK, ORANGE, plain_axes, pyplot, titled

if TYPE_CHECKING:
    from doseforest.policy.budget_paths import BudgetPath
    from doseforest.policy.dose_choices import DoseChoices
    from doseforest.policy.held_out_value import PolicyValue

PATH_POINTS = 500  # of the many vertices: evenly in the budget
MOST_SEGMENTS = 20


def plot_budget_path(
    path: BudgetPath,
    *,
    budget: float | None = None,
    held_out: Sequence[PolicyValue] = (),
    ax: Any | None = None,
) -> Any:
    """Gain over the cheapest doses against what is spent beyond them, and the shadow price.

    `budget` marks one, with what it buys; `held_out` are values of policies, with 95 % intervals.
    """
    ax = plain_axes(ax)
    budgets = np.linspace(path.budgets[0], path.budgets[-1], PATH_POINTS)
    gains = path.bound(budgets) - path.values[0]
    ax.plot(budgets, gains, color=BLUE, linewidth=2, label="predicted gain")
    price_ax = ax.twinx()
    price_ax.spines["top"].set_visible(False)
    place = np.searchsorted(path.budgets, budgets, side="right") - 1
    prices = np.maximum(path.shadow_prices[place], 0.0)
    # The first increments are nearly free: their slopes would flatten everything else.
    shown = prices[1:][gains[1:] > 0.02 * gains[-1]]
    price_ax.plot(budgets, prices, ":", color=ORANGE, linewidth=2, label="shadow price")
    price_ax.set_ylim(0, 1.05 * max(float(shown.max(initial=0.0)), 1e-12))
    ax.set_xlabel("budget")
    ax.set_ylabel("gain over the cheapest doses", color=BLUE)
    price_ax.set_ylabel("gain of one more unit of budget", color=ORANGE)
    note = ""
    if budget is not None:
        gain = float(path.bound(budget) - path.values[0])
        if not np.isfinite(gain):
            raise InfeasibleError(
                f"The 'budget' parameter must be at least {path.budgets[0]:.10g}. "
                f"Got {budget} instead."
            )
        ax.plot([budget], [gain], "o", color=INK, zorder=4)
        share = gain / gains[-1] if gains[-1] > 0 else 1.0
        note = f"{budget:.4g} buys {gain:.4g}, {share:.0%} of what can be had"
    if held_out:
        _held_out_points(ax, held_out, len(path.start))
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(0.1, 1.0))
    titled(ax, "What budgets buy", note)
    ax.set_zorder(price_ax.get_zorder() + 1)  # or the other axes' frame covers the line
    ax.patch.set_visible(False)
    return ax


def _held_out_points(ax: Any, held_out: Sequence[PolicyValue], n_units: int) -> None:
    """Gains of policies on held-out rows, as totals of so many units."""
    spent = np.array([each.cost.value for each in held_out]) * n_units
    gains = np.array([each.gain.value for each in held_out]) * n_units
    ends = np.array([each.gain.interval() for each in held_out]).T * n_units
    reach = np.abs(ends - gains)
    label = "held-out gain, 95 %"
    look = {"fmt": "s", "color": INK, "mfc": "white", "capsize": 3, "zorder": 4}
    ax.errorbar(spent, gains, reach, label=label, **look)


def plot_policy_values(values: Mapping[str, PolicyValue], *, ax: Any | None = None) -> Any:
    """Gains of policies side by side: what was predicted, and what held-out outcomes say."""
    ax = plain_axes(ax, (6.4, 1.8 + 0.4 * len(values)))
    places = np.arange(len(values))
    listed = list(values.values())
    gains = np.array([each.gain.value for each in listed])
    ends = np.array([each.gain.interval() for each in listed]).T
    predicted = [each.predicted_gain for each in listed]
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    ax.plot(predicted, places, "D", mfc="none", color=ORANGE, label="predicted")
    reach = np.abs(ends - gains)
    label = "held-out, 95 %"
    ax.errorbar(gains, places, xerr=reach, fmt="o", color=BLUE, capsize=3, label=label)
    ax.set_yticks(places, list(values))
    ax.set_ylim(len(values) - 0.5, -0.5)
    ax.set_xlabel("gain per unit over the baseline")
    titled(ax, "What policies bring")
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def plot_doses(plan: DoseChoices, *, ax: Any | None = None) -> Any:
    """Number of units with each dose, and what share of the cost goes to them."""
    ax = plain_axes(ax)
    counts = plan.counts()
    places = np.arange(len(counts))
    ax.bar(places, counts, color=BLUE, alpha=0.85)
    spent = np.bincount(plan.dose_index, plan._amounts[1], len(counts))
    total = float(spent.sum())
    if total > 0:
        for place, count, each in zip(places, counts, spent, strict=True):
            if count:
                label = f"{each / total:.0%}"
                ax.annotate(label, (place, count), ha="center", va="bottom", fontsize="small")
    ax.set_xticks(places, [dose_text(dose, 4) for dose in plan.doses])
    if len(places) > 12:
        ax.tick_params(axis="x", labelrotation=90)
    ax.set(xlabel="dose", ylabel="units")
    titled(ax, "How many units have each dose", "numbers: share of the cost" * (total > 0))
    return ax


def plot_segments(plan: DoseChoices, segments: Any, *, ax: Any | None = None) -> Any:
    """Share of each segment's units with every dose, the largest segments if there are many."""
    table = plan.by_segment(segments)
    largest = np.sort(np.argsort(-table.units, kind="stable")[:MOST_SEGMENTS])
    ax = plain_axes(ax, (6.4, 1.6 + 0.32 * len(largest)))
    places = np.arange(len(largest))
    left: FloatArray = np.zeros(len(largest))
    given = np.flatnonzero(plan.counts())
    colours = pyplot().get_cmap("viridis_r")(np.linspace(0.05, 0.95, max(len(given), 2)))
    for dose, colour in zip(given, colours, strict=False):
        shares = table.shares[largest, dose]
        label = dose_text(plan.doses[dose], 4)
        ax.barh(places, shares, left=left, color=colour, label=label, height=0.75)
        left = left + shares
    ax.set_yticks(places, [f"{table.labels[k]} ({table.units[k]:,})" for k in largest])
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.tick_params(axis="y", color=GREY)
    ax.set_xlabel("share of the segment's units")
    titled(ax, "Who gets what")
    ax.legend(
        title="dose",
        frameon=False,
        fontsize="small",
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )
    return ax
