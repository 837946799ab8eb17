"""What becomes of views under a plan: expected exactly, and drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.pricing.market import market_draws
from doseforest.pricing.market.matching import draw_matches, service_probabilities
from doseforest.pricing.market.traffic import FEATURES, Traffic

METRICS = ("requests", "orders", "revenue", "cost")


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedOutcomes:
    """Expectations of each view, given everybody's discounts and the drivers of the visits.

    Attributes
    ----------
    requests : array of shape (n_views,)
        Probability of a request.
    orders : array of shape (n_views,)
        Probability of a finished order.
    revenue : array of shape (n_views,)
        What riders pay.
    cost : array of shape (n_views,)
        What discounts take from the fares.

    Examples
    --------
    >>> from doseforest.pricing.market import Marketplace
    >>> market = Marketplace()
    >>> expected = market.expected(market.draw_traffic(days=1, cells=[0, 1]), 0.1)
    >>> bool((expected.orders <= expected.requests).all())
    True
    """

    requests: FloatArray = field(repr=False)  # (n_views,)
    orders: FloatArray = field(repr=False)  # (n_views,)
    revenue: FloatArray = field(repr=False)  # (n_views,)
    cost: FloatArray = field(repr=False)  # (n_views,)


@dataclass(frozen=True, slots=True, eq=False)
class DrawnOutcomes:
    """What happened to each view.

    Attributes
    ----------
    option : array of int of shape (n_views,)
        Option that was requested; -1 for none.
    orders : array of shape (n_views,)
        1 where the ride took place.
    wait_minutes : array of shape (n_views,)
        Waiting time of finished orders, else NaN.
    revenue : array of shape (n_views,)
        What riders paid.
    cost : array of shape (n_views,)
        What discounts took from the fares.

    Examples
    --------
    >>> from doseforest.pricing.market import Marketplace
    >>> market = Marketplace()
    >>> traffic = market.draw_traffic(days=1, cells=[0, 1])
    >>> market.draw_results(traffic, 0.1).orders.shape == (len(traffic),)
    True
    """

    option: IntArray = field(repr=False)  # (n_views,)
    orders: FloatArray = field(repr=False)  # (n_views,)
    wait_minutes: FloatArray = field(repr=False)  # (n_views,)
    revenue: FloatArray = field(repr=False)  # (n_views,)
    cost: FloatArray = field(repr=False)  # (n_views,)

    @property
    def requests(self) -> FloatArray:
        """1 where the rider requested a ride."""
        return (self.option >= 0).astype(np.float64)


def expected_outcomes(
    chosen: FloatArray, fares: FloatArray, doses: FloatArray, traffic: Traffic
) -> ExpectedOutcomes:
    """Expectations from request probabilities, fares and discounts, all (n_views, n_options)."""
    requests = _row_sums(chosen)
    served = service_probabilities(requests, traffic)
    return ExpectedOutcomes(
        requests=requests,
        orders=requests * served,
        revenue=_row_sums(chosen * fares * (1.0 - doses)) * served,
        cost=_row_sums(chosen * fares * doses) * served,
    )


def draw_outcomes(
    chosen: FloatArray, fares: FloatArray, doses: FloatArray, traffic: Traffic, seed: int
) -> DrawnOutcomes:
    """Requests, matches and money; the same riders draw the same luck under any discounts."""
    keys = traffic.visit_keys[traffic.visit]
    luck = market_draws.uniforms(seed, market_draws.REQUESTS, keys, traffic.rank)
    below = np.cumsum(chosen, axis=1)
    option = (luck[:, None] >= below).sum(axis=1)
    option = np.where(option < chosen.shape[1], option, -1)
    contacts = market_draws.uniforms(seed, market_draws.CONTACTS, keys, traffic.rank)
    finished, taken = draw_matches(option >= 0, traffic, contacts)
    wait = waiting_minutes(finished, taken, traffic)
    rows, ridden = np.arange(len(traffic)), np.maximum(option, 0)
    fare, discount = fares[rows, ridden] * finished, doses[rows, ridden]
    return DrawnOutcomes(
        option=option,
        orders=finished.astype(np.float64),
        wait_minutes=wait,
        revenue=fare * (1.0 - discount),
        cost=fare * discount,
    )


def waiting_minutes(finished: NDArray[np.bool_], taken: IntArray, traffic: Traffic) -> FloatArray:
    """Minutes until the driver is there: as announced, longer the fewer drivers are still free."""
    drivers = traffic.drivers[traffic.visit]
    eta = traffic.X[:, FEATURES.index("eta_minutes")]
    free = np.maximum(drivers - taken, 1)
    return np.where(finished, eta * np.sqrt(np.maximum(drivers, 1) / free), np.nan)


def _row_sums(table: FloatArray) -> FloatArray:
    """Sums of the few columns one by one: their bits do not depend on how many rows there are."""
    return reduce(np.add, table.T)
