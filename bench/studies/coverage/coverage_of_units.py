"""Section: intervals of units' effects where every dose has data."""

from __future__ import annotations

from bench.designs import DESIGNS
from bench.studies.coverage.coverage_section import CoverageSection, by_case, within
from bench.studies.coverage.unit_draws import WAVES, measured, summarised
from bench.studies.markdown import markdown_table
from bench.studies.report import Verdict
from bench.studies.result_keys import FOREST
from bench.studies.scores import MISSING
from bench.studies.tasks import Record

DRAWS = {
    f"{design} {n} {method}": draws
    for n, of_econml in ((2000, 10), (8000, 3))  # EconML's for its width: its fits take minutes
    for design in ("randomised", "confounded")
    for method, draws in (("doseforest", 100), ("econml", of_econml))
}
COVERAGE = {"interior": (0.92, 0.97), "edge": (0.90, 0.97)}
LEAST_WORST_TENTH = 0.85
RATIO = (0.9, 1.25)
LEAST_TOGETHER = 0.9
NOTE = (
    "95 % intervals of the effects of the same 100 units in every draw, at doses 1, 3, 5, 7 and 9 "
    "against a baseline inside (5) and one near the edge (0.5). Worst tenth: the 10th percentile, "
    "over units and doses, of the share of draws that cover. s.e. / s.d.: mean standard error over "
    "the standard deviation over draws. Bias: root mean square over units and doses. All doses: "
    "95 % bands that cover all doses of a unit. Ours are centred on the debiased forest; EconML's "
    "CausalForestDML has splines of 4 knots, 1,000 trees and its own defaults."
)


def packages(case: str) -> tuple[str, ...]:
    """What a case needs."""
    return ("econml",) if case.endswith("econml") else ()


def measure(case: str, seed: int) -> Record:
    """One draw."""
    design, n, method = case.split()
    return measured(design, int(n), WAVES, method, seed)


def summary(records: list[Record]) -> list[Record]:
    """A record for each case and baseline."""
    found = []
    for case, draws in by_case(records).items():
        design, n, method = case.split()
        for baseline in WAVES.baselines:
            if len(draws) > 1:
                about = {"case": case, "design": design, "n": int(n), "row": method}
                own = summarised([draw[baseline] for draw in draws])
                found.append(about | {"baseline": baseline, "draws": len(draws)} | own)
    return found


def parts(found: list[Record]) -> list[str]:
    """One table."""
    if not found:
        return [NOTE, "Fewer than two draws."]
    return [NOTE, table(found)]


def table(found: list[Record]) -> str:
    """A line for each case and baseline."""
    header = ["design", "n", "baseline", "method", "draws", "coverage", "worst tenth"]
    header += ["s.e. / s.d.", "bias", "s.d.", "all doses", "width"]
    lines = [
        [
            own["design"],
            str(own["n"]),
            own["baseline"],
            own["row"],
            str(own["draws"]),
            f"{own['coverage']:.1%}",
            f"{own['worst_tenth']:.0%}",
            f"{own['error_ratio']:.2f}",
            f"{own['bias']:.3f}",
            f"{own['deviation']:.3f}",
            f"{own['together']:.1%}" if "together" in own else MISSING,
            f"{own['width']:.2f}",
        ]
        for own in found
    ]
    return markdown_table(header, lines)


def verdicts(found: list[Record]) -> list[Verdict]:
    """The bars of ours."""
    said = []
    for own in (own for own in found if own["row"] == "doseforest"):
        name = f"{own['design']}, n = {own['n']}, {own['baseline']} baseline"
        said.append(within(own["coverage"], COVERAGE[own["baseline"]], f"{name}: mean coverage"))
        worst, ratio = own["worst_tenth"], own["error_ratio"]
        claim = f"{name}: 10th percentile of coverage by unit and dose at least 85 %"
        said.append(Verdict(worst >= LEAST_WORST_TENTH, claim, f"measured {worst:.0%}"))
        claim = f"{name}: standard error over deviation {RATIO[0]} to {RATIO[1]}"
        held = RATIO[0] <= ratio <= RATIO[1]
        said.append(Verdict(held, claim, f"measured {ratio:.2f}"))
        if own["n"] == 8000:
            claim = f"{name}: simultaneous bands cover at least 90 %"
            measured_text = f"measured {own['together']:.1%}"
            said.append(Verdict(own["together"] >= LEAST_TOGETHER, claim, measured_text))
    return said


USES = (*FOREST, "inference")
USED = (DESIGNS["randomised"], DESIGNS["confounded"])
SECTION = CoverageSection(
    "Effects of units", USES, USED, DRAWS, packages, measure, summary, parts, verdicts
)
