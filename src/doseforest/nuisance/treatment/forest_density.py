"""A forest-weighted kernel density."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.seeds import Purpose, derive
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.doses.smoothing.boundary import normalised_kernel
from doseforest.engine.forest import Forest
from doseforest.engine.grow_forest import grow_forest
from doseforest.engine.growth.binned_rows import bin_array
from doseforest.engine.growth.forest_settings import GrowthSettings
from doseforest.nuisance.treatment.mixed import MixedLearner, RowsBeside
from doseforest.nuisance.treatment.relative import RelativeDensity, overall_density


@dataclass(frozen=True, slots=True)
class ForestDensity(MixedLearner):
    """An honest forest of kernels: each row's response is K_h around the rank of its dose.

    Parameters
    ----------
    n_trees : int, default=100
    min_node_size : int, default=20
    n_knots : int, default=24
        Ranks at which the kernels are taken.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 1))
    >>> density = ForestDensity().fit(x, 2 * x[:, 0] + rng.normal(size=2000))
    >>> density.density(np.array([[1.0]]), np.array([-1.0, 2.0])).round(1)
    array([[0. , 0.4]])
    """

    n_trees: int = 100
    min_node_size: int = 20
    n_knots: int = 24

    def fit_beside(self, rows: RowsBeside) -> RelativeDensity:
        """Grow the forest."""
        overall = overall_density(rows.dose, rows.weights, rows.ends)
        ranks = np.clip(overall.cdf(rows.dose), 0.0, 1.0)
        knots = np.linspace(0.0, 1.0, self.n_knots)
        bandwidth = rule_of_thumb(ranks, "epanechnikov", rows.weights)
        # Divided by the mass over rows: a flat density stays flat up to the ends.
        kernels = normalised_kernel(
            ranks, knots, bandwidth, "epanechnikov", support=(0.0, 1.0), over="rows"
        )
        settings = GrowthSettings(
            n_trees=self.n_trees,
            min_node_size=self.min_node_size,
            n_threads=rows.n_threads,
            seed=derive(rows.seed, Purpose.DENSITY_FOREST),
        )
        in_bins = bin_array(
            rows.X, weights=rows.weights, seed=settings.seed, n_threads=rows.n_threads
        )
        forest = grow_forest(in_bins, kernels, settings, doses=knots).forest
        return RelativeDensity(overall, knots, ForestHeights(forest, rows.n_threads))


@dataclass(frozen=True, slots=True)
class ForestHeights:
    """Mean kernels of the rows that share leaves with a unit."""

    forest: Forest
    n_threads: int

    def heights(self, X: FloatArray) -> FloatArray:
        """Heights at the knots, (n_units, n_knots)."""
        return np.maximum(self.forest.predict(X, n_jobs=self.n_threads), 0.0)
