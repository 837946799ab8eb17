"""Design 2 of Colangelo and Lee: an average curve with published bias, error and coverage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from doseforest.base.dtypes import FloatArray
from doseforest.datasets.simulation import N_DOSES, Simulation, cell_middles, observe
from doseforest.doses.grids import INTERIOR_TAIL, interior

Generator = np.random.Generator


@dataclass(frozen=True, slots=True)
class ColangeloLeePopulation:
    """Units of Colangelo and Lee's design 2, with w_l = 1 / l^2.

    X ~ N(0, S), S tridiagonal with 1 and 0.5, T = Phi(3 X'w) + 0.75 v - 0.5, v ~ N(0, 1),
    Y = 1.2 T + T^2 + T x1 + 1.2 X'w + e, e ~ N(0, (0.5 + Phi(x1))^2).
    """

    n_features: int

    def draw_units(self, n_units: int, rng: Generator) -> FloatArray:
        """Sums of neighbours, which have exactly the tridiagonal covariance."""
        draws = rng.standard_normal((n_units, self.n_features + 1))
        units: FloatArray = (draws[:, :-1] + draws[:, 1:]) / np.sqrt(2.0)
        return units

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Doses around 0, higher where the outcome is."""
        doses: FloatArray = ndtr(3.0 * self._index(X)) + 0.75 * rng.standard_normal(len(X)) - 0.5
        return doses

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        return 1.2 * doses + doses**2 + doses * X[:, :1] + 1.2 * self._index(X)[:, None]

    def noise_scale(self, mean: FloatArray, X: FloatArray) -> FloatArray:
        """Between 0.5 and 1.5, growing with x1."""
        scale: FloatArray = 0.5 + ndtr(X[:, :1])
        return np.broadcast_to(scale, mean.shape)

    def draw_outcomes(self, mean: FloatArray, X: FloatArray, rng: Generator) -> FloatArray:
        """Normal noise of that size."""
        return mean + self.noise_scale(mean, X) * rng.standard_normal(mean.shape)

    def _index(self, X: FloatArray) -> FloatArray:
        index: FloatArray = X @ (1.0 / np.arange(1, self.n_features + 1) ** 2)
        return index


@dataclass(frozen=True, slots=True)
class ColangeloLeeDesign:
    """Colangelo and Lee's design 2; over the population the average curve is 1.2 t + t^2.

    Examples
    --------
    >>> design = ColangeloLeeDesign()
    >>> design.draw(n=1000, seed=0).X.shape
    (1000, 100)
    >>> design.population_average(np.array([0.0, 1.0]))
    array([0. , 2.2])
    """

    n_features: int = 100
    n_doses: int = N_DOSES
    name: str = "colangelo_lee_2"
    description: str = "A smooth average curve among a hundred features, few of which matter."

    def draw(self, n: int = 1000, seed: int = 0) -> Simulation:
        """Draw units, doses and outcomes from one stream."""
        rng = np.random.default_rng(seed)
        population = ColangeloLeePopulation(self.n_features)
        X, treatment, y = observe(population, n, rng)
        inner = interior(treatment, tail=INTERIOR_TAIL)
        return Simulation(
            name=self.name,
            description=self.description,
            X=X,
            treatment=treatment,
            y=y,
            doses=cell_middles(inner.low, inner.high, self.n_doses),
            baseline=0.0,
            population=population,
        )

    def population_average(self, doses: FloatArray) -> FloatArray:
        """Mean of mu(t, x) over the population, not over the drawn units."""
        return 1.2 * doses + doses**2
