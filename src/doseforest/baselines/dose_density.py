"""The dose given the covariates, for the doubly robust baseline: location, scale, a kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.dtypes import FloatArray
from doseforest.nuisance.densities.tables import TabulatedDensity, smoothed_density
from doseforest.smoothing.bandwidths import rule_of_thumb

SMALLEST_VARIANCE = 0.01  # of the mean squared residual: no unit's dose is nearly certain
BLOCK_UNITS = 10_000  # whose densities at a grid of doses are in memory at a time


@dataclass(frozen=True, slots=True)
class DoseDensity:
    """pi(t | x) of each training row: the density of its standardised residual over its scale."""

    centre: FloatArray  # (n_rows,)
    scale: FloatArray  # (n_rows,)
    residual: TabulatedDensity

    def at(self, doses: FloatArray) -> FloatArray:
        """Density of each row at a dose of its own, both (n_rows,)."""
        return self.residual.density((doses - self.centre) / self.scale) / self.scale

    def average(self, grid: FloatArray) -> FloatArray:
        """Mean of the rows' densities at each dose of a grid, (n_doses,)."""
        total = np.zeros(len(grid))
        for first in range(0, len(self.centre), BLOCK_UNITS):
            rows = slice(first, first + BLOCK_UNITS)
            centre, scale = self.centre[rows, None], self.scale[rows, None]
            total += (self.residual.density((grid - centre) / scale) / scale).sum(axis=0)
        return total / len(self.centre)


def dose_density(dose: FloatArray, centre: FloatArray, variance: FloatArray) -> DoseDensity:
    """Density of doses around their predicted means.

    Parameters
    ----------
    dose, centre : array of shape (n_rows,)
        Doses and what was predicted of them.
    variance : array of shape (n_rows,)
        What was predicted of the squared residuals; held up where it is next to 0, or below.

    Examples
    --------
    >>> dose = np.random.default_rng(0).normal(size=5000)
    >>> density = dose_density(dose, np.zeros(5000), np.ones(5000))
    >>> density.at(np.zeros(5000))[:2].round(1)  # a normal density at its centre has .4
    array([0.4, 0.4])
    """
    # The range of the doses holds the scale up where the centre meets them without error.
    least = max(
        SMALLEST_VARIANCE * float(np.mean((dose - centre) ** 2)), (1e-6 * float(np.ptp(dose))) ** 2
    )
    scale = np.sqrt(np.maximum(variance, least))
    z = (dose - centre) / scale
    residual = smoothed_density(z, np.ones(len(z)), rule_of_thumb(z, "gaussian"))
    return DoseDensity(centre, scale, residual)
