"""The marketplace as a source of rows, of units to plan for, and as a place for tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.doses.dose_values import Doses
from doseforest.pricing.market import FEATURES, Marketplace, Traffic, draw_experiment
from doseforest.pricing.market.city import N_HOURS
from doseforest.pricing.market.market_draws import seed_of
from doseforest.pricing.pipeline.row_tables import pandas

if TYPE_CHECKING:
    from doseforest.policy.artifact.dose_policy import DosePolicy
    from doseforest.pricing.pipeline.config import CollectSection

ZONE_HOUR, DRIVERS = "zone_hour", "zone_drivers"
PLANNED_DAY, PLANNING = 200, 2  # a day beyond those of tests, and a use of the seed
MEAN_VIEWS = 20
LEAST_PRICE, MOST_PRICE, HALVINGS = 1e-6, 1e4, 45  # of money, in outcomes
TRAITS = ("origin_business", "origin_nightlife", "origin_income")


def market_of(own: CollectSection) -> Marketplace:
    """The marketplace of a configuration."""
    return Marketplace(own.regime, own.options)


def experiment_rows(own: CollectSection, seed: int) -> Any:
    """Rows of an experiment as a frame."""
    drawn = draw_experiment(market_of(own), int(own.rows or 0), seed, own.assignment)
    frame = pandas().DataFrame(drawn.columns())
    frame[ZONE_HOUR] = zone_hours(drawn.X)
    frame[DRIVERS] = drawn.drivers
    return frame


def planned_units(own: CollectSection, n_units: int, seed: int) -> Any:
    """Views of some cells on one day, with the idle drivers of each zone and hour."""
    market = market_of(own)
    cells = spread_cells(market, round(n_units / MEAN_VIEWS))
    traffic = market.draw_traffic(days=[PLANNED_DAY], cells=cells, seed=seed_of(seed, PLANNING))
    city = market.city
    of_visits = city.origin[traffic.visit_cells] * N_HOURS + city.hour[traffic.visit_cells]
    drivers = np.bincount(of_visits, traffic.drivers, minlength=city.settings.n_zones * N_HOURS)
    frame = view_frame(traffic.X)
    frame[DRIVERS] = drivers[frame[ZONE_HOUR]]
    return frame


def spread_cells(market: Marketplace, about: int) -> IntArray:
    """About so many cells, spread over all zones and hours.

    Hours of a pair of zones are neighbours, so steps share no factor with their number.

    >>> market = Marketplace()
    >>> cells = spread_cells(market, 500)
    >>> len(cells), len(set(market.city.hour[cells].tolist()))
    (524, 24)
    """
    wished = market.n_cells / about
    steps = [each for each in range(1, market.n_cells) if math.gcd(each, N_HOURS) == 1]
    return np.arange(0, market.n_cells, min(steps, key=lambda each: abs(each - wished)))


def zone_hours(X: FloatArray) -> IntArray:
    """Origin and hour of views as one number, by the traits of the origin.

    >>> market = Marketplace()
    >>> traffic = market.draw_traffic(days=1, cells=[1000])
    >>> set(zone_hours(traffic.X).tolist()) == {int(market.city.origin[1000]) * 24 + 16}
    True
    """
    zones = Marketplace().city.zones
    known = np.stack([getattr(zones, trait.removeprefix("origin_")) for trait in TRAITS], axis=1)
    traits = X[:, [FEATURES.index(trait) for trait in TRAITS]]
    distinct, place = np.unique(traits, axis=0, return_inverse=True)
    nearest = np.abs(distinct[:, None, :] - known[None]).sum(axis=2).argmin(axis=1)
    hours = X[:, FEATURES.index("hour")].astype(np.int64)
    both: IntArray = nearest[place.ravel()] * N_HOURS + hours
    return both


def view_frame(X: FloatArray) -> Any:
    """Views as a frame with the names of their features, and their zone and hour."""
    frame = pandas().DataFrame(X, columns=list(FEATURES))
    frame[ZONE_HOUR] = zone_hours(X)
    return frame


@dataclass(frozen=True, slots=True)
class MarketPolicy:
    """A policy as the marketplace asks it: for the views of riders, by their features."""

    policy: DosePolicy
    features: tuple[str, ...]  # that its model knows

    def decide(self, X: FloatArray) -> FloatArray:
        """Discounts of views, (n_views,) or (n_views, 2)."""
        frame = view_frame(X)
        dose = self.policy.decide(frame[list(self.features)], frame).dose
        result: FloatArray = Doses.of(dose).plain
        return result

    def paced(
        self, market: Marketplace, traffic: Traffic, budget: float
    ) -> tuple[MarketPolicy, float]:
        """The policy at the price at which it is expected to cost the budget per view.

        What a platform does in the days before a test: it watches the spend and moves the price.
        So two policies are compared at the same cost, whatever their models promise. The spend
        per view that comes of it is the second answer.
        """
        frame = view_frame(traffic.X)
        weighed = self.policy.alternatives(frame[list(self.features)], frame)
        gains = weighed.net + self.policy.budget_price * weighed.cost
        doses = self.policy.plain_doses

        def spend(price: float) -> float:
            chosen = doses[np.argmax(gains - price * weighed.cost, axis=1)]
            return float(market.expected(traffic, chosen).cost.mean())

        price = price_of_spend(spend, budget)
        own = MarketPolicy(replace(self.policy, budget_price=price), self.features)
        return own, spend(price)


def price_of_spend(spend: Callable[[float], float], budget: float) -> float:
    """The lowest price of money, up to rounding, at which no more than a budget is spent.

    >>> round(price_of_spend(lambda price: 1 / price, budget=4.0), 4)
    0.25
    """
    low, high = LEAST_PRICE, MOST_PRICE
    if spend(low) <= budget:
        return low
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if spend(middle) > budget else (low, middle)
    return high
