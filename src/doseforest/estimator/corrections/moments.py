"""Moments of residualised dose functions: what leaves add up and what coefficients come of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.engine.leaves.leaf_curves import RidgeMoments


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


@dataclass(frozen=True, slots=True)
class SieveSolve:
    """Coefficients of the first functions of a basis from averaged moments of all of them.

    Examples
    --------
    >>> one_of_two = SieveSolve(n_functions=2, penalty=(0.0,))
    >>> one_of_two.coefficients(np.array([[4.0, 6.0, 9.0, 20.0, 30.0]]), n_threads=1)
    array([[5., 0.]])
    """

    n_functions: int  # of the basis, the constant left out
    penalty: tuple[float, ...]  # of as many functions as are used, per row of weight

    def coefficients(self, averages: FloatArray, n_threads: int) -> FloatArray:
        """Solve for each query, shape (n, n_functions); functions not used get 0."""
        used = len(self.penalty)
        _, second = np.triu_indices(self.n_functions)
        triangle, cross = np.split(averages, [len(second)], axis=1)
        moments = np.hstack([triangle[:, second < used], cross[:, :used]])
        solved = _ridge(self.penalty).solve(moments, averages[:0], n_threads)
        out = np.zeros((len(averages), self.n_functions))
        out[:, :used] = solved
        return out


@lru_cache(maxsize=64)
def _ridge(penalty: tuple[float, ...]) -> RidgeMoments:
    """Checked once, and not for each unit that is served."""
    return RidgeMoments(penalty)
