"""Leaf sums: what the rows that fill a leaf add up to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest import _core
from doseforest.base.dtypes import Array, BinArray, ChannelArray, FloatArray, IntArray, SetArray
from doseforest.data.sampling import SamplingPlan


@dataclass(frozen=True, slots=True)
class LeafRows:
    """The rows that leaves are filled from. Leaf channels are apart from the split channels."""

    bins: BinArray  # (n_rows, n_features)
    n_bins: NDArray[np.int32]  # (n_features,)
    channels: ChannelArray  # (n_rows, n_leaf_channels), times the weights, on the exact grid
    weights: ChannelArray | None  # (n_rows,)
    sampling_ids: IntArray  # (n_rows,)
    categorical: NDArray[np.uint8] | None = None  # (n_features,): 1 where bins are categories

    def where(self, kept: NDArray[np.bool_]) -> LeafRows:
        """Return some of the rows."""
        return LeafRows(
            bins=self.bins[kept],
            n_bins=self.n_bins,
            channels=self.channels[kept],
            weights=None if self.weights is None else self.weights[kept],
            sampling_ids=self.sampling_ids[kept],
            categorical=self.categorical,
        )

    def mean(self) -> FloatArray:
        """Mean of each channel over all rows: the answer of a forest without any filled tree."""
        total = float(len(self.channels))
        if self.weights is not None:
            total = float(self.weights.sum(dtype=np.float64))
        mean: FloatArray = self.channels.sum(axis=0, dtype=np.float64) / total
        return mean


@dataclass(frozen=True, slots=True)
class LeafSums:
    """What leaves hold."""

    sums: FloatArray  # (n_leaves, n_leaf_channels)
    weights: FloatArray  # (n_leaves,)


def no_sums(n_leaves: int, n_channels: int) -> LeafSums:
    """Leaves that hold nothing yet."""
    return LeafSums(np.zeros((n_leaves, n_channels)), np.zeros(n_leaves))


def add_to_leaves(
    leaves: LeafSums,
    rows: LeafRows,
    plan: SamplingPlan,
    trees: IntArray,
    nodes: Array,
    sets: SetArray | None,
    *,
    n_threads: int,
) -> None:
    """Send the rows that fill trees down to their leaves; the roots are the first nodes."""
    _core.fill_leaves(
        plan.to_core(),
        trees,
        np.arange(len(trees), dtype=np.int64),
        nodes.view(np.uint8),
        sets,
        rows.bins,
        rows.channels,
        rows.n_bins,
        rows.weights,
        rows.sampling_ids,
        n_threads,
        leaves.sums,
        leaves.weights,
    )
