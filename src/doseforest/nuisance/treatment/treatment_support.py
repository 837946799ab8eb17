"""Where a dose can be: its range, its scale, and the doses that have a probability of their own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray
from doseforest.doses.grids import FEW_LEVELS, dose_sample, point_masses

GRID_POINTS = 101  # equidistant doses, and as many quantiles
HEAVY_TAILS = 20.0  # a range of more interquartile ranges than this; a normal dose has 5 to 7


@dataclass(frozen=True, slots=True)
class DoseScale:
    """The scale on which a dose is smoothed: its own, or one that draws far tails in.

    With a unit, ``asinh((t - centre) / unit)``: linear in the middle, logarithmic far out. One
    bandwidth then suits both, where on the dose's own scale a tail would be a row of spikes.
    """

    centre: float = 0.0
    unit: float | None = None

    def forward(self, doses: FloatArray) -> FloatArray:
        """Positions of doses on the scale."""
        if self.unit is None:
            return doses
        positions: FloatArray = np.arcsinh((doses - self.centre) / self.unit)
        return positions

    def back(self, positions: FloatArray) -> FloatArray:
        """Doses at positions."""
        if self.unit is None:
            return positions
        doses: FloatArray = self.centre + self.unit * np.sinh(positions)
        return doses

    def slope(self, doses: FloatArray) -> FloatArray:
        """Derivative of the positions by the dose: what a density is multiplied with."""
        if self.unit is None:
            return np.ones(np.shape(doses))
        slope: FloatArray = 1 / np.hypot(self.unit, doses - self.centre)
        return slope


@dataclass(frozen=True, slots=True)
class DoseSupport:
    """Range of a dose and its point masses; a dose of few levels has nothing but masses."""

    low: float  # lowest and highest dose beside the masses, or of all if there are no others
    high: float
    masses: tuple[float, ...]  # ascending; they may lie outside the range of the others
    continuous: bool  # whether there are doses beside the masses
    scale: DoseScale = field(default=DoseScale(), repr=False)

    @property
    def scaled_ends(self) -> tuple[float, float]:
        """Positions of both ends of the range on the scale."""
        low, high = self.scale.forward(np.array([self.low, self.high]))
        return float(low), float(high)

    def at_mass(self, doses: FloatArray) -> NDArray[np.bool_]:
        """Whether each dose is a mass."""
        return np.isin(doses, self.masses)


def dose_support(dose: Any, weights: Any = None) -> DoseSupport:
    """Range, masses and scale of observed doses.

    >>> dose_support([0.0, 1.0, 1.0, 2.0])
    DoseSupport(low=0.0, high=2.0, masses=(0.0, 1.0, 2.0), continuous=False)
    >>> dose_support(np.append(np.zeros(30), np.linspace(0.1, 10.0, 70)))
    DoseSupport(low=0.1, high=10.0, masses=(0.0,), continuous=True)
    """
    sample = dose_sample(dose, weights)
    levels, _ = sample.levels()
    if len(levels) == 1:
        raise ValueError(
            f"The 'dose' parameter must have two distinct values. Got only {levels[0]:g} instead."
        )
    if len(levels) <= FEW_LEVELS:
        return DoseSupport(float(levels[0]), float(levels[-1]), tuple(levels.tolist()), False)
    masses = point_masses(sample.doses, weights=sample.weights)
    beside = ~np.isin(sample.doses, masses)
    others = dose_sample(sample.doses[beside], sample.weights[beside])
    low, high = float(others.doses[0]), float(others.doses[-1])
    lower, median, upper = others.quantiles(np.array([0.25, 0.5, 0.75]))
    scale = DoseScale()
    if 0 < HEAVY_TAILS * (upper - lower) < high - low:
        scale = DoseScale(float(median), float(upper - lower))
    return DoseSupport(low, high, tuple(masses.tolist()), True, scale)


def quadrature_grid(
    dose: FloatArray,
    support: DoseSupport,
    weights: FloatArray | None = None,
    *,
    n_points: int = GRID_POINTS,
) -> FloatArray:
    """Doses at which densities are averaged and integrated: equidistant ones and quantiles.

    Masses are left out: a density has a probability there. Neighbours of a mass stand in for it.
    """
    if not support.continuous:
        return np.empty(0)
    beside = ~support.at_mass(dose)
    sample = dose_sample(dose[beside], None if weights is None else weights[beside])
    quantiles = sample.quantiles(np.linspace(0.0, 1.0, n_points))
    low, high = support.scaled_ends
    equidistant = np.linspace(low, high, n_points)
    positions: FloatArray = np.union1d(equidistant, support.scale.forward(quantiles))
    # Doses closer than this are one to the trapezoid rule.
    positions = positions[np.append(True, np.diff(positions) > 1e-6 * (high - low))]
    grid = support.scale.back(positions)
    nudged = support.scale.back(positions + 1e-9 * (high - low))
    return np.clip(np.where(support.at_mass(grid), nudged, grid), support.low, support.high)


def support_within(
    support: DoseSupport, dose: FloatArray, *, continuous: bool | None = None
) -> DoseSupport:
    """Range of some rows' doses, with the masses of all rows: a mass is one for everybody.

    >>> everyone = dose_support(np.append(np.zeros(30), np.linspace(0.1, 10.0, 70)))
    >>> support_within(everyone, np.array([0.0, 0.5, 2.0]))
    DoseSupport(low=0.5, high=2.0, masses=(0.0,), continuous=True)
    """
    others = dose[~support.at_mass(dose)] if support.continuous else dose
    others = others if len(others) else dose
    return replace(
        support,
        low=float(others.min()),
        high=float(others.max()),
        continuous=support.continuous if continuous is None else continuous,
    )
