"""The fitted kernel corrections: forests whose leaves hold curves on a grid of doses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.curve_effects import dose_table
from doseforest.doses.curve_interpolation import interpolated
from doseforest.engine.forest import Forest
from doseforest.nuisance.outcome.outcome_models import OutcomeModel

LEAST_NORMALISER = 0.25


def kernel_ratio(averages: FloatArray, overall: FloatArray, shrinkage: float) -> FloatArray:
    """Averaged numerators over averaged denominators, both shrunk to those of all rows.

    Equivalent weights of local lines may be negative: a neighbourhood whose doses lie to one side
    of t can add up to nothing, or less. So no denominator counts for less than a quarter of its
    mean over all rows, which is 1; without that floor single neighbourhoods have multiplied the
    error of a forest by nearly thirty.

    Parameters
    ----------
    averages : array of shape (n_units, 2 n_doses)
        Numerators, then denominators.
    overall : array of shape (2 n_doses,)
        Their means over all rows that fill leaves.
    shrinkage : float
        Multiple of `overall` that is added.

    Examples
    --------
    >>> kernel_ratio(np.array([[3.0, 3.0, 2.0, 0.0]]), np.array([0.0, 0.0, 1.0, 1.0]), 0.0)
    array([[ 1.5, 12. ]])
    """
    numerator, denominator = np.hsplit(averages + shrinkage * overall, 2)
    ratio: FloatArray = numerator / np.maximum(denominator, LEAST_NORMALISER)
    return ratio


@dataclass(frozen=True, slots=True, eq=False)
class KernelForest:
    """A forest of kernel sums and how much of its ratio is added."""

    forest: Forest  # channels: weights times residual, then weights, each on the grid
    shrinkage: float
    share: float

    def added(self, X: FloatArray, n_threads: int) -> FloatArray:
        """Ratio times share, shape (n_units, n_grid)."""
        averages = self.forest.average(X, n_jobs=n_threads)
        return self.share * kernel_ratio(averages, self.forest.fallback, self.shrinkage)


@dataclass(frozen=True, slots=True, eq=False)
class StabilizedCorrection:
    """Smoothed residuals of a unit's neighbours, added to an outcome model's curves.

    Additions are linear between the doses of the grid and constant beyond its ends.
    """

    grid: FloatArray  # (n_grid,) ascending
    forests: tuple[KernelForest, ...]
    constant: FloatArray  # (n_grid,) added for everyone alike

    def curves(
        self,
        outcome: OutcomeModel,
        X: FloatArray,
        splits: FloatArray,
        doses: FloatArray,
        n_threads: int,
    ) -> FloatArray:
        """Corrected curves, see `Correction`."""
        added = np.tile(self.constant, (len(X), 1))
        for forest in self.forests:
            added += forest.added(splits, n_threads)
        smoothed = interpolated(self.grid, added, dose_table(doses, len(X)).values)
        return outcome.curves(X, doses, n_threads=n_threads) + smoothed

    def forest_shares(self) -> list[tuple[Forest, float]]:
        """Forests and their shares."""
        return [(forest.forest, forest.share) for forest in self.forests]

    def with_forests(self, change: Callable[[Forest], Any]) -> Self:
        """Return the same correction with other forests."""
        changed = (replace(forest, forest=change(forest.forest)) for forest in self.forests)
        return replace(self, forests=tuple(changed))


@dataclass(frozen=True, slots=True, eq=False)
class PublishedCorrection:
    """Curves of a unit's neighbours in place of an outcome model's.

    Means of doubly robust curves, or kernel averages of outcomes ("paper"). They are
    linear between the doses of the grid and constant beyond its ends.
    """

    grid: FloatArray  # (n_grid,) ascending
    forest: Forest

    def curves(
        self,
        outcome: OutcomeModel,
        X: FloatArray,
        splits: FloatArray,
        doses: FloatArray,
        n_threads: int,
    ) -> FloatArray:
        """Corrected curves; the outcome model is not asked, its curves are in the leaves."""
        means = self.forest.predict(splits, n_jobs=n_threads)
        return interpolated(self.grid, means, dose_table(doses, len(X)).values)

    def forest_shares(self) -> list[tuple[Forest, float]]:
        """The forest is all there is."""
        return [(self.forest, 1.0)]

    def with_forests(self, change: Callable[[Forest], Any]) -> Self:
        """Return the same correction with another forest."""
        return replace(self, forest=change(self.forest))
