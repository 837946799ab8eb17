"""Sections: uniform bands of average curves; shifts of the dose and average derivatives."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from bench.designs import DESIGNS
from bench.studies.coverage.average_draws import (
    CHANGES,
    COVERAGE_DESIGNS,
    N_BAND,
    draw_changes,
    draw_curve,
    summarised,
)
from bench.studies.coverage.coverage_section import (
    WANTED,
    CoverageSection,
    by_case,
    no_packages,
    within,
)
from bench.studies.markdown import markdown_table
from bench.studies.report import Verdict
from bench.studies.scores import MISSING
from bench.studies.tasks import Record

CURVE_DRAWS = 300
CURVE_SIZE = 1000
CURVES = {"confounded": False, "confounded bias_correction": True}
SHIFTS = {"confounded 1000": 1.0, "polynomial_normal 2000": 0.5, "polynomial 2000": 0.5}
CHANGE_DRAWS = dict.fromkeys(SHIFTS, 300)
JUDGED = ("shift", "derivative")  # beside them the average curve, which needs more overlap
CURVE_NOTE = (
    f"The average curve of *confounded*, n = {CURVE_SIZE:,}, cheap outcome models and entropy "
    "weights: 95 % intervals at the median dose, and 95 % bands over 15 doses of the interior."
)
CHANGE_NOTE = (
    "Everyone's dose shifted (by 1; by 0.5 on the last two, whose overlap is poor), the average "
    "derivative, and beside them the average curve, corrected for bias, which needs more overlap: "
    "95 % intervals, the curve's at the median dose, and 95 % bands over it and "
    f"{N_BAND} further doses; cheap outcome models. *polynomial_normal* is the paper's polynomial "
    "design with noise N(0, 1) of the dose around a function of sixty covariates: every dose is "
    "possible, most hardly ever. *polynomial* has the paper's own noise U(-1, 1): a shift moves a "
    "quarter of its units to where none like them could be, and a uniform density jumps at its "
    "ends, so that no weights of finite variance give a derivative. What intervals cover there "
    "rests on curves that are smooth."
)


def measure_curve(case: str, seed: int) -> Record:
    """One draw."""
    found = draw_curve("confounded", CURVE_SIZE, seed, bias_correction=CURVES[case])
    return {**found["curve"], "band": found["band"]}


def summary_of_curves(records: list[Record]) -> list[Record]:
    """Coverage at a dose, and of bands."""
    return [
        {"case": case, "design": "confounded", "n": CURVE_SIZE, "row": case, **asdict(own)}
        | {"band": float(np.mean([draw["band"] for draw in draws]))}
        for case, draws in by_case(records).items()
        if len(draws) > 1 and (own := summarised(draws))
    ]


def parts_of_curves(found: list[Record]) -> list[str]:
    """One table."""
    header = ["", "draws", "coverage", "s.e. / s.d.", "bias", "band"]
    lines = [
        [
            own["case"],
            str(own["draws"]),
            f"{own['coverage']:.1%}",
            f"{own['error_ratio']:.2f}",
            f"{own['bias']:.3f}",
            f"{own['band']:.1%}",
        ]
        for own in found
    ]
    return [CURVE_NOTE, markdown_table(header, lines) if lines else "Fewer than two draws."]


def verdicts_of_curves(found: list[Record]) -> list[Verdict]:
    """The band that is corrected for bias."""
    return [
        within(own["band"], WANTED, f"{own['case']}: uniform bands cover")
        for own in found
        if CURVES[own["case"]]
    ]


def measure_change(case: str, seed: int) -> Record:
    """One draw."""
    design, n = case.split()
    return draw_changes(design, int(n), seed, delta=SHIFTS[case])


def summary_of_changes(records: list[Record]) -> list[Record]:
    """Coverage of both changes and of the average curve."""
    found = []
    for case, draws in by_case(records).items():
        design, n = case.split()
        for row in CHANGES:
            if len(draws) > 1:
                own = [draw[row] for draw in draws]
                about = {"case": case, "design": design, "n": int(n), "row": row}
                bands = [draw["band"] for draw in own if "band" in draw]
                bands_told = {"band": float(np.mean(bands))} if bands else {}
                found.append(about | asdict(summarised(own)) | bands_told)
    return found


def parts_of_changes(found: list[Record]) -> list[str]:
    """One table."""
    header = ["design", "n", "", "draws", "coverage", "s.e. / s.d.", "bias", "band"]
    lines = [
        [
            own["design"],
            str(own["n"]),
            own["row"],
            str(own["draws"]),
            f"{own['coverage']:.1%}",
            f"{own['error_ratio']:.2f}",
            f"{own['bias']:.4f}",
            f"{own['band']:.1%}" if "band" in own else MISSING,
        ]
        for own in found
    ]
    return [CHANGE_NOTE, markdown_table(header, lines) if lines else "Fewer than two draws."]


def verdicts_of_changes(found: list[Record]) -> list[Verdict]:
    """Both changes on all designs."""
    return [
        within(own["coverage"], WANTED, f"{own['design']}, {own['row']}: coverage")
        for own in found
        if own["row"] in JUDGED
    ]


USES = ("outcome", "density", "averages", "inference")
CURVE_SECTION = CoverageSection(
    "Average curves",
    USES,
    (DESIGNS["confounded"],),
    dict.fromkeys(CURVES, CURVE_DRAWS),
    no_packages,
    measure_curve,
    summary_of_curves,
    parts_of_curves,
    verdicts_of_curves,
)
CHANGE_SECTION = CoverageSection(
    "Shifts and derivatives",
    USES,
    tuple(COVERAGE_DESIGNS[case.split()[0]] for case in SHIFTS),
    CHANGE_DRAWS,
    no_packages,
    measure_change,
    summary_of_changes,
    parts_of_changes,
    verdicts_of_changes,
)
