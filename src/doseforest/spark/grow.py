"""From rows on executors to a finished forest, the same as the local engine's bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.data.binning import FeatureBins
from doseforest.data.feature_table import Categories
from doseforest.engine.forest import Forest
from doseforest.engine.growth.forest_builder import finish_group, join_groups, tree_groups
from doseforest.engine.growth.frontier import root_frontier
from doseforest.engine.growth.grower import StopRules, grow_below
from doseforest.engine.growth.node_table import NodeTable
from doseforest.engine.leaves.leaf_curves import LeafCurve, MeanCurve
from doseforest.spark.blocks import TrainingBlock
from doseforest.spark.engine import GrowthLimits, GrowthReport, SparkEngine
from doseforest.spark.growth_spec import GrowthSpec
from doseforest.spark.jobs import described
from doseforest.spark.routing import count_growing

LISTED_ROWS = 50_000_000  # in the row lists of a partition's trees that grow together, 4 bytes each
GROUP_BYTES = 256 * 2**20  # of leaf sums of trees that grow together: a core holds them


def grow_forest(
    blocks: Any,
    spec: GrowthSpec,
    bins: FeatureBins,
    *,
    n_trees: int,
    mode: str = "hybrid",
    limits: GrowthLimits | None = None,
    leaf_curve: LeafCurve | None = None,
    names: tuple[str, ...] | None = None,
    categories: Categories | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[Forest, GrowthReport]:
    """Grow a forest from an RDD of `TrainingBlock`, at most one block in a partition."""
    n_rows, most_rows, fallback, counts = _overall(blocks, spec, n_trees)
    engine = SparkEngine(
        blocks,
        spec,
        n_rows=n_rows,
        n_leaf_channels=len(fallback),
        counts=counts,
        mode=mode,
        limits=GrowthLimits() if limits is None else limits,
    )
    groups = []
    for trees in tree_groups(n_trees, _trees_at_once(spec, len(fallback), n_rows, most_rows)):
        table = _grow_group(engine, spec.rules, seed=spec.plan.seed, trees=trees)
        groups.append(finish_group(engine, trees, table, bins))
        on_progress(len(trees))
    grown = join_groups(groups)
    forest = Forest(
        nodes=grown.nodes,
        gains=grown.gains,
        roots=grown.roots,
        leaf_sums=grown.leaf_sums,
        leaf_weights=grown.leaf_weights,
        fallback=fallback,
        plan=spec.plan,
        leaf_curve=MeanCurve() if leaf_curve is None else leaf_curve,
        n_features=bins.n_features,
        n_training_rows=n_rows,
        feature_names=names,
        categories={} if categories is None else categories,
        category_sets=grown.category_sets,
    )
    return forest, engine.report


def _grow_group(engine: SparkEngine, rules: StopRules, *, seed: int, trees: IntArray) -> NodeTable:
    """Grow the top of the trees in rounds, and below it in tasks."""
    n_rows = engine.plant(trees)
    ends = np.cumsum(n_rows)
    table = NodeTable(len(trees), set_words=engine.set_words)
    engine.follow(table)
    grow_below(engine, rules, root_frontier(seed, trees, ends - n_rows, ends), table)
    engine.grow_open()
    return table


def _trees_at_once(spec: GrowthSpec, n_channels: int, n_rows: int, most_rows: int) -> int:
    """Trees whose lists of rows fit a partition and whose leaf sums fit a core and the driver."""
    by_rows = LISTED_ROWS // max(1, spec.plan.rows_per_tree(most_rows))
    leaves = spec.plan.rows_per_tree(n_rows) // max(1, spec.rules.min_node_size)
    by_leaves = GROUP_BYTES // (8 * (n_channels + 1) * max(1, leaves))
    return max(1, min(by_rows, by_leaves))


def _overall(blocks: Any, spec: GrowthSpec, n_trees: int) -> tuple[int, int, FloatArray, IntArray]:
    """Rows of all blocks and of the largest, the mean of what leaves sum, rows of each tree."""
    trees = np.arange(n_trees, dtype=np.int64)

    def partial(block: TrainingBlock) -> tuple[Any, ...]:
        weights, n_rows = block.weights, len(block.growth)
        total = float(n_rows) if weights is None else float(weights.sum(dtype=np.float64))
        sums = block.leaf_channels.sum(axis=0, dtype=np.float64)
        return n_rows, n_rows, sums, total, count_growing(spec, block.growth, trees)

    def joined(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return a[0] + b[0], max(a[1], b[1]), *(x + y for x, y in zip(a[2:], b[2:], strict=True))

    with described(blocks.context, f"lay out the rows of {n_trees} trees"):
        n_rows, most, sums, total, counts = blocks.map(partial).treeReduce(joined)
    return n_rows, most, sums / total, counts
