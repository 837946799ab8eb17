"""What a section of the coverage study is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.designs import Design
from bench.studies.report import Verdict
from bench.studies.tasks import Record

WANTED = (0.93, 0.97)  # coverage of averages at 95 %


@dataclass(frozen=True, slots=True)
class CoverageSection:
    """Draws of some cases, one at a time, and what is said about all of them."""

    title: str
    uses: tuple[str, ...]  # parts of the algorithm whose golden answers its draws rest on
    designs: tuple[Design, ...]  # that draws are of
    draws: Mapping[str, int]  # of each case, by default
    packages: Callable[[str], tuple[str, ...]]  # that a case needs beside our own
    measure: Callable[[str, int], Record]  # of a case and a seed
    summary: Callable[[list[Record]], list[Record]]  # a record or more for each case
    parts: Callable[[list[Record]], list[str]]  # Markdown, of the summary
    verdicts: Callable[[list[Record]], list[Verdict]]  # of the summary


def no_packages(case: str) -> tuple[str, ...]:
    """Nothing is needed beside our own."""
    return ()


def by_case(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Records of each case, in their order."""
    cases = dict.fromkeys(record["case"] for record in records)
    return {case: [own for own in records if own["case"] == case] for case in cases}


def within(value: float, limits: tuple[float, float], claim: str) -> Verdict:
    """Whether a share lies between two.

    >>> print(within(0.95, (0.93, 0.97), "curve"))
    PASS: curve: 93 % to 97 %; measured 95.0 %
    """
    low, high = limits
    told = f"{claim}: {100 * low:.0f} % to {100 * high:.0f} %"
    return Verdict(low <= value <= high, told, f"measured {100 * value:.1f} %")
