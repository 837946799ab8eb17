"""Random numbers as hashes of (seed, purpose, owner, item): any row can be drawn by itself."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, pdtr, pdtrik

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.seeds import draw, mix, stream, uniform

HALF_STEP = 2.0**-54  # keeps uniforms off 0, whose quantiles are infinite
ROUNDS = 4  # of the shuffle; a cell's place then tells nothing about its neighbours'

# What numbers are drawn for; no two share a stream.
ZONES, RAIN, DAYS, VIEWS, RECENT_VIEWS, DRIVERS, IDLE_DRIVERS, ETA = range(101, 109)
ROUTE, FARE, TRIPS, ABSENCE, DISCOUNTS, REQUESTS, CONTACTS, SHUFFLE, SEEDS, LOGS = range(109, 119)

Keys = NDArray[np.uint64]


def uniforms(seed: int, purpose: int, owners: Any, items: Any = 0) -> FloatArray:
    """Numbers in (0, 1), one for each owner and item.

    >>> uniforms(0, ETA, np.arange(3)).shape
    (3,)
    """
    keys = stream(seed, purpose, np.asarray(owners).astype(np.uint64))
    numbers: FloatArray = uniform(draw(keys, np.atleast_1d(items).astype(np.uint64)))
    return numbers + HALF_STEP


def normals(seed: int, purpose: int, owners: Any, items: Any = 0) -> FloatArray:
    """Standard normal numbers."""
    numbers: FloatArray = ndtri(uniforms(seed, purpose, owners, items))
    return numbers


def poisson_quantiles(levels: FloatArray, means: FloatArray) -> IntArray:
    """Smallest counts whose distribution function reaches the levels.

    >>> poisson_quantiles(np.array([0.1, 0.5, 0.9]), np.full(3, 2.0))
    array([0, 2, 4])
    """
    counts = np.ceil(pdtrik(levels, means))
    below = np.maximum(counts - 1.0, 0.0)
    result = np.where(pdtr(below, means) >= levels, below, counts)
    quantiles: IntArray = np.maximum(result, 0.0).astype(np.int64)
    return quantiles


def shuffled(places: IntArray, size: int, seed: int) -> IntArray:
    """Where places of 0 ... size - 1 go in a random order of all of them.

    A Feistel network permutes the next power of four; what lands beyond the size is sent on until
    it does not. So any part of the order is known without the rest.

    >>> sorted(shuffled(np.arange(10), 10, seed=3).tolist()) == list(range(10))
    True
    """
    half_bits = max((int(size - 1).bit_length() + 1) // 2, 1)
    moved = places.astype(np.uint64)
    outside = np.ones(len(moved), bool)
    while outside.any():
        moved[outside] = _permuted(moved[outside], half_bits, seed)
        outside = moved >= size
    return moved.astype(np.int64)


def _permuted(values: Keys, half_bits: int, seed: int) -> Keys:
    mask, shift = np.uint64(2**half_bits - 1), np.uint64(half_bits)
    left, right = values >> shift, values & mask
    for key in stream(seed, SHUFFLE, np.arange(ROUNDS, dtype=np.uint64)):
        left, right = right, left ^ (mix(right + key) & mask)
    return (left << shift) | right


def seed_of(seed: int, use: int) -> int:
    """Another seed for each use of one, so that the same riders do not turn up in all of them.

    >>> seed_of(0, 1) == seed_of(0, 1), seed_of(0, 1) == seed_of(0, 2)
    (True, False)
    """
    return int(stream(seed, SEEDS, np.array([use], np.uint64))[0] >> np.uint64(1))


def checked_seed(seed: Any, name: str = "seed") -> int:
    """A seed, or an error.

    >>> checked_seed(3)
    3
    """
    if not isinstance(seed, Integral) or isinstance(seed, bool) or not 0 <= int(seed) < 2**63:
        raise ValueError(
            f"The {name!r} parameter must be an int of at least 0 and below 2**63. "
            f"Got {seed!r} instead."
        )
    return int(seed)
