"""Five designs in which every dose has data: waves, steps, a binary outcome, a linear control.

To add one: a population with the members of `Population`, a line in `OVERLAP_DESIGNS`, and a line
in the table of `doseforest.datasets`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from doseforest.base.dtypes import FloatArray
from doseforest.datasets.simulation import N_DOSES, Population, Simulation, cell_middles, observe
from doseforest.doses.grids import INTERIOR_TAIL, interior

Generator = np.random.Generator


class _StandardNormalNoise:
    """Outcomes with noise N(0, 1)."""

    __slots__ = ()

    def noise_scale(self, mean: FloatArray, X: FloatArray) -> FloatArray:
        """1 everywhere."""
        return np.ones_like(mean)

    def draw_outcomes(self, mean: FloatArray, X: FloatArray, rng: Generator) -> FloatArray:
        """Outcomes around their means."""
        return mean + rng.standard_normal(mean.shape)


@dataclass(frozen=True, slots=True)
class Waves(_StandardNormalNoise):
    """A sine of the dose whose size jumps at x2 = 0, and a slope max(x1, 0) / 2.

    mu = 3 (1 + [x2 > 0]) sin(t / 2) + 0.5 max(x1, 0) t + 0.1 t^2 + x'b + 2 sin(2 x3).
    Without `drift` the dose is randomised, T ~ U(0, 10); with it
    T = 5 + c'x(1..5) + N(0, 1.5^2), clipped to [0, 10].
    """

    main: FloatArray  # (n_features,) b
    drift: FloatArray | None  # (5,) c

    def draw_units(self, n_units: int, rng: Generator) -> FloatArray:
        """X ~ N(0, I)."""
        return rng.standard_normal((n_units, len(self.main)))

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Uniform, or drawn to some units and clipped."""
        if self.drift is None:
            return rng.uniform(0.0, 10.0, len(X))
        centre = 5.0 + X[:, : len(self.drift)] @ self.drift
        return np.clip(centre + rng.normal(0.0, 1.5, len(X)), 0.0, 10.0)

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        size = 3.0 * (1.0 + (X[:, 1:2] > 0))
        slope = 0.5 * np.maximum(X[:, :1], 0.0)
        level = (X @ self.main + 2.0 * np.sin(2.0 * X[:, 2]))[:, None]
        curves: FloatArray = size * np.sin(doses / 2) + slope * doses + 0.1 * doses**2 + level
        return curves


@dataclass(frozen=True, slots=True)
class Steps(_StandardNormalNoise):
    """A step of the dose near 2 whose size is 0, 2 or 4, by the signs of x1 and of x2 x3.

    X ~ U(-1, 1)^p, T = 3 + 2 x1 + x4 + N(0, 1.2^2) clipped to [0, 6],
    mu = 2 ([x1 > 0] + [x2 x3 > 0]) tanh(t - 2) + 3 |x4| + 2 x1 x5.
    """

    n_features: int

    def draw_units(self, n_units: int, rng: Generator) -> FloatArray:
        """X ~ U(-1, 1)^p."""
        return rng.uniform(-1.0, 1.0, (n_units, self.n_features))

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Drawn by x1, which also sets the size of the step."""
        centre = 3.0 + 2.0 * X[:, 0] + X[:, 3]
        return np.clip(centre + rng.normal(0.0, 1.2, len(X)), 0.0, 6.0)

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        size = 2.0 * ((X[:, 0] > 0).astype(np.float64) + (X[:, 1] * X[:, 2] > 0))
        level = 3.0 * np.abs(X[:, 3]) + 2.0 * X[:, 0] * X[:, 4]
        curves: FloatArray = size[:, None] * np.tanh(doses - 2.0) + level[:, None]
        return curves


@dataclass(frozen=True, slots=True)
class BinaryOutcome:
    """An outcome of 0 or 1 whose response to the dose is seven times as strong where x2 > 0.

    X ~ N(0, I), T ~ Beta(1 + 2 s, 3 - 2 s) with s = sigmoid(x1),
    P(Y = 1) = sigmoid(-1 + x1 + (0.5 + 3 [x2 > 0]) t (2 - t)).
    """

    n_features: int

    def draw_units(self, n_units: int, rng: Generator) -> FloatArray:
        """X ~ N(0, I)."""
        return rng.standard_normal((n_units, self.n_features))

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Higher where x1 is high."""
        tilt = expit(X[:, 0])
        doses: FloatArray = rng.beta(1.0 + 2.0 * tilt, 3.0 - 2.0 * tilt)
        return doses

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact P(Y = 1)."""
        strength = 0.5 + 3.0 * (X[:, 1:2] > 0)
        curves: FloatArray = expit(-1.0 + X[:, :1] + strength * doses * (2.0 - doses))
        return curves

    def noise_scale(self, mean: FloatArray, X: FloatArray) -> FloatArray:
        """That of a coin."""
        return np.sqrt(mean * (1.0 - mean))

    def draw_outcomes(self, mean: FloatArray, X: FloatArray, rng: Generator) -> FloatArray:
        """1 with the probability `mean`."""
        return (rng.random(mean.shape) < mean).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Line(_StandardNormalNoise):
    """The same straight line for all: X ~ N(0, I), T = x1 + N(0, 1), mu = 2 t + x'b."""

    main: FloatArray  # (n_features,) b

    def draw_units(self, n_units: int, rng: Generator) -> FloatArray:
        """X ~ N(0, I)."""
        return rng.standard_normal((n_units, len(self.main)))

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Drawn by x1."""
        return X[:, 0] + rng.standard_normal(len(X))

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        curves: FloatArray = 2.0 * doses + (X @ self.main)[:, None]
        return curves


@dataclass(frozen=True, slots=True)
class OverlapDesign:
    """A design whose errors are measured between the 5 % and 95 % quantiles of the drawn doses.

    Effects are measured against the lowest of those, where every design has data.

    Parameters
    ----------
    name : str
        Name in the table of designs.
    description : str
        What the design is hard at, in a sentence.
    population : callable
        Makes the population of a number of features and a generator.
    n_features : int, default=20
        Number of features; most do nothing, so more of them make the design harder.
    tail : float, default=0.05
        Share of the doses beyond the ends of the range on which errors are measured.
    n_doses : int, default=20
        Doses at which errors are measured.

    Examples
    --------
    >>> simulation = OVERLAP_DESIGNS["steps"].draw(n=500, seed=1)
    >>> simulation.support
    (0.0, 6.0)
    >>> bool((simulation.doses > simulation.baseline).all())
    True
    """

    name: str
    description: str
    population: Callable[[int, Generator], Population]  # of n_features and a generator
    n_features: int = 20
    tail: float = INTERIOR_TAIL
    n_doses: int = N_DOSES

    def draw(self, n: int = 2000, seed: int = 0) -> Simulation:
        """Draw coefficients, units, doses and outcomes from one stream."""
        rng = np.random.default_rng(seed)
        population = self.population(self.n_features, rng)
        X, treatment, y = observe(population, n, rng)
        inner = interior(treatment, tail=self.tail)
        return Simulation(
            name=self.name,
            description=self.description,
            X=X,
            treatment=treatment,
            y=y,
            doses=cell_middles(inner.low, inner.high, self.n_doses),
            baseline=inner.low,
            population=population,
        )


def _coefficients(size: int, rng: Generator) -> FloatArray:
    return rng.uniform(-1.0, 1.0, size)


def _randomised(n_features: int, rng: Generator) -> Population:
    return Waves(_coefficients(n_features, rng), None)


def _confounded(n_features: int, rng: Generator) -> Population:
    return Waves(_coefficients(n_features, rng), _coefficients(5, rng))


def _steps(n_features: int, rng: Generator) -> Population:
    return Steps(n_features)


def _binary(n_features: int, rng: Generator) -> Population:
    return BinaryOutcome(n_features)


def _linear(n_features: int, rng: Generator) -> Population:
    return Line(_coefficients(n_features, rng))


OVERLAP_DESIGNS: dict[str, OverlapDesign] = {
    design.name: design
    for design in (
        OverlapDesign("randomised", "A wave of two sizes, at random doses.", _randomised),
        OverlapDesign(
            "confounded",
            "The same wave, at doses drawn by five features that also move the outcome.",
            _confounded,
        ),
        OverlapDesign(
            "steps",
            "Steps that depend on an interaction, at doses drawn by the same feature.",
            _steps,
        ),
        OverlapDesign("binary", "An outcome of 0 or 1: much noise, little signal.", _binary),
        OverlapDesign("linear", "A straight line for all: only the slope to find.", _linear),
    )
}
