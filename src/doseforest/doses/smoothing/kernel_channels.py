"""Numerators and denominators of kernel regressions over the dose, row by row.

Their sums over any set of rows give its Nadaraya-Watson regression: leaves of Algorithm 1 of the
paper read them by `RatioCurve`, splits compare them by `SplitByRatios` and `SplitByRatioSlopes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.base.dtypes import CHANNEL_DTYPE, ChannelArray
from doseforest.doses.smoothing.kernel_weights import scaled_derivative, scaled_kernel
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.doses.smoothing.smoother_inputs import (
    checked_kernel,
    checked_numbers,
    checked_support,
    given_bandwidth,
)


def kernel_channels(
    dose: Any,
    y: Any,
    grid: Any,
    bandwidth: Any,
    kernel: str | Kernel,
    *,
    derivative: bool = False,
    normalise: bool = False,
) -> ChannelArray:
    """Columns K Y, then K, of each row at each dose of a grid, K = K_h(T_i - t).

    Parameters
    ----------
    dose, y : array of shape (n_rows,)
        Observed doses T_i and outcomes Y_i.
    grid : array of shape (n_doses,)
        Doses t.
    bandwidth, kernel
        As for `scaled_kernel`; "exact" averages the outcomes of rows with just this dose.
    derivative : bool, default=False
        Add the columns K' Y and K', with K' the derivative of K in t; the kernel must have one.
    normalise : bool, default=False
        Divide the kernel of each row by its mass between the lowest and the highest dose, as the
        paper does. One bandwidth then serves all doses.

    Returns
    -------
    array of shape (n_rows, 2 n_doses) or, with derivatives, (n_rows, 4 n_doses), float32

    Examples
    --------
    Leaves that average outcomes at each dose, as the paper's Algorithm 1 prints:

    >>> from doseforest import CurveForest
    >>> from doseforest.engine import RatioCurve
    >>> dose, y = np.tile([0.0, 1.0], 50), np.tile([3.0, 5.0], 50)
    >>> channels = kernel_channels(dose, y, [0.0, 1.0], 1.0, "exact")
    >>> forest = CurveForest(n_trees=10, leaf_curve=RatioCurve(), random_state=0)
    >>> forest.fit(np.zeros((100, 1)), y, leaf_channels=channels).predict([[0.0]])
    array([[3., 5.]])
    """
    doses = checked_numbers(dose, "dose")
    outcomes = checked_numbers(y, "y", len(doses)).astype(CHANNEL_DTYPE)[:, None]
    fields = [scaled_kernel(doses, grid, bandwidth, kernel)]
    if derivative:
        fields.append(scaled_derivative(doses, grid, bandwidth, kernel))
    if normalise:
        own, width = checked_kernel(kernel), given_bandwidth(bandwidth)
        low, high = checked_support(None, doses)
        mass = own.mass((low - doses) / width, (high - doses) / width).astype(CHANNEL_DTYPE)
        fields = [field / mass[:, None] for field in fields]
    return np.hstack([columns for field in fields for columns in (field * outcomes, field)])
