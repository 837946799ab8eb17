"""Zones with their traits, and the cells between them: origin, destination, hour of the day."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.pricing.market.market_draws import ZONES, normals, uniforms
from doseforest.pricing.market.regimes import CITY, CitySettings

N_HOURS, N_WEEKDAYS = 24, 7
MORNING, EVENING, NIGHT = (8.0, 1.5), (18.0, 1.7), (22.5, 2.5)  # hour, spread
DETOUR = 1.3  # kilometres of streets for one as the crow flies
FIRST_WEEKEND_DAY = 5
AIRPORT_VIEWS = 2.0  # times the traffic of another zone


@dataclass(frozen=True, slots=True, eq=False)
class Zones:
    """Parts of the city."""

    places: FloatArray  # (n_zones, 2) kilometres
    business: FloatArray  # (n_zones,) traits in [0, 1]
    nightlife: FloatArray
    income: FloatArray
    airport: FloatArray  # 1 for one zone, 0 for the others
    supply: FloatArray  # (n_zones,) log of what an origin has more of drivers than the average


@dataclass(frozen=True, slots=True, eq=False)
class City:
    """Where riders go from and to: zones, and cells of origin, destination and hour.

    Attributes
    ----------
    settings : CitySettings
        What the city was made of.
    zones : Zones
        Places and traits of the zones.
    origin, destination : array of int of shape (n_cells,)
        Zones of each cell.
    hour : array of int of shape (n_cells,)
        Hour of each cell.
    distance : array of shape (n_cells,)
        Kilometres of streets.
    mean_views : array of shape (n_cells, 7)
        Mean price views of a day, by weekday.
    drivers_per_request : array of shape (n_cells, 7)
        Idle drivers over requests when it is dry, by weekday.

    Examples
    --------
    >>> city = make_city()
    >>> city.n_cells
    5760
    >>> city.cell_name(1000)
    'zone 2 to zone 12, 16:00'
    """

    settings: CitySettings
    zones: Zones = field(repr=False)
    origin: IntArray = field(repr=False)  # (n_cells,)
    destination: IntArray = field(repr=False)
    hour: IntArray = field(repr=False)
    distance: FloatArray = field(repr=False)  # (n_cells,)
    mean_views: FloatArray = field(repr=False)  # (n_cells, 7)
    drivers_per_request: FloatArray = field(repr=False)  # (n_cells, 7)

    @property
    def n_cells(self) -> int:
        """Number of cells: ordered pairs of zones times hours."""
        return len(self.origin)

    def cell_name(self, cell: int) -> str:
        """A cell in words.

        Parameters
        ----------
        cell : int
            Number of the cell.

        Returns
        -------
        str
            Origin, destination and hour.
        """
        start, end = self.origin[cell], self.destination[cell]
        return f"zone {start} to zone {end}, {self.hour[cell]}:00"


def bump(hour: FloatArray | IntArray, place: tuple[float, float]) -> FloatArray:
    """A hill over the hours of the day, which end where they begin.

    >>> bump(np.array([8, 9, 23]), MORNING).round(2)
    array([1. , 0.8, 0. ])
    """
    away = np.abs(np.asarray(hour, np.float64) - place[0])
    away = np.minimum(away, N_HOURS - away)
    hill: FloatArray = np.exp(-0.5 * (away / place[1]) ** 2)
    return hill


@cache
def make_city(settings: CitySettings = CITY) -> City:
    """The city of some settings; the default one is that of all regimes.

    It is made once and shared, so nothing can be written to its arrays.
    """
    zones, n_zones = _zones(settings), settings.n_zones
    pairs = np.flatnonzero(~np.eye(n_zones, dtype=bool).ravel())
    origin, destination = np.repeat(pairs // n_zones, N_HOURS), np.repeat(pairs % n_zones, N_HOURS)
    hour = np.tile(np.arange(N_HOURS), len(pairs))
    steps = zones.places[origin] - zones.places[destination]
    distance = DETOUR * np.maximum(np.linalg.norm(steps, axis=1), 0.8)
    morning, evening = bump(hour, MORNING), bump(hour, EVENING)
    workday = (np.arange(N_WEEKDAYS) < FIRST_WEEKEND_DAY).astype(np.float64)

    commute = morning * zones.business[destination] + evening * zones.business[origin]
    leisure = bump(hour, NIGHT) * (zones.nightlife[origin] + zones.nightlife[destination])
    by_day = (0.12 + bump(hour, (14.0, 5.0)))[:, None] + np.outer(2.0 * commute, workday)
    by_day = by_day + np.outer(leisure, 1.2 - 0.5 * workday)
    flights = 1.0 + (AIRPORT_VIEWS - 1.0) * (zones.airport[origin] + zones.airport[destination])
    near = 0.2 + np.exp(-distance / settings.distance_decay_km)
    views = (near * flights)[:, None] * by_day
    peak = np.outer(np.maximum(morning, evening), workday)
    more = zones.supply[origin][:, None] - settings.peak_shortage * peak
    city = City(
        settings=settings,
        zones=zones,
        origin=origin,
        destination=destination,
        hour=hour,
        distance=distance,
        mean_views=views * settings.mean_views / views.mean(),
        drivers_per_request=settings.drivers_per_request * np.exp(more),
    )
    for part in (city, zones):
        _lock(part)
    return city


def _lock(part: Any) -> None:
    for each in fields(part):
        array = getattr(part, each.name)
        if isinstance(array, np.ndarray):
            array.setflags(write=False)


def _zones(settings: CitySettings) -> Zones:
    """Places at random; business and nightlife are thicker in the centre, the airport far out."""

    def trait(item: int) -> FloatArray:
        return uniforms(settings.seed, ZONES, zones, item)

    zones = np.arange(settings.n_zones)
    relative = np.stack([trait(0), trait(1)], axis=1)
    from_centre = np.linalg.norm(relative - 0.5, axis=1)
    central = np.exp(-0.5 * (from_centre / 0.25) ** 2)
    noise = settings.zone_noise * normals(settings.seed, ZONES, zones, 5)
    return Zones(
        places=settings.side_km * relative,
        business=0.7 * central + 0.3 * trait(2),
        nightlife=0.5 * central + 0.5 * trait(3),
        income=0.2 * central + 0.8 * trait(4),
        airport=(zones == np.argmax(from_centre)).astype(np.float64),
        supply=noise - 0.5 * settings.zone_noise**2,
    )
