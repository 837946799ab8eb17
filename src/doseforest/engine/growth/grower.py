"""The grower: a loop over the frontier that knows how many rows nodes have, not where they live.

An engine holds the rows, finds the best split of each node, divides rows by splits and fills the
leaves; the grower decides which splits stand and which children go on. The result is the same for
any engine, batch size and order of work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from doseforest.base.dtypes import Array, IntArray, SetArray
from doseforest.engine.growth.frontier import (
    Frontier,
    SearchNodes,
    Splits,
    child_frontier,
    root_frontier,
)
from doseforest.engine.growth.node_table import NodeTable
from doseforest.engine.leaves.leaf_sums import LeafSums


class Engine(Protocol):
    """Where rows live. A new engine is a class with these members."""

    @property
    def capacity(self) -> int:
        """Families that may be searched at once under the memory cap."""

    @property
    def set_words(self) -> int:
        """Words of a set of categories; 0 where no split may be by one."""

    def plant(self, trees: IntArray) -> IntArray:
        """Draw the rows of a group of trees and return how many grow each."""

    def best_splits(self, families: Frontier, nodes: SearchNodes) -> Splits:
        """Find the best split of each node; `nodes` are the searched nodes of `families`."""

    def divide(self, nodes: SearchNodes, splits: Splits) -> IntArray:
        """Divide the rows of nodes by their splits; return where each right half starts."""

    def forget(self, nodes: IntArray) -> None:
        """Let go of what is kept for the children of these nodes: they will not be searched."""

    def fill(self, trees: IntArray, nodes: Array, sets: SetArray | None, n_leaves: int) -> LeafSums:
        """Sum the leaf channels of the rows that fill the leaves; the roots are the first nodes."""


@dataclass(frozen=True, slots=True)
class StopRules:
    """When a node stays a leaf."""

    min_node_size: int = 20  # smallest child, in rows
    min_info_gain: float = 0.0  # a split must gain more
    max_depth: int | None = None
    min_child_fraction: float = 0.0  # smallest child, as a share of its parent's rows
    noise_per_row: float = 0.0  # a split must also gain more than this per row


def grow_trees(engine: Engine, rules: StopRules, *, seed: int, trees: IntArray) -> NodeTable:
    """Grow a group of trees to the end, the deepest nodes first."""
    n_rows = engine.plant(trees)
    ends = np.cumsum(n_rows)
    table = NodeTable(len(trees), set_words=engine.set_words)
    grow_below(engine, rules, root_frontier(seed, trees, ends - n_rows, ends), table)
    return table


def grow_below(engine: Engine, rules: StopRules, roots: Frontier, table: NodeTable) -> None:
    """Grow whatever comes below some nodes of a table, whose rows the engine has."""
    frontier = _admitted(roots, rules)
    stack = [frontier] if len(frontier) else []
    while stack:
        families = _pop(stack, engine.capacity)
        nodes = families.nodes()
        splits = engine.best_splits(families, nodes)
        noise = rules.noise_per_row * (nodes.end - nodes.start)
        accepted = splits.gain > np.maximum(rules.min_info_gain, noise)
        engine.forget(nodes.node[~accepted])
        parents, splits = nodes.take(accepted), splits.take(accepted)
        middle = engine.divide(parents, splits)
        children = child_frontier(parents, middle, table.split(parents.node, splits))
        admitted = _admitted(children, rules)
        engine.forget(np.setdiff1d(children.parent, admitted.parent))
        if len(admitted):
            stack.append(admitted)


def _pop(stack: list[Frontier], capacity: int) -> Frontier:
    """Take at most `capacity` families from the top of the stack."""
    top = stack.pop()
    if len(top) > capacity:
        stack.append(top.take(slice(capacity, None)))
        top = top.take(slice(capacity))
    return top


def _admitted(families: Frontier, rules: StopRules) -> Frontier:
    """Keep the children that are large and shallow enough for a split."""
    sizes = np.stack([families.middle - families.start, families.end - families.middle], axis=1)
    may_split = families.searched & (sizes >= 2 * max(rules.min_node_size, 1))
    if rules.max_depth is not None:
        may_split &= (families.depth < rules.max_depth)[:, None]
    families.searched[:] = may_split
    return families.take(may_split[:, 0] | may_split[:, 1])
