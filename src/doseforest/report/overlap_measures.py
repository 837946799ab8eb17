"""What overlap is measured by: spread of weights, balance of covariates, room of the dose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.engine.look_inside.node_names import feature_label
from doseforest.nuisance.treatment.conditional_density import ConditionalDensity
from doseforest.nuisance.treatment.dose_support import DoseSupport, quadrature_grid

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
    own = np.quantile(values[kept], QUANTILES, axis=0, weights=weights[kept], method="inverted_cdf")
    return np.asarray(own)


@dataclass(frozen=True, slots=True, eq=False)
class WeightSpread:
    """How far treatment weights spread."""

    quantiles: FloatArray  # (7,) at QUANTILES
    largest: float  # in units of the mean, which is 1
    effective_sample: float  # (sum w)^2 / sum w^2, rows


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


@dataclass(frozen=True, slots=True, eq=False)
class Balance:
    """What is left of the covariates' dependence on the dose.

    For a quantity: correlations of each covariate with the dose, with its squared distance from
    the mean, and with having a dose that is a point mass. For levels: the covariate's mean among
    the units with a level less its mean among all, in standard deviations. For several components:
    correlations with all of these, of each component.
    """

    covariates: tuple[str, ...]  # (n_covariates,); "age missing" stands for missing values of age
    targets: tuple[str, ...]  # (n_targets,) what they are compared with
    standardised: bool  # differences of means; else correlations
    before: FloatArray  # (n_covariates, n_targets) without treatment weights
    after: FloatArray  # (n_covariates, n_targets) with them

    def worst(self) -> FloatArray:
        """Largest size of each covariate before and after, shape (n_covariates, 2)."""
        return np.stack([np.abs(own).max(axis=1) for own in (self.before, self.after)], axis=1)


def covariate_balance(
    X: FloatArray,
    dose: FloatArray,
    r: FloatArray,
    support: DoseSupport,
    *,
    weights: FloatArray | None = None,
    labels: Sequence[str] | None = None,
) -> Balance:
    """Balance of covariates before and after weighting by r.

    Examples
    --------
    >>> x = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> dose = np.concatenate([np.arange(50.0), np.arange(50.0) + 10])
    >>> balance = covariate_balance(x, dose, np.ones(100), DoseSupport(0.0, 59.0, (), True))
    >>> balance.targets, balance.before.round(2)
    (('dose', 'dose squared'), array([[0.33, 0.  ]]))
    """
    named, columns = _with_gaps(X, labels)
    own = np.ones(len(dose)) if weights is None else weights
    masses = np.array(support.masses)
    at_mass = (dose[:, None] == masses).astype(np.float64)
    mass_names = [f"dose {mass:g}" for mass in masses]
    if not support.continuous:
        before, after = (_mean_differences(columns, at_mass, own, own * f) for f in (1.0, r))
        return Balance(named, tuple(mass_names), True, before, after)
    square = (dose - np.average(dose, weights=own)) ** 2
    targets = np.column_stack([dose, square, at_mass])
    before, after = (_correlations(columns, targets, own * factor) for factor in (1.0, r))
    return Balance(named, ("dose", "dose squared", *mass_names), False, before, after)


def correlation_balance(
    X: FloatArray,
    targets: Mapping[str, FloatArray],
    r: FloatArray,
    *,
    weights: FloatArray | None = None,
    labels: Sequence[str] | None = None,
) -> Balance:
    """Correlations of covariates with named columns before and after weighting by r.

    Examples
    --------
    >>> x = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> correlation_balance(x, {"price": 2 - x[:, 0]}, np.ones(100)).before
    array([[-1.]])
    """
    named, columns = _with_gaps(X, labels)
    own = np.ones(len(X)) if weights is None else weights
    table = np.column_stack(list(targets.values()))
    before, after = (_correlations(columns, table, own * factor) for factor in (1.0, r))
    return Balance(named, tuple(targets), False, before, after)


def _with_gaps(X: FloatArray, labels: Sequence[str] | None) -> tuple[tuple[str, ...], FloatArray]:
    """Covariates and indicators of their missing values, with names."""
    named = list(labels or (feature_label(None, place) for place in range(X.shape[1])))
    gaps = np.isnan(X)
    some = np.flatnonzero(gaps.any(axis=0) & ~gaps.all(axis=0))
    columns = np.hstack([X, gaps[:, some].astype(np.float64)])
    return (*named, *(f"{named[place]} missing" for place in some)), columns


def _correlations(columns: FloatArray, targets: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted correlations over the rows where a column is known, (n_columns, n_targets)."""
    targets = targets - targets.mean(axis=0)
    centred, known = _centred(columns, weights)
    total = np.maximum(known.T @ np.ones(len(weights)), np.finfo(float).tiny)[:, None]
    mean = known.T @ targets / total
    target_squares = known.T @ targets**2 / total
    spread = np.sqrt(not_rounding(target_squares - mean**2, target_squares))
    product = (known * centred).T @ targets / total
    return ratio_or_zero(product, _deviations(columns, centred, known)[:, None] * spread)


def _mean_differences(
    columns: FloatArray, at_level: FloatArray, sample: FloatArray, weights: FloatArray
) -> FloatArray:
    """Mean at each level less the sample's, in its standard deviations, (n_columns, n_levels)."""
    centred, known = _centred(columns, sample)
    deviation = _deviations(columns, centred, known)
    here = np.where(np.isnan(columns), 0.0, weights[:, None])
    means = ratio_or_zero((here * centred).T @ at_level, here.T @ at_level)
    return ratio_or_zero(means, np.broadcast_to(deviation[:, None], means.shape))


def _deviations(columns: FloatArray, centred: FloatArray, known: FloatArray) -> FloatArray:
    """Standard deviation of each column, 0 where it does not vary."""
    total = known.sum(axis=0)
    squares = ratio_or_zero((known * np.nan_to_num(columns) ** 2).sum(axis=0), total)
    variance = ratio_or_zero((known * centred**2).sum(axis=0), total)
    return np.sqrt(not_rounding(variance, squares))


def _centred(columns: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns less their means, 0 where missing; and the weights, 0 where missing."""
    known = np.where(np.isnan(columns), 0.0, weights[:, None])
    filled = np.nan_to_num(columns)
    means = ratio_or_zero((known * filled).sum(axis=0), known.sum(axis=0))
    return np.where(np.isnan(columns), 0.0, filled - means), known


def not_rounding(variance: FloatArray, squares: FloatArray) -> FloatArray:
    """Variances, 0 where they are what rounding leaves of mean squares.

    >>> not_rounding(np.array([1e-17, 0.5]), np.array([1.0, 1.0]))
    array([0. , 0.5])
    """
    return np.where(variance > 1e-12 * squares, variance, 0.0)


def ratio_or_zero(above: FloatArray, below: FloatArray) -> FloatArray:
    """Quotient, 0 where there is nothing to divide by.

    >>> ratio_or_zero(np.array([1.0, 1.0]), np.array([4.0, 0.0]))
    array([0.25, 0.  ])
    """
    return np.divide(above, below, out=np.zeros(np.shape(above)), where=below > 0)


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
