"""Rows of the nodes of partial trees: drawn by their hash and sent down from the root, every time.

Executors keep no state of rows between rounds: what is lost with one of them is recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest import _core
from doseforest.base.dtypes import IntArray, SetArray
from doseforest.engine.growth.node_table import NodeTable
from doseforest.spark.blocks import GrowthBlock
from doseforest.spark.growth_spec import GrowthSpec


@dataclass(frozen=True, slots=True)
class PartialTrees:
    """A group of trees as far as they have grown; the first nodes are the roots."""

    trees: IntArray  # (n_trees,)
    left: IntArray  # (n_nodes,) left child, the right one follows; -1: no split yet
    cut: NDArray[np.int32]  # (n_nodes, 3)
    gain: NDArray[np.float64]  # (n_nodes,)
    sets: SetArray  # (n_nodes, set words)

    @classmethod
    def of(cls, trees: IntArray, table: NodeTable) -> PartialTrees:
        """Copy the present state of a table."""
        return cls(
            trees, table.left.copy(), table.cut.copy(), table.gain.copy(), table.all_sets.copy()
        )


@dataclass(frozen=True, slots=True)
class NodeRows:
    """Rows of every node of partial trees in one block."""

    rows: NDArray[np.uint32]  # places in the block, tree after tree, node after node in each
    ranges: IntArray  # (n_nodes, 2) first and end of each node's rows

    def of(self, node: int) -> NDArray[np.uint32]:
        """Rows of one node."""
        start, end = self.ranges[node]
        return self.rows[start:end]


def growing_rows(
    spec: GrowthSpec, block: GrowthBlock, partial: PartialTrees, places: IntArray | None = None
) -> NodeRows:
    """Draw the rows that grow each tree and send them down as far as the trees have grown.

    With `places`, only for the trees at these places of the group; nodes of others get no rows.
    """
    roots = np.arange(len(partial.trees)) if places is None else places
    plan, trees = spec.plan.to_core(), partial.trees[roots]
    counts = count_growing(spec, block, trees)
    ends = np.cumsum(counts)
    rows = np.empty(int(ends[-1]), np.uint32)
    _core.draw_rows(plan, trees, block.ids, 1, ends - counts, rows)
    ranges = np.zeros((len(partial.left), 2), np.int64)
    ranges[roots] = np.stack([ends - counts, ends], axis=1)
    level = roots[partial.left[roots] >= 0]
    while len(level):
        middles = np.empty(len(level), np.int64)
        _core.partition(
            block.bins,
            spec.n_bins,
            rows,
            ranges[level],
            partial.gain[level],
            partial.cut[level],
            partial.sets[level],
            1,
            middles,
        )
        left = partial.left[level]
        ranges[left] = np.stack([ranges[level, 0], middles], axis=1)
        ranges[left + 1] = np.stack([middles, ranges[level, 1]], axis=1)
        below = np.stack([left, left + 1], axis=1).ravel()
        level = below[partial.left[below] >= 0]
    return NodeRows(rows, ranges)


def count_growing(spec: GrowthSpec, block: GrowthBlock, trees: IntArray) -> IntArray:
    """Rows of a block that grow each tree."""
    counts = np.empty(len(trees), np.int64)
    _core.count_rows(spec.plan.to_core(), trees, block.ids, 1, counts)
    return counts
