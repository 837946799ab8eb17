"""Leaf sums by partition: trees in chunks, so that a chunk's leaves fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.data.sampling import SamplingPlan
from doseforest.dtypes import CATEGORICAL, LEAF, Array, ChannelArray, IntArray, SetArray
from doseforest.leaves.leaf_sums import LeafRows, LeafSums, fill_leaves

LEAF_BYTES = 64 * 2**20  # of a chunk's sums


@dataclass(frozen=True, slots=True)
class LeafChunk:
    """Some trees of a group, numbered for themselves; the roots are the first nodes."""

    trees: IntArray
    nodes: Array  # NODE_DTYPE
    sets: SetArray | None
    leaves: IntArray  # (n_leaves,) number of each leaf in the group


@dataclass(frozen=True, slots=True)
class PartSums:
    """Sums over one partition, of the leaves that it has rows for."""

    leaves: IntArray
    sums: NDArray[np.float64]
    weights: NDArray[np.float64]


def leaf_chunks(
    trees: IntArray, nodes: Array, sets: SetArray | None, n_channels: int
) -> list[LeafChunk]:
    """Cut a group of trees into chunks."""
    tree_of = _trees_of(nodes, len(trees))
    leaves_of = np.bincount(tree_of[(nodes["flags"] & LEAF) > 0], minlength=len(trees))
    bytes_of = leaves_of * 8 * (n_channels + 1)
    chunk_of = np.zeros(len(trees), np.int64)
    held, chunk = 0, 0
    for tree, own in enumerate(bytes_of.tolist()):
        if held and held + own > LEAF_BYTES:
            chunk, held = chunk + 1, 0
        chunk_of[tree] = chunk
        held += own
    return [
        _chunk(trees, nodes, sets, np.flatnonzero(chunk_of[tree_of] == number), chunk_of == number)
        for number in range(chunk + 1)
    ]


def _trees_of(nodes: Array, n_trees: int) -> IntArray:
    """Tree of each node: children stand behind their parents."""
    tree_of = np.full(len(nodes), -1, np.int64)
    level = np.arange(n_trees)
    tree_of[level] = level
    while len(level):
        split = level[(nodes["flags"][level] & LEAF) == 0]
        left = nodes["left"][split].astype(np.int64)
        tree_of[left] = tree_of[left + 1] = tree_of[split]
        level = np.concatenate([left, left + 1])
    return tree_of


def _chunk(
    trees: IntArray,
    nodes: Array,
    sets: SetArray | None,
    kept: IntArray,
    own_trees: NDArray[np.bool_],
) -> LeafChunk:
    own = nodes[kept]
    number = np.full(len(nodes), -1, np.int64)
    number[kept] = np.arange(len(kept))
    is_leaf = (own["flags"] & LEAF) > 0
    leaves = own["left"][is_leaf].astype(np.int64)
    own["left"][is_leaf] = np.arange(len(leaves))
    own["left"][~is_leaf] = number[own["left"][~is_leaf]]
    by_set = (own["flags"] & CATEGORICAL) > 0
    own_sets = None
    if sets is not None:
        own_sets = np.ascontiguousarray(sets[own["threshold"][by_set].astype(np.int64)])
        own["threshold"][by_set] = np.arange(by_set.sum())
    return LeafChunk(trees[own_trees], own, own_sets, leaves)


def sum_leaves(plan: SamplingPlan, chunk: LeafChunk, rows: LeafRows) -> PartSums:
    """Sums of a chunk's leaves over the rows of a partition."""
    filled = fill_leaves(rows, plan, chunk.trees, chunk.nodes, chunk.sets, len(chunk.leaves), 1)
    touched = np.flatnonzero((filled.weights > 0) | (filled.sums != 0).any(axis=1))
    return PartSums(touched, filled.sums[touched], filled.weights[touched])


def add_leaves(
    n_leaves: int, n_channels: int, parts: Iterable[PartSums]
) -> tuple[ChannelArray, ChannelArray]:
    """Sums over all partitions, rounded once, as forests keep them."""
    total = LeafSums(np.zeros((n_leaves, n_channels)), np.zeros(n_leaves))
    for part in parts:
        total.sums[part.leaves] += part.sums
        total.weights[part.leaves] += part.weights
    return total.sums.astype(np.float32), total.weights.astype(np.float32)


def all_sums(
    plan: SamplingPlan, chunks: list[LeafChunk], rows: LeafRows
) -> Iterator[tuple[int, PartSums]]:
    """Sums of every chunk over the rows of a partition, each with its number."""
    for number, chunk in enumerate(chunks):
        yield number, sum_leaves(plan, chunk, rows)
