"""Moments of residualised dose functions: what leaves add up and what coefficients come of them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from doseforest import _core
from doseforest.base.dtypes import FloatArray, IntArray


def moment_channels(functions: FloatArray, residual: FloatArray) -> FloatArray:
    """Products of each row, packed: the upper triangle of B B', row by row, then B e.

    Examples
    --------
    >>> moment_channels(np.array([[2.0, 3.0]]), np.array([10.0]))
    array([[ 4.,  6.,  9., 20., 30.]])
    """
    first, second = np.triu_indices(functions.shape[1])
    squares = functions[:, first] * functions[:, second]
    return np.hstack([squares, functions * residual[:, None]])


def sieve_coefficients(
    averages: FloatArray, n_functions: int, penalty: tuple[float, ...], n_threads: int
) -> FloatArray:
    """Coefficients of the first functions of a basis from averaged moments of all of them.

    Parameters
    ----------
    averages : array of shape (n, n_channels)
        As `moment_channels` packs them; channels after these do not count.
    n_functions : int
        Of the basis, the constant left out.
    penalty : tuple of float
        Of as many functions as are used, per row of weight, checked; the others get 0.

    Examples
    --------
    >>> sieve_coefficients(np.array([[4.0, 6.0, 9.0, 20.0, 30.0]]), 2, (0.0,), n_threads=1)
    array([[5., 0.]])
    """
    out = np.zeros((len(averages), n_functions))
    solved = np.empty((len(averages), len(penalty)))
    moments = averages[:, _channels(n_functions, len(penalty))]
    _core.solve_moments(
        np.ascontiguousarray(moments), np.array(penalty)[None, :], n_threads, solved
    )
    out[:, : len(penalty)] = solved
    return out


@lru_cache(maxsize=64)
def _channels(n_functions: int, n_used: int) -> IntArray:
    """Places of the channels of the first functions, found once and not for each unit served."""
    _, second = np.triu_indices(n_functions)
    triangle = np.flatnonzero(second < n_used)
    return np.append(triangle, len(second) + np.arange(n_used))
