"""Kernels over doses of several components: products, with local lines in each component.

A bandwidth is a multiple of each component's own width, its rule of thumb for that many components.
A component of few levels is matched exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import CHANNEL_DTYPE, ChannelArray, DoseArray, FloatArray
from doseforest.doses.dose_values import Doses, dose_text
from doseforest.doses.grids import FEW_LEVELS
from doseforest.doses.smoothing.kernels import KERNELS, Kernel
from doseforest.doses.smoothing.smoother_inputs import (
    checked_kernel,
    checked_row_weights,
    given_bandwidth,
)

BLOCK_VALUES = 2**18  # differences of a block of rows and doses
FURTHEST_SQUARED = 100.0  # of a line's reach, in variances of the local doses
WIDENINGS = 12  # doublings of the bandwidth at a dose that too few rows are near
FEWEST_NEAR = 10.0  # effective rows near a dose, on one side of which a line is drawn
MULTIPLES = np.sqrt(2.0) ** np.arange(-3, 7)  # bandwidths that are tried
QUERIES = 500  # rows that are predicted from the others


@dataclass(frozen=True, slots=True)
class ProductKernel:
    """A kernel and a width for each component."""

    kernels: tuple[Kernel, ...]
    widths: FloatArray  # (n_components,) at bandwidth 1

    @property
    def smooth(self) -> list[int]:
        """Components that are not matched exactly."""
        return [k for k, own in enumerate(self.kernels) if own.support > 0]

    def blocks(
        self, dose: DoseArray, grid: DoseArray, bandwidths: FloatArray
    ) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Rows, scaled differences (n, n_doses, n_components) and kernel values (n, n_doses)."""
        rows, points = Doses.of(dose).table, Doses.of(grid).table
        at_once = max(1, BLOCK_VALUES // max(1, points.size))
        scale = bandwidths[:, None] * self.widths
        for first in range(0, len(rows), at_once):
            block = slice(first, first + at_once)
            u = (rows[block, None] - points) / scale
            values = np.ones(u.shape[:2])
            for k, own in enumerate(self.kernels):
                values *= own.value(u[:, :, k])
            yield block, u, values


def product_kernel(dose: DoseArray, kernel: str | Kernel) -> ProductKernel:
    """The kernel of each component, and its width.

    >>> from doseforest.doses.dose_values import Doses
    >>> rng = np.random.default_rng(0)
    >>> dose = Doses.of_table(np.column_stack([rng.random(99), np.arange(99) % 2])).values
    >>> made = product_kernel(dose, "uniform")
    >>> [own.name for own in made.kernels]
    ['uniform', 'exact']
    """
    from doseforest.doses.smoothing.bandwidths import rule_of_thumb

    own = checked_kernel(kernel)
    columns = Doses.of(dose).columns
    kernels, widths = [], []
    n_smooth = 0
    for column in columns:
        smooth = own.support > 0 and len(np.unique(column)) > FEW_LEVELS
        kernels.append(own if smooth else KERNELS["exact"])
        widths.append(rule_of_thumb(column, own) if smooth else 1.0)
        n_smooth += smooth
    # The rule is for one component: with more of them neighbours are further away.
    wider = len(dose) ** (0.2 - 1 / (4 + max(1, n_smooth)))
    factor = np.array([wider if one.support > 0 else 1.0 for one in kernels])
    return ProductKernel(tuple(kernels), np.array(widths) * factor)


def product_effective_sample(
    dose: DoseArray, grid: DoseArray, bandwidth: Any, kernel: str | Kernel, weights: Any = None
) -> FloatArray:
    """Rows that speak at each dose; see `effective_sample`."""
    made = product_kernel(dose, kernel)
    widths = np.full(len(grid), given_bandwidth(bandwidth))
    return _effective(made, dose, grid, widths, checked_row_weights(weights, len(dose)))


def product_weights(
    dose: DoseArray,
    grid: DoseArray,
    bandwidth: float,
    kernel: str | Kernel,
    weights: Any = None,
    *,
    degree: int = 1,
) -> ChannelArray:
    """Equivalent weights of local planes, or constants, shape (n_rows, n_doses), of mean 1.

    Where fewer than ten rows are near a dose, its bandwidth is doubled until they are.

    Examples
    --------
    >>> from doseforest.doses.dose_values import Doses
    >>> axis = np.linspace(0, 1, 41)
    >>> dose = Doses.product([axis, axis]).values
    >>> outcome = 1 + Doses.of(dose).table @ np.array([2.0, 3.0])
    >>> grid = Doses.of_table(np.array([[0.0, 0.0], [0.5, 1.0]])).values
    >>> weights = product_weights(dose, grid, 1.0, "biweight")
    >>> (weights.T @ outcome / len(dose)).round(4)
    array([1., 5.])
    """
    made = product_kernel(dose, kernel)
    own = checked_row_weights(weights, len(dose))
    widths = _reaching(made, dose, grid, given_bandwidth(bandwidth), own)
    smooth = made.smooth if degree else []
    s0 = np.zeros(len(grid))
    s1 = np.zeros((len(grid), len(smooth)))
    s2 = np.zeros((len(grid), len(smooth), len(smooth)))
    for rows, u, values in made.blocks(dose, grid, widths):
        near, part = values * own[rows, None], u[:, :, smooth]
        s0 += near.sum(axis=0)
        s1 += np.einsum("nm,nmk->mk", near, part)
        s2 += np.einsum("nm,nmk,nml->mkl", near, part, part)
    mean, tilt = local_planes(s0, s1, s2)
    scale = len(dose) / s0
    out = np.empty((len(dose), len(grid)), CHANNEL_DTYPE)
    for rows, u, values in made.blocks(dose, grid, widths):
        leaning = ((u[:, :, smooth] - mean) * tilt).sum(axis=2)
        out[rows] = values * own[rows, None] * scale * (1 - leaning)
    return out


def local_planes(s0: FloatArray, s1: FloatArray, s2: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of the local doses and tilt of the local weights; see `local_line`."""
    mean = s1 / s0[:, None]
    variance = s2 / s0[:, None, None] - mean[:, :, None] * mean[:, None, :]
    tilt = (np.linalg.pinv(variance, rcond=1e-6, hermitian=True) @ mean[:, :, None])[:, :, 0]
    drawn = (tilt * mean).sum(axis=1) <= FURTHEST_SQUARED
    return mean, np.where(drawn[:, None], tilt, 0.0)


def product_loo_risks(
    dose: DoseArray, outcome: FloatArray, kernel: str | Kernel, weights: Any, degree: int
) -> list[float]:
    """Risks of the multiples, whose local planes predict some outcomes from those of other rows.

    Up to 500 rows are predicted, from all others: the work grows with the rows, not their square.
    """
    own = checked_row_weights(weights, len(dose))
    queries = np.unique(np.linspace(0, len(dose) - 1, QUERIES).astype(np.int64))
    made = product_kernel(dose, kernel)
    return [_left_out(made, dose, outcome, queries, own, float(h), degree) for h in MULTIPLES]


def _left_out(
    made: ProductKernel,
    dose: DoseArray,
    outcome: FloatArray,
    queries: Any,
    weights: FloatArray,
    bandwidth: float,
    degree: int,
) -> float:
    grid = dose[queries]
    widths = _reaching(made, dose, grid, bandwidth, weights)
    smooth = made.smooth if degree else []
    moments = np.zeros((len(grid), 1 + len(smooth), 1 + len(smooth)))
    cross = np.zeros((len(grid), 1 + len(smooth)))
    for rows, u, values in made.blocks(dose, grid, widths):
        near = values * weights[rows, None]
        same = np.arange(rows.start, min(rows.stop, len(dose)))[:, None] == queries
        near[same] = 0.0
        columns = np.concatenate([np.ones((*near.shape, 1)), u[:, :, smooth]], axis=2)
        moments += np.einsum("nm,nmk,nml->mkl", near, columns, columns)
        cross += np.einsum("nm,nmk,n->mk", near, columns, outcome[rows])
    ridge = 1e-6 * moments[:, :1, :1] * np.eye(1 + len(smooth))
    solved = np.linalg.solve(moments + ridge + 1e-12 * np.eye(1 + len(smooth)), cross[:, :, None])
    errors = outcome[queries] - solved[:, 0, 0]
    return float(np.average(errors**2, weights=np.maximum(weights[queries], 1e-12)))


def _effective(
    made: ProductKernel,
    dose: DoseArray,
    grid: DoseArray,
    bandwidths: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    total, squares = np.zeros(len(grid)), np.zeros(len(grid))
    for rows, _, values in made.blocks(dose, grid, bandwidths):
        near = values * weights[rows, None]
        total += near.sum(axis=0)
        squares += (near**2).sum(axis=0)
    return np.divide(total**2, squares, out=np.zeros(len(grid)), where=squares > 0)


def _reaching(
    made: ProductKernel, dose: DoseArray, grid: DoseArray, bandwidth: float, weights: FloatArray
) -> FloatArray:
    """Bandwidths at each dose, doubled where too few rows are near."""
    widths = np.full(len(grid), bandwidth)
    lonely = np.arange(len(grid))
    for _ in range(WIDENINGS):
        sizes = _effective(made, dose, grid[lonely], widths[lonely], weights)
        lonely = lonely[sizes < min(FEWEST_NEAR, len(dose) / 4)]
        if not len(lonely):
            return widths
        widths[lonely] *= 2
    raise ValueError(
        "The 'grid' parameter must hold doses that the kernel reaches from some rows of positive "
        f"weight. Got {dose_text(grid[lonely[0]])}, which has none, instead."
    )
