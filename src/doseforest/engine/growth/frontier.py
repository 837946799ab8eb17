"""The frontier of growth: families of sibling nodes that wait for their splits.

Nodes are known by a key, a hash of the path from their tree's root, and own a stretch of their
tree's list of rows. Neither depends on the order in which nodes are worked off.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import IntArray, SetArray
from doseforest.data.sampling import child_keys, root_keys


@dataclass(frozen=True, slots=True)
class Frontier:
    """Families of two siblings; a root is a family with an empty right half."""

    tree: IntArray  # (n_families,) place of the tree in the group that grows together
    parent: IntArray  # node number of the parent; -1 for a root
    left: IntArray  # node number of the left child; the right one follows
    depth: IntArray  # of the children
    start: IntArray  # left child's rows: [start, middle); right child's: [middle, end)
    middle: IntArray
    end: IntArray
    keys: NDArray[np.uint64]  # (n_families, 2)
    searched: NDArray[np.bool_]  # (n_families, 2) which children may be split

    def __len__(self) -> int:
        return len(self.tree)

    def take(self, chosen: slice | NDArray[np.bool_]) -> Frontier:
        """Return some of the families."""
        return Frontier(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def nodes(self) -> SearchNodes:
        """Return the nodes to be searched, family by family, left before right."""
        family, side = np.nonzero(self.searched)
        return SearchNodes(
            family=family,
            side=side,
            tree=self.tree[family],
            node=self.left[family] + side,
            depth=self.depth[family],
            start=np.where(side == 0, self.start[family], self.middle[family]),
            end=np.where(side == 0, self.middle[family], self.end[family]),
            key=self.keys[family, side],
        )


@dataclass(frozen=True, slots=True)
class SearchNodes:
    """The nodes of a frontier that want a split, one entry each."""

    family: IntArray
    side: IntArray
    tree: IntArray
    node: IntArray
    depth: IntArray
    start: IntArray
    end: IntArray
    key: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.node)

    def take(self, chosen: NDArray[np.bool_] | IntArray) -> SearchNodes:
        """Return some of the nodes."""
        return SearchNodes(*(getattr(self, field.name)[chosen] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Splits:
    """The best split of each searched node, or the best few of each, node after node."""

    gain: NDArray[np.float64]  # -inf: no admissible split
    cut: NDArray[np.int32]  # (n, 3): feature, bin or BY_SET, missing_left
    sets: SetArray  # (n, set words) bins that go left; (n, 0) where no feature is categorical

    @classmethod
    def none(cls, n: int, *, set_words: int = 0) -> Splits:
        """Start without a split for any node."""
        cut = np.tile(np.array([-1, 0, 0], np.int32), (n, 1))
        return cls(np.full(n, -np.inf), cut, np.zeros((n, set_words), np.uint64))

    def take(self, chosen: NDArray[np.bool_] | IntArray) -> Splits:
        """Return some of the splits."""
        return Splits(self.gain[chosen], self.cut[chosen], self.sets[chosen])


def root_frontier(seed: int, trees: IntArray, starts: IntArray, ends: IntArray) -> Frontier:
    """Families of the roots of a group of trees."""
    depth = np.zeros(len(trees), np.int64)
    return lone_frontier(root_keys(seed, trees), depth, starts, ends)


def lone_frontier(
    keys: NDArray[np.uint64], depth: IntArray, starts: IntArray, ends: IntArray
) -> Frontier:
    """Families of nodes without a sibling, numbered from 0: roots, or what subtrees start from."""
    n = len(keys)
    numbers = np.arange(n, dtype=np.int64)
    return Frontier(
        tree=numbers,
        parent=np.full(n, -1, np.int64),
        left=numbers,
        depth=depth,
        start=starts,
        middle=ends,
        end=ends,
        keys=np.stack([keys, keys], axis=1),
        searched=np.tile(np.array([True, False]), (n, 1)),
    )


def child_frontier(nodes: SearchNodes, middle: IntArray, left: IntArray) -> Frontier:
    """Families of the children of nodes that were split."""
    return Frontier(
        tree=nodes.tree,
        parent=nodes.node,
        left=left,
        depth=nodes.depth + 1,
        start=nodes.start,
        middle=middle,
        end=nodes.end,
        keys=np.stack([child_keys(nodes.key, 0), child_keys(nodes.key, 1)], axis=1),
        searched=np.ones((len(nodes), 2), bool),
    )
