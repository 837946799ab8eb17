"""Riders and drivers of a visit.

A request reaches one of the visit's idle drivers at random; it becomes an order unless an earlier
rider has taken that driver. So orders never exceed requests or drivers, and for requests with
probabilities p_1, p_2, ... in order of coming and D drivers the expectation is exact:

    P(rider i gets a driver | requests) = product over j < i of (1 - p_j / D),
    E[orders] = D * (1 - product over all j of (1 - p_j / D)).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.pricing.market.traffic import Traffic


def expected_orders(n_requests: FloatArray, drivers: FloatArray) -> FloatArray:
    """Expected orders where the number of requests is fixed: D * (1 - (1 - 1/D)^R).

    Parameters
    ----------
    n_requests : array
        Numbers of requests R.
    drivers : array of that shape
        Numbers of idle drivers D.

    Returns
    -------
    array of that shape
        Expected orders.

    Examples
    --------
    >>> expected_orders(np.array([1.0, 2.0, 1000.0]), np.array([2.0, 2.0, 2.0]))
    array([1. , 1.5, 2. ])
    """
    some = np.maximum(drivers, 1.0)
    orders: FloatArray = np.where(drivers > 0, some * (1.0 - (1.0 - 1.0 / some) ** n_requests), 0.0)
    return orders


def service_probabilities(requests: FloatArray, traffic: Traffic) -> FloatArray:
    """Exact probability that each rider's request finds a driver, shape (n_views,).

    Parameters
    ----------
    requests : array of shape (n_views,)
        Probability that each rider of the traffic requests.
    """
    width = int(traffic.rank.max(initial=-1)) + 2
    drivers = traffic.drivers[traffic.visit]
    # One row a visit, so that the bits of a visit do not depend on those before it.
    left: FloatArray = np.ones((traffic.n_visits, width))
    left[traffic.visit, traffic.rank + 1] = 1.0 - requests / np.maximum(drivers, 1)
    free = np.cumprod(left, axis=1)[traffic.visit, traffic.rank]
    result: FloatArray = np.where(drivers > 0, free, 0.0)
    return result


def draw_matches(
    requested: NDArray[np.bool_], traffic: Traffic, contacts: FloatArray
) -> tuple[NDArray[np.bool_], IntArray]:
    """Which requests become orders, and how many drivers of the visit were taken before.

    Parameters
    ----------
    requested : bool array of shape (n_views,)
    contacts : array of shape (n_views,)
        Uniform numbers that decide on the driver whom a request reaches.
    """
    drivers = traffic.drivers[traffic.visit]
    asked = np.flatnonzero(requested & (drivers > 0))
    reached = np.minimum((contacts[asked] * drivers[asked]).astype(np.int64), drivers[asked] - 1)
    start = np.concatenate([[0], np.cumsum(traffic.drivers)])[traffic.visit[asked]]
    _, first = np.unique(start + reached, return_index=True)  # of each driver's requests
    finished = np.zeros(len(traffic), bool)
    finished[asked[first]] = True
    before = np.cumsum(finished) - finished
    opening = np.flatnonzero(traffic.rank == 0)
    n_views = np.diff(np.append(opening, len(traffic)))
    return finished, before - np.repeat(before[opening], n_views)
