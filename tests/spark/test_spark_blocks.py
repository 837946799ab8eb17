"""What runs on executors, block by block: no cluster is needed to see that it adds up."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from doseforest import CurveForest
from doseforest.base.dtypes import LEAF
from doseforest.data.sampling import SamplingPlan, root_keys
from doseforest.engine.growth.grower import StopRules
from doseforest.engine.growth.node_table import NodeTable
from doseforest.engine.leaves.leaf_sums import add_to_leaves, no_sums
from doseforest.engine.splits.mean_statistic import MeanCurveStatistic
from doseforest.spark.blocks import GrowthBlock, TrainingBlock
from doseforest.spark.growth_spec import GrowthSpec
from doseforest.spark.histogram_rounds import Round, sum_histograms
from doseforest.spark.leaf_parts import LeafGroup, add_parts, sum_leaves
from doseforest.spark.routing import PartialTrees, growing_rows
from doseforest.spark.subtrees import OpenNodes, ship_rows
from forests import wavy_data

N_ROWS, N_FEATURES, N_BINS, N_CHANNELS = 600, 3, 8, 4
SPLIT = np.split(np.arange(N_ROWS), [0, 250, 251, 500])  # the first has no row


def training_block(rows):
    rng = np.random.default_rng(0)
    bins = rng.integers(0, N_BINS, size=(N_ROWS, N_FEATURES), dtype=np.uint8)
    channels = np.rint(rng.normal(size=(N_ROWS, N_CHANNELS)) * 64).astype(np.float32) / 64
    growth = GrowthBlock(bins[rows], channels[rows], np.arange(N_ROWS)[rows])
    return TrainingBlock(growth, channels[rows], None)


@pytest.fixture
def spec():
    statistic = MeanCurveStatistic(
        channels=np.zeros((0, N_CHANNELS), np.float32),
        centre=np.zeros(N_CHANNELS),
        quadrature=np.ones(N_CHANNELS),
        distance="l2",
        weighted=False,
        zeta=0.0,
        positivity="none",
        noise_per_row=0.0,
    )
    n_bins = np.full(N_FEATURES, N_BINS, np.int32)
    return GrowthSpec(statistic, StopRules(min_node_size=5), SamplingPlan(seed=3), n_bins, mtry=2)


def roots(n_trees):
    """Partial trees that have not grown, and their open roots."""
    trees = np.arange(n_trees)
    depth, keys = np.zeros(n_trees, np.int64), root_keys(3, trees)
    opened = OpenNodes(trees, trees, depth, keys, np.full(n_trees, 150))
    return PartialTrees.of(trees, NodeTable(n_trees, set_words=0)), opened


def shipped(spec, n_trees, rows=None):
    trees, opened = roots(n_trees)
    block = training_block(np.arange(N_ROWS) if rows is None else rows).growth
    return block, list(ship_rows(spec, trees, [opened], block))


def test_a_task_of_many_trees_gets_the_block_as_it_is(spec):
    block, [(number, sent)] = shipped(spec, n_trees=20)
    assert number == 0
    assert sent is block


def test_a_task_of_few_trees_gets_the_rows_they_grow_by(spec):
    block, [(_, sent)] = shipped(spec, n_trees=2)
    wanted = np.unique(growing_rows(spec, block, roots(2)[0]).rows)
    np.testing.assert_array_equal(sent.ids, block.ids[wanted])


@pytest.mark.filterwarnings("error")
def test_a_block_without_rows_sends_nothing(spec):
    assert shipped(spec, n_trees=20, rows=np.arange(0))[1] == []


def test_histograms_of_several_blocks_are_those_of_one(spec):
    trees, opened = roots(4)
    task = Round(trees, opened.nodes, opened.tree, opened.keys)
    summed = partial(sum_histograms, spec, task)
    together = dict(summed([training_block(np.arange(N_ROWS)).growth]))
    apart = dict(summed(training_block(rows).growth for rows in SPLIT))
    assert together.keys() == apart.keys()
    for place, (sums, counts) in together.items():
        np.testing.assert_array_equal(sums, apart[place][0])
        np.testing.assert_array_equal(counts, apart[place][1])
        assert apart[place][0].base is None  # a view would keep other nodes' histograms alive


@pytest.mark.parametrize("part_leaves", [1, 7, 10_000])
def test_leaf_sums_of_cores_and_parts_are_those_of_all_rows(spec, part_leaves):
    x, y, doses = wavy_data(n=300, k=3)
    grown = CurveForest(n_trees=2, max_bins=N_BINS, mtry=2, random_state=1)
    nodes = grown.fit(x[:, :N_FEATURES], y, doses=doses).forest_.nodes
    n_leaves = int(((nodes["flags"] & LEAF) > 0).sum())
    group = LeafGroup(np.arange(2), nodes, None, n_leaves, N_CHANNELS, part_leaves)
    whole = training_block(np.arange(N_ROWS)).leaf_rows(spec.n_bins, None)
    expected = no_sums(n_leaves, N_CHANNELS)
    add_to_leaves(expected, whole, spec.plan, group.trees, nodes, None, n_threads=1)
    cores = [SPLIT[:2], SPLIT[2:], []]
    sent = []
    for own in cores:
        blocks = (training_block(rows).leaf_rows(spec.n_bins, None) for rows in own)
        sent += sum_leaves(spec.plan, group, blocks)
    found = no_sums(n_leaves, N_CHANNELS)
    for number in range(group.n_parts):
        parts = (part for place, part in sent if place == number)
        leaves, found.sums[leaves], found.weights[leaves] = add_parts(group, number, parts)
    np.testing.assert_array_equal(found.sums, expected.sums)
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert expected.weights.sum() > 0
