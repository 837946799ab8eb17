"""Variances of differences between doses, from the noise of units' coefficients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray
from doseforest.base.intervals import SEED, checked_coverage
from doseforest.estimator.bags.unit_bags import CurveNoise

LEAST_SHARE = 0.1  # of the variance between bags, left when the noise of trees is taken off
LEAST_DEGREES = 3.0
BLIND = 1e-6  # share of a contrast in directions that no row tells of
N_DRAWS = 2000  # of the largest deviation; its 95 % quantile is then off by about .03


def contrast_variance(noise: CurveNoise, contrasts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variance of each contrast of each unit, and its degrees of freedom.

    The noise of trees is taken off what differs between bags; as the forest has only so many bags,
    their share of it is added again. What is left is known the worse the more there was to take
    off, so the share of it that other units have counts beside the unit's own. Its degrees of
    freedom are those of a difference of two mean squares and of an expected share, by moments.

    Parameters
    ----------
    noise : CurveNoise
    contrasts : array of shape (n_units, n_contrasts, n_functions)

    Returns
    -------
    variance, degrees : arrays of shape (n_units, n_contrasts)
        A contrast that no row near a unit tells of has an infinite variance.
    """
    between, within, lost = mean_squares(noise, contrasts)
    n_bags, n_within = noise.n_bags, noise.n_bags * (noise.bag_size - 1)
    trust = noise.share.trust(n_bags, noise.bag_size)
    expected = (1 - trust) * noise.share.mean
    kept = trust * (between - within) + expected * between
    variance = np.maximum(kept, LEAST_SHARE * between) + between / n_bags
    apart = trust * (1 - trust) * noise.share.doubt(n_bags, noise.bag_size)
    doubt = ((trust + expected) ** 2 / (n_bags - 1) + apart / 2) * between**2
    doubt += trust**2 * within**2 / n_within
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = np.where(doubt > 0, variance**2 / doubt, np.inf)
    # Where a floor holds, the variance is a multiple of what differs between bags.
    degrees = np.minimum(np.maximum(degrees, LEAST_DEGREES), n_bags - 1)
    return np.where(lost, np.inf, variance), degrees


def mean_squares(
    noise: CurveNoise, contrasts: FloatArray
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Of each contrast of each unit: what differs between bags, within them, and if none tells."""
    between, within, blind = (
        _quadratic(contrasts, form) for form in (noise.between, noise.within, noise.unknown)
    )
    size = np.sqrt(np.einsum("nmk,nmk->nm", contrasts, contrasts))
    scale = np.sqrt(np.trace(noise.unknown, axis1=1, axis2=2))[:, None]
    lost = (size > 0) & (np.sqrt(np.maximum(blind, 0.0)) > BLIND * size * scale)
    return between, within, lost


def contrast_roots(noise: CurveNoise, contrasts: FloatArray) -> FloatArray:
    """Vectors whose products are covariances of contrasts, (n_units, n_contrasts, n_functions).

    In the coordinates in which bags vary alike in all directions, no direction keeps less than
    LEAST_SHARE of what differs between bags.
    """
    values, vectors = np.linalg.eigh(noise.between)
    kept = np.maximum(values, values[:, -1:] * 1e-12)
    with np.errstate(divide="ignore"):
        turned = np.where(kept > 0, 1 / np.sqrt(kept), 0.0)[:, None] * vectors
    inner = np.eye(vectors.shape[1]) - turned.transpose(0, 2, 1) @ noise.within @ turned
    shares, turns = np.linalg.eigh(inner)
    trust = noise.share.trust(noise.n_bags, noise.bag_size)
    shares = trust * shares + (1 - trust) * noise.share.mean
    shares = np.sqrt(np.maximum(shares, LEAST_SHARE))
    root = (np.sqrt(kept)[:, None] * vectors) @ (turns * shares[:, None])
    roots: FloatArray = contrasts @ root
    return roots


def band_quantiles(roots: FloatArray, degrees: FloatArray, coverage: float) -> FloatArray:
    """Standard errors within which all contrasts of a unit lie at once, (n_units,).

    Parameters
    ----------
    roots : array of shape (n_units, n_contrasts, n_functions)
        See `contrast_roots`; those of length 0 do not count.
    degrees : array of shape (n_units,)
        Of freedom, of the standard errors.
    """
    return _largest(roots, degrees, checked_coverage(coverage), two_sided=True)


def rise_quantiles(roots: FloatArray, degrees: FloatArray, coverage: float) -> FloatArray:
    """The same where only contrasts above 0 count."""
    return _largest(roots, degrees, checked_coverage(coverage), two_sided=False)


def _largest(
    roots: FloatArray, degrees: FloatArray, coverage: float, *, two_sided: bool
) -> FloatArray:
    rng = np.random.default_rng(SEED)
    draws = rng.standard_normal((N_DRAWS, roots.shape[2]))
    scale_draws = rng.standard_normal(N_DRAWS)
    lengths = np.linalg.norm(roots, axis=2, keepdims=True)
    units = np.where(lengths > 0, roots / np.where(lengths > 0, lengths, 1.0), 0.0)
    out = np.empty(len(roots))
    for unit, (each, freedom) in enumerate(zip(units, degrees, strict=True)):
        deviations = draws @ each.T
        largest = (np.abs(deviations) if two_sided else deviations).max(axis=1)
        # Wilson and Hilferty: the cube root of a mean square is about normal.
        spread = 2 / (9 * min(freedom, 1e8))
        mean_square = np.maximum(1 - spread + scale_draws * np.sqrt(spread), 0.05) ** 3
        out[unit] = np.quantile(largest / np.sqrt(mean_square), coverage)
    return out


def _quadratic(contrasts: FloatArray, form: FloatArray) -> FloatArray:
    value: FloatArray = np.einsum("nmk,nmk->nm", contrasts @ form, contrasts)
    return value
