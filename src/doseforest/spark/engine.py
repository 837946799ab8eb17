"""The Spark engine: rows stay on executors, splits and leaves come to the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array, IntArray, SetArray
from doseforest.engine.growth.frontier import Frontier, SearchNodes, Splits
from doseforest.engine.growth.node_table import NodeTable
from doseforest.engine.leaves.leaf_sums import LeafSums, no_sums
from doseforest.spark.blocks import TrainingBlock
from doseforest.spark.growth_spec import GrowthSpec
from doseforest.spark.histogram_rounds import Round, find_splits, sum_histograms
from doseforest.spark.jobs import broadcast, described
from doseforest.spark.leaf_parts import LeafGroup, add_parts, leaves_of_part, sum_leaves
from doseforest.spark.routing import PartialTrees
from doseforest.spark.subtrees import OpenNodes, grow_subtrees, plan_tasks, ship_rows

MODES = ("hybrid", "rounds", "tasks")
TASKS_PER_CORE = 4  # of Spark, at most: enough to even out, and to lose little with a worker


@dataclass(frozen=True, slots=True)
class GrowthLimits:
    """How much memory growth may take. None of it changes the trees."""

    task_bytes: int = 256 * 2**20  # of rows and their lists in a task
    round_bytes: int = 512 * 2**20  # of histograms that a core sums in a round
    kept_bytes: int = 256 * 2**20  # of histograms that a task keeps


@dataclass(slots=True)
class GrowthReport:
    """Which parts of the growth ran as rounds and which as tasks."""

    n_rounds: int = 0
    nodes_in_rounds: int = 0  # searched
    n_tasks: int = 0  # loads of rows, of which Spark's tasks take one after the other
    subtrees_in_tasks: int = 0
    rows_in_tasks: int = 0  # of all subtrees
    whole_trees_in_tasks: int = 0

    def add(self, other: GrowthReport) -> None:
        """Add what another growth did."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class SparkEngine:
    """An `Engine` of `doseforest.engine.growth.grower` whose rows are spread over a cluster.

    Parameters
    ----------
    blocks : RDD of TrainingBlock
        At most one block in a partition.
    spec : GrowthSpec
    n_rows : int
        Rows over all blocks.
    n_leaf_channels : int
    counts : array of shape (n_trees,)
        Rows that grow each tree, over all blocks.
    mode : {"hybrid", "rounds", "tasks"}
        Histograms are summed over the cluster down to the last split, never, or until the rows of
        a node fit one task.
    """

    blocks: Any
    spec: GrowthSpec
    n_rows: int
    n_leaf_channels: int
    counts: IntArray
    mode: str = "hybrid"
    limits: GrowthLimits = field(default_factory=GrowthLimits)
    report: GrowthReport = field(default_factory=GrowthReport)
    _trees: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    _table: NodeTable | None = None
    _left_rows: dict[int, int] = field(default_factory=dict)
    _open: list[OpenNodes] = field(default_factory=list)

    @property
    def capacity(self) -> int:
        """Families that may be searched at once: their histograms have to fit."""
        return max(1, self.limits.round_bytes // (2 * self.spec.histogram_bytes))

    @property
    def set_words(self) -> int:
        """Words of a set of categories; 0 where no split may be by one."""
        return self.spec.set_words

    @property
    def _parallelism(self) -> int:
        return max(1, int(self.blocks.context.defaultParallelism))

    def plant(self, trees: IntArray) -> IntArray:
        """Tell how many rows grow each tree; they were counted when rows were laid out."""
        self._trees = trees
        return self.counts[trees]

    def follow(self, table: NodeTable) -> None:
        """Look up in this table how far the trees have grown."""
        self._table = table
        self._open = []

    def best_splits(self, families: Frontier, nodes: SearchNodes) -> Splits:
        """Find the best split of each node; nodes that tasks will grow get none."""
        splits = Splits.none(len(nodes), set_words=self.set_words)
        put_off = self._fits_a_task(nodes)
        if put_off.any():
            taken = nodes.take(put_off)
            self._open.append(
                OpenNodes(taken.node, taken.tree, taken.depth, taken.key, taken.end - taken.start)
            )
        places = np.flatnonzero(~put_off)
        if len(places):
            self._search(nodes.take(places), places, splits)
        return splits

    def _fits_a_task(self, nodes: SearchNodes) -> Array:
        if self.mode != "hybrid":
            return np.full(len(nodes), self.mode == "tasks")
        # Far below this limit rows are also fewer bytes than a histogram from every core.
        return (nodes.end - nodes.start) * self.spec.row_bytes <= self.limits.task_bytes

    def _search(self, nodes: SearchNodes, places: IntArray, splits: Splits) -> None:
        spec = self.spec
        round_ = Round(self._partial(), nodes.node, self._trees[nodes.tree], nodes.key)
        self._left_rows.clear()
        text = f"round {self.report.n_rounds + 1}: best splits of {len(nodes)} nodes"
        n_reducers = min(len(nodes), self._parallelism)
        with self._described(text), broadcast(self.blocks.context, round_) as sent:
            summed = self._by_core.mapPartitions(
                lambda blocks: sum_histograms(spec, sent.value, (block.growth for block in blocks))
            )
            result = summed.partitionBy(n_reducers, _by_number).mapPartitions(
                lambda histograms: [find_splits(spec, sent.value, histograms)]
            )
            for each in result.collect():
                splits.gain[places[each.places]] = each.splits.gain
                splits.cut[places[each.places]] = each.splits.cut
                splits.sets[places[each.places]] = each.splits.sets
                numbers = nodes.node[each.places].tolist()
                self._left_rows.update(zip(numbers, each.left_rows.tolist(), strict=True))
        self.report.n_rounds += 1
        self.report.nodes_in_rounds += len(nodes)

    def divide(self, nodes: SearchNodes, splits: Splits) -> IntArray:
        """Where each right half would start: rows stay where they are."""
        left = [self._left_rows[node] for node in nodes.node.tolist()]
        return nodes.start + np.array(left, np.int64)

    def forget(self, nodes: IntArray) -> None:
        """Nothing is kept."""

    def grow_open(self) -> None:
        """Grow the subtrees that were put off, and graft them."""
        if not self._open:
            return
        spec, kept_bytes, table = self.spec, self.limits.kept_bytes, self._grown
        opened = OpenNodes(
            *(
                np.concatenate([getattr(each, name) for each in self._open])
                for name in OpenNodes.__dataclass_fields__
            )
        )
        tasks = plan_tasks(
            opened,
            n_rows=self.n_rows,
            row_bytes=spec.row_bytes,
            task_bytes=self.limits.task_bytes,
            parallelism=self._parallelism,
        )
        text = f"grow {len(opened)} subtrees in {len(tasks)} tasks"
        sent_value = self._partial(), tasks
        with self._described(text), broadcast(self.blocks.context, sent_value) as sent:
            shipped = self.blocks.flatMap(
                lambda block: ship_rows(spec, sent.value[0], sent.value[1], block.growth)
            ).partitionBy(len(tasks), _by_number)

            def grown(rows: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, NodeTable]]:
                partial, planned = sent.value
                for number, each in groupby(rows, key=_number_of):
                    blocks = (block for _, block in each)
                    yield number, grow_subtrees(spec, partial, planned[number], blocks, kept_bytes)

            # What one task of Spark costs by itself would grow a small subtree: each reads several
            # parts of the shuffle, one after the other, and holds one at a time.
            few = shipped.coalesce(min(len(tasks), TASKS_PER_CORE * self._parallelism))
            for number, each in few.mapPartitions(grown).collect():
                table.graft(tasks[number].nodes, each)
        self.report.n_tasks += len(tasks)
        self.report.subtrees_in_tasks += len(opened)
        self.report.rows_in_tasks += int(opened.n_rows.sum())
        self.report.whole_trees_in_tasks += int((opened.depth == 0).sum())
        self._open = []

    def fill(self, trees: IntArray, nodes: Array, sets: SetArray | None, n_leaves: int) -> LeafSums:
        """Sum the leaf channels of the rows that fill the leaves; the roots are the first nodes."""
        spec = self.spec
        width = self.n_leaf_channels
        group = LeafGroup(trees, nodes, sets, n_leaves, width, leaves_of_part(width))
        total = no_sums(n_leaves, width)
        text = f"fill the leaves of {len(trees)} trees"
        with self._described(text), broadcast(self.blocks.context, group) as sent:

            def sums(blocks: Iterable[TrainingBlock]) -> Iterator[Any]:
                rows = (block.leaf_rows(spec.n_bins, spec.categorical) for block in blocks)
                return sum_leaves(spec.plan, sent.value, rows)

            def added(number: int, parts: Iterable[Any]) -> list[Any]:
                return [add_parts(sent.value, number, (part for _, part in parts))]

            filled = self._by_core.mapPartitions(sums).partitionBy(group.n_parts, _by_number)
            for leaves, own_sums, weights in filled.mapPartitionsWithIndex(added).collect():
                total.sums[leaves] = own_sums
                total.weights[leaves] = weights
        return total

    @property
    def _by_core(self) -> Any:
        """The blocks in one partition a core: what a core adds up is not shuffled."""
        return self.blocks.coalesce(self._parallelism)

    @property
    def _grown(self) -> NodeTable:
        assert self._table is not None  # `follow` comes first
        return self._table

    def _partial(self) -> PartialTrees:
        return PartialTrees.of(self._trees, self._grown)

    def _described(self, text: str) -> Any:
        return described(self.blocks.context, text)


def _by_number(number: int) -> int:
    return number


def _number_of(pair: tuple[int, Any]) -> int:
    return pair[0]
