"""Location, scale, and a kernel density of what they leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.seeds import Purpose, derive
from doseforest.data.row_blocks import OneBlock, RowBlock, RowBlocks, Sums
from doseforest.doses.grids import DoseRange
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.nuisance.treatment.conditional_mean import ConditionalMean, fit_conditional_mean
from doseforest.nuisance.treatment.density_tables import TabulatedDensity, smoothed_density
from doseforest.nuisance.treatment.mixed import MixedLearner, RowsBeside

SMALLEST_RESIDUAL = 0.05  # of their rms, below which the log of a residual is all noise
SCALE_RANGE = 3.0  # log-scales may differ from their mean by this much
LOCATION, LOG_SCALE = "location", "log scale"  # columns of blocks: predictions out of fold

Values = Callable[[RowBlock], FloatArray]  # (n_rows,) of a block
Mean = TypeVar("Mean", bound="GivenMean")


@dataclass(frozen=True, slots=True)
class LocationScale(MixedLearner):
    """T = m(x) + s(x) Z, with Z of any density, cut off at the ends of the dose's range.

    Mean and log-scale are ridge lines with boosted trees, shrunk to constants where they do not
    predict; Z is smoothed from residuals out of fold, with a heavy tail of weight 1 / sqrt(n), so
    that no dose in the range is impossible.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 1))
    >>> density = LocationScale().fit(x, 2 * x[:, 0] + rng.normal(size=2000))
    >>> density.density(np.array([[1.0]]), np.array([-2.0, 2.0])).round(1)
    array([[0. , 0.4]])
    """

    def fit_beside(self, rows: RowsBeside) -> LocationScaleDensity:
        """Fit location and scale, then smooth the standardised residuals."""
        shared: dict[str, Any] = {"weights": rows.weights, "n_threads": rows.n_threads}
        seeds = {LOCATION: rows.seed, LOG_SCALE: derive(rows.seed, Purpose.SCALE)}
        ids = np.arange(len(rows.dose))
        blocks = OneBlock(RowBlock(rows.X, rows.dose, rows.dose, rows.weights, ids, ids), 1)

        def fit_mean(targets: Values, column: str) -> ConditionalMean:
            mean = fit_conditional_mean(rows.X, targets(blocks.block), seed=seeds[column], **shared)
            blocks.add(column, lambda block: {column: mean.out_of_fold})
            return mean

        location, log_scale, residuals = standardise(
            blocks, rows.ends, lambda block: block.dose, lambda block: block.row_weights, fit_mean
        )
        z = residuals(blocks.block)
        residual = ResidualDensity.of(z, rows.weights, len(z))
        return LocationScaleDensity(location, log_scale, residual, rows.ends.low, rows.ends.high)


def standardise(
    blocks: RowBlocks,
    ends: DoseRange,
    positions: Values,
    weights: Values,
    fit_mean: Callable[[Values, str], Mean],
) -> tuple[Mean, Mean, Values]:
    """Fit location and log-scale of a dose; with what standardised residuals are read from.

    Parameters
    ----------
    blocks : RowBlocks
    ends : DoseRange
        Of the positions.
    positions, weights : callable
        From a block to positions of its doses on their scale, and to weights, both (n_rows,).
    fit_mean : callable
        From targets of a block and the name of a column to a mean given the covariates; what it
        predicts of the rows out of fold is then that column of every block.
    """

    def left(block: RowBlock) -> FloatArray:
        rest: FloatArray = positions(block) - np.clip(block[LOCATION], ends.low, ends.high)
        return rest

    def squares(block: RowBlock) -> Sums:
        each = weights(block)
        return each.sum(), (left(block) ** 2 * each).sum()

    location = fit_mean(positions, LOCATION)
    weight, total = blocks.add_up("spread of the dose about its location", squares)
    square = float(total / weight)
    log_scale = fit_mean(
        lambda block: log_sizes(left(block), square, ends.high - ends.low), LOG_SCALE
    )
    level = log_scale.level
    return (
        location,
        log_scale,
        lambda block: left(block) / scale_of(block[LOG_SCALE], level),
    )


def log_sizes(left: FloatArray, square: float, length: float) -> FloatArray:
    """Logs of the sizes of residuals, none of them far below their root mean square.

    Parameters
    ----------
    left : array of shape (n_rows,)
    square : float
        Mean square of the residuals of all rows.
    length : float
        Of the range of doses.
    """
    size = max(float(np.sqrt(square)), 1e-6 * length)
    logs: FloatArray = np.log(np.maximum(np.abs(left), SMALLEST_RESIDUAL * size))
    return logs


@dataclass(frozen=True, slots=True)
class ResidualDensity:
    """A tabulated density with Student's tail (3 degrees of freedom)."""

    table: TabulatedDensity
    tail_share: float
    tail_scale: float

    @classmethod
    def of(cls, z: FloatArray, weights: FloatArray, n_rows: int) -> ResidualDensity:
        """Smooth standardised residuals: of `n_rows` rows, or of a sample of them."""
        width = rule_of_thumb(z, "gaussian", weights)
        if n_rows > len(z):
            width *= (n_rows / len(z)) ** -0.2
        spread = float(np.sqrt(np.average(z**2, weights=weights)))
        return cls(smoothed_density(z, weights, width), 1 / np.sqrt(n_rows), spread)

    def density(self, z: FloatArray) -> FloatArray:
        """Value at each residual."""
        u = z / (self.tail_scale * np.sqrt(3.0))
        tail = 2 / (np.pi * np.sqrt(3.0) * self.tail_scale * (1 + u * u) ** 2)
        mixed: FloatArray = (1 - self.tail_share) * self.table.density(z) + self.tail_share * tail
        return mixed

    def cdf(self, z: FloatArray) -> FloatArray:
        """Mass at or below each residual."""
        u = z / (self.tail_scale * np.sqrt(3.0))
        tail = 0.5 + (u / (1 + u * u) + np.arctan(u)) / np.pi
        mixed: FloatArray = (1 - self.tail_share) * self.table.cdf(z) + self.tail_share * tail
        return mixed


class GivenMean(Protocol):
    """A mean given covariates."""

    @property
    def level(self) -> float:
        """The mean of all rows."""

    def predict(self, X: FloatArray) -> FloatArray:
        """Mean of each row, (n_rows,)."""


@dataclass(frozen=True, slots=True)
class LocationScaleDensity:
    """The density of m(x) + s(x) Z given that it lies in the range."""

    location: GivenMean
    log_scale: GivenMean
    residual: ResidualDensity
    low: float
    high: float

    def values(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Densities at a grid or at each unit's own doses, (n_units, n_doses)."""
        centre = np.clip(self.location.predict(X), self.low, self.high)[:, None]
        scale = scale_of(self.log_scale.predict(X), self.log_scale.level)[:, None]
        inside = self.residual.cdf((self.high - centre) / scale)
        inside = inside - self.residual.cdf((self.low - centre) / scale)
        return self.residual.density((doses - centre) / scale) / (scale * inside)


def scale_of(log_scale: FloatArray, level: float) -> FloatArray:
    """Scales of rows, kept to a range about that of all."""
    scale: FloatArray = np.exp(np.clip(log_scale, level - SCALE_RANGE, level + SCALE_RANGE))
    return scale
