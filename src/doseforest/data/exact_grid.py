"""Channels on a grid coarse enough that float64 sums of them are exact.

Each channel is rounded once to multiples of ``2**(ceil(log2 max|v|) - 23)``. A value is then at
most 2**23 steps, and a sum of up to 2**30 rows stays below 2**53 steps: float64 holds it exactly.
So the order of rows, threads, partitions, and subtraction instead of addition change no bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from doseforest._core import LANES
from doseforest.base.dtypes import CHANNEL_DTYPE, Array, ChannelArray, FloatArray

GRID_BITS = 23
MAX_ROWS = 2**30
_SMALLEST_EXPONENT = -149  # the smallest power of two that float32 holds
_BLOCK_BYTES = 4 * 2**20  # of float64 temporaries: they stay in the cache


def padded_width(n_channels: int) -> int:
    """Round the number of channels up to whole vectors.

    >>> padded_width(3), padded_width(16)
    (4, 16)
    """
    return -(-n_channels // LANES) * LANES


def grid_steps(largest: FloatArray) -> FloatArray:
    """Grid step of each channel from its largest absolute value.

    >>> grid_steps(np.array([1.0, 0.75, 1.5])) * 2**23
    array([1., 1., 2.])
    """
    mantissa, exponent = np.frexp(largest)
    exponent = np.where(
        mantissa == 0.5, exponent - 1, exponent
    )  # a power of two is its own ceiling
    steps: FloatArray = np.ldexp(1.0, np.maximum(exponent - GRID_BITS, _SMALLEST_EXPONENT))
    return steps


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Blocks of rows whose float64 values take a few megabytes.

    >>> [block.stop for block in row_blocks(5, 300_000)]
    [1, 2, 3, 4, 5]
    """
    size = max(1, _BLOCK_BYTES // (8 * n_columns))
    for first in range(0, n_rows, size):
        yield slice(first, min(first + size, n_rows))


def exact_channels(
    *columns: Array,
    weights: ChannelArray | None = None,
    shift: FloatArray | None = None,
    pad: bool = True,
) -> ChannelArray:
    """Stack channels side by side, shifted and times the row weights, rounded to the exact grid.

    Parameters
    ----------
    *columns : arrays of shape (n_rows,) or (n_rows, k)
        Finite values below the range of float32.
    weights : array of shape (n_rows,), optional
        Row weights; every column is multiplied by them.
    shift : array of shape (n_channels,), optional
        What is taken from each column first.
    pad : bool, default=True
        Add channels of zeros up to whole vectors, as the growth kernels want them.

    Returns
    -------
    array of shape (n_rows, n_channels), float32

    Examples
    --------
    >>> exact_channels(np.array([0.1, 1.0])).shape
    (2, 4)
    """
    parts = [column.reshape(len(column), -1) for column in columns]
    n_rows = len(parts[0])
    width = sum(part.shape[1] for part in parts)
    out = np.zeros((n_rows, padded_width(width) if pad else width), CHANNEL_DTYPE)
    shift = np.zeros(width) if shift is None else shift
    start = 0
    for part in parts:
        stop = start + part.shape[1]
        source = _Source(part, weights, shift[start:stop])
        steps = grid_steps(source.largest())
        for rows in source.blocks():
            out[rows, start:stop] = np.rint(source.values(rows) / steps) * steps
        start = stop
    return out


@dataclass(frozen=True, slots=True)
class _Source:
    """Columns before rounding, made block by block."""

    columns: Array  # (n_rows, k)
    weights: ChannelArray | None
    shift: FloatArray  # (k,)

    def blocks(self) -> Iterator[slice]:
        return row_blocks(*self.columns.shape)

    def values(self, rows: slice) -> FloatArray:
        values: FloatArray = self.columns[rows] - self.shift
        return values if self.weights is None else values * self.weights[rows, None]

    def largest(self) -> FloatArray:
        largest = np.zeros(self.columns.shape[1])
        for rows in self.blocks():
            np.maximum(largest, np.abs(self.values(rows)).max(axis=0), out=largest)
        if not np.isfinite(largest).all():  # what models made of checked rows
            raise ValueError(
                "What forests split by and fill leaves with must be finite numbers. "
                f"Got {largest[~np.isfinite(largest)][0]} from an outcome or treatment model."
            )
        return largest


def normalised_weights(weights: Array) -> ChannelArray:
    """Scale weights to mean 1, unchanged by a power-of-two factor and by the order of rows.

    >>> normalised_weights(np.array([1.0, 3.0]))
    array([0.5, 1.5], dtype=float32)
    """
    in_range = np.ldexp(weights, -np.frexp(weights.max())[1])  # tiny weights leave float32's range
    rounded = exact_channels(in_range, pad=False)[:, 0].astype(np.float64)
    return exact_channels(rounded * (len(rounded) / rounded.sum()), pad=False)[:, 0]
