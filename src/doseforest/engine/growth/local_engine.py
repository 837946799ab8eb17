"""The local engine: all rows in memory, histograms summed by threads of this process."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from doseforest import _core
from doseforest.base.dtypes import Array, FloatArray, IntArray, SetArray, set_words
from doseforest.data.sampling import SamplingPlan, root_keys
from doseforest.engine.growth.frontier import Frontier, SearchNodes, Splits
from doseforest.engine.growth.grower import StopRules
from doseforest.engine.growth.histogram_slots import HistogramSlots
from doseforest.engine.leaves.leaf_sums import LeafRows, LeafSums, add_to_leaves, no_sums
from doseforest.engine.splits.guards import SplitGuard, first_passing
from doseforest.engine.splits.split_search import scan_histograms
from doseforest.engine.splits.split_statistics import SplitStatistic, is_compiled

# A kept histogram saves the pass over the larger child's rows; below this many rows a bin, the
# pass is cheaper than the traffic of keeping.
ROWS_PER_BIN_TO_KEEP = 4
CANDIDATES = 5  # splits of a node that a guard may refuse before the node stays a leaf
FAMILIES_AT_ONCE = 8192  # bounds the lists of a batch, not the histograms: those live in tiles


class LocalEngine:
    """Rows, their bins and channels in this process.

    Parameters
    ----------
    rows : LeafRows
        Bins of the rows, what leaves sum up, and the ids that rows are drawn by.
    statistic : SplitStatistic
        What splits are judged by.
    rules : StopRules
    plan : SamplingPlan
    mtry : int
        Features that a split may use.
    mtry_per_tree : bool
        Draw the features once per tree, not at every node.
    n_threads : int
    histogram_bytes : int
        Memory for kept histograms.
    grows : array of bool of shape (n_rows,), optional
        Rows that may grow trees; the others fill their leaves. By default the plan decides.
    guard : SplitGuard, optional
        What both children of a split must fulfil besides.
    """

    def __init__(
        self,
        rows: LeafRows,
        statistic: SplitStatistic,
        rules: StopRules,
        plan: SamplingPlan,
        *,
        mtry: int,
        mtry_per_tree: bool = False,
        n_threads: int = 1,
        histogram_bytes: int = 256 * 2**20,
        grows: NDArray[np.bool_] | None = None,
        guard: SplitGuard | None = None,
    ) -> None:
        self._leaf_rows = rows if grows is None else rows.where(~grows)
        self._growing = None if grows is None else np.flatnonzero(grows).astype(np.uint32)
        self._bins = rows.bins
        self._n_bins = rows.n_bins
        self._categorical = rows.categorical
        self._statistic = statistic
        self._rules = rules
        self._plan = plan
        self._ids = rows.sampling_ids if grows is None else rows.sampling_ids[grows]
        self._mtry = mtry
        self._mtry_per_tree = mtry_per_tree
        self._n_threads = n_threads
        self._histogram_bytes = histogram_bytes
        self._guard = guard
        self._n_candidates = 1 if guard is None else min(CANDIDATES, mtry)
        self._cells = int(np.sort(rows.n_bins + 1)[-mtry:].sum())
        self._compiled = is_compiled(statistic)
        self._rows = np.empty(0, np.uint32)
        self._tree_features = np.empty((0, mtry), np.int32)
        self._slots = HistogramSlots(0, self._cells, statistic.channels.shape[1])

    @property
    def capacity(self) -> int:
        """Families that may be searched at once."""
        if self._compiled:
            return FAMILIES_AT_ONCE
        return max(1, min(FAMILIES_AT_ONCE, int(self._histogram_bytes // (2 * self._slot_bytes))))

    @property
    def set_words(self) -> int:
        """Words of a set of categories; 0 where no split may be by one."""
        return 0 if self._categorical is None else set_words(int(self._n_bins.max()))

    @property
    def _slot_bytes(self) -> int:
        return self._cells * (8 * int(self._statistic.channels.shape[1]) + 4)

    def plant(self, trees: IntArray) -> IntArray:
        """Draw the rows of a group of trees and return how many grow each."""
        plan = self._plan.to_core()
        counts = np.empty(len(trees), np.int64)
        _core.count_rows(plan, trees, self._ids, self._n_threads, counts)
        ends = np.cumsum(counts)
        rows = np.empty(int(ends[-1]), np.uint32)
        _core.draw_rows(plan, trees, self._ids, self._n_threads, ends - counts, rows)
        self.plant_rows(trees, rows if self._growing is None else self._growing[rows])
        return counts

    def plant_rows(self, trees: IntArray, rows: NDArray[np.uint32]) -> None:
        """Take rows that were drawn already; `trees` tells whose they are, one after another."""
        self._rows = rows
        if self._mtry < len(self._n_bins) and self._mtry_per_tree:
            self._tree_features = self._draw_features(root_keys(self._plan.seed, trees))
        n_slots = self._n_slots(len(rows))
        if n_slots > self._slots.n_slots:  # otherwise the memory of the group before serves again
            self._slots = HistogramSlots(n_slots, self._cells, self._slots.sums.shape[2])
        self._slots.clear()

    def best_splits(self, families: Frontier, nodes: SearchNodes) -> Splits:
        """Find the best split of each node."""
        candidates = self._candidates(families, nodes)
        if self._guard is None:
            return candidates
        return first_passing(
            self._guard,
            candidates,
            len(nodes),
            lambda some, splits: self._child_sums(nodes.take(some), splits),
        )

    def _candidates(self, families: Frontier, nodes: SearchNodes) -> Splits:
        """Best splits of each node, as many as may be needed."""
        features = self._features(nodes)
        if not self._compiled:
            return self._splits_by_callable(nodes, features)
        splits = Splits.none(len(nodes) * self._n_candidates, set_words=self.set_words)
        _core.search(
            self._bins,
            self._statistic.channels,
            self._n_bins,
            self._rule(),
            self._rows,
            self._family_records(families, nodes),
            features,
            self._slots.sums,
            self._slots.counts,
            self._n_threads,
            splits.gain,
            splits.cut,
            splits.sets,
            self._categorical,
            self._n_candidates,
        )
        return splits

    def _child_sums(self, nodes: SearchNodes, splits: Splits) -> FloatArray:
        """Sums of the guard's channels over both children, (n_nodes, 2, n_channels)."""
        assert self._guard is not None
        sums = np.empty((len(nodes), 2, self._guard.channels.shape[1]))
        _core.child_sums(
            self._bins,
            self._guard.channels,
            self._n_bins,
            self._rows,
            np.stack([nodes.start, nodes.end], axis=1),
            splits.gain,
            splits.cut,
            splits.sets,
            self._n_threads,
            sums,
        )
        return sums

    def divide(self, nodes: SearchNodes, splits: Splits) -> IntArray:
        """Divide the rows of nodes by their splits; return where each right half starts."""
        middles = np.empty(len(nodes), np.int64)
        ranges = np.stack([nodes.start, nodes.end], axis=1)
        _core.partition(
            self._bins,
            self._n_bins,
            self._rows,
            ranges,
            splits.gain,
            splits.cut,
            splits.sets,
            self._n_threads,
            middles,
        )
        return middles

    def forget(self, nodes: IntArray) -> None:
        """Let go of what is kept for the children of these nodes: they will not be searched."""
        self._slots.release(nodes)

    def fill(self, trees: IntArray, nodes: Array, sets: SetArray | None, n_leaves: int) -> LeafSums:
        """Sum the leaf channels of the rows that fill the leaves; the roots are the first nodes."""
        rows, n_threads = self._leaf_rows, self._n_threads
        leaves = no_sums(n_leaves, rows.channels.shape[1])
        add_to_leaves(leaves, rows, self._plan, trees, nodes, sets, n_threads=n_threads)
        return leaves

    def _rule(self) -> _core.SplitRule:
        assert is_compiled(self._statistic)
        return self._statistic.rule(
            min_rows=self._rules.min_node_size, min_fraction=self._rules.min_child_fraction
        )

    def _draw_features(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        out = np.empty((len(keys), self._mtry), np.int32)
        _core.select_features(self._plan.seed, keys, len(self._n_bins), self._n_threads, out)
        return out

    def _features(self, nodes: SearchNodes) -> NDArray[np.int32]:
        """Features that each node may split on, (n_nodes, mtry), or one row for all of them."""
        if self._mtry == len(self._n_bins):
            return np.arange(self._mtry, dtype=np.int32)[None, :]
        if self._mtry_per_tree:
            return self._tree_features[nodes.tree]
        return self._draw_features(nodes.key)

    @property
    def _shares_features(self) -> bool:
        return self._mtry_per_tree or self._mtry == len(self._n_bins)

    def _rows_to_keep(self) -> int:
        return ROWS_PER_BIN_TO_KEEP * (self._cells // self._mtry)

    def _n_slots(self, n_rows: int) -> int:
        """Slots that the rows of a group can use and the memory cap allows."""
        if not (self._compiled and self._shares_features):
            return 0
        return int(min(n_rows // self._rows_to_keep(), self._histogram_bytes // self._slot_bytes))

    def _family_records(self, families: Frontier, nodes: SearchNodes) -> IntArray:
        """Families as the compiled search reads them: struct Family of cpp/engine.hpp."""
        records = np.full((len(families), 8), -1, np.int64)
        records[:, 0] = families.start
        records[:, 1] = families.middle
        records[:, 2] = families.end
        records[nodes.family, 3 + nodes.side] = np.arange(len(nodes))
        if self._slots.n_slots:
            records[:, 5] = self._slots.of(families.parent)
            records[:, 6:8] = self._slots.assign(families, self._rows_to_keep())
        return records

    def _splits_by_callable(self, nodes: SearchNodes, features: NDArray[np.int32]) -> Splits:
        n_channels = self._statistic.channels.shape[1]
        sums = np.empty((len(nodes), self._cells, n_channels))
        counts = np.empty((len(nodes), self._cells), np.uint32)
        ranges = np.stack([nodes.start, nodes.end], axis=1)
        _core.histograms(
            self._bins,
            self._statistic.channels,
            self._n_bins,
            self._rows,
            ranges,
            features,
            self._n_threads,
            sums,
            counts,
        )
        features = np.broadcast_to(features, (len(nodes), self._mtry))
        return scan_histograms(
            self._statistic,
            self._rules,
            self._n_bins,
            features,
            sums,
            counts,
            self._categorical,
            self._n_candidates,
        )
