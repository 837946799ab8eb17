"""How fast errors fall with the number of units: slopes of log error against log n."""

from __future__ import annotations

import numpy as np

from bench.studies.markdown import markdown_table
from bench.studies.report import Report, Verdict
from bench.studies.request import Request
from bench.studies.scores import (
    MISSING,
    Scores,
    digits,
    interval_text,
    paired_by_seed,
    with_error,
)
from bench.studies.study_methods import METHODS, OURS, ROWS
from bench.studies.tasks import Record, Task
from doseforest.evaluation import simulation_mean

SIMULATIONS = 3
UNITS = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
MANY_UNITS, FEW_SIMULATIONS = 20_000, 2
MOST_UNITS = {"random_forest": 5000}  # its time grows faster than the units
DESIGNS = ("confounded", "steps", "polynomial")
MUST_BE_STEEP = ("confounded", "steps")
TABLE = ("doseforest", "random_forest", "boosting", "stopped_boosting")
ERRORS = {
    "rms": "Root mean square over units and doses",
    "sup": "Largest over the doses, mean over units",
}
NOTE = (
    "Errors of theta(t, x) on 1,000 new units: mean over simulations, standard error in brackets. "
    "A slope is fitted to each simulation (the same seed has the same coefficients at every n) "
    "over the n that it has, then averaged. Models keep their settings at every n; boosting that "
    "is stopped early chooses its own number of trees. On *polynomial*, the paper's design, the "
    "dose is nearly a function of the covariates at every n: more units do not bring the doses "
    "that a unit could not have had."
)


def tasks(request: Request) -> list[Task]:
    """Small ones first."""
    return [
        Task(method, design, n, seed, measure="new_units")
        for n in ([request.n] if request.n else UNITS)
        for seed in request.seeds(SIMULATIONS if n < MANY_UNITS else FEW_SIMULATIONS)
        for design in request.designs or DESIGNS
        for method in request.methods or TABLE
        if n <= MOST_UNITS.get(method, n)
    ]


def report(records: list[Record], request: Request) -> Report:
    scores = Scores(records)
    parts, verdicts = [NOTE], []
    for design in request.designs or DESIGNS:
        parts.append(f"## {design}")
        for number, text in ERRORS.items():
            parts += [f"{text}:", rate_table(scores, design, number)]
        if design in MUST_BE_STEEP:
            verdicts += [as_steep(scores, design, row) for row in baselines(request)]
    return Report("Error against n", parts, verdicts, records)


def baselines(request: Request) -> list[str]:
    rows = [row for name in request.methods or TABLE for row in METHODS[name].rows]
    return [row for row in rows if row != OURS]


def rate_table(scores: Scores, design: str, number: str) -> str:
    lines, sizes = [], sizes_of(scores)
    for row in ROWS:
        cells = [with_error(scores.mean(design, n, row, number)) for n in sizes]
        if any(cell != MISSING for cell in cells):
            by_seed = slopes(scores, design, row, number)
            slope = simulation_mean(list(by_seed.values())) if len(by_seed) > 1 else None
            lines.append([row, *cells, with_error(slope)])
    header = ["n", *(f"{n:,}" for n in sizes), "slope"]
    return markdown_table(header, lines) if lines else "No simulations yet."


def sizes_of(scores: Scores) -> list[int]:
    """Numbers of units that have results."""
    return sorted({record["n"] for record in scores.records})


def slopes(
    scores: Scores, design: str, row: str, number: str = "rms", within: str | None = None
) -> dict[int, float]:
    """Slope of log error against log n, by seed, over the n that the seed has.

    With another row to compare with, only over the n that it has, too.
    """
    found: dict[int, list[tuple[int, float]]] = {}
    for n in sizes_of(scores):
        other = scores.by_seed(design, n, within or row, number)
        for seed, error in scores.by_seed(design, n, row, number).items():
            if seed in other:
                found.setdefault(seed, []).append((n, error))
    return {seed: log_slope(points) for seed, points in found.items() if len(points) > 1}


def log_slope(points: list[tuple[int, float]]) -> float:
    """Slope of the line through logarithms.

    >>> round(log_slope([(100, 2.0), (400, 1.0)]), 6)
    -0.5
    """
    sizes, errors = np.log(np.array(points)).T
    return float(np.polyfit(sizes, errors, 1)[0])


def as_steep(scores: Scores, design: str, row: str) -> Verdict:
    """Over the sizes that both have; on means, as a few slopes have a wide interval."""
    claim = f"{design}: slope no flatter than that of {row}"
    ours = slopes(scores, design, OURS, within=row)
    theirs = slopes(scores, design, row, within=OURS)
    excess = paired_by_seed(ours, theirs)
    if excess is None:
        return Verdict(None, claim)
    measured = f"{digits(mean_of(ours))}, {digits(mean_of(theirs))}; "
    measured += f"difference {digits(excess.value)} {interval_text(excess)}"
    return Verdict(excess.value <= 0, claim, measured)


def mean_of(by_seed: dict[int, float]) -> float:
    return sum(by_seed.values()) / len(by_seed)
