"""Ride requests and six discount levels at random: an experiment whose truth is known.

Three regimes differ in how the chance of an order rises with the discount: nearly along a line,
with a step at a threshold of the request's own, or fast at first and then hardly at all. They
serve to judge measures of models, such as the Qini score, against what policies are truly worth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from doseforest.base.dtypes import FloatArray
from doseforest.datasets.simulation import Simulation, observe

Generator = np.random.Generator

LEVELS = np.array([0.0, 0.05, 0.10, 0.15, 0.20, 0.25])  # share of the fare; 0 is the control
FEATURES = (
    "distance",  # km
    "fare",
    "hour",  # of the day, 0 to 24
    "weekend",
    "rain",
    "wait",  # minutes until the car comes
    "demand",  # requests per idle driver nearby
    "rides",  # of the customer in the last 30 days
    "recency",  # days since the last one
    "coupons",  # share of earlier rides with a discount
    "city",  # 1, 2, 3 by size
    "battery",  # of the phone, without a say
)
COLUMN = {name: place for place, name in enumerate(FEATURES)}
LEAST_GAIN, GAIN_SPREAD = -0.02, 0.30  # what the largest discount changes: -2 to 28 points

Shape = Callable[[FloatArray, FloatArray], FloatArray]  # of doses (n, k) and units: shares of gain


@dataclass(frozen=True, slots=True)
class RideRequests:
    """P(order | t, x) = usual(x) + gain(x) shape(t, x), with shape 0 at no discount.

    `usual` is between 10 and 70 per cent, `gain` what the discount can change at most, negative
    for the few who take a discount for a sign of a poor car.
    """

    shape: Shape

    def draw_units(self, n_units: int, rng: Generator) -> FloatArray:
        """Requests, shape (n_units, 12), in the order of `FEATURES`."""
        distance = np.clip(rng.lognormal(1.7, 0.6, n_units), 0.8, 40.0)
        demand = rng.gamma(4.0, 0.25, n_units)
        rain = rng.random(n_units) < 0.2
        columns = {
            "distance": distance,
            "fare": (2.0 + 1.1 * distance) * rng.lognormal(0.0, 0.1, n_units),
            "hour": np.where(
                rng.random(n_units) < 0.5,
                np.where(rng.random(n_units) < 0.5, 8.5, 18.0) + rng.normal(0.0, 1.0, n_units),
                rng.uniform(0.0, 24.0, n_units),
            ),
            "weekend": rng.random(n_units) < 2 / 7,
            "rain": rain,
            "wait": rng.gamma(3.0, 1.2, n_units) * (1.0 + 0.4 * rain + 0.3 * (demand > 1.5)),
            "demand": demand,
            "rides": rng.negative_binomial(1.2, 0.15, n_units),
            "recency": rng.exponential(12.0, n_units),
            "coupons": rng.beta(1.0, 2.5, n_units),
            "city": rng.integers(1, 4, n_units),
            "battery": rng.uniform(0.05, 1.0, n_units),
        }
        return np.column_stack([columns[name] for name in FEATURES]).astype(np.float64)

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """One of the six levels, each with the same chance."""
        return LEVELS[rng.integers(len(LEVELS), size=len(X))]

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact chance of an order, shape (n_units, n_doses)."""
        curves: FloatArray = usual(X)[:, None] + gain(X)[:, None] * self.shape(doses, X)
        return curves

    def noise_scale(self, mean: FloatArray, X: FloatArray) -> FloatArray:
        """Of an outcome that is 0 or 1."""
        scale: FloatArray = np.sqrt(mean * (1.0 - mean))
        return scale

    def draw_outcomes(self, mean: FloatArray, X: FloatArray, rng: Generator) -> FloatArray:
        """Order or no order."""
        return (rng.random(mean.shape) < mean).astype(np.float64)


def _column(X: FloatArray, name: str) -> FloatArray:
    return X[:, COLUMN[name]]


def commute(X: FloatArray) -> FloatArray:
    """How much a request looks like the way to work, from 0 to 1, shape (n_units,)."""
    hour = _column(X, "hour")
    peak = np.exp(-0.5 * ((hour - 8.5) / 1.2) ** 2) + np.exp(-0.5 * ((hour - 18.0) / 1.5) ** 2)
    share: FloatArray = np.minimum(peak, 1.0) * (_column(X, "weekend") == 0)
    return share


def usual(X: FloatArray) -> FloatArray:
    """Chance of an order without a discount, 10 to 70 per cent, shape (n_units,)."""
    index = (
        -0.3
        + 1.0 * commute(X)
        + 0.7 * _column(X, "rain")
        - 0.12 * (_column(X, "wait") - 4.0)
        - 0.3 * (_column(X, "demand") - 1.0)
        + 0.06 * np.minimum(_column(X, "rides"), 25.0)
        - 0.02 * _column(X, "recency")
        - 0.03 * (_column(X, "distance") - 6.0)
    )
    chance: FloatArray = 0.10 + 0.60 * expit(index)
    return chance


def gain(X: FloatArray) -> FloatArray:
    """What the largest discount changes at most, -2 to 28 points, shape (n_units,)."""
    index = (
        -0.5
        + 4.0 * (_column(X, "coupons") - 0.28)
        + 0.9 * np.tanh((_column(X, "distance") - 7.0) / 4.0)
        - 1.2 * commute(X)
        - 0.8 * _column(X, "rain")
        + 1.2 * ((_column(X, "recency") > 14.0) & (_column(X, "rides") < 6.0))
        + 0.4 * (_column(X, "city") == 3.0)
    )
    points: FloatArray = LEAST_GAIN + GAIN_SPREAD * expit(index)
    return points


def near_linear(doses: FloatArray, X: FloatArray) -> FloatArray:
    """A line with a slight bend, up or down by the size of the city."""
    share = doses / LEVELS[-1]
    bend = 0.15 * (_column(X, "city") - 2.0)[:, None]
    shape: FloatArray = share + bend * share * (1.0 - share)
    return shape


def threshold(doses: FloatArray, X: FloatArray) -> FloatArray:
    """A step at 4 to 21 per cent: later for long rides, earlier for who is used to coupons."""
    index = 0.35 * (_column(X, "distance") - 6.0) - 3.0 * (_column(X, "coupons") - 0.28)
    place = (0.04 + 0.17 * expit(index))[:, None]
    width = 0.012
    start, end = expit(-place / width), expit((LEVELS[-1] - place) / width)
    shape: FloatArray = (expit((doses - place) / width) - start) / (end - start)
    return shape


def saturating(doses: FloatArray, X: FloatArray) -> FloatArray:
    """Most of it comes with the first points, the faster the fewer rides a customer has."""
    rate = (8.0 + 40.0 * expit(0.4 * (4.0 - _column(X, "rides"))))[:, None]
    shape: FloatArray = (1.0 - np.exp(-rate * doses)) / (1.0 - np.exp(-rate * LEVELS[-1]))
    return shape


@dataclass(frozen=True, slots=True)
class DiscountDesign:
    """Ride requests under one regime of demand, with the five discounts to measure effects at.

    Parameters
    ----------
    name : str
        Name in the table of designs.
    description : str
        What the design is hard at, in a sentence.
    shape : callable
        How the chance of an order depends on the discount.

    Examples
    --------
    >>> data = DISCOUNT_DESIGNS["threshold"].draw(n=1000, seed=0)
    >>> data.X.shape, sorted(set(data.y.tolist())), data.effect().shape
    ((1000, 12), [0.0, 1.0], (1000, 5))
    """

    name: str
    description: str
    shape: Shape

    def draw(self, n: int = 20_000, seed: int = 0) -> Simulation:
        """Draw requests, discounts and orders from one stream; no coefficient is random."""
        population = RideRequests(self.shape)
        X, treatment, y = observe(population, n, np.random.default_rng(seed))
        return Simulation(
            name=self.name,
            description=self.description,
            X=X,
            treatment=treatment,
            y=y,
            doses=LEVELS[1:].copy(),
            baseline=0.0,
            population=population,
        )


DISCOUNT_DESIGNS: dict[str, DiscountDesign] = {
    design.name: design
    for design in (
        DiscountDesign("near_linear", "Orders rise nearly along a line.", near_linear),
        DiscountDesign("threshold", "A step at a discount of the request's own.", threshold),
        DiscountDesign("saturating", "The first points do most of it.", saturating),
    )
}
