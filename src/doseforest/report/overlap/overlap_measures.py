"""What overlap is measured by: spread of weights and room of the dose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.nuisance.treatment.conditional_density import ConditionalDensity
from doseforest.nuisance.treatment.treatment_support import DoseSupport, quadrature_grid

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
BLOCK_ROWS = 8192


def weighted_quantiles(values: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """The quantiles in `QUANTILES` over the rows, of shape (7, …).

    Examples
    --------
    >>> weighted_quantiles(np.arange(101.0))
    array([ 1.,  5., 25., 50., 75., 95., 99.])
    """
    if weights is None:
        return np.asarray(np.quantile(values, QUANTILES, axis=0))
    kept = weights > 0
    quantiles = np.quantile(
        values[kept], QUANTILES, axis=0, weights=weights[kept], method="inverted_cdf"
    )
    return np.asarray(quantiles)


@dataclass(frozen=True, slots=True, eq=False)
class WeightSpread:
    """How far treatment weights spread.

    Attributes
    ----------
    quantiles : array of shape (7,)
        Quantiles of the weights.
    largest : float
        Largest weight, in units of the mean, which is 1.
    effective_sample : float
        Rows that weigh as much as all together: (sum w)^2 / sum w^2.

    Examples
    --------
    >>> WeightSpread(np.ones(7), largest=1.0, effective_sample=400.0).effective_sample
    400.0
    """

    quantiles: FloatArray  # (7,)
    largest: float
    effective_sample: float  # (sum w)


def weight_spread(r: FloatArray, weights: FloatArray | None = None) -> WeightSpread:
    """Spread of treatment weights; the sample's weights count too.

    Examples
    --------
    >>> weight_spread(np.array([0.5, 0.5, 0.5, 2.5])).effective_sample.round(2)
    np.float64(2.29)
    """
    product = r if weights is None else r * weights
    scaled = product / product.max()  # no square overflows
    size = scaled.sum() ** 2 / (scaled**2).sum()
    return WeightSpread(weighted_quantiles(r, weights), float(r.max()), size)


def variance_ratios(
    density: ConditionalDensity,
    X: FloatArray,
    dose: FloatArray,
    support: DoseSupport,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Variance of each unit's dose given its covariates over that of all doses, (n_rows,).

    Examples
    --------
    >>> from doseforest.nuisance.treatment import LocationScale
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1000, 1))
    >>> dose = x[:, 0] + rng.normal(size=1000)  # half of its variance is the covariate's
    >>> density = LocationScale().fit(x, dose)
    >>> ratios = variance_ratios(density, x, dose, DoseSupport(dose.min(), dose.max(), (), True))
    >>> np.median(ratios).round(1)
    np.float64(0.5)
    """
    nodes, lengths = variance_nodes(quadrature_grid(dose, support, weights), support)
    overall = np.average(dose, weights=weights)
    variance = float(np.average((dose - overall) ** 2, weights=weights))
    return given_variances(density, X, nodes, lengths, float(overall)) / variance


def variance_nodes(grid: FloatArray, support: DoseSupport) -> tuple[FloatArray, FloatArray]:
    """Doses that stand for all, and how much of the doses each stands for."""
    nodes = np.concatenate([grid, support.masses])
    lengths = np.ones(len(nodes))  # a mass has a probability, not a density
    gaps = np.diff(grid)
    lengths[: len(grid)] = (np.append(gaps, 0.0) + np.append(0.0, gaps)) / 2 if len(grid) else 1.0
    return nodes, lengths


def given_variances(
    density: ConditionalDensity,
    X: FloatArray,
    nodes: FloatArray,
    lengths: FloatArray,
    overall: float,
) -> FloatArray:
    """Variance of each unit's dose given its covariates; `overall` is about the mean dose."""
    variances = np.empty(len(X))
    for first in range(0, len(X), BLOCK_ROWS):
        rows = slice(first, first + BLOCK_ROWS)
        shares = density.density(X[rows], nodes) * lengths
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        mean = shares @ (nodes - overall)
        variances[rows] = np.maximum(shares @ (nodes - overall) ** 2 - mean**2, 0.0)
    return variances
