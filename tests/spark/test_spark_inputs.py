"""Bad input of the Spark forest: messages that name the column, before any job if possible."""

from __future__ import annotations

import numpy as np
import pytest
from test_spark_estimator import SMALL, columns_of_rows, frame_of

from spark_here import needs_spark

pytestmark = needs_spark


@pytest.fixture(scope="module")
def frame(spark):
    return frame_of(spark, columns_of_rows(100))


@pytest.fixture
def no_job(spark, monkeypatch):
    """Fail where a job would start: schemas tell enough."""
    from doseforest.spark import estimator

    def refuse(*arguments):
        raise AssertionError("a job was started")

    monkeypatch.setattr(estimator, "check_workers", refuse)
    monkeypatch.setattr(estimator, "summarise_frame", refuse)


def fit(frame, **changed):
    from doseforest.spark import SparkCausalForest

    return SparkCausalForest(**{**SMALL, **changed}).fit(frame)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"treatmentCol": "dose"}, "'treatmentCol' parameter must name a column .* Got 'dose'"),
        ({"labelCol": "y"}, "'labelCol' parameter must name a column .* Got 'y'"),
        ({"weightCol": "w"}, "'weightCol' parameter must name a column"),
        ({"groupCol": "g"}, "'groupCol' parameter must name a column"),
        ({"rowIdCol": "i"}, "'rowIdCol' parameter must name a column"),
        ({"featureCols": ["a", "d"]}, "'featureCols' parameter must name a column .* Got 'd'"),
        ({"featureCols": []}, "'featureCols' parameter must name a column"),
        ({"categoricalCols": ["d"]}, "'categoricalCols' parameter must name features. Got 'd'"),
        ({"nFolds": 1}, "'nFolds' parameter .* must be an int from 3 to 100. Got 1"),
        ({"nTrees": 0}, "'nTrees' parameter .* must be an int from 1"),
        ({"leafSizes": [0]}, "'leafSizes' parameter .* must be one int or more"),
        ({"sampleFraction": 1.0}, r"'sampleFraction' parameter .* must be a float in \(0, 1\)"),
        ({"growth": "fast"}, "'growth' parameter .* must be one of 'hybrid', 'rounds', 'tasks'"),
        ({"basis": "tensor"}, "'basis' parameter must be for one component .* Got 'tensor'"),
        ({"maxBins": 256}, "'maxBins' parameter .* must be an int from 2 to 255. Got 256"),
    ],
)
def test_what_the_schema_tells_is_refused_before_any_job(frame, no_job, changed, message):
    with pytest.raises(ValueError, match=message):
        fit(frame, **changed)


@pytest.mark.parametrize(
    ("column", "kind", "parameter"),
    [
        ("discount", "string", "treatmentCol"),
        ("spend", "array<double>", "labelCol"),
        ("a", "array<double>", "featureCols"),
        ("user", "double", "rowIdCol"),
    ],
)
def test_columns_of_the_wrong_type_are_refused_before_any_job(
    frame, no_job, column, kind, parameter
):
    from pyspark.sql import functions

    value = (
        functions.array(column) if kind.startswith("array") else functions.col(column).cast(kind)
    )
    changed = frame.withColumn(column, value)
    with pytest.raises(TypeError, match=f"'{parameter}' column '{column}' must hold .* Got {kind}"):
        fit(changed)


def test_an_unknown_parameter_is_refused(spark):
    from doseforest.spark import SparkCausalForest

    with pytest.raises(TypeError, match=r"must be given parameters that it has\. Got 'trees'"):
        SparkCausalForest(trees=3)


def with_value(spark, name, value, rows=slice(0, 3)):
    columns = columns_of_rows(100)
    columns[name] = np.array(columns[name], object)
    columns[name][rows] = value
    import pyarrow as pa

    table = {k: pa.array(v.tolist()) if k == name else v for k, v in columns.items()}
    return frame_of(spark, table)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("discount", None, "'treatmentCol' column 'discount' must hold .* Got 3 other row"),
        ("spend", None, "'labelCol' column 'spend' must hold .* Got 3 other row"),
        ("spend", float("nan"), "'labelCol' column 'spend' must hold finite numbers"),
        ("a", float("inf"), "'featureCols' column 'a' must hold finite .* Got 3 infinite"),
    ],
)
def test_values_that_say_nothing_are_refused(spark, name, value, message):
    with pytest.raises(ValueError, match=message):
        fit(with_value(spark, name, value))


@pytest.mark.parametrize("parameter", ["groupCol", "rowIdCol"])
@pytest.mark.parametrize("text", [True, False])
def test_rows_without_a_group_or_id_are_refused(spark, parameter, text):
    from pyspark.sql import functions

    ids = functions.when(functions.col("user") > 2, functions.col("user"))
    frame = frame_of(spark, columns_of_rows(100))
    frame = frame.withColumn("own", ids.cast("string") if text else ids)
    with pytest.raises(ValueError, match=f"'{parameter}' column 'own' must hold .* Got 3 other"):
        fit(frame, **{parameter: "own"})


def test_too_few_groups_for_the_folds_are_refused(frame):
    few = frame.selectExpr("*", "user % 5 as city")
    with pytest.raises(ValueError, match=r"'groupCol' column 'city' .* at least 9 .* Got 5"):
        fit(few, groupCol="city")


def test_rows_of_weight_0_may_lack_anything(spark):
    from pyspark.sql import functions

    from doseforest.spark.frame_columns import FrameColumns
    from doseforest.spark.frame_input import prepared_frame, summarise_frame, unit_blocks

    frame = frame_of(spark, columns_of_rows(100))
    frame = frame.withColumn("w", (functions.col("user") >= 10).cast("double"))
    for name in ("discount", "spend", "user"):
        frame = frame.withColumn(name, functions.expr(f"if(w > 0, {name}, null)"))
    columns = FrameColumns(("a", "b", "c"), ("discount",), "spend", weight="w", row_id="user")
    prepared = prepared_frame(frame, columns, None)
    summary = summarise_frame(prepared, columns, ("a", "b", "c"))
    assert summary.n_rows == 90
    blocks = unit_blocks(prepared, summary, n_folds=3, seed=0).collect()
    assert sorted(np.concatenate([block.ids for block in blocks])) == list(range(10, 100))


def test_nothing_is_as_good_as_not_given(spark):
    from doseforest.spark import SparkCausalForest

    forest = SparkCausalForest(doses=None, nTrees=None, numPartitions=None)
    assert forest.value("doses") is None
    assert forest.setNTrees(7).value("nTrees") == 7
    assert forest.setNTrees(None).value("nTrees") == 400
    assert forest.setParams(seed=None).value("seed") == 0


def test_one_dose_level_is_refused(spark):
    with pytest.raises(ValueError, match=r"'discount' must vary: .* Got 2 in every row"):
        fit(with_value(spark, "discount", 2.0, rows=slice(None)))


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_rows_are_refused(frame, n):
    with pytest.raises(ValueError, match=f"must have at least 40 rows .* Got {n} instead"):
        fit(frame.limit(n))


def test_negative_weights_are_refused(frame):
    with pytest.raises(ValueError, match="'weightCol' column 'w' must hold weights of 0 or more"):
        fit(frame.selectExpr("*", "a as w"), weightCol="w")


def test_vectors_of_varying_size_are_refused(frame):
    from pyspark.sql import functions

    short, long = functions.array("a"), functions.array("a", "b")
    mixed = frame.withColumn("x", functions.when(functions.col("user") < 5, short).otherwise(long))
    given = {name: own for name, own in SMALL.items() if name != "featureCols"}
    from doseforest.spark import SparkCausalForest

    with pytest.raises(ValueError, match=r"'featuresCol' column 'x' .* Got sizes from 1 to 2"):
        SparkCausalForest(**given, featuresCol="x").fit(mixed)


def test_a_cluster_asks_for_ids_that_last(frame):
    from types import SimpleNamespace

    from doseforest.spark.estimator import _check_ids
    from doseforest.spark.frame_columns import FrameColumns

    def cluster(folder=None):
        return SimpleNamespace(master="yarn", getCheckpointDir=lambda: folder)

    columns = FrameColumns(("a",), ("discount",), "spend")
    with pytest.raises(ValueError, match="'rowIdCol' parameter must name a column of ids"):
        _check_ids(cluster(), columns)
    assert _check_ids(cluster("hdfs:///checkpoints"), columns)
    assert not _check_ids(cluster(), FrameColumns(("a",), ("discount",), "spend", row_id="user"))


def test_persisted_rows_are_released_when_a_fit_fails(spark, frame, monkeypatch):
    from doseforest.spark import estimator

    def fail(units, *rest):
        units.blocks.count()
        raise RuntimeError("half-way")

    before = set(spark.sparkContext._jsc.getPersistentRDDs().keySet())
    monkeypatch.setattr(estimator, "fit_units", fail)
    with pytest.raises(RuntimeError, match="half-way"):
        fit(frame)
    assert set(spark.sparkContext._jsc.getPersistentRDDs().keySet()) == before
