"""The rest of the trees in tasks: rows are shipped once, the local grower finishes subtrees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import IntArray
from doseforest.engine.growth.frontier import lone_frontier
from doseforest.engine.growth.grower import grow_below
from doseforest.engine.growth.node_table import NodeTable
from doseforest.spark.blocks import GrowthBlock
from doseforest.spark.growth_spec import GrowthSpec
from doseforest.spark.routing import PartialTrees, growing_rows

LIST_BYTES = 8  # of a row in a tree's list, and as much again while it is divided
LOOKED_AT = 2000  # rows of a block, for the share that a task needs
NEARLY_ALL = 0.95  # of the rows: drawing the rest out of every tree costs more than sending it


@dataclass(frozen=True, slots=True)
class OpenNodes:
    """Nodes whose subtrees are still to be grown."""

    nodes: IntArray  # (n,) numbers in the partial trees
    tree: IntArray  # (n,) place of the tree in its group
    depth: IntArray  # (n,)
    keys: NDArray[np.uint64]  # (n,)
    n_rows: IntArray  # (n,)

    def __len__(self) -> int:
        return len(self.nodes)

    def take(self, chosen: IntArray) -> OpenNodes:
        """Return some of the nodes."""
        return OpenNodes(
            self.nodes[chosen],
            self.tree[chosen],
            self.depth[chosen],
            self.keys[chosen],
            self.n_rows[chosen],
        )


def plan_tasks(
    opened: OpenNodes, *, n_rows: int, row_bytes: int, task_bytes: int, parallelism: int
) -> list[OpenNodes]:
    """Deal nodes out to tasks, as even as they come, none above its memory unless one node is.

    Trees share rows: a task receives a row once, however many of its trees want it.

    Examples
    --------
    >>> roots = OpenNodes(*(np.arange(4) for _ in range(3)), np.zeros(4, np.uint64), np.full(4, 50))
    >>> tasks = plan_tasks(roots, n_rows=100, row_bytes=20, task_bytes=10**6, parallelism=2)
    >>> [task.nodes.tolist() for task in tasks]
    [[0, 1], [2, 3]]
    """
    order = np.lexsort((opened.nodes, opened.tree))
    share = -(-int(opened.n_rows.sum()) // parallelism)
    tasks: list[list[int]] = []
    held = 0
    for place in order.tolist():
        own = int(opened.n_rows[place])
        together = held + own
        fits = min(n_rows, together) * row_bytes + together * LIST_BYTES <= task_bytes
        full = 2 * held + own > 2 * share  # nearer to its share without this node
        if not tasks or not fits or full:
            tasks.append([])
            together = own
        tasks[-1].append(place)
        held = together
    return [opened.take(np.array(task, np.int64)) for task in tasks]


def ship_rows(
    spec: GrowthSpec, partial: PartialTrees, tasks: list[OpenNodes], block: GrowthBlock
) -> Iterator[tuple[int, GrowthBlock]]:
    """Rows of a block that each task needs; all of them where all tasks need nearly all."""
    if not len(block):
        return
    looked_at = block.take(np.arange(0, len(block), 1 + len(block) // LOOKED_AT))
    if all(each.mean() >= NEARLY_ALL for each in _wanted(spec, partial, tasks, looked_at)):
        for number in range(len(tasks)):
            yield number, block
        return
    for number, each in enumerate(_wanted(spec, partial, tasks, block)):
        rows = np.flatnonzero(each)
        if len(rows):
            yield number, block.take(rows)


def _wanted(
    spec: GrowthSpec, partial: PartialTrees, tasks: list[OpenNodes], block: GrowthBlock
) -> Iterator[NDArray[np.bool_]]:
    """Which rows of a block each task needs."""
    result = growing_rows(spec, block, partial)
    for task in tasks:
        wanted = np.zeros(len(block), bool)
        for node in task.nodes.tolist():
            wanted[result.of(node)] = True
        yield wanted


def grow_subtrees(
    spec: GrowthSpec,
    partial: PartialTrees,
    task: OpenNodes,
    blocks: Iterable[GrowthBlock],
    histogram_bytes: int,
) -> NodeTable:
    """Grow the subtrees of a task to the end; the first nodes of the result are their roots."""
    block = GrowthBlock.join(blocks)
    result = growing_rows(spec, block, partial, np.unique(task.tree))
    own = [result.of(node) for node in task.nodes.tolist()]
    rows = np.concatenate(own)
    del result
    ends = np.cumsum([len(part) for part in own])
    starts = np.append(0, ends[:-1])
    engine = spec.local_engine(block, histogram_bytes)
    engine.plant_rows(partial.trees[task.tree], rows)
    table = NodeTable(len(task), set_words=spec.set_words)
    grow_below(engine, spec.rules, lone_frontier(task.keys, task.depth, starts, ends), table)
    return table
