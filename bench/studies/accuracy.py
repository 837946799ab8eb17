"""The table: errors of all rows on all designs."""

from __future__ import annotations

from bench.studies.bars import verdicts
from bench.studies.markdown import markdown_table
from bench.studies.report import Report
from bench.studies.request import Request
from bench.studies.scores import MISSING, Scores, digits, interval_text, mark, with_error
from bench.studies.study_methods import OURS, OUTCOME, PARTS, ROWS
from bench.studies.study_settings import OVERLAP, PUBLISHED, size_of
from bench.studies.tasks import Record, Task

SIMULATIONS = 20
TABLE = ("doseforest", "random_forest", "boosting", "econml", "adrf", "zero")
COLUMNS = (*OVERLAP, *PUBLISHED)
LEGEND = (
    "Mean over simulations, standard error in brackets; 2,000 units, 1,000 in the three designs of "
    "the GCF paper; errors of theta(t, x) on the training units at interior doses. "
    "`*`: doseforest is ahead beyond the 95 % interval of the paired difference, `!`: the row is."
)
NOTE = (
    "ADRF only is the exact average curve, which no estimate is given: the least error without "
    "heterogeneity. Zero is no effect. Both are no competitors, but a model should beat them."
)


def tasks(request: Request) -> list[Task]:
    """Seeds first, so that a run that is cut short has something of every design."""
    return [
        Task(method, design, size_of(design), seed)
        for seed in request.seeds(SIMULATIONS)
        for design in request.designs or COLUMNS
        for method in request.methods or TABLE
    ]


def report(records: list[Record], request: Request) -> Report:
    scores = Scores(records)
    designs = list(request.designs or COLUMNS)
    parts = [
        "## Root mean square error of effects",
        LEGEND,
        error_table(scores, designs, "rms", seconds=True),
        NOTE,
        "## Mean absolute error of effects",
        error_table(scores, designs, "mae"),
        "## Root mean square error of the average curve",
        error_table(scores, designs, "adrf_rms"),
        "## Paired differences of the root mean square error",
        f"The row less {OURS}: above 0 where {OURS} is better.",
        difference_table(scores, designs),
        "## What the correction adds to the outcome model",
        "\n".join(f"- {line}" for line in correction_words(scores, designs)),
    ]
    return Report("Accuracy", parts, verdicts(scores, designs), records)


def error_table(scores: Scores, designs: list[str], number: str, *, seconds: bool = False) -> str:
    """Rows by designs; with the mean time of a fit."""
    rows = [row for row in ROWS if any(record["row"] == row for record in scores.records)]
    header = ["", *designs, *(["s per fit"] if seconds else [])]
    lines = []
    for row in rows:
        cells = [error_cell(scores, design, row, number) for design in designs]
        times = [record["fit_seconds"] for record in scores.records if record["row"] == row]
        spent = f"{sum(times) / len(times):.1f}" if row not in PARTS else MISSING
        time = [spent] if seconds else []
        lines.append([row, *cells, *time])
    return markdown_table(header, lines)


def error_cell(scores: Scores, design: str, row: str, number: str) -> str:
    n = size_of(design)
    text = with_error(scores.mean(design, n, row, number))
    difference = scores.paired(design, n, row, OURS, number) if row != OURS else None
    if difference is None:
        return text
    return text + mark(difference)


def difference_table(scores: Scores, designs: list[str]) -> str:
    lines = []
    for design in designs:
        for row in ROWS:
            difference = scores.paired(design, size_of(design), row, OURS) if row != OURS else None
            if difference is not None:
                error = digits(difference.standard_error)
                interval = interval_text(difference)
                lines.append([design, row, digits(difference.value), error, interval])
    header = ["design", "row", "difference", "standard error", "95 % interval"]
    return markdown_table(header, lines) if lines else f"No simulation has {OURS} yet."


def correction_words(scores: Scores, designs: list[str]) -> list[str]:
    """Where the forests gain over the outcome model that they correct, in words."""
    lines = []
    for design in designs:
        own = scores.mean(design, size_of(design), OUTCOME)
        gain = scores.paired(design, size_of(design), OUTCOME, OURS)
        if own is None or gain is None:
            continue
        low, high = gain.interval()
        share = f"{abs(gain.value) / own.value:.1%} of its error" if own.value else "nothing"
        if low > 0:
            lines.append(f"{design}: the correction removes {share}.")
        elif high < 0:
            lines.append(f"{design}: the correction adds {share}.")
        else:
            lines.append(f"{design}: no difference beyond noise ({share}, {interval_text(gain)}).")
    return lines or ["Not measured in this run."]
