"""Whether A/B tests on the marketplace keep their word: false alarms, and coverage of the truth."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bench.studies.markdown import markdown_table
from bench.studies.report import Report, Verdict
from bench.studies.request import Request
from bench.studies.study_workers import Clock, worker_pool
from bench.studies.tasks import Record
from doseforest.base.dtypes import FloatArray
from doseforest.pricing.experiments import Increment, run_ab_test
from doseforest.pricing.experiments.market_trial import MAIN, PER_VIEW, MarketTest
from doseforest.pricing.market import FEATURES, Marketplace

REGIME, DRAWS = "mixed", 1000
N_CELLS, DAYS = 300, 2  # of each test; as many days before it
CITY_SEEDS = range(9000, 9006)  # traffic that the increment of the whole city is computed with
SAME, NOTHING = "A/A", "A/B, against no discount"
BUDGET = "A/B, same budget"
REJECTED, COVERED = (0.035, 0.065), (0.93, 0.97)
NOTE = (
    f"Each draw is a test in {N_CELLS} cells of the {REGIME} marketplace for {DAYS} days, with the "
    f"{DAYS} days before as covariates: {SAME} has a discount of 12 % in both arms; then 12 % "
    "against none; then a discount by the income of the origin against 12 % for all, both at the "
    "same expected cost. Errors are taken against the exact increment of the whole city, which "
    "cells of a test are a sample of, and beside it against that of the very cells and days of "
    "the test. Intervals have a nominal coverage of 95 %."
)


@dataclass(frozen=True, slots=True)
class ByIncome:
    """A discount that falls with the income of the origin, and costs as much as 12 % for all."""

    slope: float = 0.2463

    def decide(self, X: FloatArray) -> FloatArray:
        """Discounts of views."""
        return self.slope * (1.0 - X[:, FEATURES.index("origin_income")])


PAIRS: dict[str, dict[str, Any]] = {
    SAME: {"a": 0.12, "also a": 0.12},
    NOTHING: {"none": 0.0, "flat": 0.12},
    BUDGET: {"flat": 0.12, "by income": ByIncome()},
}
ROWS: dict[str, Callable[[MarketTest], tuple[Increment, Any, bool]]] = {
    "orders": lambda test: (test.orders.increment, MAIN, False),
    "orders, relative": lambda test: (test.orders.increment, MAIN, True),
    "orders, no covariates": lambda test: (test.orders.unadjusted, MAIN, False),
    "orders per view": lambda test: (test.results[PER_VIEW].increment, PER_VIEW, False),
}


def run(request: Request, clock: Clock) -> Report:
    """All draws of all pairs, over processes."""
    city = {pair: city_truth(pair) for pair in PAIRS}
    clock.tell("the increments of the whole city are known")
    records: list[Record] = []
    with _pool(request.processes) as pool:
        for pair in PAIRS:
            draw = partial(draw_errors, pair, city[pair])
            seeds = request.seeds(DRAWS)
            found = map(draw, seeds) if pool is None else pool.map(draw, seeds, chunksize=20)
            records += [record for own in found for record in own]
            clock.tell(f"{pair} is done")
    return report(records)


def city_truth(pair: str) -> dict[str, tuple[float, float]]:
    """Absolute and relative increments of the whole city, by metric, on the weekdays of tests."""
    market, totals = Marketplace(REGIME), np.zeros((2, 2))  # policies; orders and views
    for seed in CITY_SEEDS:
        traffic = market.draw_traffic(days=np.arange(DAYS, 2 * DAYS), seed=seed)
        for arm, policy in enumerate(PAIRS[pair].values()):
            orders = market.expected(traffic, policy).orders.sum()
            totals[arm] += orders / traffic.n_visits, orders / len(traffic)
    control, treatment = totals / len(CITY_SEEDS)
    return {
        name: (float(treatment[k] - control[k]), float(treatment[k] / control[k] - 1))
        for k, name in enumerate((MAIN, PER_VIEW))
    }


def draw_errors(pair: str, city: dict[str, tuple[float, float]], seed: int) -> list[Record]:
    """One test: errors against both truths, standard errors and reach of the interval, by row."""
    market = Marketplace(REGIME)
    cells = np.random.default_rng(seed).choice(market.n_cells, N_CELLS, replace=False)
    with warnings.catch_warnings():  # of one in a thousand sample ratios, by chance
        warnings.simplefilter("ignore", UserWarning)
        test = run_ab_test(
            market,
            PAIRS[pair],
            days=DAYS,
            days_before=DAYS,
            cells=np.sort(cells),
            salt=f"draw {seed}",
            seed=seed,
        )
    records = []
    for row, of_test in ROWS.items():
        found, metric, relative = of_test(test)
        own = test.truths[metric]
        value, error, (_, high) = (
            (found.relative, found.relative_error, found.relative_interval())
            if relative
            else (found.absolute, found.standard_error, found.interval())
        )
        records.append(
            {
                "design": pair,
                "row": row,
                "seed": seed,
                "city_error": value - city[metric][int(relative)],
                "test_error": value - (own.relative if relative else own.absolute),
                "standard_error": error,
                "reach": high - value,
            }
        )
    return records


def report(records: list[Record]) -> Report:
    """Coverage of each row in each pair; of the first pair false alarms."""
    lines, verdicts = [], []
    for pair in PAIRS:
        for row in ROWS:
            own = [r for r in records if (r["design"], r["row"]) == (pair, row)]
            city, test = (shares_of(own, name) for name in ("city_error", "test_error"))
            lines.append(
                [
                    *(pair, row, str(len(own))),
                    f"{city.covered:.1%} ({city.chance:.1%})",
                    *(f"{test.covered:.1%}", f"{city.ratio:.2f}", f"{city.bias:+.2f}"),
                ]
            )
            verdicts.append(_verdict(pair, row, city))
    header = ["", "increment of", "draws", "covers the city's", "covers the test's"]
    header += ["standard error / deviation", "bias / standard error"]
    return Report("A/B tests", [NOTE, markdown_table(header, lines)], verdicts, records)


@dataclass(frozen=True, slots=True)
class Shares:
    """How intervals did."""

    covered: float
    chance: float  # standard error of that, by the number of draws
    ratio: float  # root mean square of the standard errors over that of the errors
    bias: float  # mean error over the mean standard error


def shares_of(records: list[Record], error: str) -> Shares:
    """Summary of draws."""
    errors = np.array([record[error] for record in records])
    scales = np.array([record["standard_error"] for record in records])
    reach = np.array([record["reach"] for record in records])
    covered = float(np.mean(np.abs(errors) <= reach))
    return Shares(
        covered=covered,
        chance=float(np.sqrt(covered * (1 - covered) / len(errors))),
        ratio=float(np.sqrt(np.mean(scales**2)) / errors.std()),
        bias=float(errors.mean() / scales.mean()),
    )


def _verdict(pair: str, row: str, found: Shares) -> Verdict:
    if pair == SAME:
        low, high = REJECTED
        claim = f"{pair}, {row}: between {low:.1%} and {high:.1%} of tests raise a false alarm"
        return Verdict(low <= 1 - found.covered <= high, claim, f"{1 - found.covered:.1%}")
    low, high = COVERED
    claim = f"{pair}, {row}: between {low:.0%} and {high:.0%} of intervals cover the truth"
    return Verdict(low <= found.covered <= high, claim, f"{found.covered:.1%}")


def _pool(processes: int) -> Any:
    """Processes with one thread each; none where one process is asked for."""
    return nullcontext() if processes == 1 else worker_pool(processes)
