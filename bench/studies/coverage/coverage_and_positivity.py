"""Section: intervals of units' effects where positivity fails, and whether that is told."""

from __future__ import annotations

import warnings

import numpy as np

from bench.designs import DESIGNS
from bench.studies.coverage.coverage_section import CoverageSection, by_case, no_packages
from bench.studies.coverage.unit_draws import COVERAGE, Sample
from bench.studies.markdown import markdown_table
from bench.studies.report import Verdict
from bench.studies.result_keys import FOREST
from bench.studies.tasks import Record
from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest
from doseforest.estimator.unit_support import OverlapWarning

DRAWS = {"polynomial": 30}
SIZE = 1000
N_DOSES = 6
NOTE = (
    f"The paper's design, n = {SIZE:,}: the dose is a function of sixty covariates and noise "
    "U(-1, 1), so that a unit could have had few of the doses that its curve is asked at. 95 % "
    "intervals against the median dose, apart for pairs of unit and dose that `supported` calls "
    "supported and for the others; and how often fits warned of poor overlap and "
    "`overlap_report` had something to say."
)


def measure(case: str, seed: int) -> Record:
    """One draw."""
    sample = Sample.of(case, SIZE, seed)
    baseline = float(np.median(sample.dose))
    forest = GeneralizedCausalForest(
        correction="none", inference="bags", baseline=baseline, random_state=seed, n_jobs=1
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        forest.fit(sample.X, sample.y, treatment=sample.dose)
    warned = any(issubclass(own.category, OverlapWarning) for own in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        messages = forest.overlap_report().messages
    doses = np.quantile(sample.dose, np.linspace(0.05, 0.95, N_DOSES))
    found = forest.intervals.effect(sample.units, doses=doses)
    low, high = found.interval(COVERAGE)
    truth = sample.truth(doses, baseline)
    covered, supported = (low <= truth) & (truth <= high), forest.supported(sample.units, doses)
    return {
        "supported": float(supported.mean()),
        "covered": float(covered[supported].mean()),
        "covered_beyond": float(covered[~supported].mean()),
        "width": float((high - low)[supported].mean()),
        "width_beyond": float((high - low)[~supported].mean()),
        "warned": bool(warned),
        "reported": bool(messages),
    }


def summary(records: list[Record]) -> list[Record]:
    """Means over draws."""
    numbers = ("supported", "covered", "covered_beyond", "width", "width_beyond")
    return [
        {"case": case, "design": case, "n": SIZE, "draws": len(draws)}
        | {name: float(np.nanmean([own[name] for own in draws])) for name in numbers}
        | {name: float(np.mean([own[name] for own in draws])) for name in ("warned", "reported")}
        for case, draws in by_case(records).items()
    ]


def parts(found: list[Record]) -> list[str]:
    """One table."""
    header = ["design", "draws", "supported pairs", "coverage there", "coverage beyond"]
    header += ["width there", "width beyond", "fit warns", "report warns"]
    lines = [
        [
            own["design"],
            str(own["draws"]),
            f"{own['supported']:.0%}",
            f"{own['covered']:.1%}",
            f"{own['covered_beyond']:.1%}",
            f"{own['width']:.2f}",
            f"{own['width_beyond']:.2f}",
            f"{own['warned']:.0%}",
            f"{own['reported']:.0%}",
        ]
        for own in found
    ]
    return [NOTE, markdown_table(header, lines)] if lines else [NOTE, "No draws."]


def verdicts(found: list[Record]) -> list[Verdict]:
    """That the report warns."""
    return [
        Verdict(
            own["reported"] == 1.0,
            f"{own['design']}: the overlap report warns in every draw",
            f"measured {own['reported']:.0%}",
        )
        for own in found
    ]


USES = (*FOREST, "inference")
SECTION = CoverageSection(
    "Where positivity fails",
    USES,
    (DESIGNS["polynomial"],),
    DRAWS,
    no_packages,
    measure,
    summary,
    parts,
    verdicts,
)
