"""The term zeta * sigma(pi-hat) of the paper's split criterion, and the unit that zeta has.

sigma is a variance, in squared doses, and the distance between curves is in outcomes: what zeta = 1
does would depend on the units of both. So sigma is taken as a share of the variance of the dose
over all rows that grow, and 1 counts as much as the distance gives to a split at random.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from doseforest.base.dtypes import ChannelArray, FloatArray, IntArray
from doseforest.base.seeds import Purpose, stream
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.doses.smoothing.smoother_inputs import checked_kernel
from doseforest.engine.splits.distances import trapezoid_weights
from doseforest.engine.splits.split_search import split_gains
from doseforest.engine.splits.split_statistics import SplitRecipe, StatisticRows

MOMENT_POINTS = 201  # doses over which moments of a density are integrated
N_HALVES = 64  # splits at random, one for each bit of a row's hash

# From doses to pi-hat(t | X_i) of the rows that grow, (n_growing, n_doses).
DensityOfRows = Callable[[FloatArray], FloatArray]


def density_moments(
    density: DensityOfRows, grid: FloatArray, dose: FloatArray, kernel: str | Kernel
) -> FloatArray:
    """First two moments of pi-hat(. | X_i), (n_rows, 2); doses are counted from mid-range.

    Their means over a node are the moments of the mixture of its rows' densities, of which
    sigma(pi-hat) is the variance.
    """
    if checked_kernel(kernel).support == 0:  # levels with probabilities
        points = np.unique(dose)
        weights = np.ones(len(points))
    else:
        low, high = min(grid[0], dose.min()), max(grid[-1], dose.max())
        points = np.linspace(low, high, MOMENT_POINTS)
        weights = trapezoid_weights(points)
    mass = density(points) * weights
    total = mass.sum(axis=1, keepdims=True)
    shares = np.divide(mass, total, out=np.zeros_like(mass), where=total > 0)
    centred = points - (points[0] + points[-1]) / 2
    moments: FloatArray = shares @ np.column_stack([centred, centred**2])
    return moments


def mixture_variance(moments: FloatArray, weights: ChannelArray | None = None) -> float:
    """Variance of the mixture of some rows' densities, by their moments.

    Examples
    --------
    Doses of variance 1 around 0 and around 4:

    >>> mixture_variance(np.array([[0.0, 1.0], [4.0, 17.0]]))
    5.0
    """
    first, second = np.average(moments, axis=0, weights=weights)
    return float(second - first**2)


def random_split_gain(recipe: SplitRecipe, rows: StatisticRows, ids: IntArray, seed: int) -> float:
    """Mean of n1 n2 / nP * D(curve_1, curve_2) over halves of the rows that are drawn at random.

    What a split gains by chance. For mean curves and squared L2 distances it is, but for the draw,
    the mean squared distance of a row's curve from the mean curve.

    Parameters
    ----------
    rows : StatisticRows
        With ``zeta`` 0.
    ids : array of shape (n_rows,)
        Rows that share an id fall on one side.

    Examples
    --------
    >>> from doseforest.engine import SplitByMeans
    >>> curves = np.where(np.arange(1000) % 2 == 0, 3.0, -3.0)[:, None]
    >>> rows = StatisticRows(curves, doses=None, quadrature=np.ones(1), distance="l2")
    >>> abs(random_split_gain(SplitByMeans(), rows, np.arange(1000), seed=0) - 9.0) < 3.0
    True
    """
    statistic = recipe.lay_out(rows)
    bits = stream(seed, Purpose.RANDOM_HALVES, ids.astype(np.uint64))
    halves = [(bits >> np.uint64(bit)) & np.uint64(1) == 1 for bit in range(N_HALVES)]
    left = [statistic.channels[half].sum(axis=0, dtype=np.float64) for half in halves]
    gains = split_gains(
        statistic,
        np.array(left),
        np.array([half.sum() for half in halves]),
        statistic.channels.sum(axis=0, dtype=np.float64),
        len(bits),
    )
    gains = gains[np.isfinite(gains)]  # few rows may all fall on one side
    return float(gains.mean()) if len(gains) else 0.0
