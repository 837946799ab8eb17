"""The forest of intervals: coefficients of every unit's curve, and how they vary between bags.

The estimate that forests answer with is shrunk: its bias is of the size of its noise, and no
interval around it is both narrow and honest. Beside it stands one forest with small leaves and
nothing shrunk: to the outcome models' curve it adds, in each neighbourhood, the residual regressed
on residualised functions of the dose. That curve is the mean of the models that residuals were
taken from, so that the noise of these models is in both, and much of it falls out. Trees come in
bags, each of half of the rows. What differs between bags beyond the noise of their few trees is the
sampling noise of the whole forest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.doses.bases.dose_basis import FittedBasis
from doseforest.engine.forest import Forest
from doseforest.estimator.bags.noise_share import NoiseShare
from doseforest.nuisance.outcome.outcome_models import OutcomeModel

VALUES_AT_ONCE = 8_000_000  # of leaf channels, gathered for a block of units
LEAST_SPREAD = 1e-100  # of a function of the dose; less counts as 0
UNKNOWN = 1e-9  # of a direction's spread over all rows: less is as good as nothing

NoiseParts = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class CurveNoise:
    """Coefficients of units, and sums that their variance is made of."""

    coefficients: FloatArray  # (n_units, n_functions) added to the outcome model's curve
    between: FloatArray  # (n_units, n_functions, n_functions) variance of the means of bags
    within: FloatArray  # the same: what of it is noise of the trees in a bag
    unknown: FloatArray  # the same: projection on directions that no row near a unit tells of
    n_bags: int
    bag_size: int
    share: NoiseShare = field(default_factory=NoiseShare.unknown)


@dataclass(frozen=True, slots=True, eq=False)
class UnitBags:
    """A forest in bags whose leaves hold moments of residualised functions of the dose."""

    forest: Forest
    basis: FittedBasis
    spread: FloatArray  # (n_functions,) mean square of the residualised functions over all rows
    outcomes: tuple[OutcomeModel, ...]  # one for each fold, that has not seen it
    share: NoiseShare = field(default_factory=NoiseShare.unknown)

    @property
    def bag_size(self) -> int:
        """Trees of a bag."""
        return self.forest.plan.bag_size

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return self.forest.n_trees // self.bag_size

    def outcome_curves(self, X: FloatArray, doses: DoseArray, n_threads: int) -> FloatArray:
        """Mean of the outcome models' curves at each unit's own doses, (n_units, n_doses)."""
        total = np.zeros(doses.shape)
        for model in self.outcomes:
            total += model.curves(X, doses, n_threads=n_threads)
        return total / len(self.outcomes)

    def noise(self, splits: FloatArray, n_threads: int) -> CurveNoise:
        """Coefficients and their noise, for units given by the covariates that trees split on."""
        parts = [
            bag_variance(self._tree_moments(splits[block], n_threads), self.n_bags, self.spread)
            for block in self._blocks(len(splits))
        ]
        return self._joined(parts, self.n_bags)

    def noise_in(self, splits: FloatArray, bags: IntArray, n_threads: int) -> CurveNoise:
        """The same from some of the bags, `bags` of shape (n_units, m)."""
        parts = []
        for block in self._blocks(len(splits)):
            moments = self._tree_moments(splits[block], n_threads)
            by_bag = moments.reshape(len(moments), self.n_bags, self.bag_size, -1)
            chosen = np.take_along_axis(by_bag, bags[block, :, None, None], axis=1)
            chosen = chosen.reshape(len(moments), -1, moments.shape[2])
            parts.append(bag_variance(chosen, bags.shape[1], self.spread))
        return self._joined(parts, bags.shape[1])

    def _joined(self, parts: list[NoiseParts], n_bags: int) -> CurveNoise:
        beta, between, within, unknown = map(np.concatenate, zip(*parts, strict=True))
        return CurveNoise(beta, between, within, unknown, n_bags, self.bag_size, self.share)

    def _blocks(self, n_units: int) -> Iterator[slice]:
        """Units whose leaves are gathered at a time; one empty block where there are none."""
        step = max(1, VALUES_AT_ONCE // (self.forest.leaf_sums.shape[1] * self.forest.n_trees))
        return (slice(first, first + step) for first in range(0, max(n_units, 1), step))

    def _tree_moments(self, splits: FloatArray, n_threads: int) -> FloatArray:
        """Packed moments of each unit's leaf in each tree, (n_units, n_trees, n_channels)."""
        forest = self.forest
        leaves = forest.apply(np.ascontiguousarray(splits), n_jobs=n_threads)
        weights = forest.leaf_weights[leaves].astype(np.float64)
        empty = weights == 0  # a tree without rows, where groups are few
        weights[empty] = 1.0
        moments: FloatArray = forest.leaf_sums[leaves] / weights[..., None]
        moments[empty] = forest.fallback
        return moments


def bag_variance(moments: FloatArray, n_bags: int, spread: FloatArray) -> NoiseParts:
    """Coefficients from the moments of trees in bags, and the parts of their variance.

    Each tree has moments A (of B B') and b (of B e); the coefficients beta solve their means over
    all trees. A tree that differs moves them by A^-1 (b - A beta): with the mean of a bag's trees
    as its value, this is a one-way analysis of variance.

    Parameters
    ----------
    moments : array of shape (n_units, n_trees, n_channels)
        Packed as `moment_channels` does, trees of a bag one after the other.
    n_bags : int
    spread : array of shape (n_functions,)
        Mean square of the functions over all rows.

    Returns
    -------
    coefficients, between, within, unknown
        See `CurveNoise`; the variance of the coefficients is `between` less `within`.

    Examples
    --------
    Four trees in two bags, one function with moment 1 everywhere: coefficients are means of b.

    >>> moments = np.array([[[1.0, 1.0], [1.0, 3.0], [1.0, 5.0], [1.0, 7.0]]])
    >>> beta, between, within, _ = bag_variance(moments, 2, np.ones(1))
    >>> float(beta[0, 0]), float(between[0, 0, 0]), float(within[0, 0, 0])
    (4.0, 8.0, 1.0)
    """
    k = len(spread)
    mean = moments.mean(axis=1)
    inverse, unknown = _inverse(mean[:, :-k], spread)
    beta = np.einsum("nkl,nl->nk", inverse, mean[:, -k:])
    moved = moments @ _moved(inverse, beta)  # (n_units, n_trees, k)
    trees = moved.reshape(len(moments), n_bags, -1, k)
    bags = trees.mean(axis=2)
    apart = (trees - bags[:, :, None]).reshape(moved.shape)
    bag_size = trees.shape[2]
    between = _squares(bags) / (n_bags - 1)
    within = _squares(apart) / (n_bags * bag_size * (bag_size - 1))
    return beta, between, within, unknown


def _inverse(triangle: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Inverse of packed moments where they tell something, and the projection on the rest."""
    k = len(spread)
    first, second = np.triu_indices(k)
    gram = np.empty((len(triangle), k, k))
    gram[:, first, second] = gram[:, second, first] = triangle
    root = np.sqrt(np.where(spread > 0, spread, 1.0))
    values, vectors = np.linalg.eigh(gram / np.outer(root, root))
    known = values > UNKNOWN
    shares = np.where(known, 1 / np.where(known, values, 1.0), 0.0)
    inverse = np.einsum("nkl,nl,nml->nkm", vectors, shares, vectors) / np.outer(root, root)
    blind = np.einsum("nkl,nl,nml->nkm", vectors, 1.0 - known, vectors)
    return inverse, blind / np.outer(root, root)


def _moved(inverse: FloatArray, beta: FloatArray) -> FloatArray:
    """Linear map from packed moments to A^-1 (b - A beta), (n_units, n_channels, k)."""
    k = beta.shape[1]
    first, second = np.triu_indices(k)
    triangle = inverse[:, first] * beta[:, second, None]
    twice = inverse[:, second] * beta[:, first, None]
    triangle += np.where((first != second)[:, None], twice, 0.0)
    return np.concatenate([-triangle, inverse], axis=1)


def _squares(values: FloatArray) -> FloatArray:
    """Sum of outer products over the middle axis, (n, m, k) to (n, k, k)."""
    return values.transpose(0, 2, 1) @ values
