"""Section: how often the test of shapes rejects."""

from __future__ import annotations

import numpy as np

from bench.studies.coverage.coverage_section import CoverageSection, by_case, no_packages
from bench.studies.coverage.shape_draws import draw_rejections
from bench.studies.markdown import markdown_table
from bench.studies.report import Verdict
from bench.studies.tasks import Record

DRAWS = {"increasing 1000": 500}
MOST_FLAT, LEAST_REVERSED = 0.07, 0.9
NOTE = (
    "The test that the average curve increases, at 5 %, n = 1,000: on a flat curve, the least "
    "favourable one, and on a fall by four standard errors of the average curve."
)


def measure(case: str, seed: int) -> Record:
    """One draw, with and without a reversal."""
    return {name: bool(own) for name, own in draw_rejections(int(case.split()[1]), seed).items()}


def summary(records: list[Record]) -> list[Record]:
    """Shares of rejections."""
    return [
        {"case": case, "row": case, "draws": len(draws)}
        | {name: float(np.mean([own[name] for own in draws])) for name in ("flat", "reversed")}
        for case, draws in by_case(records).items()
    ]


def parts(found: list[Record]) -> list[str]:
    """One table."""
    lines = [
        [own["case"], str(own["draws"]), f"{own['flat']:.1%}", f"{own['reversed']:.1%}"]
        for own in found
    ]
    header = ["", "draws", "rejected: flat", "rejected: reversed"]
    return [NOTE, markdown_table(header, lines) if lines else "No draws."]


def verdicts(found: list[Record]) -> list[Verdict]:
    """Size and power."""
    said = []
    for own in found:
        flat, lower = own["flat"], own["reversed"]
        claim = f"{own['case']}: at most {MOST_FLAT:.0%} rejections of a flat curve"
        said.append(Verdict(flat <= MOST_FLAT, claim, f"measured {flat:.1%}"))
        claim = f"{own['case']}: at least {LEAST_REVERSED:.0%} rejections of a reversal"
        said.append(Verdict(lower >= LEAST_REVERSED, claim, f"measured {lower:.1%}"))
    return said


USES = ("outcome", "density", "averages", "inference")
SECTION = CoverageSection(
    "The test of shapes", USES, (), DRAWS, no_packages, measure, summary, parts, verdicts
)
