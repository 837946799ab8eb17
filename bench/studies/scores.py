"""Numbers of all simulations, by design, size and row, and comparisons within simulations."""

from __future__ import annotations

from collections.abc import Iterable

from bench.studies.tasks import Record
from doseforest.base.estimates import Estimate
from doseforest.evaluation import paired_difference, simulation_mean

MISSING = "-"  # in a cell


class Scores:
    """Records looked up by what they are about."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = list(records)
        self._by_row: dict[tuple[str, int, str], dict[int, Record]] = {}
        for record in self.records:
            key = record["design"], record["n"], record["row"]
            self._by_row.setdefault(key, {})[record["seed"]] = record

    def by_seed(self, design: str, n: int, row: str, number: str = "rms") -> dict[int, float]:
        """One number of a row, by seed."""
        records = self._by_row.get((design, n, row), {})
        return {seed: records[seed][number] for seed in sorted(records)}

    def rows_of(self, design: str, n: int) -> list[str]:
        """Rows with records of a design."""
        return [row for name, size, row in self._by_row if (name, size) == (design, n)]

    def mean(self, design: str, n: int, row: str, number: str = "rms") -> Estimate | None:
        """Over simulations; nothing when there are less than two."""
        values = list(self.by_seed(design, n, row, number).values())
        return simulation_mean(values) if len(values) > 1 else None

    def paired(
        self, design: str, n: int, first: str, second: str, number: str = "rms"
    ) -> Estimate | None:
        """First row less second, over the simulations that both have."""
        one, other = (self.by_seed(design, n, row, number) for row in (first, second))
        return paired_by_seed(one, other)


def paired_by_seed(one: dict[int, float], other: dict[int, float]) -> Estimate | None:
    """Mean difference over the seeds that both have; nothing when there are less than two."""
    seeds = sorted(one.keys() & other.keys())
    if len(seeds) < 2:
        return None
    return paired_difference([one[seed] for seed in seeds], [other[seed] for seed in seeds])


def digits(value: float) -> str:
    """Three significant digits or two decimals, whichever is more.

    >>> digits(0.12345), digits(12.345), digits(-0.0012)
    ('0.123', '12.35', '-0.001')
    """
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


def with_error(mean: Estimate | None) -> str:
    """A mean with its standard error, for a cell."""
    return f"{digits(mean.value)} ({digits(mean.standard_error)})" if mean else MISSING


def interval_text(mean: Estimate) -> str:
    low, high = mean.interval()
    return f"[{digits(low)}, {digits(high)}]"


def mark(gap: Estimate | None) -> str:
    """Of a row less another: "*" where the row is worse beyond the interval, "!" where better."""
    if gap is None:
        return ""
    low, high = gap.interval()
    return "*" if low > 0 else "!" if high < 0 else ""


def range_text(counts: Iterable[int]) -> str:
    """The least and the largest of some numbers, or the one that all are.

    >>> range_text([8, 25, 25]), range_text([8, 8])
    ('8-25', '8')
    """
    found = sorted(set(counts))
    return "-".join(map(str, dict.fromkeys((found[0], found[-1]))))
