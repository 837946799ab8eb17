"""What a section is made of, and the tables that sections share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.studies.markdown import markdown_table
from bench.studies.real.plain import NORMAL_95, with_error
from bench.studies.real.real_effort import RealEffort
from bench.studies.report import Verdict
from bench.studies.scores import MISSING
from bench.studies.tasks import Record


@dataclass(frozen=True, slots=True)
class RealSection:
    """A data set: numbers first, then what is said about them."""

    title: str
    files: tuple[str, ...]  # of the data folder
    measure: Callable[[RealEffort], list[Record]]
    parts: Callable[[list[Record]], list[str]]  # Markdown
    verdicts: Callable[[list[Record]], list[Verdict]]


def pick(records: Sequence[Record], measure: str) -> list[Record]:
    """Records of one kind."""
    return [record for record in records if record["measure"] == measure]


def published_record(
    row: str, ours: Any, error: Any, published: float, n: int, **more: Any
) -> Record:
    """Our number with its standard error beside the published one."""
    own = {"ours": float(ours), "standard_error": float(error), "published": float(published)}
    return {"measure": "published", "row": row, "n": n} | own | more


def published_table(records: Sequence[Record], decimals: int = 2) -> str:
    """Ours beside the published numbers, in standard errors of ours."""
    lines = [
        [
            record["row"],
            with_error(record["ours"], record["standard_error"], decimals),
            interval(record["ours"], record["standard_error"], decimals),
            f"{record['published']:.{decimals}f}",
            f"{(record['ours'] - record['published']) / record['standard_error']:+.1f}",
        ]
        for record in pick(records, "published")
    ]
    header = ["", "ours (s.e.)", "95 % interval", "published", "difference in s.e."]
    return markdown_table(header, lines)


def interval(value: float, error: float, decimals: int = 2) -> str:
    """Two standard errors, or nearly so, on either side."""
    low, high = value - NORMAL_95 * error, value + NORMAL_95 * error
    return f"[{low:.{decimals}f}, {high:.{decimals}f}]"


def group_table(records: Sequence[Record], ours: str, plain: str, decimals: int = 2) -> str:
    """Means of the units' effects in groups, beside an estimate that needs no forest."""
    lines = [
        [
            record["row"],
            f"{record['n']:,}",
            f"{record['ours']:.{decimals}f}",
            MISSING
            if record["plain"] is None
            else with_error(record["plain"], record["plain_error"], decimals),
        ]
        for record in pick(records, "groups")
    ]
    return markdown_table(["", "rows", ours, plain], lines)
