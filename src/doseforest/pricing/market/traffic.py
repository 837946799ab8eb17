"""Price views: riders who see a price, one row each, in the order in which they come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.pricing.market import market_draws
from doseforest.pricing.market.city import N_HOURS, N_WEEKDAYS, City

FEATURES = (
    "distance_km",
    "hour",
    "weekday",  # 0 is Monday
    "rain_mm",
    "fare",  # of the first option, without discount
    "recent_views",  # of the cell, in the hour before
    "idle_drivers",  # of the cell, in the hour before
    "eta_minutes",  # as the rider sees it
    "origin_business",
    "origin_nightlife",
    "origin_income",
    "destination_business",
    "destination_nightlife",
    "destination_airport",
    "rider_trips",  # of the last month
    "days_since_trip",
)
WHOLE = ("hour", "weekday", "recent_views", "idle_drivers", "rider_trips", "days_since_trip")
RAINY_VIEWS = 1.25  # more views in an hour of rain


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Views of some cells on some days.

    A visit is one cell on one day, an hour long. Its views share its drivers, first come first
    served; visits have nothing in common but the weather.

    Attributes
    ----------
    X : array of shape (n_views, n_features)
        Features.
    visit : array of int of shape (n_views,)
        Visit of each view, ascending.
    rank : array of int of shape (n_views,)
        Place in the visit's order of coming.
    visit_cells, visit_days : array of int of shape (n_visits,)
        Cell and day of each visit.
    visit_keys : array of int of shape (n_visits,)
        Number of the day and cell, for draws.
    drivers : array of int of shape (n_visits,)
        Idle drivers at the start.

    Examples
    --------
    >>> from doseforest.pricing.market import Marketplace
    >>> traffic = Marketplace().draw_traffic(days=2, cells=[0, 1, 2])
    >>> traffic.n_visits
    6
    """

    X: FloatArray = field(repr=False)  # (n_views, n_features)
    visit: IntArray = field(repr=False)  # (n_views,)
    rank: IntArray = field(repr=False)  # (n_views,)
    visit_cells: IntArray = field(repr=False)  # (n_visits,)
    visit_days: IntArray = field(repr=False)  # (n_visits,)
    visit_keys: IntArray = field(repr=False)  # (n_visits,)
    drivers: IntArray = field(repr=False)  # (n_visits,)

    def __len__(self) -> int:
        return len(self.visit)

    @property
    def n_visits(self) -> int:
        """Number of cells and days."""
        return len(self.drivers)

    @property
    def cells(self) -> IntArray:
        """Cell of each view."""
        return self.visit_cells[self.visit]

    @property
    def days(self) -> IntArray:
        """Day of each view."""
        return self.visit_days[self.visit]

    def by_visit(self, values: Any) -> FloatArray:
        """Sums over the views of each visit.

        Parameters
        ----------
        values : array of shape (n_views,)
            A number for each view.

        Returns
        -------
        array of shape (n_visits,)
            The sums.
        """
        sums = np.bincount(self.visit, np.asarray(values, np.float64), self.n_visits)
        return sums.astype(np.float64)


def draw_traffic(city: City, cells: IntArray, days: IntArray, seed: int) -> Traffic:
    """Views of cells on days, given in pairs."""
    weekday, hour = days % N_WEEKDAYS, city.hour[cells]
    keys = days * city.n_cells + cells
    settings = city.settings
    rain = _rain(seed, days * N_HOURS + hour, settings.rain_chance)
    noise = settings.day_noise * market_draws.normals(seed, market_draws.DAYS, keys)
    demand = city.mean_views[cells, weekday] * np.exp(noise - 0.5 * settings.day_noise**2)
    demand = demand * np.where(rain > 0, RAINY_VIEWS, 1.0)
    planned = settings.request_share * city.mean_views[cells, weekday]
    supply = planned * city.drivers_per_request[cells, weekday]
    supply = supply * np.where(rain > 0, np.exp(-settings.rain_shortage), 1.0)
    n_views, recent_views, drivers, idle = (
        market_draws.poisson_quantiles(market_draws.uniforms(seed, purpose, keys), means)
        for purpose, means in (
            (market_draws.VIEWS, demand),
            (market_draws.RECENT_VIEWS, demand),
            (market_draws.DRIVERS, supply),
            (market_draws.IDLE_DRIVERS, supply),
        )
    )
    eta = 2.0 + 16.0 / np.sqrt(drivers + 1.0)
    eta = eta * np.exp(0.08 * market_draws.normals(seed, market_draws.ETA, keys))
    start, end = city.origin[cells], city.destination[cells]
    of_visits = {
        "hour": hour,
        "weekday": weekday,
        "rain_mm": rain,
        "recent_views": recent_views,
        "idle_drivers": idle,
        "eta_minutes": eta.round(1),
        "origin_business": city.zones.business[start],
        "origin_nightlife": city.zones.nightlife[start],
        "origin_income": city.zones.income[start],
        "destination_business": city.zones.business[end],
        "destination_nightlife": city.zones.nightlife[end],
        "destination_airport": city.zones.airport[end],
    }
    visit = np.repeat(np.arange(len(cells)), n_views)
    rank = np.arange(len(visit)) - np.repeat(np.cumsum(n_views) - n_views, n_views)
    of_views = _riders(city, cells[visit], keys[visit], rank, seed)
    X: FloatArray = np.empty((len(FEATURES), len(visit))).T  # columns are read one by one
    for place, name in enumerate(FEATURES):
        own = of_views[name] if name in of_views else np.asarray(of_visits[name])[visit]
        X[:, place] = own.astype(np.float32)  # what files hold is what outcomes depend on
    return Traffic(X, visit, rank, cells, days, keys, drivers)


def _riders(
    city: City, cells: IntArray, keys: IntArray, rank: IntArray, seed: int
) -> dict[str, FloatArray]:
    """Columns that differ between the views of a visit."""
    settings = city.settings
    distance = city.distance[cells] * np.exp(
        0.12 * market_draws.normals(seed, market_draws.ROUTE, keys, rank)
    )
    distance = distance.round(1)
    fare = settings.base_fare + settings.fare_per_km * distance
    fare = fare * np.exp(
        settings.fare_noise * market_draws.normals(seed, market_draws.FARE, keys, rank)
    )
    trips = np.floor(np.exp(1.3 + 0.9 * market_draws.normals(seed, market_draws.TRIPS, keys, rank)))
    waiting = -np.log(market_draws.uniforms(seed, market_draws.ABSENCE, keys, rank))
    return {
        "distance_km": distance,
        "fare": fare.round(2),
        "rider_trips": trips,
        "days_since_trip": np.floor(30.0 * waiting / (1.0 + 0.5 * trips)),
    }


def _rain(seed: int, hours: IntArray, chance: float) -> FloatArray:
    """Millimetres in an hour: none mostly, else exponential around 2."""
    wet = market_draws.uniforms(seed, market_draws.RAIN, hours, 0) < chance
    amount = -2.0 * np.log(market_draws.uniforms(seed, market_draws.RAIN, hours, 1))
    return np.where(wet, np.maximum(amount.round(1), 0.1), 0.0)
