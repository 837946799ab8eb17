"""What executors must know to grow trees: everything but the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest import _core
from doseforest.base.dtypes import FloatArray, IntArray, set_words
from doseforest.data.sampling import SamplingPlan, root_keys
from doseforest.engine.growth.frontier import Splits
from doseforest.engine.growth.grower import StopRules
from doseforest.engine.growth.local_engine import LocalEngine
from doseforest.engine.leaves.leaf_sums import LeafRows
from doseforest.engine.splits.split_search import scan_histograms
from doseforest.engine.splits.split_statistics import SplitStatistic, is_compiled
from doseforest.spark.blocks import GrowthBlock


@dataclass(frozen=True, slots=True)
class GrowthSpec:
    """How trees are grown."""

    statistic: SplitStatistic  # its channels have no rows
    rules: StopRules
    plan: SamplingPlan
    n_bins: NDArray[np.int32]  # (n_features,)
    mtry: int
    mtry_per_tree: bool = False
    categorical: NDArray[np.uint8] | None = None  # (n_features,)

    @property
    def width(self) -> int:
        """Channels of a row, padding included."""
        return int(self.statistic.channels.shape[1])

    @property
    def n_cells(self) -> int:
        """Cells of a node's histogram, at most."""
        return int(np.sort(self.n_bins + 1)[-self.mtry :].sum())

    @property
    def histogram_bytes(self) -> int:
        """Bytes of a node's histogram."""
        return self.n_cells * (8 * self.width + 4)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row on its way to a task."""
        return len(self.n_bins) * (2 if int(self.n_bins.max()) > 255 else 1) + 4 * self.width + 8

    @property
    def set_words(self) -> int:
        """Words of a set of categories; 0 where no split may be by one."""
        return 0 if self.categorical is None else set_words(int(self.n_bins.max()))

    def features(self, trees: IntArray, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Features that nodes may split on, (n_nodes, mtry), by the nodes' trees and keys."""
        n_features = len(self.n_bins)
        if self.mtry == n_features:
            return np.tile(np.arange(n_features, dtype=np.int32), (len(keys), 1))
        out = np.empty((len(keys), self.mtry), np.int32)
        drawn = root_keys(self.plan.seed, trees) if self.mtry_per_tree else keys
        _core.select_features(self.plan.seed, drawn, n_features, 1, out)
        return out

    def best_splits(
        self, features: NDArray[np.int32], sums: FloatArray, counts: NDArray[np.uint32]
    ) -> Splits:
        """Best split of each histogram, by the code of the local engine."""
        if not is_compiled(self.statistic):
            return scan_histograms(
                self.statistic, self.rules, self.n_bins, features, sums, counts, self.categorical
            )
        splits = Splits.none(len(sums), set_words=self.set_words)
        rule = self.statistic.rule(
            min_rows=self.rules.min_node_size, min_fraction=self.rules.min_child_fraction
        )
        _core.scan_histograms(
            self.n_bins,
            rule,
            features,
            sums,
            counts,
            1,
            splits.gain,
            splits.cut,
            splits.sets,
            self.categorical,
        )
        return splits

    def local_engine(self, block: GrowthBlock, histogram_bytes: int) -> LocalEngine:
        """The local engine on rows that are here, for growth alone."""
        from dataclasses import replace

        rows = LeafRows(
            bins=block.bins,
            n_bins=self.n_bins,
            channels=block.channels[:, :0],
            weights=None,
            sampling_ids=block.ids,
            categorical=self.categorical,
        )
        return LocalEngine(
            rows,
            replace(self.statistic, channels=block.channels),  # type: ignore[type-var]
            self.rules,
            self.plan,
            mtry=self.mtry,
            mtry_per_tree=self.mtry_per_tree,
            n_threads=1,
            histogram_bytes=histogram_bytes,
        )
