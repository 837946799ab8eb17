"""From an engine to a finished forest: groups of trees are grown, filled, pruned and joined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import (
    CATEGORICAL,
    LEAF,
    NODE_DTYPE,
    Array,
    FloatArray,
    IntArray,
    SetArray,
    no_sets,
)
from doseforest.data.binning import FeatureBins
from doseforest.engine.growth.grower import Engine
from doseforest.engine.growth.node_table import NodeTable, prune_and_order


@dataclass(frozen=True, slots=True)
class GrownTrees:
    """The arrays of a forest; see the fields of the same names in `Forest`."""

    nodes: Array
    gains: FloatArray
    roots: IntArray
    leaf_sums: NDArray[np.float32]
    leaf_weights: NDArray[np.float32]
    category_sets: SetArray


def tree_groups(n_trees: int, trees_at_once: int) -> Iterator[IntArray]:
    """Numbers of the trees that grow together, group after group.

    >>> [group.tolist() for group in tree_groups(3, 2)]
    [[0, 1], [2]]
    """
    for first in range(0, n_trees, trees_at_once):
        yield np.arange(first, min(n_trees, first + trees_at_once), dtype=np.int64)


def finish_group(
    engine: Engine, trees: IntArray, table: NodeTable, bins: FeatureBins
) -> GrownTrees:
    """Fill the leaves of a group that has grown, and prune it."""
    records = table.records(bins)
    n_leaves = int(((records["flags"] & LEAF) > 0).sum())
    filled = engine.fill(trees, records, table.sets, n_leaves)
    ordered = prune_and_order(records, table.gain, len(trees), filled.weights > 0)
    return GrownTrees(
        nodes=ordered.nodes,
        gains=ordered.gain,
        roots=ordered.roots,
        leaf_sums=filled.sums.astype(np.float32)[ordered.leaves],
        leaf_weights=filled.weights.astype(np.float32)[ordered.leaves],
        category_sets=no_sets() if table.sets is None else table.sets[ordered.sets],
    )


def join_groups(groups: list[GrownTrees]) -> GrownTrees:
    """Put groups one behind the other, shifting node and leaf numbers."""
    n_nodes = sum(len(group.nodes) for group in groups)
    nodes = np.empty(n_nodes, NODE_DTYPE)
    roots = []
    first_node = first_leaf = first_set = 0
    for group in groups:
        part = nodes[first_node : first_node + len(group.nodes)]
        part[:] = group.nodes
        is_leaf = (part["flags"] & LEAF) > 0
        part["left"] += np.where(is_leaf, first_leaf, first_node).astype(np.int32)
        part["threshold"][(part["flags"] & CATEGORICAL) > 0] += first_set
        roots.append(group.roots + first_node)
        first_node += len(group.nodes)
        first_leaf += len(group.leaf_weights)
        first_set += len(group.category_sets)
    return GrownTrees(
        nodes=nodes,
        gains=np.concatenate([group.gains for group in groups]),
        roots=np.concatenate(roots),
        leaf_sums=np.concatenate([group.leaf_sums for group in groups]),
        leaf_weights=np.concatenate([group.leaf_weights for group in groups]),
        category_sets=np.concatenate([group.category_sets for group in groups]),
    )
