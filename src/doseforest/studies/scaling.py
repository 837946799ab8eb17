"""How fast errors fall with the number of units: slopes of log error against log n."""

from __future__ import annotations

import numpy as np

from doseforest.evaluation import simulation_mean
from doseforest.studies.markdown import markdown_table
from doseforest.studies.methods import METHODS, OURS, ROWS
from doseforest.studies.report import Report, Verdict
from doseforest.studies.request import Request
from doseforest.studies.scores import (
    MISSING,
    Scores,
    digits,
    interval_text,
    paired_by_seed,
    with_error,
)
from doseforest.studies.tasks import Record, Task

SIMULATIONS = 5
UNITS = (500, 1000, 2000, 5000, 10_000, 20_000)
MOST_UNITS = {"econml": 2000}  # its time grows faster than the units
RATE_DESIGNS = ("confounded", "steps")
RATE_METHODS = ("doseforest", "random_forest", "boosting", "stopped_boosting", "econml")
NOTE = (
    "Mean rms over simulations, standard error in brackets. A slope is fitted to each simulation "
    "(the same seed has the same coefficients at every n), then averaged; EconML's over fewer n. "
    "Models keep their settings at every n; boosting that is stopped early chooses its own number "
    "of trees."
)


def tasks(request: Request) -> list[Task]:
    """Small ones first."""
    return [
        Task(method, design, n, seed)
        for n in UNITS
        for seed in request.seeds(SIMULATIONS)
        for design in request.designs or RATE_DESIGNS
        for method in request.methods or RATE_METHODS
        if n <= MOST_UNITS.get(method, n)
    ]


def report(records: list[Record], request: Request) -> Report:
    scores = Scores(records)
    parts, verdicts = [NOTE], []
    for design in request.designs or RATE_DESIGNS:
        parts += [f"## {design}", rate_table(scores, design)]
        verdicts += [as_steep(scores, design, row) for row in baselines(request)]
    return Report("Error against n", parts, verdicts, records)


def baselines(request: Request) -> list[str]:
    rows = [row for name in request.methods or RATE_METHODS for row in METHODS[name].rows]
    return [row for row in rows if row != OURS]


def rate_table(scores: Scores, design: str) -> str:
    lines = []
    for row in ROWS:
        cells = [with_error(scores.mean(design, n, row)) for n in UNITS]
        if any(cell != MISSING for cell in cells):
            by_seed = slopes(scores, design, row, sizes_of(scores, design, row))
            slope = simulation_mean(list(by_seed.values())) if len(by_seed) > 1 else None
            lines.append([row, *cells, with_error(slope)])
    header = ["n", *map(str, UNITS), "slope"]
    return markdown_table(header, lines) if lines else "No simulations yet."


def sizes_of(scores: Scores, design: str, *rows: str) -> list[int]:
    """Sizes at which all of the rows have simulations."""
    return [n for n in UNITS if all(scores.by_seed(design, n, row) for row in rows)]


def slopes(scores: Scores, design: str, row: str, sizes: list[int]) -> dict[int, float]:
    """Slope of log rms against log n, by seed."""
    if len(sizes) < 2:
        return {}
    values = [scores.by_seed(design, n, row) for n in sizes]
    seeds = set.intersection(*(set(own) for own in values))
    logs = np.log(sizes)
    return {
        seed: float(np.polyfit(logs, np.log([own[seed] for own in values]), 1)[0])
        for seed in sorted(seeds)
    }


def as_steep(scores: Scores, design: str, row: str) -> Verdict:
    """Over the sizes that both have; on means, as five slopes have a wide interval."""
    claim = f"{design}: slope no flatter than that of {row}"
    sizes = sizes_of(scores, design, OURS, row)
    ours, theirs = (slopes(scores, design, name, sizes) for name in (OURS, row))
    excess = paired_by_seed(ours, theirs)
    if excess is None:
        return Verdict(None, claim)
    means = f"{digits(mean_of(ours))}, {digits(mean_of(theirs))}"
    measured = f"{means}; difference {digits(excess.mean)} {interval_text(excess)}"
    return Verdict(excess.mean <= 0, claim, measured)


def mean_of(by_seed: dict[int, float]) -> float:
    return sum(by_seed.values()) / len(by_seed)
