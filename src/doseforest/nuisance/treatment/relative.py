"""Densities relative to that of all rows: pi(t | x) = f(t) c(F(t) | x).

F is the distribution of all doses and f its density, so c, on [0, 1], says only what covariates
change. Where they change nothing c is 1, whatever the shape of the dose's distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.grids import DoseRange
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.nuisance.treatment.density_tables import TabulatedDensity, smoothed_density


class RelativeHeights(Protocol):
    """Densities of ranks given covariates, up to a factor."""

    def heights(self, X: FloatArray) -> FloatArray:
        """Heights c(u_k | x) at the knots, (n_units, n_knots), not negative."""


@dataclass(frozen=True, slots=True)
class RelativeDensity:
    """A density of all rows times heights that are linear between knots of the rank."""

    overall: TabulatedDensity
    knots: FloatArray  # (n_knots,) ascending from 0 to 1
    relative: RelativeHeights

    def values(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Densities at a grid or at each unit's own doses, (n_units, n_doses)."""
        heights = normalised(self.knots, self.relative.heights(X))
        ranks = self.overall.cdf(doses)
        left = np.clip(np.searchsorted(self.knots, ranks, side="right") - 1, 0, len(self.knots) - 2)
        share = (ranks - self.knots[left]) / np.diff(self.knots)[left]
        if doses.ndim == 1:
            below, above = heights[:, left], heights[:, left + 1]
        else:
            below = np.take_along_axis(heights, left, axis=1)
            above = np.take_along_axis(heights, left + 1, axis=1)
        return (below + share * (above - below)) * self.overall.density(doses)


def normalised(knots: FloatArray, heights: FloatArray) -> FloatArray:
    """Heights scaled so that each row integrates to 1; a row of zeros becomes flat.

    >>> normalised(np.array([0.0, 0.5, 1.0]), np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]))
    array([[0., 2., 0.],
           [1., 1., 1.]])
    """
    widths = np.diff(knots)
    integral = (heights[:, 1:] + heights[:, :-1]) @ widths / 2
    empty = integral <= 0
    scaled = heights / np.where(empty, 1.0, integral)[:, None]
    scaled[empty] = 1.0
    return scaled


def overall_density(dose: FloatArray, weights: FloatArray, ends: DoseRange) -> TabulatedDensity:
    """Density of all rows on the range of the dose."""
    bandwidth = rule_of_thumb(dose, "gaussian", weights)
    return smoothed_density(dose, weights, bandwidth, (ends.low, ends.high))
