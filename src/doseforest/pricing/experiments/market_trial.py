"""An A/B test in the marketplace, beside the increment that the simulator knows to be true."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array, FloatArray, IntArray
from doseforest.pricing.experiments.ab_result import ABResult
from doseforest.pricing.experiments.compare import compare_arms
from doseforest.pricing.experiments.hashed_arms import assign_arms, checked_shares
from doseforest.pricing.experiments.increment_plots import plot_increments
from doseforest.pricing.market import Marketplace, Traffic
from doseforest.pricing.market.market_draws import checked_seed, seed_of
from doseforest.pricing.market.market_inputs import checked_cells

# Metrics of a cell and day, each with the one of the period before that is its covariate.
METRICS = {"orders": "orders", "requests": "requests", "revenue": "revenue", "cost": "revenue"}
PER_VIEW, VIEWS = "orders per view", "views"
MAIN = "orders"
TRIALS = 1  # use of the seed: views of a test are other ones than those of experiments


@dataclass(frozen=True, slots=True)
class TrueIncrement:
    """What both policies bring in the cells and days of the test, exactly expected.

    Attributes
    ----------
    control, treatment : float
        Expected metric of both policies.

    Examples
    --------
    >>> truth = TrueIncrement(control=10.0, treatment=12.0)
    >>> truth.absolute, truth.relative
    (2.0, 0.2)
    """

    control: float
    treatment: float

    @property
    def absolute(self) -> float:
        """Treatment less control."""
        return self.treatment - self.control

    @property
    def relative(self) -> float:
        """Over the control; NaN where that is 0."""
        return self.absolute / self.control if self.control else math.nan


Truths = dict[str, TrueIncrement]


@dataclass(frozen=True, slots=True, eq=False)
class MarketTest:
    """Results of a test in the marketplace by metric, and the truth.

    Attributes
    ----------
    results : dict of ABResult
        By metric.
    truths : dict of TrueIncrement
        By metric.
    cells : array of int of shape (n_cells,)
        Cells that took part.
    arms : array of str of shape (n_cells,)
        Name of each cell's arm.

    Examples
    --------
    >>> from doseforest.pricing.experiments import run_ab_test
    >>> from doseforest.pricing.market import Marketplace
    >>> policies = {"none": 0.0, "flat": 0.12}
    >>> test = run_ab_test(
    ...     Marketplace(), policies, days=1, days_before=1, cells=range(0, 5760, 40))
    >>> sorted(test.results) == sorted(test.truths), len(test.arms)
    (True, 144)
    """

    results: dict[str, ABResult]
    truths: Truths
    cells: IntArray = field(repr=False)  # (n_cells,)
    arms: Array = field(repr=False)  # (n_cells,)

    @property
    def orders(self) -> ABResult:
        """Finished orders of a cell and day."""
        return self.results[MAIN]

    @property
    def true_increment(self) -> TrueIncrement:
        """Of finished orders of a cell and day."""
        return self.truths[MAIN]

    def __str__(self) -> str:
        truth = self.true_increment
        return f"{self.orders}\n  truth {truth.absolute:+.4g}, {truth.relative:+.2%}"

    def plot(self, *, coverage: float = 0.95, ax: Any | None = None) -> Any:
        """Draw relative increments of all metrics beside the truth.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which the intervals cover the truth.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        shown = {
            name: result.increment
            for name, result in self.results.items()
            if result.increment.control  # a policy without discounts costs nothing
        }
        return plot_increments(
            shown,
            truths={name: self.truths[name].relative for name in shown},
            title=f"{self.orders.treatment} against {self.orders.control}",
            coverage=coverage,
            ax=ax,
        )


def run_ab_test(
    market: Marketplace,
    policies: Mapping[str, Any],
    *,
    days: int = 7,
    days_before: int = 7,
    before: Any = 0.0,
    cells: Any = None,
    salt: str = "ab",
    shares: Mapping[str, float] | None = None,
    adjustment: str = "lin",
    seed: int = 0,
) -> MarketTest:
    """Run two policies side by side, each in the cells that a hash gives it.

    All views of a cell compete for its drivers, so cells are assigned as a whole: a policy that
    makes riders ask for drivers whom there are not shows it.

    Parameters
    ----------
    market : Marketplace
        The marketplace.
    policies : mapping of two names to policies
        The first one is the control. A policy is a discount, a callable or has ``decide``.
    days : int, default=7
        Days of the test. More days give smaller errors and take longer.
    days_before : int, default=7
        Days of the period before, whose metrics and views are the covariates.
    before : policy, default=0.0
        Policy of all cells in the period before.
    cells : array of int, optional
        Cells that take part, by default all of them.
    salt : str, default="ab"
        Name of the test: another salt puts other cells into each arm.
    shares : mapping from policy to its share of the cells, optional
        By default a half each.
    adjustment : {"lin", "cuped", "none"}, default="lin"
        How covariates are used, as in `compare_arms`.
    seed : int, default=0
        Seed of traffic and luck. Views are other ones than those of an experiment with this seed,
        so that a policy is not tried on what it was learned from.

    Returns
    -------
    MarketTest
        Results by metric, beside the exact truth.

    Examples
    --------
    >>> policies = {"none": 0.0, "flat": 0.12}
    >>> test = run_ab_test(Marketplace(), policies, days=1, cells=range(0, 5760, 10))
    >>> low, high = test.orders.interval()
    >>> low < test.true_increment.absolute < high
    True
    """
    names = _two_names(policies)
    policies = dict(zip(names, policies.values(), strict=True))
    n_days, n_before = _checked_days(days, "days", 1), _checked_days(days_before, "days_before", 0)
    own_cells = checked_cells(cells, market.n_cells)
    planned = _checked_plan(shares, names)
    own_seed = seed_of(checked_seed(seed), TRIALS)
    arms = assign_arms(own_cells, salt, planned)
    test_days = np.arange(n_before, n_before + n_days)
    traffic = market.draw_traffic(days=test_days, cells=own_cells, seed=own_seed)
    plans = [market.plan(policies[name], traffic) for name in names]
    treated = np.tile(arms == names[1], n_days)[traffic.visit]
    result = market.draw_results(traffic, np.where(treated[:, None], plans[1], plans[0]), own_seed)
    drawn = _by_metric(result, traffic, n_days)
    earlier = _earlier(market, own_cells, n_before, before, own_seed)
    compared = partial(
        compare_arms, arms=arms, control=names[0], adjustment=adjustment, shares=planned
    )
    results = {
        name: compared(
            drawn[name],
            covariates=earlier[covariate],
            cost=drawn["cost"],
            metric=f"{name} of a cell and day",
        )
        for name, covariate in METRICS.items()
    }
    results[PER_VIEW] = compared(
        drawn[MAIN], denominator=drawn[VIEWS], covariates=earlier[MAIN], metric=PER_VIEW
    )
    exact = [_by_metric(market.expected(traffic, plan), traffic, n_days) for plan in plans]
    return MarketTest(results, _truths(*exact), own_cells, arms)


def _truths(control: dict[str, FloatArray], treatment: dict[str, FloatArray]) -> Truths:
    """True increments by metric, from expectations of all cells under both policies."""
    means = [
        {name: float(each.mean()) for name, each in arm.items()} for arm in (control, treatment)
    ]
    truths = {name: TrueIncrement(*(mean[name] for mean in means)) for name in METRICS}
    truths[PER_VIEW] = TrueIncrement(*(mean[MAIN] / mean[VIEWS] for mean in means))
    return truths


def _by_metric(found: Any, traffic: Traffic, n_days: int) -> dict[str, FloatArray]:
    """Mean of a day for each cell, (n_cells,) by metric, and the views."""
    columns = {name: getattr(found, name) for name in METRICS} | {VIEWS: np.ones(len(traffic))}
    return {
        name: traffic.by_visit(column).reshape(n_days, -1).mean(axis=0)
        for name, column in columns.items()
    }


def _earlier(
    market: Marketplace, cells: IntArray, n_days: int, policy: Any, seed: int
) -> dict[str, FloatArray]:
    """Each metric with the views of the period before, (n_cells, 2) by metric."""
    if n_days == 0:
        return dict.fromkeys(METRICS, np.empty((len(cells), 0)))
    traffic = market.draw_traffic(days=np.arange(n_days), cells=cells, seed=seed)
    result = _by_metric(market.draw_results(traffic, policy, seed), traffic, n_days)
    return {name: np.stack([result[name], result[VIEWS]], axis=1) for name in METRICS}


def _checked_plan(shares: Any, names: tuple[str, str]) -> dict[str, float]:
    planned = checked_shares(dict.fromkeys(names, 0.5) if shares is None else shares)
    if set(planned) != set(names):
        raise ValueError(
            f"The 'shares' parameter must have the names of the policies {names}. "
            f"Got {list(planned)} instead."
        )
    return planned


def _two_names(policies: Any) -> tuple[str, str]:
    if not isinstance(policies, Mapping) or len(policies) != 2:
        raise ValueError(
            f"The 'policies' parameter must map two names to policies. Got {policies!r} instead."
        )
    control, treatment = map(str, policies)
    return control, treatment


def _checked_days(days: Any, name: str, lowest: int) -> int:
    if not isinstance(days, Integral) or isinstance(days, bool) or int(days) < lowest:
        raise ValueError(
            f"The {name!r} parameter must be an int of at least {lowest}. Got {days!r} instead."
        )
    return int(days)
