"""Leaf sums of a cluster: a core adds up what all its rows bring, reducers add up the cores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import Array, ChannelArray, IntArray, SetArray
from doseforest.data.sampling import SamplingPlan
from doseforest.engine.leaves.leaf_sums import LeafRows, LeafSums, add_to_leaves, no_sums

PART_BYTES = 64 * 2**20  # of the sums that a reducer adds up


@dataclass(frozen=True, slots=True)
class LeafGroup:
    """A group of trees; the roots are the first nodes."""

    trees: IntArray
    nodes: Array  # NODE_DTYPE
    sets: SetArray | None
    n_leaves: int
    n_channels: int
    part_leaves: int  # leaves that go to one reducer

    @property
    def n_parts(self) -> int:
        """Reducers of the group."""
        return -(-self.n_leaves // self.part_leaves)


@dataclass(frozen=True, slots=True)
class PartSums:
    """Sums over the rows of one core, of the leaves of a part that it has rows for."""

    leaves: IntArray  # counted within the part
    sums: NDArray[np.float64]
    weights: NDArray[np.float64]


def leaves_of_part(n_channels: int) -> int:
    """How many leaves one reducer adds up.

    >>> leaves_of_part(33)
    246723
    """
    return max(1, PART_BYTES // (8 * (n_channels + 1)))


def sum_leaves(
    plan: SamplingPlan, group: LeafGroup, blocks: Iterable[LeafRows]
) -> Iterator[tuple[int, PartSums]]:
    """Sums over several blocks of rows, each part with its number."""
    total = no_sums(group.n_leaves, group.n_channels)
    for rows in blocks:
        add_to_leaves(total, rows, plan, group.trees, group.nodes, group.sets, n_threads=1)
    touched = np.flatnonzero((total.weights > 0) | (total.sums != 0).any(axis=1))
    bounds = np.arange(1, group.n_parts) * group.part_leaves
    for number, each in enumerate(np.split(touched, np.searchsorted(touched, bounds))):
        if len(each):
            first = number * group.part_leaves
            yield number, PartSums(each - first, total.sums[each], total.weights[each])


def add_parts(
    group: LeafGroup, number: int, parts: Iterable[PartSums]
) -> tuple[slice, ChannelArray, ChannelArray]:
    """Leaves of one part and their sums over all cores, rounded once, as forests keep them."""
    first = number * group.part_leaves
    leaves = slice(first, min(group.n_leaves, first + group.part_leaves))
    total: LeafSums = no_sums(leaves.stop - leaves.start, group.n_channels)
    for part in parts:
        total.sums[part.leaves] += part.sums
        total.weights[part.leaves] += part.weights
    return leaves, total.sums.astype(np.float32), total.weights.astype(np.float32)
