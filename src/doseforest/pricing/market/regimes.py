"""Everything that is chosen about the marketplace, in one table.

These numbers were settled before any model was run on the marketplace and are not tuned since:
results of models are comparable over time only as long as they stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_DISCOUNT = 0.30  # of the fare
LEVELS = (0.0, 0.06, 0.12, 0.18, 0.24, 0.30)  # d0 ... d5 of experiments with few discounts
TOP = 0.92  # no price makes more riders request than this share
BASELINE = 0.0  # discount that effects are measured against


@dataclass(frozen=True, slots=True)
class CitySettings:
    """The city, its traffic and its drivers; the same in all regimes."""

    seed: int = 20  # of the zones' places and traits
    n_zones: int = 16  # cells are ordered pairs of different zones times 24 hours
    side_km: float = 18.0
    mean_views: float = 20.0  # price views of an average cell in its hour of one day
    distance_decay_km: float = 7.0  # of trips between zones
    day_noise: float = 0.20  # standard deviation of the log of demand from day to day
    rain_chance: float = 0.22  # of an hour
    drivers_per_request: float = 3.6  # idle drivers over requests at full prices, on average
    request_share: float = 0.40  # of views, as the platform plans its drivers
    peak_shortage: float = 0.60  # log of what peak hours take from the drivers per request
    rain_shortage: float = 0.30  # log of what an hour of rain takes
    zone_noise: float = 0.35  # standard deviation of the log of drivers per request over origins
    base_fare: float = 3.0
    fare_per_km: float = 1.5
    fare_noise: float = 0.10  # standard deviation of the log: routes and traffic
    season_days: int = 365  # days that traffic can be drawn of


@dataclass(frozen=True, slots=True)
class MobilityOption:
    """A way to ride, and what makes riders want it at the full price (log odds of a request)."""

    name: str
    fare_share: float  # its fare over that of the first option
    level: float
    commute: float  # trips to work in the morning, home in the evening
    airport: float
    income: float  # of the origin, centred at 0.5
    rain: float  # by log(1 + mm)
    loyalty: float  # by log(1 + trips of the last month), centred
    fare: float  # by the log of the fare over 14
    eta: float  # by minutes above 6


@dataclass(frozen=True, slots=True)
class RiderKind:
    """Riders who answer discounts along one kind of curve."""

    name: str
    curve: str  # of CURVES in demand.py
    lift: float  # share of those who would not request that the largest discount wins


@dataclass(frozen=True, slots=True)
class Regime:
    """How riders answer discounts; who they are is the same in all regimes.

    Attributes
    ----------
    name : str
        Name of the regime.
    description : str
        What riders do, in a sentence.
    commuters, savers, leisure : RiderKind
        Kinds of riders, with the curves by which they answer.
    thresholds : tuple of float
        Lowest and highest discount at which a rider wakes up.
    threshold_width : float
        Scale of the logistic step there.
    saturation : tuple of float
        Lowest and highest scale of the discount at which a rider has had enough.

    Examples
    --------
    >>> [kind.curve for kind in REGIMES["mixed"].riders]
    ['inelastic', 'threshold', 'saturating']
    """

    name: str
    description: str
    commuters: RiderKind
    savers: RiderKind
    leisure: RiderKind
    thresholds: tuple[float, float]
    threshold_width: float
    saturation: tuple[float, float]

    @property
    def riders(self) -> tuple[RiderKind, RiderKind, RiderKind]:
        """The kinds of riders, in the order of their shares."""
        return self.commuters, self.savers, self.leisure


@dataclass(frozen=True, slots=True)
class History:
    """Discounts as they were given before the experiment: more where demand was weak."""

    slack: float = 1.6  # log odds by the log of idle drivers over expected requests
    appetite: float = 1.0  # log odds taken by each unit of log odds of a request at full price
    level: float = -1.8
    noise: float = 0.9  # standard deviation of the log odds of a continuous discount
    sharpness: float = 5.0  # of levels: how much they differ in probability


CITY = CitySettings()
HISTORY = History()

OPTIONS = (
    MobilityOption("express", 1.0, -0.75, 1.2, 0.8, 0.5, 0.40, 0.45, -0.45, -0.05),
    MobilityOption("shared", 0.7, -1.60, -0.3, -0.6, -1.2, 0.10, 0.30, 0.25, -0.07),
)

# Scores of the kinds of riders by what a view is like; their shares are a softmax of
# CONTRAST times the scores.
CONTRAST = 2.2
KIND_SCORES = {
    "commuters": {"constant": -0.9, "commute": 2.6, "airport": 1.2, "income": 1.1},
    "savers": {"constant": 0.2, "income": -1.8, "fare": 0.6},
    "leisure": {"constant": -0.6, "leisure": 2.2, "weekend": 0.5, "loyalty": -0.3},
}
THRESHOLD_SLOPES = {"income": 2.4, "fare": -1.2, "loyalty": 0.4}
SATURATION_SLOPES = {"distance": 1.5, "income": -1.0}
LAPSED_SLOPE = 1.5  # riders who have been away answer more: by log(1 + days), centred

REGIMES: dict[str, Regime] = {
    regime.name: regime
    for regime in (
        Regime(
            "linear",
            "requests rise by the same step with each point of discount, more for some riders",
            commuters=RiderKind("commuters", "linear", 0.08),
            savers=RiderKind("savers", "linear", 0.75),
            leisure=RiderKind("leisure", "linear", 0.45),
            thresholds=(0.07, 0.23),
            threshold_width=0.02,
            saturation=(0.03, 0.12),
        ),
        Regime(
            "mixed",
            "commuters hardly answer, savers wake up over a range, leisure riders level off slowly",
            commuters=RiderKind("commuters", "inelastic", 0.08),
            savers=RiderKind("savers", "threshold", 0.75),
            leisure=RiderKind("leisure", "saturating", 0.45),
            thresholds=(0.07, 0.23),
            threshold_width=0.025,
            saturation=(0.06, 0.20),
        ),
        Regime(
            "nonlinear",
            "commuters do not answer, savers jump at their threshold, leisure riders need little",
            commuters=RiderKind("commuters", "inelastic", 0.04),
            savers=RiderKind("savers", "threshold", 0.80),
            leisure=RiderKind("leisure", "saturating", 0.55),
            thresholds=(0.05, 0.26),
            threshold_width=0.006,
            saturation=(0.015, 0.06),
        ),
    )
}
