"""Intervals of estimates that are about normal: one by one, and for many at once.

Standard errors are estimates too. Where few units, or few groups, make up most of one, it is known
as badly as their number says, and quantiles are Student's with the degrees of freedom of it.
"""

from __future__ import annotations

from numbers import Real
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtrit

from doseforest.base.dtypes import FloatArray

MOST_DEGREES = 1e8  # as good as normal
N_DRAWS = 20_000  # of the largest deviation; its 95 % quantile is then off by about .01
SEED = 7


def checked_coverage(coverage: Any) -> float:
    """Return a coverage between 0 and 1, or raise.

    >>> checked_coverage(0.95)
    0.95
    """
    is_number = isinstance(coverage, Real) and not isinstance(coverage, bool)
    if not is_number or not 0 < coverage < 1:
        raise ValueError(
            f"The 'coverage' parameter must be a float in (0, 1). Got {coverage!r} instead."
        )
    return float(coverage)


def normal_quantile(coverage: Any) -> float:
    """Standard errors on either side that a normal estimate lies within, with this chance.

    >>> round(normal_quantile(0.95), 3)
    1.96
    """
    return NormalDist().inv_cdf((1 + checked_coverage(coverage)) / 2)


def student_quantile(degrees: FloatArray | float, coverage: Any) -> Any:
    """Standard errors on either side, where these are estimated with so many degrees of freedom.

    >>> student_quantile(np.array([4.0, np.inf]), 0.95).round(2)
    array([2.78, 1.96])
    """
    share = (1 + checked_coverage(coverage)) / 2
    return stdtrit(np.minimum(degrees, MOST_DEGREES), share)


def student_reach(reach: float, degrees: FloatArray) -> FloatArray:
    """Student's quantiles that are as rare as a normal one, as of the largest of many deviations.

    >>> student_reach(1.96, np.array([4.0, np.inf])).round(2)
    array([2.78, 1.96])
    """
    result: FloatArray = stdtrit(np.minimum(degrees, MOST_DEGREES), ndtr(reach))
    return result


def degrees_of_freedom(squares: FloatArray, fourths: FloatArray, n: int) -> FloatArray:
    """Degrees of freedom of sums of squares of n independent numbers of mean 0, by moments.

    A mean square with d degrees of freedom has a variance of 2 / d times its square. That of n
    numbers is told by their fourth powers: of normal ones d is about n, and 2 where one of them
    outweighs all others. There are no more than n - 1.

    Parameters
    ----------
    squares, fourths : arrays of one shape
        Sums of squares and of fourth powers.
    n : int

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal(10_000)
    >>> alone = np.append(np.zeros(99), 5.0)
    >>> [round(float(degrees_of_freedom((y**2).sum(), (y**4).sum(), len(y)))) for y in (x, alone)]
    [9999, 2]
    """
    doubt = fourths - squares**2 / max(n, 1)
    known = doubt > 2 * squares**2 / max(n - 1, 1)  # else more than n - 1, or nothing varies
    result: FloatArray = np.full(np.shape(squares), float(max(n - 1, 1)))
    np.divide(2 * squares**2, doubt, out=result, where=known)
    return result


def error_of_groups(sums: FloatArray, n_groups: int) -> float:
    """Standard error of what independent groups add up to: the root of their squares, G / (G - 1).

    Infinite where all is of one group: one draw has no spread.

    Examples
    --------
    >>> error_of_groups(np.array([-0.5, 0.5]), 2)
    1.0
    """
    if n_groups == 1:
        return float("inf")
    return float(np.sqrt((sums**2).sum() * n_groups / max(n_groups - 1, 1)))


def simultaneous_quantile(covariance: FloatArray, coverage: Any = 0.95) -> float:
    """Standard errors within which all of several normal estimates lie at once.

    Gaussian multipliers, one for each unit (or cluster) and the same for all estimates, make of the
    units' influences a normal vector with their covariance: its law is drawn from directly. It is
    the quantile of the largest deviation in standard errors, from draws with a fixed seed.

    Parameters
    ----------
    covariance : array of shape (n, n)
        Of the estimates; those without variance, or without a finite one, do not count.
    coverage : float, default=0.95

    Examples
    --------
    >>> round(simultaneous_quantile(np.eye(1)), 1), round(simultaneous_quantile(np.eye(10)), 1)
    (2.0, 2.8)
    """
    asked = checked_coverage(coverage)
    scale = np.sqrt(np.diag(covariance))
    varies = (scale > 0) & np.isfinite(scale)
    if not varies.any():
        return normal_quantile(asked)
    scale = scale[varies]
    correlation = covariance[np.ix_(varies, varies)] / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = np.random.default_rng(SEED).standard_normal((N_DRAWS, len(scale)))
    largest = np.abs(draws @ root.T).max(axis=1)
    # Of one estimate the normal quantile is known; draws would only add their noise.
    return max(float(np.quantile(largest, asked)), normal_quantile(asked))
