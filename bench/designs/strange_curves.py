"""Five populations whose curves no term of the outcome model was made for.

Every unit has its half-effect dose, its break point, its best dose or its rhythm, as a function of
its covariates that is no sum of single terms. Doses and covariates are confounded in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

from doseforest.base.dtypes import FloatArray

Generator = np.random.Generator


@dataclass(frozen=True, slots=True)
class NoisyWorld:
    """Covariates N(0, I), and normal noise of one size."""

    n_features: int
    noise: float = 1.0

    def draw_units(self, n_units: int, rng: Generator) -> FloatArray:
        """X ~ N(0, I)."""
        return rng.standard_normal((n_units, self.n_features))

    def noise_scale(self, mean: FloatArray, X: FloatArray) -> FloatArray:
        """The same everywhere."""
        return np.full(mean.shape, self.noise)

    def draw_outcomes(self, mean: FloatArray, X: FloatArray, rng: Generator) -> FloatArray:
        """Outcomes around their means."""
        return mean + self.noise_scale(mean, X) * rng.standard_normal(mean.shape)


@dataclass(frozen=True, slots=True)
class HalfEffectDoses(NoisyWorld):
    """Saturating responses whose half-effect dose is the unit's.

    T = exp(.4 x1 + N(0, .7^2)), h = exp(.5 tanh(x1) + .5 sin(x2 + x3)), E = 6 + 2 tanh(x4),
    mu = E t^3 / (t^3 + h^3) + x1 + cos(x2).
    """

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Lognormal, higher where x1 is."""
        doses: FloatArray = np.exp(0.4 * X[:, 0] + rng.normal(0.0, 0.7, len(X)))
        return doses

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        half = np.exp(0.5 * np.tanh(X[:, 0]) + 0.5 * np.sin(X[:, 1] + X[:, 2]))[:, None]
        most = (6.0 + 2.0 * np.tanh(X[:, 3]))[:, None]
        ratio = (np.maximum(doses, 0.0) / half) ** 3
        curves: FloatArray = most * ratio / (1.0 + ratio) + (X[:, 0] + np.cos(X[:, 1]))[:, None]
        return curves


@dataclass(frozen=True, slots=True)
class BreakPoints(NoisyWorld):
    """Nothing happens up to the unit's break point, then the outcome falls at the unit's slope.

    T = 10 expit(.6 x1 + .6 x2 + N(0, 1)), b = 2 + 5 expit(2 x1 x3), s = 1 + [x4 > .3],
    mu = -s max(t - b, 0) + 2 |x1| + x5.
    """

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Between 0 and 10, by two covariates."""
        drift = 0.6 * X[:, 0] + 0.6 * X[:, 1] + rng.standard_normal(len(X))
        doses: FloatArray = 10.0 * expit(drift)
        return doses

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        start = (2.0 + 5.0 * expit(2.0 * X[:, 0] * X[:, 2]))[:, None]
        slope = (1.0 + (X[:, 3] > 0.3))[:, None]
        level = (2.0 * np.abs(X[:, 0]) + X[:, 4])[:, None]
        curves: FloatArray = -slope * np.maximum(doses - start, 0.0) + level
        return curves


@dataclass(frozen=True, slots=True)
class BentAroundTheBest(NoisyWorld):
    """A best dose for every unit, and a loss on both sides of it that is steeper below.

    T ~ N(4 + x1, 1.6^2) clipped to [0, 8], o = 4 + 2 sin(x2) + [x3 x4 > 0],
    mu = 3 - log(1 + (t - o)^2 (1 + [t < o])) + x1 x2.
    """

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Around 4, by x1."""
        return np.clip(rng.normal(4.0 + X[:, 0], 1.6), 0.0, 8.0)

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        best = (4.0 + 2.0 * np.sin(X[:, 1]) + (X[:, 2] * X[:, 3] > 0))[:, None]
        away = (doses - best) ** 2 * (1.0 + (doses < best))
        curves: FloatArray = 3.0 - np.log1p(away) + (X[:, 0] * X[:, 1])[:, None]
        return curves


@dataclass(frozen=True, slots=True)
class Rhythms(NoisyWorld):
    """A wave over the dose whose length and start are the unit's.

    T ~ U(0, 2 pi) where x5 > 0, else pi (1 + tanh(x1 + N(0, .5^2))); f = 1 + .5 expit(2 x2),
    mu = 2 sin(f t + x3) + .5 x1^2.
    """

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """At random for half of the units."""
        drawn = np.pi * (1.0 + np.tanh(X[:, 0] + rng.normal(0.0, 0.5, len(X))))
        return np.where(X[:, 4] > 0, rng.uniform(0.0, 2.0 * np.pi, len(X)), drawn)

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        length = (1.0 + 0.5 * expit(2.0 * X[:, 1]))[:, None]
        curves: FloatArray = 2.0 * np.sin(length * doses + X[:, 2:3]) + 0.5 * X[:, :1] ** 2
        return curves


@dataclass(frozen=True, slots=True)
class Purchases(NoisyWorld):
    """Bought or not, at a price: nobody buys above what the ride is worth to them.

    T = exp(.3 x1 + N(0, .5^2)), the worth is log-normal around exp(.1 + .4 x1 + .3 x2 x3) with
    deviation .35, and Y = [worth > T]: mu = Phi((.1 + .4 x1 + .3 x2 x3 - log t) / .35).
    """

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Dearer where more would be paid."""
        doses: FloatArray = np.exp(0.3 * X[:, 0] + rng.normal(0.0, 0.5, len(X)))
        return doses

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact P(Y = 1)."""
        worth = (0.1 + 0.4 * X[:, 0] + 0.3 * X[:, 1] * X[:, 2])[:, None]
        chances: FloatArray = ndtr((worth - np.log(np.maximum(doses, 1e-12))) / 0.35)
        return chances

    def noise_scale(self, mean: FloatArray, X: FloatArray) -> FloatArray:
        """That of a coin."""
        return np.sqrt(mean * (1.0 - mean))

    def draw_outcomes(self, mean: FloatArray, X: FloatArray, rng: Generator) -> FloatArray:
        """1 with the probability `mean`."""
        return (rng.random(mean.shape) < mean).astype(np.float64)
