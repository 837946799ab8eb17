"""Seven populations whose data are unkind: doses, noise or covariates as they come in practice.

A skewed dose, many rows at zero, heavy tails, noise that grows with the dose, hundreds of
correlated columns, categories without an order, and doses that covariates nearly determine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.designs.strange_curves import NoisyWorld
from doseforest.base.dtypes import FloatArray

Generator = np.random.Generator
N_CATEGORIES = 40


@dataclass(frozen=True, slots=True)
class SkewedDoses(NoisyWorld):
    """Doses over three orders of magnitude; the outcome rises with their logarithm.

    T = exp(2 + .7 x1 + N(0, 1.3^2)), mu = (1 + [x2 > 0]) log(1 + t) + x1 + sin(2 x3).
    """

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Lognormal."""
        doses: FloatArray = np.exp(2.0 + 0.7 * X[:, 0] + rng.normal(0.0, 1.3, len(X)))
        return doses

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        slope = 1.0 + (X[:, 1:2] > 0)
        level = (X[:, 0] + np.sin(2.0 * X[:, 2]))[:, None]
        curves: FloatArray = slope * np.log1p(np.maximum(doses, 0.0)) + level
        return curves


@dataclass(frozen=True, slots=True)
class MassWithJump(NoisyWorld):
    """Untreated units, a jump for any treatment at all, and a slope beside it.

    T = 0 with probability .4, else 4 / (1 + exp(-(.8 x1 + N(0, 1)))),
    mu = [t > 0] (1 + x2) + .4 t (1 + sin(x3)) + x1.
    """

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Zero for two in five."""
        treated = rng.random(len(X)) >= 0.4
        drawn = 4.0 / (1.0 + np.exp(-(0.8 * X[:, 0] + rng.standard_normal(len(X)))))
        return np.where(treated, drawn, 0.0)

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        jump = (doses > 0) * (1.0 + X[:, 1:2])
        curves: FloatArray = jump + 0.4 * doses * (1.0 + np.sin(X[:, 2:3])) + X[:, :1]
        return curves


@dataclass(frozen=True, slots=True)
class HeavyTails(NoisyWorld):
    """Noise of Student's t with 3 degrees of freedom around a smooth interaction.

    T = 3 + x1 + N(0, 1), mu = 2 tanh(t - 3 - x2) + x1 x3.
    """

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """By x1."""
        doses: FloatArray = 3.0 + X[:, 0] + rng.standard_normal(len(X))
        return doses

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        curves: FloatArray = 2.0 * np.tanh(doses - 3.0 - X[:, 1:2])
        return curves + (X[:, 0] * X[:, 2])[:, None]

    def draw_outcomes(self, mean: FloatArray, X: FloatArray, rng: Generator) -> FloatArray:
        """Scaled to a standard deviation of `noise`."""
        freedom = 3.0
        scale = self.noise * np.sqrt((freedom - 2.0) / freedom)
        drawn: FloatArray = mean + scale * rng.standard_t(freedom, mean.shape)
        return drawn


@dataclass(frozen=True, slots=True)
class GrowingNoise(NoisyWorld):
    """Noise that is ten times as large at the highest doses as at the lowest.

    T = 5 (1 + tanh(.5 x1 + .6 N(0, 1))), deviation .3 + .27 t,
    mu = 1.5 sqrt(t) (1 + .5 cos(2 x2)) + x1. Outcomes know the dose only by the mean, so the
    deviation is that of t found from (mu - x1)^2.
    """

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Between 0 and 10."""
        doses: FloatArray = 5.0 * (1.0 + np.tanh(0.5 * X[:, 0] + 0.6 * rng.standard_normal(len(X))))
        return doses

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        curves: FloatArray = np.sqrt(np.maximum(doses, 0.0)) * self._rise(X) + X[:, :1]
        return curves

    def noise_scale(self, mean: FloatArray, X: FloatArray) -> FloatArray:
        """By the dose behind the mean."""
        doses = ((mean - X[:, :1]) / self._rise(X)) ** 2
        scale: FloatArray = 0.3 + 0.27 * doses
        return scale

    @staticmethod
    def _rise(X: FloatArray) -> FloatArray:
        rise: FloatArray = 1.5 * (1.0 + 0.5 * np.cos(2.0 * X[:, 1:2]))
        return rise


@dataclass(frozen=True, slots=True)
class WideAndCorrelated(NoisyWorld):
    """Two hundred columns, neighbours correlated by .9; five of them matter.

    T = 2 + x1 + .7 x50 + N(0, 1), mu = (1 + tanh(x100)) t + .3 (t - 2)^2 + x1 + x50 - x150.
    """

    def draw_units(self, n_units: int, rng: Generator) -> FloatArray:
        """A stationary autoregression over the columns."""
        drawn = rng.standard_normal((n_units, self.n_features))
        for place in range(1, self.n_features):
            drawn[:, place] = 0.9 * drawn[:, place - 1] + np.sqrt(0.19) * drawn[:, place]
        return drawn

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """By two columns."""
        doses: FloatArray = 2.0 + X[:, 0] + 0.7 * X[:, 49] + rng.standard_normal(len(X))
        return doses

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        level = (X[:, 0] + X[:, 49] - X[:, 149])[:, None]
        slope = (1.0 + np.tanh(X[:, 99]))[:, None]
        curves: FloatArray = slope * doses + 0.3 * (doses - 2.0) ** 2 + level
        return curves


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyCategories(NoisyWorld):
    """Forty shops, coded 0 to 39 in the first column, each with a level, a slope and a usual dose.

    Numbers of shops go down as 1 / (1 + code). T = 3 + a_shop + x2 + N(0, 1),
    mu = s_shop t + 1.5 tanh(t - 3) [x3 > 0] + b_shop + x2.
    """

    usual: FloatArray  # (N_CATEGORIES,) a
    slopes: FloatArray  # (N_CATEGORIES,) s
    levels: FloatArray  # (N_CATEGORIES,) b

    def draw_units(self, n_units: int, rng: Generator) -> FloatArray:
        """Codes, then X ~ N(0, I)."""
        sizes = 1.0 / (1.0 + np.arange(N_CATEGORIES))
        drawn = rng.standard_normal((n_units, self.n_features))
        drawn[:, 0] = rng.choice(N_CATEGORIES, n_units, p=sizes / sizes.sum())
        return drawn

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """By shop and x2."""
        usual = self.usual[X[:, 0].astype(np.int64)]
        doses: FloatArray = 3.0 + usual + X[:, 1] + rng.standard_normal(len(X))
        return doses

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        shop = X[:, 0].astype(np.int64)
        bend = 1.5 * np.tanh(doses - 3.0) * (X[:, 2:3] > 0)
        level = (self.levels[shop] + X[:, 1])[:, None]
        curves: FloatArray = self.slopes[shop][:, None] * doses + bend + level
        return curves


@dataclass(frozen=True, slots=True)
class PoorOverlap(NoisyWorld):
    """Doses that covariates nearly determine, and a curve that bends the same way as the level.

    T = 4 + 1.5 sin(x1) + x2 + N(0, .4^2), mu = .5 (t - 4)^2 [x3 > 0] + t + 1.5 x1^2 + 2 sin(x1).
    """

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Little of it is chance."""
        doses: FloatArray = rng.normal(4.0 + 1.5 * np.sin(X[:, 0]) + X[:, 1], 0.4)
        return doses

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        level = (1.5 * X[:, 0] ** 2 + 2.0 * np.sin(X[:, 0]))[:, None]
        curves: FloatArray = 0.5 * (doses - 4.0) ** 2 * (X[:, 2:3] > 0) + doses + level
        return curves
