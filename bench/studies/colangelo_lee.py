"""Bias and error of the average curve at dose 0 in Colangelo and Lee's design 2."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from bench.designs import DESIGNS, ColangeloLeeDesign
from bench.studies.held_out_measures import root_mean_square
from bench.studies.markdown import markdown_table
from bench.studies.report import Report, Verdict
from bench.studies.request import Request
from bench.studies.scores import MISSING, digits
from bench.studies.study_methods import OURS
from bench.studies.study_settings import MOST_AVERAGE_BIAS, MOST_AVERAGE_RMSE
from bench.studies.tasks import Record, Task
from doseforest.base.dtypes import FloatArray

DESIGN = "colangelo_lee_2"
SIZE, SIMULATIONS = 1000, 300
NOTE = (
    f"Average outcome at t = 0 over {SIZE} units with 100 features. Errors against the average of "
    "the population, as published ones, and of the drawn units: the difference is the luck of the "
    "draw of units, which no estimate can remove. Bias with its standard error in brackets; "
    "coverage of 95 % intervals of the population's average, where there are standard errors."
)

# Colangelo and Lee (2023), simulation tables: design 2, n = 1,000, lasso, five folds, c = 1.25.
PUBLISHED = ["Colangelo and Lee, lasso", MISSING, "0.015", "0.095", MISSING, "93.4%", MISSING]
COVERAGE_LIMITS = (0.93, 0.97)


def tasks(request: Request) -> list[Task]:
    """One fit per draw."""
    return [
        Task(method, DESIGN, SIZE, seed, measure="average")
        for seed in request.seeds(SIMULATIONS)
        for method in request.methods or ["doseforest"]
    ]


def report(records: list[Record], request: Request) -> Report:
    rows = dict.fromkeys(record["row"] for record in records)
    by_row = {row: [record for record in records if record["row"] == row] for row in rows}
    header = ["", "draws", "bias", "RMSE", "RMSE, drawn units", "coverage", "s per fit"]
    lines = [[row, *summary(own)] for row, own in by_row.items() if len(own) > 1]
    table = markdown_table(header, [*lines, PUBLISHED]) if lines else "No draws yet."
    verdicts = bars(by_row.get(OURS, []))
    return Report("The average curve", [NOTE, table], verdicts, records)


def errors(records: list[Record]) -> FloatArray:
    """Estimates less the average of the population."""
    design = DESIGNS[DESIGN]
    assert isinstance(design, ColangeloLeeDesign)
    exact = float(design.population_average(np.zeros(1))[0])
    return np.array([record["estimate"] for record in records]) - exact


def summary(records: list[Record]) -> list[str]:
    off = errors(records)
    drawn = np.array([record["estimate"] - record["drawn"] for record in records])
    covered = coverage(records)
    seconds = np.mean([record["fit_seconds"] for record in records])
    return [
        str(len(off)),
        f"{digits(off.mean())} ({digits(off.std(ddof=1) / np.sqrt(len(off)))})",
        digits(root_mean_square(off)),
        digits(root_mean_square(drawn)),
        f"{covered:.1%}" if np.isfinite(covered) else MISSING,
        f"{seconds:.1f}",
    ]


def coverage(records: list[Record]) -> float:
    """Share of the draws whose normal interval holds the population's average; NaN without."""
    scales = np.array([record.get("standard_error", np.nan) for record in records])
    covered = np.abs(errors(records)) <= ndtri(0.975) * scales
    return float(np.mean(covered)) if np.isfinite(scales).all() else np.nan


def bars(records: list[Record]) -> list[Verdict]:
    claims = (
        f"RMSE at most {MOST_AVERAGE_RMSE}",
        f"absolute bias at most {MOST_AVERAGE_BIAS}",
        "coverage 93 % to 97 %",
    )
    if not records:
        return [Verdict(None, claim) for claim in claims]
    off = errors(records)
    rmse, bias = root_mean_square(off), abs(float(off.mean()))
    (low, high), covered = COVERAGE_LIMITS, coverage(records)
    return [
        Verdict(rmse <= MOST_AVERAGE_RMSE, claims[0], f"measured {rmse:.4f}"),
        Verdict(bias <= MOST_AVERAGE_BIAS, claims[1], f"measured {bias:.4f}"),
        Verdict(low <= covered <= high, claims[2], f"measured {covered:.1%}"),
    ]
