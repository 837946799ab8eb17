"""Estimates that carry what each row contributes, so that two on the same rows can be compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.special import ndtr

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.estimates import Estimate
from doseforest.base.intervals import error_of_groups

ROUNDING = 1e-12  # a standard error below this share of what rows contribute is none


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowEstimate(Estimate):
    """A number estimated from rows, with the influence of each row on it.

    The influences add up to about the error of the estimate: the sum of their squares (of their
    sums within groups) is its variance.

    Parameters
    ----------
    value : float
        The estimate.
    influence : array of shape (n_rows,)
        Influence of each row; 0 where a row has no part.
    clusters : array of int of shape (n_rows,), optional
        Rows that are not independent share a number; by default all are independent.

    Attributes
    ----------
    standard_error : float
        By the influences.
    degrees : float
        Degrees of freedom of the standard error.

    Examples
    --------
    >>> y = np.array([1.0, 3.0, 5.0, 7.0])
    >>> mean = RowEstimate(float(y.mean()), (y - y.mean()) / 4)
    >>> mean
    4 (s.e. 1.29)
    >>> [round(end, 2) for end in mean.interval()]
    [1.47, 6.53]
    >>> mean.minus(mean).p_value
    1.0
    """

    standard_error: float = field(init=False)
    degrees: float = field(default=np.inf, init=False)
    influence: FloatArray  # (n_rows,)
    clusters: IntArray | None = None  # (n_rows,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "standard_error", influence_error(self.influence, self.clusters))

    @property
    def p_value(self) -> float:
        """Two-sided: that the true value is 0."""
        error = self.standard_error
        if error <= ROUNDING * max(abs(self.value), float(np.abs(self.influence).max(initial=0))):
            return 1.0 if self.value == 0 else 0.0
        return float(2 * ndtr(-abs(self.value) / error))

    def minus(self, other: RowEstimate) -> RowEstimate:
        """Difference to another estimate from the same rows, paired row by row.

        Parameters
        ----------
        other : RowEstimate
            The other estimate.

        Returns
        -------
        RowEstimate
            The difference, with the standard error of the comparison.
        """
        same = len(self.influence) == len(other.influence) and _same(self.clusters, other.clusters)
        if not same:
            raise ValueError(
                "The 'other' parameter must be an estimate from the same rows and groups. "
                f"Got one from {len(other.influence)} rows to compare with "
                f"{len(self.influence)} instead."
            )
        return RowEstimate(
            self.value - other.value, self.influence - other.influence, self.clusters
        )


def influence_error(influence: FloatArray, clusters: IntArray | None = None) -> float:
    """Standard error by influences, added up within groups; times G / (G - 1) for G of them.

    Infinite where all that speaks is one row or one group: one draw has no spread.

    Examples
    --------
    >>> influence_error(np.array([-0.5, 0.5]))
    1.0
    """
    sums = influence
    n_drawn = int(np.count_nonzero(sums))
    if clusters is not None:
        sums = np.bincount(clusters, influence).astype(np.float64)
        # Those of a single group add up to 0, but for rounding: count who speaks, not sums.
        n_drawn = int(np.count_nonzero(np.bincount(clusters, influence != 0)))
    return error_of_groups(sums, 1 if len(influence) == 1 else n_drawn)


def mean_of_rows(
    values: FloatArray, weights: FloatArray | None = None, clusters: IntArray | None = None
) -> RowEstimate:
    """Weighted mean of one number per row.

    Parameters
    ----------
    values : array of shape (n_rows,)
        The numbers.
    weights : array of shape (n_rows,), optional
        Weights of the rows; by default 1 each.
    clusters : array of int of shape (n_rows,), optional
        Rows that are not independent share a number; by default all are independent.

    Returns
    -------
    RowEstimate
        The mean with its standard error.

    Examples
    --------
    >>> mean_of_rows(np.array([1.0, 3.0]))
    2 (s.e. 1)
    """
    shares = np.full(len(values), 1.0 / len(values)) if weights is None else weights / weights.sum()
    value = float(shares @ values)
    return RowEstimate(value, shares * (values - value), clusters)


def mean_of_estimates(parts: list[RowEstimate]) -> RowEstimate:
    """Mean of estimates of the same thing from the same rows, as those of several doses.

    Examples
    --------
    >>> one = mean_of_rows(np.array([1.0, 3.0]))
    >>> mean_of_estimates([one, one])
    2 (s.e. 1)
    """
    influence = sum((part.influence for part in parts), np.zeros_like(parts[0].influence))
    value = float(np.mean([part.value for part in parts]))
    return RowEstimate(value, influence / len(parts), parts[0].clusters)


def without_rounding(estimate: RowEstimate, scale: float) -> RowEstimate:
    """The estimate, or 0 for certain where value and error are rounding of numbers of a scale.

    Examples
    --------
    >>> noise = RowEstimate(1e-17, np.array([1e-18, -1e-18]))
    >>> noise.p_value < 1e-6, without_rounding(noise, scale=0.1).p_value
    (True, 1.0)
    """
    least = ROUNDING * scale
    if abs(estimate.value) > least or not estimate.standard_error <= least:
        return estimate
    return RowEstimate(0.0, np.zeros_like(estimate.influence), estimate.clusters)


def centred(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Values less their weighted mean; all 0 where they differ by no more than rounding.

    Examples
    --------
    >>> centred(np.array([1.0, 2.0, 6.0]), np.array([1.0, 1.0, 0.0]))
    array([-0.5,  0.5,  4.5])
    """
    counts = weights > 0
    apart = values - np.average(values, weights=weights)
    most = ROUNDING * np.abs(values[counts]).max()
    return np.zeros_like(apart) if np.abs(apart[counts]).max() <= most else apart


def row_digest(*columns: Any) -> str:
    """A short text that differs where any of the arrays does."""
    result = blake2b(digest_size=8)
    for column in columns:
        result.update(b"none" if column is None else np.ascontiguousarray(column).tobytes())
    return result.hexdigest()


def _same(first: IntArray | None, second: IntArray | None) -> bool:
    if first is None or second is None:
        return first is second
    return first is second or np.array_equal(first, second)
