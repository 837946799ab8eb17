"""The paper's Algorithm 1 as printed, on the paper's designs, beside its published errors."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from accuracy_study.estimators import ALGORITHM, OURS, ROWS
from accuracy_study.options import Options
from accuracy_study.report import RESULTS, Report, Verdict
from accuracy_study.scores import MISSING, Scores, digits, interval_text, with_error
from accuracy_study.settings import PUBLISHED, SIZES
from accuracy_study.tasks import Record, Task, fingerprint
from growth_speed.report import markdown_table

SIMULATIONS = 10
# Draws of each estimator: those that vary the paper's settings have fewer.
DRAWS = {"paper": 10, "adrf": 10, "zero": 10, "paper_bandwidth": 2, "paper_pdrf": 2}
NUMBERS = ("rms", "mae", "adrf_rms", "adrf_sup", "fit_seconds")
PUBLISHED_ROW = "GCF, published in Table 1"
PUBLISHED_ERRORS = {  # of theta: root mean square and mean absolute
    "polynomial": (4.14, 2.88),
    "sinusoidal": (4.05, 2.70),
    "exponential": (3.85, 2.48),
}
NOTE = (
    "Root mean square / mean absolute error of theta(t, x), means over draws with standard errors "
    "in brackets: 1,000 units, measured on them at 20 doses from 0 to the highest. `paper()` has "
    "its defaults and these doses as its grid, so that nothing is interpolated; the published "
    "numbers are those of the paper, of another draw of units, with the columns named as in "
    f"docs/paper-mode.md. {OURS} as `make bench-accuracy` has measured it on the same draws "
    "(accuracy.csv): its fits are not done again."
)
READING = (
    "The published errors are about those of ADRF only, the exact average curve for every unit: a "
    "curve without heterogeneity. docs/paper-mode.md tells where the printed algorithm loses."
)


def tasks(options: Options) -> list[Task]:
    """Seeds first, so that a run that is cut short has something of every row."""
    seeds = options.seeds(SIMULATIONS)
    return [
        Task(estimator, design, SIZES[design], seed)
        for place, seed in enumerate(seeds)
        for design in options.designs or PUBLISHED
        for estimator in options.rows or DRAWS
        if place < DRAWS.get(estimator, SIMULATIONS)
    ]


def measured_before(options: Options) -> Iterator[Record]:
    """Our own rows on these draws, out of the table of all designs."""
    with (RESULTS / "accuracy.csv").open(newline="") as file:
        for record in csv.DictReader(file):
            task = Task(OURS, record["design"], int(record["n"]), int(record["seed"]))
            known = record["row"] == OURS and task.design in (options.designs or PUBLISHED)
            drawn = known and task.seed in options.seeds(SIMULATIONS)
            if drawn and record["data"] == fingerprint(task):
                numbers = {name: float(record[name]) for name in NUMBERS}
                yield record | numbers | {"n": task.n, "seed": task.seed}


def report(records: list[Record], options: Options) -> Report:
    records = [*measured_before(options), *records]
    scores = Scores(records)
    designs = [design for design in options.designs or PUBLISHED if design in PUBLISHED]
    verdicts = [ahead(scores, design) for design in designs]
    return Report(
        "The paper's algorithm", [NOTE, error_table(scores, designs), READING], verdicts, records
    )


def error_table(scores: Scores, designs: list[str]) -> str:
    rows = [row for row in ROWS if any(record["row"] == row for record in scores.records)]
    lines = [
        [
            row,
            draws(scores, designs, row),
            *(both_errors(scores, design, row) for design in designs),
        ]
        for row in rows
    ]
    published = ["{:.2f} / {:.2f}".format(*PUBLISHED_ERRORS[design]) for design in designs]
    lines.append([PUBLISHED_ROW, MISSING, *published])
    return markdown_table(["", "draws", *designs], lines)


def draws(scores: Scores, designs: list[str], row: str) -> str:
    return str(max(len(scores.by_seed(design, SIZES[design], row)) for design in designs))


def both_errors(scores: Scores, design: str, row: str) -> str:
    rms, mae = (scores.mean(design, SIZES[design], row, number) for number in ("rms", "mae"))
    return f"{with_error(rms)} / {with_error(mae)}" if rms and mae else MISSING


def ahead(scores: Scores, design: str) -> Verdict:
    """Against the paper's own settings: two draws of the others make no interval."""
    claim = f"{design}: {OURS} ahead of {ALGORITHM} beyond the paired interval"
    gap = scores.paired(design, SIZES[design], ALGORITHM, OURS)
    if gap is None:
        return Verdict(None, claim)
    measured = f"difference of the rms {digits(gap.mean)} {interval_text(gap)}"
    return Verdict(gap.interval()[0] > 0, claim, measured)
