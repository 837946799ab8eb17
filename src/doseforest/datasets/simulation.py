"""What a simulation design gives: data, and the exact mean outcome mu(t, x) behind them."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Protocol

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.curve_effects import dose_table

N_DOSES = 20

Generator = np.random.Generator


class Population(Protocol):
    """Where units, doses and outcomes come from, every coefficient fixed."""

    def draw_units(self, n_units: int, rng: Generator) -> FloatArray:
        """Features, shape (n_units, n_features)."""

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Observed dose of each unit, shape (n_units,) or (n_units, n_components)."""

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x) at a table of doses, both of shape (n_units, n_doses).

        Doses of several components have them along a last axis.
        """

    def noise_scale(self, mean: FloatArray, X: FloatArray) -> FloatArray:
        """Standard deviation of outcomes around their means, both of shape (n_units, n_doses)."""

    def draw_outcomes(self, mean: FloatArray, X: FloatArray, rng: Generator) -> FloatArray:
        """Outcomes around their means, both of shape (n_units, n_doses)."""


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """One drawn data set with its truth.

    Attributes
    ----------
    name : str
        Name of the design.
    description : str
        What the design is hard at, in a sentence.
    X : array of shape (n_units, n_features)
        Features.
    treatment : array of shape (n_units,) or (n_units, n_components)
        Observed doses.
    y : array of shape (n_units,)
        Outcomes.
    doses : array of shape (n_doses,) or (n_doses, n_components)
        Doses to measure errors at: middles of equal cells, so that a plain mean over them is an
        integral over the range of doses.
    baseline : float or tuple of float
        The dose that effects are measured against.
    population : Population
        What the units were drawn from.

    Examples
    --------
    >>> from doseforest.datasets import DESIGNS
    >>> simulation = DESIGNS["linear"].draw(n=100, seed=0)
    >>> simulation.X.shape, simulation.treatment.shape, simulation.y.shape
    ((100, 20), (100,), (100,))
    >>> simulation.effect([1.0, 2.0], baseline=0.0)[:2]
    array([[2., 4.],
           [2., 4.]])
    """

    name: str
    description: str
    X: FloatArray = field(repr=False)  # (n_units, n_features)
    treatment: FloatArray = field(repr=False)  # (n_units,)
    y: FloatArray = field(repr=False)  # (n_units,)
    doses: FloatArray = field(repr=False)  # (n_doses,)
    baseline: float | tuple[float, ...]
    population: Population = field(repr=False)

    @property
    def n_components(self) -> int:
        """Number of components of a dose."""
        return 1 if self.treatment.ndim == 1 else self.treatment.shape[1]

    @property
    def support(self) -> tuple[float, float]:
        """Lowest and highest observed dose."""
        return float(self.treatment.min()), float(self.treatment.max())

    def mean(self, doses: Any, X: Any = None) -> FloatArray:
        """Exact mean outcome mu(t, x) of units at doses.

        Parameters
        ----------
        doses : float, array of shape (n_doses,) or of shape (n_units, n_doses)
            A grid that all units share, or a row of doses for each unit.
        X : array of shape (n_units, n_features), optional
            Units; by default those that were drawn.

        Returns
        -------
        array of shape (n_units, n_doses)
            The means.
        """
        units = self._units(X)
        table = dose_table(doses, len(units), n_components=self.n_components)
        return self.population.mean(table.plain, units)

    def effect(self, doses: Any = None, X: Any = None, baseline: Any = None) -> FloatArray:
        """Exact effect theta(t, x) = mu(t, x) - mu(baseline, x).

        Parameters
        ----------
        doses : float or array, optional
            As in `mean`; by default the doses of the simulation.
        X : array of shape (n_units, n_features), optional
            Units; by default those that were drawn.
        baseline : float or tuple of float, optional
            The dose to compare with; by default that of the simulation.

        Returns
        -------
        array of shape (n_units, n_doses)
            The effects.
        """
        start = self.baseline if baseline is None else baseline
        return self.mean(self.doses if doses is None else doses, X) - self.mean(start, X)

    def average(self, doses: Any = None, X: Any = None) -> FloatArray:
        """Exact average dose-response curve: the mean of mu(t, x) over the units.

        Parameters
        ----------
        doses : float or array, optional
            As in `mean`; by default the doses of the simulation.
        X : array of shape (n_units, n_features), optional
            Units; by default those that were drawn.

        Returns
        -------
        array of shape (n_doses,)
            The curve.
        """
        average: FloatArray = self.mean(self.doses if doses is None else doses, X).mean(axis=0)
        return average

    def noise_scale(self, doses: Any, X: Any = None) -> FloatArray:
        """Standard deviation of outcomes around mu(t, x).

        Parameters
        ----------
        doses : float or array
            As in `mean`.
        X : array of shape (n_units, n_features), optional
            Units; by default those that were drawn.

        Returns
        -------
        array of shape (n_units, n_doses)
            The standard deviations.
        """
        units = self._units(X)
        return self.population.noise_scale(self.mean(doses, units), units)

    def draw_units(self, n: int, seed: int) -> FloatArray:
        """Draw new units of the same population, for instance to test on.

        Parameters
        ----------
        n : int
            Number of units.
        seed : int
            Seed of the draw.

        Returns
        -------
        array of shape (n, n_features)
            Their features.
        """
        return self.population.draw_units(_checked_size(n), np.random.default_rng(seed))

    def draw_outcomes(self, doses: Any, X: Any = None, *, seed: int) -> FloatArray:
        """Draw new outcomes at doses of your choice: an experiment with the units.

        Parameters
        ----------
        doses : float or array
            As in `mean`.
        X : array of shape (n_units, n_features), optional
            Units; by default those that were drawn.
        seed : int
            Seed of the draw.

        Returns
        -------
        array of shape (n_units, n_doses)
            The outcomes.
        """
        units = self._units(X)
        rng = np.random.default_rng(seed)
        return self.population.draw_outcomes(self.mean(doses, units), units, rng)

    def _units(self, X: Any) -> FloatArray:
        if X is None:
            return self.X
        units = np.asarray(X, np.float64)
        if units.ndim != 2 or units.shape[1] != self.X.shape[1]:
            raise ValueError(
                f"The 'X' parameter must have shape (n_units, {self.X.shape[1]}). "
                f"Got shape {units.shape} instead."
            )
        return units


class Design(Protocol):
    """A recipe for data sets with a known truth.

    Examples
    --------
    >>> from doseforest.datasets import DESIGNS
    >>> DESIGNS["linear"].draw(n=10, seed=0).y.shape
    (10,)
    """

    @property
    def name(self) -> str:
        """Name in the table of designs."""

    @property
    def description(self) -> str:
        """What the design is hard at, in a sentence."""

    def draw(self, n: int = ..., seed: int = ...) -> Simulation:
        """Draw coefficients, units, doses and outcomes from one stream.

        Parameters
        ----------
        n : int
            Number of units.
        seed : int
            Seed of the stream; the same seed gives the same data.

        Returns
        -------
        Simulation
            The data, and the truth behind them.
        """


def cell_middles(low: float, high: float, n_doses: int = N_DOSES) -> FloatArray:
    """Middles of equal cells between two doses.

    Examples
    --------
    >>> cell_middles(0.0, 10.0, n_doses=5)
    array([1., 3., 5., 7., 9.])
    """
    return low + (high - low) * (np.arange(_checked_size(n_doses, "n_doses")) + 0.5) / n_doses


def observe(
    population: Population, n: int, rng: Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw units, their doses and their outcomes: X, treatment, y."""
    X = population.draw_units(_checked_size(n), rng)
    treatment = population.assign(X, rng)
    y = population.draw_outcomes(population.mean(treatment[:, None], X), X, rng)[:, 0]
    return X, treatment, y


def _checked_size(n: Any, name: str = "n") -> int:
    if not isinstance(n, Integral) or n < 1:
        raise ValueError(f"The {name!r} parameter must be an int of at least 1. Got {n!r} instead.")
    return int(n)
