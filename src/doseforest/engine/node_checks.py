"""Trees of a file, checked before anything walks them."""

from __future__ import annotations

import numpy as np

from doseforest.base.container import require_of
from doseforest.base.dtypes import LEAF, Array, IntArray


def check_trees(
    nodes: Array, roots: IntArray, *, n_leaves: int, n_features: int, flags: int, owner: str
) -> None:
    """Refuse trees whose links leave them or run in circles, or that split on no feature.

    Parameters
    ----------
    nodes : array of shape (n_nodes,)
        NODE_DTYPE, tree after tree, breadth-first in each.
    roots : array of shape (n_trees,)
    n_leaves : int
        Leaves over all trees, numbered in the order of their nodes.
    n_features : int
    flags : int
        Flags that a node may carry.
    owner : str
        Of the trees, as an error names it.

    Raises
    ------
    ForestFileError

    Examples
    --------
    >>> from doseforest.base.dtypes import NODE_DTYPE
    >>> loop = np.array([(0.5, 0, 0, 0, 0), (0, 0, 0, 0, LEAF), (0, 1, 0, 0, LEAF)], NODE_DTYPE)
    >>> root = np.array([0])
    >>> check_trees(loop, root, n_leaves=2, n_features=1, flags=LEAF, owner="forest")
    Traceback (most recent call last):
        ...
    doseforest.base.container.ForestFileError: the forest has broken links between nodes; ...
    """

    def require(condition: bool, problem: str) -> None:
        require_of(owner, condition, problem)

    n_nodes = len(nodes)
    require(n_nodes > 0 and len(roots) > 0, "has no trees")
    require(roots[0] == 0 and bool((roots[1:] > roots[:-1]).all()), "has roots out of order")
    require(int(roots[-1]) < n_nodes, "has a root beyond its nodes")
    require(not (nodes["flags"] & ~np.uint8(flags)).any(), "has unknown node flags")
    is_leaf = (nodes["flags"] & LEAF) > 0
    leaf_numbers = nodes["left"][is_leaf]
    require(
        len(leaf_numbers) == n_leaves
        and np.array_equal(leaf_numbers, np.arange(n_leaves, dtype=np.int32)),
        "has leaves out of order",
    )
    # Breadth-first order: the k-th split of a tree owns the k-th pair of nodes behind the root.
    # That leaves no room for a link to another tree, to itself or back up.
    sizes = np.diff(np.append(roots, n_nodes))
    tree = np.repeat(np.arange(len(roots)), sizes)
    splits = np.flatnonzero(~is_leaf)
    splits_before: IntArray = np.cumsum(~is_leaf) - ~is_leaf
    rank: IntArray = splits_before[splits] - splits_before[roots[tree[splits]]]
    expected = roots[tree[splits]] + 1 + 2 * rank
    require(np.array_equal(nodes["left"][splits], expected), "has broken links between nodes")
    require(bool((expected > splits).all()), "has a node that leads back up")
    n_splits = np.bincount(tree[splits], minlength=len(roots))
    require(np.array_equal(sizes, 2 * n_splits + 1), "has trees of the wrong size")
    require(bool((nodes["feature"][splits] < n_features).all()), "splits on no feature")
    require(not np.isnan(nodes["threshold"]).any(), "has a NaN threshold")
