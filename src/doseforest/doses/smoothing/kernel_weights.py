"""Weights K_h(T_i - t) of rows at the doses of a grid, and the sample they amount to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from doseforest.base.dtypes import CHANNEL_DTYPE, ChannelArray, FloatArray
from doseforest.doses.dose_values import Doses
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.doses.smoothing.product_kernels import product_effective_sample
from doseforest.doses.smoothing.smoother_inputs import (
    checked_bandwidths,
    checked_kernel,
    checked_numbers,
    checked_row_weights,
)

# float64 temporaries of a block of rows, all together: 64 MB would still do, but blocks of that
# size have left the cache and cost a fifth of the speed.
BLOCK_BYTES = 16 * 2**20
_TEMPORARIES = 8  # arrays of a block's size that live at once, at the most


def scaled_kernel(dose: Any, grid: Any, bandwidth: Any, kernel: str | Kernel) -> ChannelArray:
    """Kernel weights K_h(T_i - t) = k((T_i - t) / h) / h, shape (n_rows, n_doses).

    The exact match has no 1 / h: it counts rows.

    Parameters
    ----------
    dose : array (n_rows,)
        Observed doses T_i.
    grid : array (n_doses,)
        Doses t.
    bandwidth : float or array (n_doses,)
        Bandwidth h, one for all doses or one per dose of the grid.
    kernel : str or Kernel
        A name in KERNELS or an object with the members of `Kernel`.

    Examples
    --------
    >>> scaled_kernel([0.0, 1.0, 2.0], [0.0, 2.0], 2.0, "epanechnikov")
    array([[0.375  , 0.     ],
           [0.28125, 0.28125],
           [0.     , 0.375  ]], dtype=float32)
    """
    doses, points = checked_numbers(dose, "dose"), checked_numbers(grid, "grid")
    bandwidths = checked_bandwidths(bandwidth, len(points))
    own = checked_kernel(kernel)
    height = 1 / bandwidths if own.is_density else np.ones(len(points))
    weights = np.empty((len(doses), len(points)), CHANNEL_DTYPE)
    for rows, u in scaled_differences(doses, points, bandwidths):
        weights[rows] = own.value(u) * height
    return weights


def scaled_derivative(dose: Any, grid: Any, bandwidth: Any, kernel: str | Kernel) -> ChannelArray:
    """Derivatives of K_h(T_i - t) in t, -k'((T_i - t) / h) / h^2, shape (n_rows, n_doses).

    Takes what `scaled_kernel` takes; the kernel must be differentiable.

    Examples
    --------
    >>> scaled_derivative([1.0], [0.5, 1.0, 1.5], 1.0, "biweight")
    array([[ 1.40625, 0. , -1.40625]], dtype=float32)
    """
    doses, points = checked_numbers(dose, "dose"), checked_numbers(grid, "grid")
    bandwidths = checked_bandwidths(bandwidth, len(points))
    own = checked_kernel(kernel)
    slopes = np.empty((len(doses), len(points)), CHANNEL_DTYPE)
    for rows, u in scaled_differences(doses, points, bandwidths):
        slopes[rows] = own.derivative(u) / -(bandwidths**2)
    return slopes


def effective_sample(
    dose: Any, grid: Any, bandwidth: Any, kernel: str | Kernel, weights: Any = None
) -> FloatArray:
    """Rows that speak at each dose: (sum w)^2 / sum w^2 with w = K_h(T_i - t) r_i.

    Parameters
    ----------
    dose, grid, bandwidth, kernel
        As for `scaled_kernel`.
    weights : array (n_rows,), optional
        Row weights r; ones by default.

    Returns
    -------
    array (n_doses,)
        From 0, where the kernel reaches no row, to the number of rows.

    Examples
    --------
    >>> effective_sample([0.0, 0.0, 1.0, 5.0], [0.0, 1.0, 3.0], 0.5, "uniform")
    array([2., 1., 0.])
    """
    if Doses.of(dose).joint:
        return product_effective_sample(dose, grid, bandwidth, kernel, weights)
    doses, points = checked_numbers(dose, "dose"), checked_numbers(grid, "grid")
    bandwidths = checked_bandwidths(bandwidth, len(points))
    row_weights = checked_row_weights(weights, len(doses))
    own = checked_kernel(kernel)
    total, squares = np.zeros(len(points)), np.zeros(len(points))
    for rows, u in scaled_differences(doses, points, bandwidths):
        row_kernel = own.value(u) * row_weights[rows, None]
        total += row_kernel.sum(axis=0)
        squares += (row_kernel**2).sum(axis=0)
    return np.divide(total**2, squares, out=np.zeros(len(points)), where=squares > 0)


def scaled_differences(
    dose: FloatArray, grid: FloatArray, bandwidths: FloatArray
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield u = (T_i - t) / h for blocks of rows, small enough that memory does not matter."""
    block = max(1, BLOCK_BYTES // (8 * _TEMPORARIES * len(grid)))
    for first in range(0, len(dose), block):
        rows = slice(first, first + block)
        yield rows, (dose[rows, None] - grid) / bandwidths
