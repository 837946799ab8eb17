"""Nodes while trees grow, and their canonical order once grown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import (
    BY_SET,
    CATEGORICAL,
    LEAF,
    MISSING_LEFT,
    NODE_DTYPE,
    Array,
    FloatArray,
    IntArray,
    SetArray,
)
from doseforest.data.binning import FeatureBins
from doseforest.engine.growth.frontier import Splits


class NodeTable:
    """Nodes of a group of trees in the order in which they appeared.

    The first nodes are the roots; children stand side by side, behind their parent.
    """

    def __init__(self, n_trees: int, *, set_words: int = 0) -> None:
        self.n_nodes = n_trees
        self._cut = np.zeros((2 * n_trees, 3), np.int32)
        self._gain = np.zeros(2 * n_trees)
        self._left = np.full(2 * n_trees, -1, np.int64)
        self._sets = np.zeros((2 * n_trees, set_words), np.uint64)

    def split(self, nodes: IntArray, splits: Splits) -> IntArray:
        """Record splits and return the number of each new left child."""
        left = self.n_nodes + 2 * np.arange(len(nodes), dtype=np.int64)
        self.n_nodes += 2 * len(nodes)
        while len(self._left) < self.n_nodes:
            self._double()
        self._cut[nodes] = splits.cut
        self._gain[nodes] = splits.gain
        self._left[nodes] = left
        self._sets[nodes] = splits.sets
        return left

    def graft(self, leaves: IntArray, grown: NodeTable) -> None:
        """Put trees that were grown apart, as many as there are leaves, in the place of leaves."""
        first = self.n_nodes
        places = np.append(leaves, first + np.arange(grown.n_nodes - len(leaves)))
        self.n_nodes += grown.n_nodes - len(leaves)
        while len(self._left) < self.n_nodes:
            self._double()
        shift = first - len(leaves)  # children are never roots
        self._cut[places] = grown.cut
        self._gain[places] = grown.gain
        self._left[places] = np.where(grown.left < 0, -1, grown.left + shift)
        self._sets[places] = grown.all_sets

    def _double(self) -> None:
        self._cut = np.concatenate([self._cut, np.zeros_like(self._cut)])
        self._gain = np.concatenate([self._gain, np.zeros_like(self._gain)])
        self._left = np.concatenate([self._left, np.full_like(self._left, -1)])
        self._sets = np.concatenate([self._sets, np.zeros_like(self._sets)])

    @property
    def left(self) -> IntArray:
        """Left child of each node, -1 for a leaf."""
        return self._left[: self.n_nodes]

    @property
    def cut(self) -> NDArray[np.int32]:
        """Feature, bin and direction of missing values of each node."""
        return self._cut[: self.n_nodes]

    @property
    def gain(self) -> FloatArray:
        """Gain of each node's split, 0 for a leaf."""
        return self._gain[: self.n_nodes]

    @property
    def is_categorical(self) -> NDArray[np.bool_]:
        """Whether a node is split by a set of bins."""
        chosen: NDArray[np.bool_] = (self.left >= 0) & (self.cut[:, 1] == BY_SET)
        return chosen

    @property
    def all_sets(self) -> SetArray:
        """Set of every node, zeros where it is not split by one; no words without categories."""
        return self._sets[: self.n_nodes]

    @property
    def sets(self) -> SetArray | None:
        """Sets of the categorical nodes, in node order; None where there cannot be any."""
        return self.all_sets[self.is_categorical] if self._sets.shape[1] else None

    def records(self, bins: FeatureBins) -> Array:
        """Return the nodes as NODE_DTYPE records; leaves and sets are numbered in node order."""
        is_leaf, by_set = self.left < 0, self.is_categorical
        feature = np.where(is_leaf, 0, self.cut[:, 0]).astype(np.int64)
        cut_bin = np.where(by_set, 0, self.cut[:, 1]).astype(np.int64)
        records = np.zeros(self.n_nodes, NODE_DTYPE)
        records["threshold"] = np.where(is_leaf, 0.0, bins.threshold(feature, cut_bin))
        records["left"] = np.where(is_leaf, np.cumsum(is_leaf) - 1, self.left)
        records["feature"] = feature
        records["bin"] = np.where(is_leaf, 0, cut_bin)
        records["flags"] = np.where(is_leaf, LEAF, MISSING_LEFT * (self.cut[:, 2] > 0))
        records["threshold"][by_set] = np.arange(by_set.sum())
        records["flags"][by_set] |= CATEGORICAL
        return records


@dataclass(frozen=True, slots=True)
class OrderedTrees:
    """Trees after pruning, each in breadth-first order, one after another."""

    nodes: Array  # (n_nodes,) NODE_DTYPE, children numbered within the group
    gain: FloatArray  # (n_nodes,)
    roots: IntArray  # (n_trees,)
    leaves: IntArray  # (n_leaves,) each leaf's number before pruning
    sets: IntArray  # (n_sets,) each set's number before pruning


def prune_and_order(records: Array, gain: FloatArray, n_trees: int, filled: Array) -> OrderedTrees:
    """Drop the leaves that no row fills and put the nodes into an order that growth cannot change.

    A split with an empty side gives its place to the other side, all the way up; the order is
    breadth-first within a tree.

    Parameters
    ----------
    records : array of NODE_DTYPE
        Nodes in the order of growth: roots first, children behind their parents.
    gain : array of shape (n_nodes,)
    n_trees : int
    filled : array of bool, shape (n_leaves,)
        Whether a leaf holds any weight.
    """
    stand_in = _stand_ins(records, filled)
    order, tree_of = _breadth_first(records, stand_in, n_trees)
    by_tree = np.argsort(tree_of, kind="stable")
    order, tree_of = order[by_tree], tree_of[by_tree]
    new_number = np.full(len(records), -1, np.int64)
    new_number[order] = np.arange(len(order))

    nodes = records[order]
    is_leaf = (nodes["flags"] & LEAF) > 0
    old_leaves = nodes["left"][is_leaf].astype(np.int64)
    nodes["left"][is_leaf] = np.arange(len(old_leaves))
    nodes["left"][~is_leaf] = new_number[stand_in[nodes["left"][~is_leaf]]]
    by_set = (nodes["flags"] & CATEGORICAL) > 0
    old_sets = nodes["threshold"][by_set].astype(np.int64)
    nodes["threshold"][by_set] = np.arange(len(old_sets))
    return OrderedTrees(
        nodes=nodes,
        gain=np.where(is_leaf, 0.0, gain[order]),
        roots=np.searchsorted(tree_of, np.arange(n_trees)),
        leaves=old_leaves,
        sets=old_sets,
    )


def _stand_ins(records: Array, filled: Array) -> IntArray:
    """Return the node that takes each node's place when empty sides are dropped."""
    n = len(records)
    is_leaf = (records["flags"] & LEAF) > 0
    stand_in = np.arange(n, dtype=np.int64)
    holds = np.zeros(n, bool)
    holds[is_leaf] = filled[records["left"][is_leaf]]
    for level in reversed(_levels(records)):
        left = records["left"][level].astype(np.int64)
        right = left + 1
        holds[level] = holds[left] | holds[right]
        stand_in[level] = np.where(
            holds[left] & holds[right],
            level,
            np.where(holds[right], stand_in[right], stand_in[left]),
        )
    return stand_in


def _levels(records: Array) -> list[IntArray]:
    """Split nodes by depth, from the top; children stand behind their parents."""
    is_split = (records["flags"] & LEAF) == 0
    has_parent = np.zeros(len(records), bool)
    children = records["left"][is_split].astype(np.int64)
    has_parent[children] = has_parent[children + 1] = True
    level = np.flatnonzero(~has_parent & is_split)
    levels = []
    while len(level):
        levels.append(level)
        left = records["left"][level].astype(np.int64)
        below = np.stack([left, left + 1], axis=1).ravel()
        level = below[is_split[below]]
    return levels


def _breadth_first(records: Array, stand_in: IntArray, n_trees: int) -> tuple[IntArray, IntArray]:
    """Visit the kept nodes of all trees level by level; return nodes and their trees."""
    is_split = (records["flags"] & LEAF) == 0
    level = stand_in[:n_trees]
    tree = np.arange(n_trees, dtype=np.int64)
    orders, trees = [level], [tree]
    while True:
        going_on = is_split[level]
        left = records["left"][level[going_on]].astype(np.int64)
        if len(left) == 0:
            return np.concatenate(orders), np.concatenate(trees)
        level = stand_in[np.stack([left, left + 1], axis=1).ravel()]
        tree = np.repeat(tree[going_on], 2)
        orders.append(level)
        trees.append(tree)
