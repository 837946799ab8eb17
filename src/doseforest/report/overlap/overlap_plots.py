"""Overlap as pictures: who could have had which dose, weights, balance, room of the dose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.report.overlap.joint_overlap_plots import plot_joint_overlap
from doseforest.report.overlap.overlap_messages import UNBALANCED
from doseforest.report.pictures import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PALE,
    RED,
    DoseMarks,
    dose_strip,
    plain_axes,
    pyplot,
    titled,
)

if TYPE_CHECKING:
    from doseforest.report.overlap.overlap_report import OverlapReport

MOST_COVARIATES = 15
BINS = 40


def plot_report(report: OverlapReport, axes: Any | None = None) -> Any:
    """Four pictures of a report; see `OverlapReport.plot`."""
    if axes is None:
        _, axes = pyplot().subplots(2, 2, figsize=(11.0, 7.6), layout="constrained")
    four = np.ravel(np.asarray(axes, dtype=object))
    if len(four) != 4:
        raise ValueError(f"The 'axes' parameter must hold four axes. Got {len(four)} instead.")
    plot_overlap(report, ax=four[0])
    plot_weights(report, ax=four[1])
    plot_balance(report, ax=four[2])
    plot_room(report, ax=four[3])
    return axes


def plot_overlap(report: OverlapReport, *, ax: Any | None = None) -> Any:
    """Share of units that could have had each dose, rows that speak about it, and the doses."""
    if len(report.components) > 1:
        return plot_joint_overlap(report, ax=ax)
    ax = plain_axes(ax)
    marks = DoseMarks(report.masses, report.continuous)
    line, alone = marks.places(report.doses)
    rows_ax = ax.twinx()
    # On the lower of both axes, or it would cover lines.
    dose_strip(rows_ax, report.observed_doses, marks, report.sample_weights, height=0.5)
    rows_ax.spines["top"].set_visible(False)
    series = (
        (ax, report.supported, BLUE, "-", "o", "units that could have had it"),
        (rows_ax, report.kernel_sample, RED, "-", "s", "rows near it"),
        (rows_ax, report.weighted_sample, RED, ":", "D", "the same, weighted"),
    )
    handles = []
    for each, values, colour, style, marker, name in series:
        shared = {"color": colour, "label": name}
        drawn = None
        if len(line):
            (drawn,) = each.plot(
                report.doses[line], values[line], style, linewidth=2, zorder=3, **shared
            )
        if len(alone):
            hollow = {"markerfacecolor": "white"} if style == ":" else {}
            (dots,) = each.plot(
                report.doses[alone],
                values[alone],
                marker,
                markersize=6,
                zorder=4,
                **shared,
                **hollow,
            )
            drawn = drawn or dots
        handles.append(drawn)
    ax.set(xlabel=report.components[0], ylim=(0, 1.04))
    ax.set_ylabel("share of units", color=BLUE)
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    rows_ax.set_ylabel("effective rows", color=RED)
    rows_ax.set_ylim(0, 1.04 * max(report.kernel_sample.max(), report.weighted_sample.max()))
    if not report.continuous:
        ax.set_xticks(report.doses)
    titled(ax, "Who could have had which dose")
    ax.set_zorder(rows_ax.get_zorder() + 1)  # or the other axes' frame covers the lines
    ax.patch.set_visible(False)
    ax.legend(
        handles=handles,
        frameon=False,
        fontsize="small",
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=3,
    )
    return ax


def plot_weights(report: OverlapReport, *, ax: Any | None = None) -> Any:
    """Distribution of the treatment weights, on a scale of powers."""
    ax = plain_axes(ax)
    r = report.treatment_weights
    positive = r[r > 0]
    low, high = positive.min(), positive.max()
    same = high / low < 1 + 1e-9
    edges = np.geomspace(low / 1.25, high * 1.25, 4) if same else np.geomspace(low, high, BINS)
    ax.hist(r, bins=edges, weights=report.sample_weights, color=BLUE, alpha=0.85)
    ax.set_xscale("log")
    ticks = [t for t in (0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100) if low / 2 <= t <= high * 2]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.axvline(1.0, color=INK, linewidth=1, linestyle=":")
    after = report.after_cap
    share = after.effective_sample / report.n_rows
    note = f"{report.weights_name}: {after.effective_sample:,.0f} effective rows ({share:.0%}), "
    note += f"largest {after.largest:.3g}, {report.n_capped} capped"
    ax.set(xlabel="treatment weight (mean 1)", ylabel="units")
    titled(ax, "Treatment weights", note)
    return ax


def plot_balance(report: OverlapReport, *, ax: Any | None = None) -> Any:
    """Largest dependence of each covariate on the dose, before and after weighting."""
    balance = report.balance
    worst = balance.worst()
    order = np.argsort(worst.max(axis=1), kind="stable")[-MOST_COVARIATES:]
    ax = plain_axes(ax, (6.4, 1.4 + 0.28 * len(order)))
    places = np.arange(len(order))
    ax.axvspan(0, UNBALANCED, color=PALE, alpha=0.5, linewidth=0)
    ax.hlines(places, worst[order].min(axis=1), worst[order].max(axis=1), color=PALE, zorder=1)
    ax.plot(
        worst[order, 0],
        places,
        "o",
        color=ORANGE,
        label="before weighting",
        markerfacecolor="white",
        markeredgewidth=1.5,
    )
    ax.plot(worst[order, 1], places, "o", color=BLUE, label="after weighting")
    ax.set_yticks(places, [balance.covariates[k] for k in order])
    ax.set_ylim(-0.7, len(order) - 0.3)
    ax.set_xlim(left=0)
    what = (
        "largest difference of means (standard deviations)"
        if balance.standardised
        else "largest correlation with the dose or its square"
        if len(report.components) == 1
        else "largest correlation with a component or its square"
    )
    ax.set_xlabel(what)
    titled(ax, "Balance of the covariates")
    ax.legend(frameon=False, fontsize="small", loc="lower right")
    return ax


def plot_room(report: OverlapReport, *, ax: Any | None = None) -> Any:
    """Variance of the dose given each unit's covariates, as a share of the overall variance."""
    ax = plain_axes(ax)
    ratios = np.reshape(report.variance_ratios, (len(report.variance_ratios), -1))
    edges = np.linspace(0, max(1.0, float(np.nanmax(ratios))), BINS + 1)
    several = ratios.shape[1] > 1
    for name, each, colour in zip(report.components, ratios.T, (GREEN, ORANGE, BLUE), strict=False):
        known = np.isfinite(each)
        weights = None if report.sample_weights is None else report.sample_weights[known]
        style = {"alpha": 0.5, "label": name} if several else {"alpha": 0.85}
        ax.hist(each[known], bins=edges, weights=weights, color=colour, **style)
    if several:
        ax.legend(frameon=False, fontsize="small")
    ax.axvspan(0, report.weak_below, color=RED, alpha=0.18, linewidth=0)
    across = "variance of the dose given covariates / overall variance"
    if several:
        across = "variance given covariates and earlier components / overall"
    ax.set(xlabel=across, ylabel="units")
    note = f"{report.weak_share:.1%} of the units below {report.weak_below:.0%}"
    titled(ax, "How much choice of dose there was", note)
    return ax
