"""One tree of a forest down to some depth, with what every node of it holds."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import LEAF, Array, FloatArray, IntArray
from doseforest.engine.look_inside.node_names import checked_depth

if TYPE_CHECKING:
    from doseforest.engine.forest import Forest


@dataclass(frozen=True, slots=True, eq=False)
class TreeView:
    """The shown nodes of a tree in reading order: a node, then its left side, then its right one.

    A split at the last shown depth stands for all that is below it.
    """

    nodes: IntArray  # (n_shown,) numbers in the forest's node table
    depths: IntArray  # (n_shown,)
    parents: IntArray  # (n_shown,) place of the parent in this view, -1 for the root
    branches: NDArray[np.bool_]  # (n_shown,) a split whose children are shown
    n_leaves: IntArray  # (n_shown,) leaves below, 1 for a leaf
    weights: FloatArray  # (n_shown,) of the rows that fill the leaves below
    gains: FloatArray  # (n_shown,) of the splits, 0 at leaves
    curves: FloatArray  # (n_shown, n_doses) of the rows below together

    @property
    def n_shown(self) -> int:
        """Number of shown nodes."""
        return len(self.nodes)


def view_tree(forest: Forest, tree: int, max_depth: int | None) -> TreeView:
    """Take a tree out of a forest.

    Examples
    --------
    >>> from doseforest import CurveForest
    >>> x = np.arange(40.0)[:, None]
    >>> forest = CurveForest(1, honesty="none", random_state=0).fit(x, x > 20).forest_
    >>> view_tree(forest, 0, max_depth=0).depths
    array([0])
    """
    if not isinstance(tree, Integral) or not 0 <= tree < forest.n_trees:
        raise ValueError(
            f"The 'tree' parameter must be an int in [0, {forest.n_trees}), the number of a tree. "
            f"Got {tree!r} instead."
        )
    first = int(forest.roots[tree])
    end = int(forest.roots[tree + 1]) if tree + 1 < forest.n_trees else len(forest.nodes)
    nodes = forest.nodes[first:end]
    levels = _levels(nodes, first)
    sums, weights, n_leaves = _sums_below(forest, nodes, first, levels)
    last = len(levels) - 1 if max_depth is None else min(checked_depth(max_depth), len(levels) - 1)
    order, depths, parents = _reading_order(nodes, first, levels[: last + 1])
    branches = ((nodes["flags"][order] & LEAF) == 0) & (depths < last)
    return TreeView(
        nodes=first + order,
        depths=depths,
        parents=parents,
        branches=branches,
        n_leaves=n_leaves[order],
        weights=weights[order],
        gains=forest.gains[first:end][order],
        curves=_curves(forest, sums[order], weights[order]),
    )


def _levels(nodes: Array, first: int) -> list[IntArray]:
    """Places of a tree's nodes, level by level."""
    is_split = (nodes["flags"] & LEAF) == 0
    levels = [np.zeros(1, np.int64)]
    while True:
        parents = levels[-1][is_split[levels[-1]]]
        if len(parents) == 0:
            return levels
        left = nodes["left"][parents].astype(np.int64) - first
        levels.append(np.stack([left, left + 1], axis=1).ravel())


def _sums_below(
    forest: Forest, nodes: Array, first: int, levels: list[IntArray]
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Leaf sums, weights and numbers of leaves of each node, added up from the lowest level."""
    is_leaf = (nodes["flags"] & LEAF) > 0
    leaves = nodes["left"][is_leaf]
    sums = np.zeros((len(nodes), forest.leaf_sums.shape[1]))
    weights = np.zeros(len(nodes))
    n_leaves = is_leaf.astype(np.int64)
    sums[is_leaf] = forest.leaf_sums[leaves]
    weights[is_leaf] = forest.leaf_weights[leaves]
    for level in reversed(levels[:-1]):
        parents = level[~is_leaf[level]]
        left = nodes["left"][parents].astype(np.int64) - first
        for totals in (sums, weights, n_leaves):
            totals[parents] = totals[left] + totals[left + 1]
    return sums, weights, n_leaves


def _reading_order(
    nodes: Array, first: int, levels: list[IntArray]
) -> tuple[IntArray, IntArray, IntArray]:
    """Nodes of the levels, parents before their left and right sides; depths; places of parents.

    Sizes are added up from below, places given out from above: no recursion, however deep.
    """
    is_split = (nodes["flags"] & LEAF) == 0
    sizes = np.ones(len(nodes), np.int64)
    families = []
    for level in levels[:-1]:
        parents = level[is_split[level]]
        families.append((parents, nodes["left"][parents].astype(np.int64) - first))
    for parents, left in reversed(families):
        sizes[parents] += sizes[left] + sizes[left + 1]
    places = np.zeros(len(nodes), np.int64)
    depths = np.zeros(len(nodes), np.int64)
    owners = np.full(len(nodes), -1, np.int64)
    for parents, left in families:
        places[left] = places[parents] + 1
        places[left + 1] = places[left] + sizes[left]
        for side in (left, left + 1):
            depths[side] = depths[parents] + 1
            owners[side] = places[parents]
    shown = np.concatenate(levels)
    order = shown[np.argsort(places[shown])]
    return order, depths[order], owners[order]


def _curves(forest: Forest, sums: FloatArray, weights: FloatArray) -> FloatArray:
    """Curves of nodes from their sums; one that no row fills has the overall mean."""
    filled = weights[:, None] > 0
    means = np.where(filled, sums / np.where(filled, weights[:, None], 1.0), forest.fallback)
    return forest.leaf_curve.solve(means, forest.fallback, 1)
