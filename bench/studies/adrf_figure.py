"""The paper's figure of average curves: truth, median and band over simulations, by method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.designs.paper_designs import DOSE_CURVES
from bench.studies import table1
from bench.studies.markdown import markdown_table
from bench.studies.measures import AVERAGE_DOSES
from bench.studies.report import Report
from bench.studies.request import Request
from bench.studies.scores import MISSING, digits, range_text
from bench.studies.study_methods import EXACT_AVERAGE, METHODS, ZERO
from bench.studies.study_settings import PUBLISHED
from bench.studies.tasks import Record, Task
from doseforest.base.dtypes import FloatArray
from doseforest.report.pictures import pyplot

UNTOLD = (EXACT_AVERAGE, ZERO)  # rows that have no curve to estimate
QUANTILES = (0.025, 0.5, 0.975)
MEDIAN = "quantile 0.5"
MARKS = ("commit", "drawn_from")  # of records that stay when a later run leaves them out
TRUTH, BAND_COLOR = "tab:red", "tab:blue"
BAND = "2.5 to 97.5 %"
MEAN_SLOPE = 0.2  # of the units' own lines: 0.2 E[x1^2 + x4]
NOTE = (
    "Average curve over 1,000 new units on the paper's three designs with dense coefficients. "
    "Error: of the median curve over the draws against the population's, root mean square over "
    "the doses; width: of the band from 2.5 to 97.5 %, mean over the doses. Of a dozen draws that "
    "band is nearly the range, and narrower than of a hundred. The fits are those of Table 1."
)


def tasks(request: Request) -> list[Task]:
    """Those of Table 1, with dense coefficients; errors come before the first fit."""
    pyplot("Figures of average curves")
    if request.methods and all(METHODS[name].row in UNTOLD for name in request.methods):
        raise ValueError(
            "The 'methods' of the figure must have one that estimates an average curve. "
            f"Got {', '.join(request.methods)} instead."
        )
    return [task for task in table1.tasks(request) if task.design in PUBLISHED]


def report(records: list[Record], request: Request) -> Report:
    designs = [own for own in request.designs or PUBLISHED if own in PUBLISHED]
    rows = [row for row in table1.measured_rows(records) if row not in UNTOLD]
    bands = {(row, own): band(records, row, own) for row in rows for own in designs}
    drawn = {about: draws_of(records, *about) for about in bands}
    counts = {row: range_text(len(drawn[row, own]) for own in designs) for row in rows}
    lines = [
        [row, counts[row], *(cell for own in designs for cell in cells(own, bands[row, own]))]
        for row in rows
    ]
    header = ["", "draws", *(f"{own}, {what}" for own in designs for what in ("error", "width"))]
    marks = {(own["row"], own["design"]): {k: own[k] for k in MARKS if k in own} for own in records}
    summary = [summary_of(*about, curves, drawn[about], marks) for about, curves in bands.items()]
    parts = [NOTE, "![average curves](adrf.png)", markdown_table(header, lines)]
    pictures = {"adrf.png": lambda path: draw(path, counts, designs, bands)}
    return Report("Average curves", parts, [], summary, pictures)


def draws_of(records: list[Record], row: str, design: str) -> list[int]:
    """Seeds of a panel's draws."""
    found = [own for own in records if (own["row"], own["design"]) == (row, design)]
    return [seed for own in found for seed in own.get("seeds", [own.get("seed")])]


def summary_of(
    row: str,
    design: str,
    curves: FloatArray | None,
    seeds: list[int],
    marks: Mapping[tuple[str, str], Record],
) -> Record:
    """The numbers of a panel."""
    about = {"design": design, "row": row, **marks.get((row, design), {}), "seeds": seeds}
    if curves is None:
        return about
    quantiles = zip(QUANTILES, curves.round(4).tolist(), strict=True)
    doses = AVERAGE_DOSES[: curves.shape[1]].tolist()
    return about | {"dose": doses} | {name_of(share): own for share, own in quantiles}


def name_of(share: float) -> str:
    return f"quantile {share}"


def truth(design: str, doses: FloatArray) -> FloatArray:
    """The population's average curve: features average out but for the units' mean slope."""
    return DOSE_CURVES[design](doses) + MEAN_SLOPE * doses


def band(records: list[Record], row: str, design: str) -> FloatArray | None:
    """Quantiles of the average curves over the draws, at the doses that all of them have."""
    own_records = [own for own in records if (own["row"], own["design"]) == (row, design)]
    if own_records and MEDIAN in own_records[0]:  # a panel of the published figure
        return np.array([own_records[0][name_of(share)] for share in QUANTILES])
    found = [own["average"] for own in own_records]
    if len(found) < 2:
        return None
    n_doses = min(map(len, found))
    curves: FloatArray = np.quantile([own[:n_doses] for own in found], QUANTILES, axis=0)
    return curves


def cells(design: str, curves: FloatArray | None) -> list[str]:
    if curves is None:
        return [MISSING, MISSING]
    low, median, high = curves
    off = median - truth(design, AVERAGE_DOSES[: len(median)])
    return [digits(float(np.sqrt(np.mean(off**2)))), digits(float(np.mean(high - low)))]


def draw(
    path: Path,
    counts: Mapping[str, str],
    designs: Sequence[str],
    bands: dict[tuple[str, str], FloatArray | None],
) -> None:
    """Panels of methods by designs: truth in red, median in blue, the band in light blue.

    `counts` has the number of draws of each row.
    """
    plt = pyplot("Figures of average curves")
    rows = list(counts)
    figure, axes = plt.subplots(
        len(rows), len(designs), figsize=(3.2 * len(designs), 2.1 * len(rows)), squeeze=False
    )
    for (row, design), curves in bands.items():
        panel: Any = axes[rows.index(row), designs.index(design)]
        if curves is not None:
            low, median, high = curves
            doses = AVERAGE_DOSES[: len(median)]
            panel.fill_between(doses, low, high, color=BAND_COLOR, alpha=0.25, lw=0, label=BAND)
            panel.plot(doses, median, color=BAND_COLOR, lw=1.4, label="median")
            panel.plot(doses, truth(design, doses), color=TRUTH, lw=1.2, ls="--", label="truth")
        title = f"{row}, {counts[row]} draws" if design == designs[0] else ""
        panel.set_title(title, fontsize=8, loc="left")
        panel.tick_params(labelsize=7)
        if row == rows[-1]:
            panel.set_xlabel(f"dose, {design}", fontsize=8)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=len(labels), fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
