"""Trees of other libraries, once their text is read, as a `TreeEnsemble`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from doseforest.base.dtypes import LEAF, MISSING_LEFT, NODE_DTYPE
from doseforest.nuisance.outcome.booster_conversion import ReadTree, breadth_first, join_trees
from doseforest.nuisance.outcome.tree_ensemble import TreeEnsemble


@dataclass(slots=True)
class PlainTree:
    """A tree as lists; a child is the number of a split, or the complement of that of a leaf."""

    feature: list[int] = field(default_factory=list)  # of each split
    threshold: list[float] = field(default_factory=list)  # a value up to it goes left
    missing_left: list[bool] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)  # of each leaf

    def add_split(self, feature: int, threshold: float, missing_left: bool) -> int:
        """Add a split without children; its number."""
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.missing_left.append(missing_left)
        self.left.append(0)
        self.right.append(0)
        return len(self.feature) - 1

    def add_leaf(self, value: float) -> int:
        """Add a leaf; the complement of its number."""
        self.values.append(value)
        return ~(len(self.values) - 1)


def ensemble_from_trees(trees: Sequence[PlainTree], n_features: int) -> TreeEnsemble:
    """The sum of trees of covariates and, last, the dose.

    Parameters
    ----------
    n_features : int
        Covariates, without the dose.

    Examples
    --------
    >>> tree = PlainTree()
    >>> split = tree.add_split(feature=1, threshold=0.5, missing_left=False)
    >>> tree.left[split], tree.right[split] = tree.add_leaf(3.0), tree.add_leaf(7.0)
    >>> ensemble_from_trees([tree], 1).curves(np.zeros((1, 1)), np.array([0.5, 0.6]))
    array([[3., 7.]])
    """
    return join_trees([_read(tree) for tree in trees], n_features, "identity")


def _read(tree: PlainTree) -> ReadTree:
    codes, left = breadth_first(tree.left, tree.right)
    is_split = codes >= 0
    split, leaf = codes[is_split], ~codes[~is_split]
    nodes = np.zeros(len(codes), NODE_DTYPE)
    nodes["flags"] = LEAF
    if len(split):
        nodes["flags"][is_split] = MISSING_LEFT * np.array(tree.missing_left, np.int64)[split]
        nodes["threshold"][is_split] = np.array(tree.threshold)[split]
        nodes["feature"][is_split] = np.array(tree.feature)[split]
        nodes["left"][is_split] = left
    nodes["left"][~is_split] = np.arange(len(leaf))
    values, none = np.array(tree.values)[leaf], np.zeros(0, np.int64)
    return ReadTree(nodes, values, values, np.zeros_like(leaf), none, np.zeros(0))
