"""The plan of somebody who knows all curves and all drivers: what models are measured against."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.pricing.market.marketplace import Marketplace
from doseforest.pricing.market.matching import service_probabilities
from doseforest.pricing.market.regimes import LEVELS, MAX_DISCOUNT
from doseforest.pricing.market.traffic import Traffic

ROUNDS = 4  # of plan and crowding, at one price of money
HALVINGS = 30  # of the price
DAMPING = 0.5  # share of the last round's crowding that stays


@dataclass(slots=True)
class _Crowding:
    """What other riders of the visit leave, by the plan of the round before."""

    worth: FloatArray  # (n_views,) orders that one more request brings, less those it takes
    served: FloatArray  # (n_views,) probability that a request finds a driver


def oracle_plan(
    market: Marketplace, traffic: Traffic, budget: Any, doses: Any = None
) -> FloatArray:
    """Discounts with the most expected orders whose expected cost is within a budget.

    One more request of a rider is worth the product of 1 - p_j / D over the other riders of the
    visit: less where drivers are scarce. At a price of money, every view gets the discount of
    largest worth * p(d) - price * expected cost, in turns with the crowding that follows from it;
    the price is the lowest that the budget allows. No view's discount can then be changed to
    advantage at this price. That is the best plan but for the last views of the budget, and for
    joint changes in a visit.

    Parameters
    ----------
    market : Marketplace
        The marketplace.
    traffic : Traffic
        Views that get discounts.
    budget : float
        Total expected cost of all discounts.
    doses : array of shape (n_doses,) or (n_doses, 2), optional
        To choose from, with no discount among them. By default d0 ... d5 of each option.

    Returns
    -------
    array of shape (n_views, n_options)
        The discounts.

    Examples
    --------
    >>> market = Marketplace("nonlinear")
    >>> traffic = market.draw_traffic(days=1, cells=range(0, 5760, 60))
    >>> flat = market.expected(traffic, 0.12)
    >>> best = market.expected(traffic, oracle_plan(market, traffic, flat.cost.sum()))
    >>> bool(best.cost.sum() <= flat.cost.sum()), bool(best.orders.sum() > flat.orders.sum())
    (True, True)
    """
    if not isinstance(budget, Real) or isinstance(budget, bool) or not float(budget) >= 0:
        raise ValueError(
            f"The 'budget' parameter must be a number of at least 0. Got {budget!r} instead."
        )
    table = _choices(market, doses)
    chosen = market.option_probabilities(
        traffic.X, np.broadcast_to(table, (len(traffic), *table.shape))
    )
    requests = chosen.sum(axis=2)
    money = np.einsum("vdk,vk,dk->vd", chosen, market.fares(traffic.X), table)
    none = int(np.flatnonzero((table == 0).all(axis=1))[0])
    rows, result = np.arange(len(traffic)), np.full(len(traffic), none)
    low, high = 0.0, _highest_price(requests, money, none)
    crowding = _crowding(requests[:, none], traffic)
    for _ in range(HALVINGS):
        price = (low + high) / 2
        for _ in range(ROUNDS):
            value = crowding.worth[:, None] * requests - price * crowding.served[:, None] * money
            place = value.argmax(axis=1)
            after = _crowding(requests[rows, place], traffic)
            spent = float((after.served * money[rows, place]).sum())
            crowding.worth = DAMPING * crowding.worth + (1 - DAMPING) * after.worth
            crowding.served = DAMPING * crowding.served + (1 - DAMPING) * after.served
        if spent <= float(budget):
            high, result = price, place
        else:
            low = price
    plan: FloatArray = table[result]
    return plan


def _choices(market: Marketplace, doses: Any) -> FloatArray:
    """Doses to choose from, (n_doses, n_options)."""
    if doses is None:
        axes = np.meshgrid(*[np.array(LEVELS)] * market.n_options, indexing="ij")
        return np.stack(axes, axis=-1).reshape(-1, market.n_options)
    given: FloatArray = np.asarray(doses, np.float64)
    table = given[:, None] if given.ndim == 1 and market.n_options == 1 else given
    valid = table.ndim == 2 and table.shape[1] == market.n_options
    valid = valid and bool((table == 0).all(axis=1).any())
    if not valid or not ((table >= 0) & (table <= MAX_DISCOUNT)).all():
        raise ValueError(
            f"The 'doses' parameter must have shape (n_doses, {market.n_options}), with discounts "
            f"up to {MAX_DISCOUNT:g} and no discount among them. Got {doses!r} instead."
        )
    return table


def _crowding(requests: FloatArray, traffic: Traffic) -> _Crowding:
    """Worth and service of each view under request probabilities (n_views,)."""
    served = service_probabilities(requests, traffic)
    drivers = traffic.drivers[traffic.visit]
    left = 1.0 - requests / np.maximum(drivers, 1)
    last = np.append(np.flatnonzero(np.diff(traffic.visit)), len(traffic) - 1)
    free = np.zeros(traffic.n_visits)
    free[traffic.visit[last]] = (served * left)[last]  # the product over all riders of a visit
    worth = np.where(drivers > 0, free[traffic.visit] / np.maximum(left, 1e-12), 0.0)
    return _Crowding(worth, served)


def _highest_price(requests: FloatArray, money: FloatArray, none: int) -> float:
    """A price of money where nobody gets a discount: requests are worth less than their service."""
    gain = (requests - requests[:, [none]])[money > 0]
    return 1.01 * float((gain / money[money > 0]).max(initial=0.0))
