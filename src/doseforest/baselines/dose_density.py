"""The dose given the covariates, for the doubly robust baseline: location, scale, a kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from doseforest.dtypes import FloatArray
from doseforest.nuisance.densities.tables import TabulatedDensity, smoothed_density
from doseforest.smoothing.bandwidths import rule_of_thumb

SMALLEST_VARIANCE = 0.01  # of the mean squared residual: no unit's dose is nearly certain
BLOCK_UNITS = 10_000  # whose densities at a grid of doses are in memory at a time
MARGIN = 3.0  # bandwidths on either side of a sample that R's table of its density has
SPREAD_UNITS = 1000  # that tell the bandwidth of all standardised doses
LEAST_DENSITY = 1e-6  # of the highest, where a density is not read at the place that it is of


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


def dose_density(
    dose: FloatArray,
    centre: FloatArray,
    variance: FloatArray,
    misread_over: FloatArray | None = None,
) -> DoseDensity:
    """Density of doses around their predicted means.

    Parameters
    ----------
    dose, centre : array of shape (n_rows,)
        Doses and what was predicted of them.
    variance : array of shape (n_rows,)
        What was predicted of the squared residuals; held up where it is next to 0, or below.
    misread_over : array of shape (n_doses,), optional
        Doses of a grid: read the density as the authors' code does, see `misread`.

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
    if misread_over is not None:
        low, high = misread_over.min(), misread_over.max()
        units = np.linspace(0, len(z) - 1, min(len(z), SPREAD_UNITS)).astype(int)
        spread = (misread_over - centre[units, None]) / scale[units, None]
        everything = np.concatenate([z, (low - centre) / scale, (high - centre) / scale])
        ends = _table_ends(everything, rule_of_thumb(np.append(z, spread), "gaussian"))
        residual = misread(residual, _table_ends(z, rule_of_thumb(z, "gaussian")), ends)
    return DoseDensity(centre, scale, residual)


def misread(
    density: TabulatedDensity, own: tuple[float, float], other: tuple[float, float]
) -> TabulatedDensity:
    """A density whose values stand at the places of another table, of other ends.

    The authors' code looks values of the residuals' density up by the places of a second density,
    that of all units' standardised doses at all doses of a grid. Its table is several times as
    wide, so what is read falls off that much more slowly: weights are milder, and their correction
    is steadier, than those of the density itself.

    Examples
    --------
    >>> values = np.random.default_rng(0).normal(size=5000)
    >>> normal = smoothed_density(values, np.ones(5000), 0.2)
    >>> wide = misread(normal, (-4.0, 4.0), (-20.0, 20.0))
    >>> bool(np.isclose(wide.density(np.array([5.0])), normal.density(np.array([1.0])))[0])
    True
    """
    factor = (other[1] - other[0]) / (own[1] - own[0])
    return replace(
        density,
        low=other[0] + (density.low - own[0]) * factor,
        step=density.step * factor,
        values=np.maximum(density.values, LEAST_DENSITY * density.values.max()),
    )


def _table_ends(values: FloatArray, bandwidth: float) -> tuple[float, float]:
    return float(values.min()) - MARGIN * bandwidth, float(values.max()) + MARGIN * bandwidth
