"""Rows of a partition as arrays: what executors keep while a forest grows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import BinArray, ChannelArray, IntArray
from doseforest.engine.leaves.leaf_sums import LeafRows


@dataclass(frozen=True, slots=True)
class GrowthBlock:
    """Rows that trees are grown from."""

    bins: BinArray  # (n_rows, n_features)
    channels: ChannelArray  # (n_rows, padded) what splits are judged by, on the exact grid
    ids: IntArray  # (n_rows,) what rows are drawn by

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: NDArray[Any]) -> GrowthBlock:
        """Return some of the rows."""
        return GrowthBlock(self.bins[rows], self.channels[rows], self.ids[rows])

    @staticmethod
    def join(blocks: Iterable[GrowthBlock]) -> GrowthBlock:
        """Put blocks one behind the other.

        >>> bins, channels = np.zeros((2, 1), np.uint8), np.zeros((2, 4), np.float32)
        >>> one = GrowthBlock(bins, channels, np.arange(2))
        >>> len(GrowthBlock.join([one, one]))
        4
        """
        parts = list(blocks)
        return GrowthBlock(
            *(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(GrowthBlock))
        )


@dataclass(frozen=True, slots=True)
class TrainingBlock:
    """All rows of a partition: they grow trees and fill leaves."""

    growth: GrowthBlock
    leaf_channels: ChannelArray  # (n_rows, n_leaf_channels) times the weights, on the exact grid
    weights: ChannelArray | None  # (n_rows,)

    def leaf_rows(
        self, n_bins: NDArray[np.int32], categorical: NDArray[np.uint8] | None
    ) -> LeafRows:
        """Return the rows as leaves are filled from them."""
        return LeafRows(
            bins=self.growth.bins,
            n_bins=n_bins,
            channels=self.leaf_channels,
            weights=self.weights,
            sampling_ids=self.growth.ids,
            categorical=categorical,
        )
