"""The dose given the covariates, for the doubly robust baseline: location, scale, a kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.nuisance.treatment.density_tables import TabulatedDensity, smoothed_density

SMALLEST_VARIANCE = 0.01  # of the mean squared residual: no unit's dose is nearly certain
BLOCK_UNITS = 10_000  # whose densities at a grid of doses are in memory at a time
MARGIN = 3.0  # bandwidths on either side of a sample that R's table of its density has
SPREAD_UNITS = 1000  # that stand for all where the spread of standardised doses is told
LEAST_DENSITY = 1e-6  # of the highest that is read of a misplaced density: it may have gaps


@dataclass(frozen=True, slots=True)
class MisplacedDensity:
    """A density whose values stand at the places of another table, which has other ends.

    The authors' code looks values of the residuals' density up by the places of a second density,
    that of all units' standardised doses at all doses of a grid. Its table is several times as
    wide, so what is read falls off that much more slowly: weights are milder, and their correction
    is steadier, than those of the density itself. What is read does not integrate to 1.

    Examples
    --------
    >>> values = np.random.default_rng(0).normal(size=5000)
    >>> normal = smoothed_density(values, np.ones(5000), 0.2)
    >>> wide = MisplacedDensity(normal, (-4.0, 4.0), (-20.0, 20.0))
    >>> bool(np.isclose(wide.density(np.array([5.0])), normal.density(np.array([1.0])))[0])
    True
    """

    table: TabulatedDensity
    own: tuple[float, float]  # ends of the table that the values are of
    other: tuple[float, float]  # ends of the table whose places they stand at

    def density(self, points: FloatArray) -> FloatArray:
        """Value read at each point."""
        shrunk = (self.own[1] - self.own[0]) / (self.other[1] - self.other[0])
        read = self.table.density(self.own[0] + (points - self.other[0]) * shrunk)
        floored: FloatArray = np.maximum(read, LEAST_DENSITY * self.table.values.max())
        return floored


@dataclass(frozen=True, slots=True)
class DoseDensity:
    """pi(t | x) of each training row: the density of its standardised residual over its scale."""

    centre: FloatArray  # (n_rows,)
    scale: FloatArray  # (n_rows,)
    residual: TabulatedDensity | MisplacedDensity

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
        Doses of a grid: read the density as the authors' code does, see `MisplacedDensity`.

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
    if misread_over is None:
        return DoseDensity(centre, scale, residual)
    ends = _ends_of_all(z, centre, scale, misread_over)
    own = _table_ends(z, rule_of_thumb(z, "gaussian"))
    return DoseDensity(centre, scale, MisplacedDensity(residual, own, ends))


def _ends_of_all(
    z: FloatArray, centre: FloatArray, scale: FloatArray, grid: FloatArray
) -> tuple[float, float]:
    """Ends of a table of all rows' standardised doses, those observed and those of a grid."""
    units = np.linspace(0, len(z) - 1, min(len(z), SPREAD_UNITS)).astype(int)
    spread = np.append(z[units], (grid - centre[units, None]) / scale[units, None])
    bandwidth = rule_of_thumb(spread, "gaussian") * (len(units) / len(z)) ** 0.2
    first, last = (grid.min() - centre) / scale, (grid.max() - centre) / scale
    return _table_ends(np.concatenate([z, first, last]), bandwidth)


def _table_ends(values: FloatArray, bandwidth: float) -> tuple[float, float]:
    return float(values.min()) - MARGIN * bandwidth, float(values.max()) + MARGIN * bandwidth
