"""How likely a rider is to request a ride at given discounts: exact functions of the features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy.special import expit, softmax

from doseforest.base.dtypes import FloatArray
from doseforest.pricing.market.city import (
    EVENING,
    FIRST_WEEKEND_DAY,
    MORNING,
    NIGHT,
    bump,
)
from doseforest.pricing.market.regimes import (
    CONTRAST,
    KIND_SCORES,
    LAPSED_SLOPE,
    MAX_DISCOUNT,
    SATURATION_SLOPES,
    THRESHOLD_SLOPES,
    TOP,
    MobilityOption,
    Regime,
)
from doseforest.pricing.market.traffic import FEATURES

TYPICAL_FARE, TYPICAL_KM, TYPICAL_TRIPS, TYPICAL_DAYS, TYPICAL_ETA = 14.0, 8.0, 3.0, 7.0, 6.0

Signals = dict[str, FloatArray]
Curve = Callable[[FloatArray, FloatArray, float], FloatArray]  # discount, place, width


@dataclass(frozen=True, slots=True, eq=False)
class Tastes:
    """What the answers of views to discounts are made of, each of shape (n_views,) or wider."""

    base: FloatArray  # (n_views, n_options) each option by itself, at the full price
    shares: FloatArray  # (n_views, 3) of the kinds of riders
    places: FloatArray  # (n_views, 3) where the curve of each kind bends
    answer: FloatArray  # (n_views,) in [0.5, 1], how lively all answers are


def linear(discount: FloatArray, place: FloatArray, width: float) -> FloatArray:
    """The same step with each point."""
    return discount / MAX_DISCOUNT


def inelastic(discount: FloatArray, place: FloatArray, width: float) -> FloatArray:
    """By the log of the price."""
    curve: FloatArray = np.log1p(-discount) / np.log1p(-MAX_DISCOUNT)
    return curve


def saturating(discount: FloatArray, place: FloatArray, width: float) -> FloatArray:
    """Steep at first, then flat; the place is the scale."""
    curve: FloatArray = np.expm1(-discount / place) / np.expm1(-MAX_DISCOUNT / place)
    return curve


def threshold(discount: FloatArray, place: FloatArray, width: float) -> FloatArray:
    """Next to nothing below the place, next to everything above."""
    low, high = expit(-place / width), expit((MAX_DISCOUNT - place) / width)
    curve: FloatArray = (expit((discount - place) / width) - low) / (high - low)
    return curve


# From 0 at no discount to 1 at the largest one.
CURVES: dict[str, Curve] = {
    "linear": linear,
    "inelastic": inelastic,
    "saturating": saturating,
    "threshold": threshold,
}


def signals_of(X: FloatArray) -> Signals:
    """What tastes depend on, made of the features; each of shape (n_views,)."""
    column = {name: X[:, place] for place, name in enumerate(FEATURES)}
    hour, workday = column["hour"], column["weekday"] < FIRST_WEEKEND_DAY
    to_work = bump(hour, MORNING) * column["destination_business"]
    to_home = bump(hour, EVENING) * column["origin_business"]
    going_out = np.maximum(column["origin_nightlife"], column["destination_nightlife"])
    return {
        "constant": np.ones(len(X)),
        "commute": workday * (to_work + to_home),
        "leisure": bump(hour, NIGHT) * going_out,
        "weekend": 1.0 - workday,
        "airport": column["destination_airport"],
        "income": column["origin_income"] - 0.5,
        "rain": np.log1p(column["rain_mm"]),
        "fare": np.log(column["fare"] / TYPICAL_FARE),
        "distance": np.log(column["distance_km"] / TYPICAL_KM),
        "loyalty": np.log1p(column["rider_trips"]) - np.log1p(TYPICAL_TRIPS),
        "lapsed": np.log1p(column["days_since_trip"]) - np.log1p(TYPICAL_DAYS),
        "eta": column["eta_minutes"] - TYPICAL_ETA,
    }


def score(weights: Mapping[str, float], signals: Signals) -> FloatArray:
    """Weighted sum of signals."""
    return reduce(np.add, [weight * signals[name] for name, weight in weights.items()])


def base_score(option: MobilityOption, signals: Signals) -> FloatArray:
    """Log odds (within what is possible) of a request at the full price."""
    weights = {
        "constant": option.level,
        "commute": option.commute,
        "airport": option.airport,
        "income": option.income,
        "rain": option.rain,
        "loyalty": option.loyalty,
        "fare": option.fare,
        "eta": option.eta,
    }
    return score(weights, signals)


def tastes_of(X: FloatArray, regime: Regime, options: tuple[MobilityOption, ...]) -> Tastes:
    """Everything about views that does not depend on the discount."""
    signals = signals_of(X)
    scores = np.stack([score(KIND_SCORES[kind.name], signals) for kind in regime.riders], axis=1)
    low, high = regime.thresholds
    wakes = low + (high - low) * expit(score(THRESHOLD_SLOPES, signals))
    first, last = regime.saturation
    enough = first + (last - first) * expit(score(SATURATION_SLOPES, signals))
    by_curve = {"threshold": wakes, "saturating": enough}
    places = [by_curve.get(kind.curve, signals["constant"]) for kind in regime.riders]
    base = [TOP * expit(base_score(option, signals)) for option in options]
    return Tastes(
        base=np.stack(base, axis=1),
        shares=softmax(CONTRAST * scores, axis=1),
        places=np.stack(places, axis=1),
        answer=0.5 + 0.5 * expit(LAPSED_SLOPE * signals["lapsed"]),
    )


def request_probabilities(doses: FloatArray, tastes: Tastes, regime: Regime) -> FloatArray:
    """Probability that a rider requests each option, shape (n_views, n_doses, n_options).

    Each option by itself is requested with p = base + (TOP - base) * answer * sum of the kinds'
    share * lift * curve(discount). Side by side, options are chosen by their odds p / (1 - p), as
    in a logit model: an option that gets cheaper takes riders from the other one.

    Parameters
    ----------
    doses : array of shape (n_views, n_doses, n_options)
    """
    alone = np.empty(doses.shape)
    for option in range(doses.shape[-1]):
        won = np.zeros(doses.shape[:-1])
        for place, kind in enumerate(regime.riders):
            bend, width = tastes.places[:, place, None], regime.threshold_width
            shape = CURVES[kind.curve](doses[..., option], bend, width)
            won += (kind.lift * tastes.shares[:, place])[:, None] * shape
        base = tastes.base[:, option, None]
        alone[..., option] = base + (TOP - base) * tastes.answer[:, None] * won
    if doses.shape[-1] == 1:
        return alone
    odds = alone / (1.0 - alone)
    chosen: FloatArray = odds / (1.0 + odds.sum(axis=-1, keepdims=True))
    return chosen
