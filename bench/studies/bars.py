"""The lines that must hold on the table of designs, some of them in Table 1, too."""

from __future__ import annotations

from bench.studies.report import Verdict
from bench.studies.scores import Scores, digits, interval_text
from bench.studies.study_methods import EXACT_AVERAGE, METHODS, OURS, OUTCOME
from bench.studies.study_settings import (
    AIMED_PUBLISHED_RMS,
    MOST_EXCESS,
    MOST_PUBLISHED_RMS,
    MUST_LEAD,
    PUBLISHED,
    size_of,
)

PEERS = tuple(METHODS[name].row for name in ("random_forest", "boosting", "econml"))
ESTIMATED = (OURS, OUTCOME, *PEERS)  # the others know the truth, or nothing


def verdicts(scores: Scores, designs: list[str]) -> list[Verdict]:
    """All bars on the designs of a run."""
    published = [design for design in designs if design in PUBLISHED]
    return [
        *(low_error(scores, design, size_of(design)) for design in published),
        *(no_worse_than_outcome_model(scores, design, size_of(design)) for design in published),
        *(near_the_best(scores, design) for design in designs if design not in PUBLISHED),
        *(ahead_of_peers(scores, design) for design in designs if design in MUST_LEAD),
    ]


def low_error(scores: Scores, design: str, size: int) -> Verdict:
    """On the paper's designs."""
    claim = f"{design}: rms at most {MOST_PUBLISHED_RMS} (aim {AIMED_PUBLISHED_RMS})"
    mean = scores.mean(design, size, OURS)
    if mean is None:
        return Verdict(None, claim)
    return Verdict(mean.value <= MOST_PUBLISHED_RMS, claim, f"measured {digits(mean.value)}")


def no_worse_than_outcome_model(scores: Scores, design: str, size: int) -> Verdict:
    """By the paired interval."""
    claim = f"{design}: not worse than {OUTCOME} beyond noise"
    excess = scores.paired(design, size, OURS, OUTCOME)
    if excess is None:
        return Verdict(None, claim)
    measured = f"excess {digits(excess.value)} {interval_text(excess)}"
    return Verdict(excess.interval()[0] <= 0, claim, measured)


def near_the_best(scores: Scores, design: str) -> Verdict:
    """Against the best of the rows that estimate."""
    claim = f"{design}: at most {MOST_EXCESS - 1:.0%} worse than the best estimate"
    found = {row: scores.mean(design, size_of(design), row) for row in ESTIMATED}
    means = {row: mean.value for row, mean in found.items() if mean is not None}
    if OURS not in means or len(means) < 2:
        return Verdict(None, claim)
    best = min(means, key=means.__getitem__)
    measured = f"{digits(means[OURS])}, best {digits(means[best])} ({best})"
    exact = scores.mean(design, size_of(design), EXACT_AVERAGE)
    if exact is not None and exact.value < means[OURS]:
        measured += f"; {EXACT_AVERAGE}, which knows the exact average, {digits(exact.value)}"
    return Verdict(means[OURS] <= MOST_EXCESS * means[best], claim, measured)


def ahead_of_peers(scores: Scores, design: str) -> Verdict:
    claim = f"{design}: ahead of every peer ({'; '.join(PEERS)}) beyond the paired interval"
    gaps = {row: scores.paired(design, size_of(design), row, OURS) for row in PEERS}
    known = {row: gap for row, gap in gaps.items() if gap is not None}
    if len(known) < len(PEERS):
        return Verdict(None, claim)
    row, closest = min(known.items(), key=lambda item: item[1].interval()[0])
    measured = f"closest {row}: {digits(closest.value)} {interval_text(closest)}"
    return Verdict(closest.interval()[0] > 0, claim, measured)
