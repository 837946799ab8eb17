"""The overlap report as text: tables of doses, weights and covariates, then what is wrong."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.text_tables import text_table
from doseforest.doses.dose_values import dose_text
from doseforest.report.dose_cells import DoseCells, dose_cells
from doseforest.report.overlap.overlap_measures import QUANTILES

if TYPE_CHECKING:
    from doseforest.report.overlap.overlap_report import OverlapReport

MOST_DOSES = 11
MOST_JOINT = 30
MOST_CELLS = 12  # values of a component that fit a line
MOST_COVARIATES = 8
WIDTH = 96


def report_text(report: OverlapReport) -> str:
    """Write the report; see `OverlapReport`."""
    lines = [f"Overlap of {report.n_rows:,} rows", "", *_dose_lines(report)]
    lines += ["", *_weight_lines(report), "", *_balance_lines(report), ""]
    lines += _weak_lines(report)
    low, _, _, middle, *_ = report.observed_quantiles
    kind = "density" if report.continuous else "probability"
    lines.append(
        f"Conditional {kind} at the observed dose: median {middle:.3g}, lowest 1 % below {low:.3g}."
    )
    messages = report.messages
    lines.append("" if messages else "\nNothing is wrong with it.")
    for message in messages:
        lines += textwrap.wrap(f"! {message}", WIDTH, subsequent_indent="  ")
    return "\n".join(lines).rstrip()


def _weak_lines(report: OverlapReport) -> list[str]:
    first = f"Weak positivity: {report.weak_share:.1%} of the units, "
    if len(report.components) == 1:
        return [
            f"{first}whose dose has less than {report.weak_below:.0%} of its variance given "
            "covariates."
        ]
    by_part = ", ".join(f"{name} {share:.1%}" for name, share in report.weak_shares.items())
    return [
        f"{first}with less than {report.weak_below:.0%} of the variance of some component given",
        f"covariates and the components before it ({by_part}).",
    ]


def _dose_lines(report: OverlapReport) -> list[str]:
    cells = dose_cells(report.doses)
    if cells is not None and not report.arms and max(cells.shape) <= MOST_CELLS:
        return _cell_lines(report, cells)
    shown = np.arange(len(report.doses))
    note = []
    if report.doses.ndim > 1 and len(shown) > MOST_JOINT:
        shown = np.sort(np.lexsort((report.weighted_sample, report.supported))[:MOST_DOSES])
        note = [f"the {MOST_DOSES} doses of {len(report.doses)} with the least support and rows"]
    elif report.doses.ndim == 1 and len(shown) > MOST_DOSES:
        spread = np.linspace(0, len(shown) - 1, MOST_DOSES).round().astype(int)
        shown = np.union1d(spread, shown[np.isin(report.doses, report.masses)])
    low, middle, high = (report.density_quantiles[QUANTILES.index(s)] for s in (0.05, 0.5, 0.95))
    rows = [
        [
            dose_text(report.doses[k], 4) + ("*" if _is_mass(report, report.doses[k]) else ""),
            f"{report.supported[k]:.0%}",
            f"{report.kernel_sample[k]:.0f}",
            f"{report.weighted_sample[k]:.0f}",
            f"{low[k]:.3g}",
            f"{middle[k]:.3g}",
            f"{high[k]:.3g}",
        ]
        for k in shown
    ]
    kind = "density" if report.continuous else "probability"
    name = "dose" if report.doses.ndim == 1 else f"({', '.join(report.components)})"
    header = [name, "supported", "rows", "weighted rows", f"{kind} 5 %", "median", "95 %"]
    if any("*" in row[0] for row in rows):
        note.append("* a point mass: its probability")
    return [*text_table(header, rows), *note]


def _cell_lines(report: OverlapReport, cells: DoseCells) -> list[str]:
    """Support and weighted rows at every combination of two components."""
    first, second = report.components
    lines: list[str] = []
    for title, values, form in (
        ("supported", report.supported, ".0%"),
        ("weighted rows", report.weighted_sample, ".0f"),
    ):
        table = cells.filled(values)
        rows = [
            [f"{start:.3g}", *("" if np.isnan(each) else f"{each:{form}}" for each in line)]
            for start, line in zip(cells.first, table, strict=True)
        ]
        header = [f"{title}: {first} down, {second} across"]
        lines += [*header, *text_table(["", *(f"{each:.3g}" for each in cells.second)], rows), ""]
    return lines[:-1]


def _is_mass(report: OverlapReport, dose: Any) -> bool:
    return report.continuous and report.doses.ndim == 1 and dose in report.masses


def _weight_lines(report: OverlapReport) -> list[str]:
    spreads = [("as estimated", report.before_cap), ("after the cap", report.after_cap)]
    rows = [
        [
            name,
            f"{each.effective_sample:,.0f}",
            f"{each.largest:.3g}",
            *(f"{each.quantiles[QUANTILES.index(share)]:.2g}" for share in (0.01, 0.5, 0.99)),
        ]
        for name, each in spreads
    ]
    header = [
        f"weights {report.weights_name!r}",
        "effective rows",
        "largest",
        "1 %",
        "median",
        "99 %",
    ]
    return text_table(header, rows)


def _balance_lines(report: OverlapReport) -> list[str]:
    balance = report.balance
    worst = balance.worst()
    order = np.argsort(-worst.max(axis=1), kind="stable")
    rows = [
        [
            balance.covariates[k],
            balance.targets[int(np.abs(balance.before[k]).argmax())],
            f"{worst[k, 0]:.2f}",
            f"{worst[k, 1]:.2f}",
        ]
        for k in order[:MOST_COVARIATES]
    ]
    what = "standardised difference" if balance.standardised else "correlation"
    lines = text_table([f"largest {what}", "with", "before", "after weighting"], rows)
    if len(order) > MOST_COVARIATES:
        lines.append(f"and {len(order) - MOST_COVARIATES} covariates with less")
    return lines
