"""Corrections at the ends of the doses, where a kernel has rows on one side only.

The paper divides the kernel by its mass inside [Tmin, Tmax]. The default is a local line: the same
kernel tilted so that a slope of the curve does not bias its value at an edge (design: the baseline
dose lies there, and is the noisiest point of a curve).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from doseforest.base.dtypes import CHANNEL_DTYPE, ChannelArray, FloatArray
from doseforest.doses.dose_values import Doses
from doseforest.doses.smoothing.kernel_weights import scaled_differences, scaled_kernel
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.doses.smoothing.product_kernels import product_weights
from doseforest.doses.smoothing.smoother_inputs import (
    checked_bandwidths,
    checked_kernel,
    checked_numbers,
    checked_row_weights,
    checked_support,
    given_bandwidth,
)

# No line is drawn to a dose further from the mean of the local doses than ten of their standard
# deviations. It also bounds the cancellation in the local variance: two digits at the most.
_FURTHEST_SQUARED = 100.0
_LEAST_MASS = 1e-290  # below, sums of weights have lost digits to underflow
_UNBOUNDED_REACH = 2.0  # bandwidths within which a Gaussian has most of its mass


def normalised_kernel(
    dose: Any,
    grid: Any,
    bandwidth: Any,
    kernel: str | Kernel,
    *,
    support: Any = None,
    over: Literal["grid", "rows"] = "grid",
) -> ChannelArray:
    """Kernel weights divided by the kernel's mass inside the support, shape (n_rows, n_doses).

    Parameters
    ----------
    dose, grid, kernel
        As for `scaled_kernel`.
    bandwidth : float
        Bandwidth h.
    support : (low, high), optional
        Interval [Tmin, Tmax] of possible doses; by default that of the rows.
    over : {"grid", "rows"}
        What the mass is an integral over. "grid" is the paper's: over t at a fixed T_i, so that
        each row keeps mass 1 on the support. A density estimated so integrates to 1, but at an
        edge it still has only log 2 = .69 of a flat density (.5 without the normaliser). "rows" is
        an integral over T at a fixed t, which leaves a flat density unbiased at every t.

    Examples
    --------
    >>> normalised_kernel([0.0, 5.0, 10.0], [0.0, 5.0], 2.0, "uniform")
    array([[0.5 , 0.  ],
           [0.  , 0.25],
           [0.  , 0.  ]], dtype=float32)
    """
    if over not in ("grid", "rows"):
        raise ValueError(f"The 'over' parameter must be 'grid' or 'rows'. Got {over!r} instead.")
    doses, points = checked_numbers(dose, "dose"), checked_numbers(grid, "grid")
    own, width = checked_kernel(kernel), given_bandwidth(bandwidth)
    low, high = checked_support(support, doses)
    outside = (points < low) | (points > high)
    if outside.any():
        raise ValueError(
            f"The 'grid' parameter must hold doses of the support, {low} to {high}. "
            f"Got {points[outside][0]} instead."
        )
    weights = scaled_kernel(doses, points, width, own)
    centres = doses[:, None] if over == "grid" else points
    weights /= own.mass((low - centres) / width, (high - centres) / width).astype(CHANNEL_DTYPE)
    return weights


def edge_bandwidths(
    grid: Any,
    bandwidth: float,
    kernel: str | Kernel,
    support: tuple[float, float],
    edge_factor: float = 2.0,
) -> FloatArray:
    """Bandwidth at each dose: h inside, growing along a line to ``edge_factor`` h at an edge.

    It begins to grow where the kernel begins to lose rows: at the distance ``reach`` h of an edge,
    ``reach`` being the kernel's support, or 2 when that is infinite. With the default factor the
    inner end of a bounded kernel then stays in place, so that the kernel covers doses of the same
    total width 2 h wherever it stands.

    Examples
    --------
    >>> edge_bandwidths([0.0, 0.5, 1.0, 5.0], 1.0, "epanechnikov", (0.0, 10.0))
    array([2. , 1.5, 1. , 1. ])
    """
    points, width = checked_numbers(grid, "grid"), given_bandwidth(bandwidth)
    if not 1 <= edge_factor < np.inf:
        raise ValueError(
            f"The 'edge_factor' parameter must be a float in [1, inf). Got {edge_factor!r} instead."
        )
    own = checked_kernel(kernel)
    reach = width * (own.support if np.isfinite(own.support) else _UNBOUNDED_REACH)
    if reach == 0:  # the exact match loses no rows
        return np.full(len(points), width)
    distance = np.maximum(np.minimum(points - support[0], support[1] - points), 0)
    return width * (1 + (edge_factor - 1) * np.maximum(1 - distance / reach, 0))


def local_linear_weights(
    dose: Any,
    grid: Any,
    bandwidth: float,
    kernel: str | Kernel,
    weights: Any = None,
    *,
    edge_factor: float = 2.0,
) -> ChannelArray:
    """Equivalent weights of local lines, shape (n_rows, n_doses), each column with mean 1.

    The mean over rows of ``weights * outcome`` at t is the value at t of the line fitted by least
    squares with row weights K_h(T_i - t) r_i:
    K r (S2 - S1 (T_i - t)) / (S0 S2 - S1^2), S_j = mean of K r (T_i - t)^j (design). So any linear
    function of the dose is reproduced, at the edges too; weights on the far side of an edge window
    are negative. Where the local doses do not carry a line (too few distinct ones, or all of them
    far to one side) the weights are those of `local_constant_weights`.

    Parameters
    ----------
    dose, grid, kernel
        As for `scaled_kernel`.
    bandwidth : float
        Bandwidth h inside; see `edge_bandwidths` for the edges of the observed doses.
    weights : array (n_rows,), optional
        Row weights r; ones by default.
    edge_factor : float
        Multiple of the bandwidth at an edge; 1 keeps one bandwidth everywhere.

    Examples
    --------
    >>> dose = np.linspace(0, 1, 101)
    >>> weights = local_linear_weights(dose, [0.0, 0.5], 0.1, "epanechnikov")
    >>> (weights.T @ (3 + 2 * dose) / len(dose)).round(5)
    array([3., 4.])
    """
    if Doses.of(dose).joint:
        return product_weights(dose, grid, bandwidth, kernel, weights)
    doses, points = checked_numbers(dose, "dose"), checked_numbers(grid, "grid")
    ends = float(doses.min()), float(doses.max())
    widths = edge_bandwidths(points, bandwidth, kernel, ends, edge_factor)
    return _equivalent_weights(doses, points, widths, checked_kernel(kernel), weights, degree=1)


def local_constant_weights(
    dose: Any, grid: Any, bandwidth: Any, kernel: str | Kernel, weights: Any = None
) -> ChannelArray:
    """Weights K_h(T_i - t) r_i over their mean (Nadaraya-Watson), each column with mean 1.

    Takes what `scaled_kernel` takes, and row weights r.

    Examples
    --------
    >>> local_constant_weights([0.0, 0.0, 1.0], [0.0], 0.5, "uniform", weights=[3.0, 1.0, 1.0])
    array([[2.25],
           [0.75],
           [0.  ]], dtype=float32)
    """
    if Doses.of(dose).joint:
        return product_weights(dose, grid, bandwidth, kernel, weights, degree=0)
    doses, points = checked_numbers(dose, "dose"), checked_numbers(grid, "grid")
    widths = checked_bandwidths(bandwidth, len(points))
    return _equivalent_weights(doses, points, widths, checked_kernel(kernel), weights, degree=0)


def _equivalent_weights(
    dose: FloatArray,
    grid: FloatArray,
    bandwidths: FloatArray,
    kernel: Kernel,
    weights: Any,
    degree: int,
) -> ChannelArray:
    row_weights = checked_row_weights(weights, len(dose))
    sums = np.zeros((3, len(grid)))
    for rows, u in scaled_differences(dose, grid, bandwidths):
        row_kernel = kernel.value(u) * row_weights[rows, None]
        for total in sums:
            total += row_kernel.sum(axis=0)
            row_kernel *= u
    if (sums[0] < _LEAST_MASS).any():
        place = int(np.argmin(sums[0]))
        raise ValueError(
            "The 'grid' parameter must hold doses that the kernel reaches from some row of "
            f"positive weight. Got {grid[place]}, which has none within bandwidth "
            f"{bandwidths[place]}, instead."
        )
    mean, tilt = local_line(sums[0], sums[1], sums[2], degree)
    scale = len(dose) / sums[0]
    out = np.empty((len(dose), len(grid)), CHANNEL_DTYPE)
    for rows, u in scaled_differences(dose, grid, bandwidths):
        row_kernel = kernel.value(u) * row_weights[rows, None]
        out[rows] = row_kernel * (scale * (1 - tilt * (u - mean)))
    return out


def local_line(
    s0: FloatArray, s1: FloatArray, s2: FloatArray, degree: int
) -> tuple[FloatArray, FloatArray]:
    """Mean of the local doses and tilt of the local weights, from sums of K r u^j, u = (T - t) / h.

    The weight K r (S2 - S1 u) / (S0 S2 - S1^2) is K r / S0 (1 - tilt (u - mean)) with
    mean = S1 / S0, tilt = mean / variance; the tilt is 0 for a local constant (`degree` 0) and
    where no line can be drawn.
    """
    mean = s1 / s0
    variance = s2 / s0 - mean**2
    drawn = (mean**2 <= _FURTHEST_SQUARED * variance) & (variance > 0) & (degree > 0)
    tilt = np.divide(mean, variance, out=np.zeros_like(mean), where=drawn)
    return mean, tilt
