"""Weights r that make the dose independent of the covariates, and those a density gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.row_blocks import OneBlock, RowBlock, RowBlocks, Sums
from doseforest.nuisance.treatment.conditional_density import CrossFittedDensity, RowDensities
from doseforest.nuisance.treatment.marginal import marginal_density
from doseforest.nuisance.treatment.treatment_support import (
    DoseSupport,
    dose_support,
    quadrature_grid,
)

BLOCK_ROWS = 8192
SLACK = 0.1  # how far from 1 the mean density may integrate over the observed doses


@dataclass(frozen=True, slots=True)
class TreatmentWeights:
    """Weights of the training rows, about p(T_i) / pi(T_i | X_i)."""

    name: str
    r: FloatArray  # (n_rows,) of mean 1, under the sample's weights
    density: RowDensities | None = None
    shrinkage: float = 1.0  # the power that r was raised to
    scores: Mapping[str, float] = field(default_factory=dict)  # of `choose_weights`
    uncapped: FloatArray | None = None  # (n_rows,) r before the cap, of mean 1; None: r itself

    @classmethod
    def capping(
        cls,
        name: str,
        raw: FloatArray,
        density: RowDensities | None = None,
        *,
        weights: FloatArray | None = None,
    ) -> TreatmentWeights:
        """Weights after the cap of `capped`, with what they were before it.

        >>> weights = TreatmentWeights.capping("known", np.array([2.0, 2.0, 2.0, 14.0]))
        >>> weights.r, weights.uncapped
        (array([1., 1., 1., 1.]), array([0.4, 0.4, 0.4, 2.8]))
        """
        before = scaled_to_mean_one(raw, weights)
        return cls(name, capped(raw, weights), density, uncapped=before)

    def shrunk(self, power: float, weights: FloatArray | None = None) -> TreatmentWeights:
        """Weights r^power, of mean 1 again: 0 gives ones, 1 changes nothing.

        >>> TreatmentWeights("known", np.array([0.2, 1.8])).shrunk(0.5).r
        array([0.5, 1.5])
        """
        if power == 1.0:
            return self
        return replace(
            self,
            r=scaled_to_mean_one(self.r**power, weights),
            shrinkage=self.shrinkage * power,
            uncapped=None
            if self.uncapped is None
            else scaled_to_mean_one(self.uncapped**power, weights),
        )


def scaled_to_mean_one(r: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Divide by the mean under the sample's weights."""
    scaled: FloatArray = r / np.average(r, weights=weights)
    return scaled


def capped(r: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Weights of mean 1 after a cap at sqrt(n).

    The cap grows with the sample, so it does not stand in the way of consistency; a floor on the
    density at a quantile would.

    >>> capped(np.array([1.0, 1.0, 1.0, 9.0]))
    array([0.8, 0.8, 0.8, 1.6])
    """
    return scaled_to_mean_one(np.minimum(r, np.sqrt(len(r))), weights)


def stabilised_weights(
    density: CrossFittedDensity | FloatArray,
    dose: Any,
    X: FloatArray | None = None,
    *,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Weights p(T_i) / pi(T_i | X_i), capped at sqrt(n), of mean 1.

    Parameters
    ----------
    density : CrossFittedDensity or array of shape (n_rows,)
        A density, or its values pi(T_i | X_i), all of them positive.
    dose : array of shape (n_rows,)
    X : array of shape (n_rows, n_features), optional
        The training table. With it p is the mean of pi(t | X_j) over the rows of a fold, so that
        what a density gets wrong for everybody, as at the ends of the range, cancels; without it,
        or with values alone, p is a kernel density of the doses.
    weights : array of shape (n_rows,), optional
        Weights of the sample.

    Examples
    --------
    >>> stabilised_weights(np.array([0.5, 0.5, 1.0, 1.0]), [0, 1, 0, 1]).round(3)
    array([1.333, 1.333, 0.667, 0.667])
    """
    return capped(density_ratios(density, dose, X, weights=weights), weights)


def density_ratios(
    density: CrossFittedDensity | FloatArray,
    dose: Any,
    X: FloatArray | None = None,
    *,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Ratios p(T_i) / pi(T_i | X_i) as they are; see `stabilised_weights`."""
    doses = np.asarray(dose, np.float64)
    observed = density.observed if isinstance(density, CrossFittedDensity) else density
    if observed.shape != doses.shape:
        raise ValueError(
            f"The 'density' parameter must have one value per dose ({len(doses)}). "
            f"Got shape {observed.shape} instead."
        )
    if isinstance(density, CrossFittedDensity) and X is not None:
        overall = mean_density(density, X, doses, weights)
    else:
        overall = marginal_density(doses, weights).at(doses)
    smallest = np.finfo(np.float64).tiny
    ratios: FloatArray = overall / np.maximum(observed, smallest)
    return ratios


def mean_density(
    density: CrossFittedDensity,
    X: FloatArray,
    dose: FloatArray,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Mean of pi(T_i | X_j) over the rows j of the fold of i, (n_rows,).

    Within a fold, because each fold has a density of its own: a dose that only row i has is rare to
    the density without its fold, and common to the others. The mean is read off a grid of doses.
    Raises ValueError where it does not integrate to 1 over the observed doses.
    """
    support = dose_support(dose, weights)
    grid = quadrature_grid(dose, support, weights)
    folds, models = density.models.folds, dict(density.models.by_fold())
    block = RowBlock(X, dose, dose, weights, np.arange(len(dose)), folds)
    means, weight = fold_densities(
        OneBlock(block, density.models.n_folds),
        np.concatenate([grid, support.masses]),
        lambda rows, fold, doses: models[fold].density(rows.X, doses),
        tuple(models),
    )
    integral, whole = 0.0, block.row_weights.sum()
    out = np.zeros(len(dose))
    for mean, fold, each in zip(means, models, weight, strict=True):
        rows = folds == fold
        out[rows], mass = read_density(mean, grid, support, dose[rows])
        integral += mass * each / whole
    check_integral(integral, support)
    return out


def fold_densities(
    blocks: RowBlocks,
    doses: FloatArray,
    density: Callable[[RowBlock, int, FloatArray], FloatArray],
    folds: Sequence[int],
) -> tuple[FloatArray, FloatArray]:
    """Weighted mean of the densities of the rows of each fold at some doses, and the weights.

    Parameters
    ----------
    blocks : RowBlocks
    doses : array of shape (n_doses,)
    density : callable
        From rows of a fold, the fold and doses to densities, (n_rows, n_doses).
    folds : sequence of int

    Returns
    -------
    means : array of shape (n_folds, n_doses)
    weight : array of shape (n_folds,)
        Of the rows of each fold.
    """

    def sums(block: RowBlock) -> Sums:
        total, weight = np.zeros((len(folds), len(doses))), np.zeros(len(folds))
        weights = block.row_weights
        for place, fold in enumerate(folds):
            rows = np.flatnonzero(block.folds == fold)
            weight[place] = weights[rows].sum()
            for first in range(0, len(rows), BLOCK_ROWS):
                part = rows[first : first + BLOCK_ROWS]
                total[place] += weights[part] @ density(block.take(part), fold, doses)
        return total, weight

    total, weight = blocks.add_up("mean density of the dose", sums)
    # A fold without weight has no say in any average.
    means: FloatArray = total / np.maximum(weight, np.finfo(np.float64).tiny)[:, None]
    return means, weight


def read_density(
    values: FloatArray, grid: FloatArray, support: DoseSupport, dose: FloatArray
) -> tuple[FloatArray, float]:
    """Values of a density at some doses, read off a grid and the masses, and its integral.

    >>> even = DoseSupport(0.0, 2.0, (), True)
    >>> read_density(np.array([0.5, 0.5]), np.array([0.0, 2.0]), even, np.array([1.0]))
    (array([0.5]), np.float64(1.0))
    """
    # On the scale of the dose, where densities are smooth enough for lines between the points.
    places = support.scale.forward(grid)
    inside, masses = values[: len(grid)] / support.scale.slope(grid), values[len(grid) :]
    out = np.zeros(len(dose))
    if len(grid):
        at = np.interp(support.scale.forward(dose), places, inside)
        out = at * support.scale.slope(dose)
    for mass, value in zip(support.masses, masses, strict=True):
        out[dose == mass] = value
    return out, np.trapezoid(inside, places) + masses.sum()


def check_integral(
    integral: float, support: DoseSupport, rule: str = "The 'density' parameter must"
) -> None:
    """Raise ValueError where densities do not integrate to about 1 on average over the rows."""
    if not abs(integral - 1) <= SLACK:
        raise ValueError(
            f"{rule} integrate to 1 over the doses, with the probabilities of point masses "
            f"{list(support.masses)}. Got {integral:.4g} on average over the rows instead."
        )
