"""Leaf sums: what the rows that fill a leaf add up to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest import _core
from doseforest.data.sampling import SamplingPlan
from doseforest.dtypes import Array, BinArray, ChannelArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class LeafRows:
    """The rows that leaves are filled from. Leaf channels are apart from the split channels."""

    bins: BinArray  # (n_rows, n_features)
    n_bins: NDArray[np.int32]  # (n_features,)
    channels: ChannelArray  # (n_rows, n_leaf_channels), times the weights, on the exact grid
    weights: ChannelArray | None  # (n_rows,)
    sampling_ids: IntArray  # (n_rows,)

    def mean(self) -> FloatArray:
        """Mean of each channel over all rows: the answer of a forest without any filled tree."""
        total = float(len(self.channels))
        if self.weights is not None:
            total = float(self.weights.sum(dtype=np.float64))
        mean: FloatArray = self.channels.sum(axis=0, dtype=np.float64) / total
        return mean


def fill_leaves(
    rows: LeafRows,
    plan: SamplingPlan,
    trees: IntArray,
    roots: IntArray,
    nodes: Array,
    n_leaves: int,
    n_threads: int,
) -> tuple[FloatArray, FloatArray]:
    """Return the sums of channels (n_leaves, n_channels) and of weights (n_leaves,)."""
    sums = np.zeros((n_leaves, rows.channels.shape[1]))
    weights = np.zeros(n_leaves)
    _core.fill_leaves(
        plan.to_core(),
        trees,
        roots,
        nodes.view(np.uint8),
        rows.bins,
        rows.channels,
        rows.n_bins,
        rows.weights,
        rows.sampling_ids,
        n_threads,
        sums,
        weights,
    )
    return sums, weights
