"""Spark grows the local engine's trees, bit by bit, however rows and work are spread out."""

from __future__ import annotations

import numpy as np
import pytest

from doseforest import CurveForest
from doseforest.data.binning import fit_bins
from doseforest.data.exact_grid import exact_channels
from doseforest.data.feature_table import categories_of, category_marks
from doseforest.doses.smoothing.kernel_channels import kernel_channels
from doseforest.engine import SplitByRatios, SplitByScores
from doseforest.engine.growth.grower import StopRules
from doseforest.engine.growth.growth_inputs import check_inputs
from doseforest.engine.growth.node_table import NodeTable
from doseforest.engine.splits.mean_splits import SplitByMeans
from doseforest.engine.splits.split_statistics import StatisticRows
from doseforest.estimator.corrections.moments import moment_channels
from forests import assert_same_bits, wavy_data
from spark_here import needs_spark

pytestmark = needs_spark

SETTINGS = {"n_trees": 5, "min_node_size": 5, "max_bins": 32, "random_state": 11}
VARIANTS = {
    "features drawn per node": {"mtry": 3},
    "features drawn per tree": {"mtry": 3, "mtry_scope": "tree"},
    "bootstrap of half-samples": {"sampling": "bootstrap", "bag_size": 2, "honesty": "forest"},
    "L1 and positivity": {"distance": "l1", "zeta": 0.5, "max_depth": 5},
    "user's distance": {"distance": lambda a, b, q: np.abs(a - b).max(axis=-1), "max_depth": 3},
    "ratios": {"statistic": SplitByRatios()},
    "scores": {"statistic": SplitByScores((0.1, 0.0))},
    "categories": {"categorical_features": [2, 3]},
    "hundreds of categories": {"categorical_features": [2, 4], "mtry": 3},
}


@pytest.fixture(scope="module")
def data():
    x, y, doses = wavy_data(n=1500, k=6)
    rng = np.random.default_rng(9)
    for column, n_codes in ((2, 6), (3, 60), (4, 400)):
        codes = np.minimum(rng.geometric(3 / n_codes, len(x)) - 1, n_codes - 1)
        x[:, column] = np.where(np.isnan(x[:, column]), np.nan, codes)
        y += rng.normal(size=(n_codes, 6))[codes]
    return {
        "X": x,
        "y": y,
        "doses": doses,
        "spread": rng.uniform(0.2, 1, size=len(x)),
        "sample_weight": rng.uniform(0.5, 2, size=len(x)),
        "row_ids": rng.permutation(len(x)) * 3 + 10,
        "treatment": rng.uniform(0, 1, size=len(x)),
    }


def arguments_of(forest, data):
    """What `CurveForest.fit` is given: the columns that its statistic sums, and their doses."""
    given = dict(data)
    dose = given["treatment"]
    if isinstance(forest.statistic, SplitByScores):
        functions = np.column_stack([dose - 0.5, (dose - 0.5) ** 2 - 1 / 12])
        given |= {"y": moment_channels(functions, data["y"][:, 3]), "doses": None}
    elif isinstance(forest.statistic, SplitByRatios):
        given["y"] = kernel_channels(dose, data["y"][:, 3], data["doses"], 0.3, "biweight")
    return given


def grow_on_spark(session, forest, given, *, n_partitions, mode, task_bytes=2**28, empty=False):
    """Lay rows out as `CurveForest` does, spread them over partitions, and grow."""
    from doseforest.spark.blocks import GrowthBlock, TrainingBlock
    from doseforest.spark.engine import GrowthLimits
    from doseforest.spark.grow import grow_forest
    from doseforest.spark.growth_spec import GrowthSpec

    recipe = forest.statistic or SplitByMeans()
    inputs = check_inputs(
        **given, statistic=recipe, categorical_features=forest.categorical_features
    )
    settings = forest._settings()
    plan = settings.plan
    statistic = recipe.lay_out(
        StatisticRows(
            values=inputs.curves,
            doses=inputs.doses,
            quadrature=inputs.quadrature,
            distance=forest.distance,
            weights=inputs.weights,
            spread=inputs.spread,
            zeta=float(forest.zeta),
            positivity=forest.positivity,
        )
    )
    bins = fit_bins(
        inputs.table,
        max_bins=forest.max_bins,
        weights=inputs.weights,
        row_ids=inputs.row_ids,
        seed=plan.seed,
    )
    binned = bins.transform(inputs.table)
    leaf_channels = exact_channels(inputs.leaf_channels, weights=inputs.weights, pad=False)
    owner = np.random.default_rng(3).integers(n_partitions, size=len(binned))
    if empty:
        owner[owner == 1] = 0
    blocks = [
        TrainingBlock(
            GrowthBlock(binned[rows], statistic.channels[rows], inputs.sampling_ids[rows]),
            leaf_channels[rows],
            None if inputs.weights is None else inputs.weights[rows],
        )
        for rows in (owner == part for part in range(n_partitions))
    ]
    spec = GrowthSpec(
        statistic=_without_rows(statistic),
        rules=StopRules(
            min_node_size=forest.min_node_size,
            max_depth=forest.max_depth,
            noise_per_row=statistic.noise_per_row,
        ),
        plan=plan,
        n_bins=bins.n_bins,
        mtry=settings.features_of_split(bins.n_features),
        mtry_per_tree=forest.mtry_scope == "tree",
        categorical=category_marks(categories_of(inputs.table), bins.n_features),
    )
    return grow_forest(
        session.sparkContext.parallelize(blocks, n_partitions),
        spec,
        bins,
        n_trees=forest.n_trees,
        mode=mode,
        limits=GrowthLimits(task_bytes=task_bytes),
        categories=categories_of(inputs.table),
    )


def _without_rows(statistic):
    from dataclasses import replace

    return replace(statistic, channels=statistic.channels[:0])


@pytest.fixture(scope="module")
def local(data):
    forest = CurveForest(**SETTINGS)
    return forest, forest.fit(**data).forest_


@pytest.mark.parametrize("n_partitions", [1, 3, 8])
@pytest.mark.parametrize(
    ("mode", "task_bytes"), [("rounds", 2**28), ("tasks", 2**28), ("hybrid", 6_000)]
)
def test_spark_grows_the_local_forest(spark, data, local, n_partitions, mode, task_bytes):
    forest, expected = local
    grown, report = grow_on_spark(
        spark, forest, data, n_partitions=n_partitions, mode=mode, task_bytes=task_bytes
    )
    assert_same_bits(expected, grown)
    assert (report.n_rounds > 0) == (mode != "tasks")
    assert (report.n_tasks > 0) == (mode != "rounds")
    assert report.whole_trees_in_tasks == (5 if mode == "tasks" else 0)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_kind_of_forest_is_the_local_one(spark, data, variant):
    forest = CurveForest(**{**SETTINGS, **VARIANTS[variant]})
    given = arguments_of(forest, data)
    grown, report = grow_on_spark(
        spark, forest, given, n_partitions=2, mode="hybrid", task_bytes=10_000
    )
    assert report.n_rounds > 0
    assert_same_bits(forest.fit(**given).forest_, grown)


def test_subtrees_that_share_a_task_are_the_same(spark, data, local, monkeypatch):
    from doseforest.spark import engine

    monkeypatch.setattr(engine, "TASKS_PER_CORE", 1)
    forest, expected = local
    grown, report = grow_on_spark(
        spark, forest, data, n_partitions=3, mode="hybrid", task_bytes=6_000
    )
    assert report.n_tasks > 2 * spark.sparkContext.defaultParallelism
    assert_same_bits(expected, grown)


def test_a_partition_without_rows_changes_nothing(spark, data, local):
    forest, expected = local
    grown, _ = grow_on_spark(
        spark, forest, data, n_partitions=3, mode="hybrid", task_bytes=20_000, empty=True
    )
    assert_same_bits(expected, grown)


def test_trees_that_fit_a_task_are_not_grown_in_rounds(spark, data, local):
    forest, expected = local
    grown, report = grow_on_spark(spark, forest, data, n_partitions=2, mode="hybrid")
    assert_same_bits(expected, grown)
    assert (report.n_rounds, report.whole_trees_in_tasks) == (0, 5)


def test_tasks_of_many_trees_grow_the_same_from_rows_that_are_sent_once(spark, data):
    forest = CurveForest(**{**SETTINGS, "n_trees": 40})
    grown, report = grow_on_spark(spark, forest, data, n_partitions=3, mode="tasks")
    assert report.whole_trees_in_tasks == 40  # of a quarter of the rows each, two tasks at most
    assert_same_bits(forest.fit(**data).forest_, grown)


def test_leaf_sums_of_several_reducers_are_the_same(spark, data, local, monkeypatch):
    from doseforest.spark import leaf_parts

    monkeypatch.setattr(leaf_parts, "PART_BYTES", 3000)
    forest, expected = local
    assert_same_bits(expected, grow_on_spark(spark, forest, data, n_partitions=2, mode="tasks")[0])


def test_groups_of_trees_are_the_same(spark, data, local, monkeypatch):
    from doseforest.spark import grow

    monkeypatch.setattr(grow, "LISTED_ROWS", 500)  # about two trees of a partition
    forest, expected = local
    assert_same_bits(expected, grow_on_spark(spark, forest, data, n_partitions=2, mode="tasks")[0])


def test_rounds_under_a_memory_cap_take_turns(spark, data, local, monkeypatch):
    from doseforest.spark import engine

    monkeypatch.setattr(engine.SparkEngine, "capacity", 2)
    forest = CurveForest(**{**SETTINGS, "min_node_size": 60})
    grown, report = grow_on_spark(spark, forest, data, n_partitions=2, mode="rounds")
    assert report.n_rounds > 5
    assert_same_bits(forest.fit(**data).forest_, grown)


def test_a_grafted_tree_stands_where_the_leaf_was():
    from doseforest.engine.growth.frontier import Splits

    def split(feature):
        return Splits(
            np.ones(1), np.array([[feature, 3, 0]], np.int32), np.zeros((1, 0), np.uint64)
        )

    whole, top, below = NodeTable(1), NodeTable(1), NodeTable(1)
    for table in (whole, top):
        table.split(np.array([0]), split(0))
    whole.split(np.array([2]), split(1))
    whole.split(np.array([3]), split(2))
    below.split(np.array([0]), split(1))
    below.split(np.array([1]), split(2))
    top.graft(np.array([2]), below)
    np.testing.assert_array_equal(top.left, whole.left)
    np.testing.assert_array_equal(top.cut, whole.cut)
