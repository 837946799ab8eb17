"""One honest split of the whole sample, as the paper draws it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import IntArray


def n_growing(n_ids: int, alpha: float) -> int:
    """How many of the ids are in Omega1."""
    return round(alpha * n_ids)


def draw_honest_split(ids: IntArray, alpha: float, seed: int) -> NDArray[np.bool_]:
    """Mark the rows of Omega1, a share alpha of the ids; rows that share an id stay together.

    GCF step 1: nuisances and growth see Omega1, leaf estimates come from Omega2, the others.

    Examples
    --------
    >>> draw_honest_split(np.arange(10), 0.3, seed=0).sum()
    np.int64(3)
    >>> marks = draw_honest_split(np.array([0, 0, 1, 1]), 0.5, seed=0)
    >>> bool(marks[0] == marks[1] != marks[2])
    True
    """
    distinct, codes = np.unique(ids, return_inverse=True)
    ranks = np.random.default_rng(seed).permutation(len(distinct))
    marks: NDArray[np.bool_] = (ranks < n_growing(len(distinct), alpha))[codes]
    return marks
