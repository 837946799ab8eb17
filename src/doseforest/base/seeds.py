"""Seeds: every draw is a hash of (seed, purpose, owner), and nothing is ever added to a seed.

Sums of seeds meet: the seed of a forest with leaves of 5 rows was that of the forest of fold 5. A
hash has no such neighbours. The mixing is that of `cpp/hashing.hpp`, element by element of arrays.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

_GOLDEN = 0x9E3779B97F4A7C15


class Purpose(IntEnum):
    """What a seed is derived for; no two have one number, and those of hashed rows are below 100.

    Examples
    --------
    >>> derive(0, Purpose.FOLDS, 0) == derive(0, Purpose.HALVES, 0)
    False
    """

    FOLDS = 101  # owner: the repeat
    HALVES = 102
    KNOWN_DENSITY = 103  # of rows whose density is not given
    SCALE = 104  # of what a mean leaves
    CORRECTION_FOREST = 105  # owners: the round and the leaf size
    BAGS = 106
    CHANGE_DRAW = 107  # owner: the draw
    BASELINE_STAGE = 108  # owner: the stage
    RESIDUAL_FOREST = 109  # on a cluster; owner: the fold
    OUTCOME_FOREST = 110  # on a cluster; owner: the fold
    TREATMENT_FOREST = 111  # on a cluster; owner: the fold
    GAIN_FOLDS = 112  # on which a cluster measures what a correction gains
    SHOWN_ROWS = 113  # of a cluster's overlap report
    PAPER_FOREST = 114
    DISTILLED_FOREST = 115
    DENSITY_FOREST = 116
    CHANGE_FOREST = 117
    RANDOM_HALVES = 118


def derive(seed: int, purpose: Purpose, *owners: int) -> int:
    """A seed of its own for each purpose and owner, of 64 bits.

    Parameters
    ----------
    seed : int
        The user's, or one derived from it.
    purpose : Purpose
        What is drawn with it.
    *owners : int
        Whose it is: a fold, a round and a leaf size; none where there is only one.

    Returns
    -------
    int
        From 0 to 2^64 - 1; `% 2**32` where a library takes no more.

    Examples
    --------
    >>> seeds = {derive(0, Purpose.CORRECTION_FOREST, number, size)
    ...          for number in range(100) for size in range(100)}
    >>> len(seeds)
    10000
    """
    first, *others = owners or (0,)
    key = stream(seed, purpose, np.array([first], np.uint64))
    for owner in others:
        key = draw(key, np.array([owner], np.uint64))
    return int(key[0])


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit integers (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def stream(seed: int, purpose: int, owner: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Key of the random stream of one purpose and each owner (a tree, a bag, a node)."""
    base = mix(np.array([seed], np.uint64) + golden(purpose))
    return mix(base + np.uint64(_GOLDEN) * owner)


def draw(keys: NDArray[np.uint64], items: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash of each item in a stream."""
    return mix(keys + np.uint64(_GOLDEN) * (items + np.uint64(1)))


def uniform(hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Numbers in [0, 1) from hashes."""
    return (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53


def golden(multiple: int) -> np.uint64:
    """A multiple of the golden ratio, in 64 bits."""
    return np.uint64(_GOLDEN * multiple % 2**64)
