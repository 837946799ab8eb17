"""The paper's figure of average curves: truth, median and band over simulations, by method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from doseforest.dtypes import FloatArray
from doseforest.inspection.pictures import pyplot
from doseforest.simulation.published import DOSE_CURVES
from doseforest.studies import table1
from doseforest.studies.markdown import markdown_table
from doseforest.studies.methods import EXACT_AVERAGE, ZERO
from doseforest.studies.report import Report
from doseforest.studies.request import Request
from doseforest.studies.scores import MISSING, digits
from doseforest.studies.settings import PUBLISHED
from doseforest.studies.tasks import AVERAGE_DOSES, Record, Task

UNTOLD = (EXACT_AVERAGE, ZERO)  # rows that have no curve to estimate
QUANTILES = (0.025, 0.5, 0.975)
MEDIAN = "quantile 0.5"
MARKS = ("commit", "drawn_from")  # of records that stay when a later run leaves them out
MEAN_SLOPE = 0.2  # of the units' own lines: 0.2 E[x1^2 + x4]
NOTE = (
    "Average curve over 1,000 new units on the paper's three designs with dense coefficients. "
    "Error: of the median curve over the draws against the population's, root mean square over "
    "the doses; width: of the band from 2.5 to 97.5 %, mean over the doses. The fits are those of "
    "Table 1."
)


def tasks(request: Request) -> list[Task]:
    """Those of Table 1, with dense coefficients."""
    return [task for task in table1.tasks(request) if task.design in PUBLISHED]


def report(records: list[Record], request: Request) -> Report:
    designs = [own for own in request.designs or PUBLISHED if own in PUBLISHED]
    rows = [row for row in table1.measured_rows(records) if row not in UNTOLD]
    bands = {(row, own): band(records, row, own) for row in rows for own in designs}
    lines = [
        [row, *(cell for own in designs for cell in cells(own, bands[row, own]))] for row in rows
    ]
    header = ["", *(f"{own}, {what}" for own in designs for what in ("error", "width"))]
    marks = {(own["row"], own["design"]): {k: own[k] for k in MARKS if k in own} for own in records}
    summary = [summary_of(*about, curves, marks) for about, curves in bands.items()]
    parts = [NOTE, "![average curves](adrf.png)", markdown_table(header, lines)]
    pictures = {"adrf.png": lambda path: draw(path, rows, designs, bands)}
    return Report("Average curves", parts, [], summary, pictures)


def summary_of(
    row: str, design: str, curves: FloatArray | None, marks: Mapping[tuple[str, str], Record]
) -> Record:
    """The numbers of a panel."""
    about = {"design": design, "row": row, **marks.get((row, design), {})}
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
    rows: Sequence[str],
    designs: Sequence[str],
    bands: dict[tuple[str, str], FloatArray | None],
) -> None:
    """Panels of methods by designs: truth in red, median in blue, the band in light blue."""
    plt = pyplot("The figure of average curves")
    figure, axes = plt.subplots(
        len(rows), len(designs), figsize=(3.2 * len(designs), 2.1 * len(rows)), squeeze=False
    )
    for (row, design), curves in bands.items():
        panel: Any = axes[rows.index(row), designs.index(design)]
        if curves is not None:
            low, median, high = curves
            doses = AVERAGE_DOSES[: len(median)]
            panel.fill_between(doses, low, high, color="tab:blue", alpha=0.25, lw=0)
            panel.plot(doses, median, color="tab:blue", lw=1.4)
            panel.plot(doses, truth(design, doses), color="tab:red", lw=1.2, ls="--")
        panel.set_title(f"{row}" if design == designs[0] else "", fontsize=8, loc="left")
        panel.tick_params(labelsize=7)
        if row == rows[-1]:
            panel.set_xlabel(f"dose, {design}", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
