"""Plain policies that cost what another one costs."""

from __future__ import annotations

from numbers import Real
from typing import Any

from scipy.optimize import brentq

from doseforest.pricing.market.marketplace import Marketplace
from doseforest.pricing.market.regimes import MAX_DISCOUNT
from doseforest.pricing.market.traffic import Traffic

PRECISION = 1e-6  # of the discount


def flat_discount(market: Marketplace, traffic: Traffic, cost: Any) -> float:
    """The discount for everybody that is expected to cost so much in all.

    Parameters
    ----------
    market : Marketplace
        The marketplace.
    traffic : Traffic
        Views that get the discount.
    cost : float
        For instance what another policy costs: ``market.expected(traffic, policy).cost.sum()``.

    Returns
    -------
    float
        The discount.

    Examples
    --------
    >>> market = Marketplace("mixed")
    >>> traffic = market.draw_traffic(days=1, cells=range(0, 5760, 60))
    >>> round(flat_discount(market, traffic, market.expected(traffic, 0.12).cost.sum()), 4)
    0.12
    """
    most = float(market.expected(traffic, MAX_DISCOUNT).cost.sum())
    if not isinstance(cost, Real) or isinstance(cost, bool) or not 0 <= float(cost) <= most:
        raise ValueError(
            f"The 'cost' parameter must be a number from 0 to {most:.6g}, what the largest "
            f"discount costs. Got {cost!r} instead."
        )

    def excess(discount: float) -> float:
        return float(market.expected(traffic, discount).cost.sum()) - float(cost)

    if excess(MAX_DISCOUNT) <= 0:
        return MAX_DISCOUNT
    return float(brentq(excess, 0.0, MAX_DISCOUNT, xtol=PRECISION))
