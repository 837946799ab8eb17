"""Categories on Spark: codes, numbers and trees of the local estimator, and files that travel."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from test_spark_estimator import SMALL

from doseforest import CurveForest, load_forest
from doseforest.data.feature_table import ArrayTable, as_table
from doseforest.estimator.training_rows import check_training
from doseforest.nuisance.encoding.category_encoding import fit_encoder
from forests import assert_same_bits
from spark_here import needs_spark

pytestmark = needs_spark

N_ROWS, N_FOLDS = 600, 3
FEATURES = ("city", "member", "plan", "age")


def columns_of_rows(n=N_ROWS, seed=0):
    """Slope 3 in Lyon and 1 elsewhere; 30 cities, some of them rare; gaps in cities and plans."""
    rng = np.random.default_rng(seed)
    rank = np.minimum(rng.geometric(0.2, n) - 1, 29)
    city = np.array(["Lyon", *(f"city {k}" for k in range(29))], object)[rank]
    age = rng.integers(-1, 2, n).astype(float)
    dose = np.clip(5 + (rank > 2) + 2 * rng.normal(size=n), 0, 10)
    slope = np.where(city == "Lyon", 3.0, 1.0)
    spend = slope * dose + age + (rank % 3) + rng.normal(size=n)
    city[rng.random(n) < 0.03] = None
    plan = rng.integers(2, 5, n).astype(float)
    plan[rng.random(n) < 0.05] = np.nan
    return {
        "user": np.arange(n),
        "city": city,
        "member": rng.random(n) < 0.5,
        "plan": plan,
        "age": age,
        "discount": dose,
        "spend": spend,
        "slope": slope,
    }


def frame_of(spark, columns, n_partitions=3):
    table = {name: pa.array(own.tolist()) for name, own in columns.items()}
    return spark.createDataFrame(pa.table(table)).repartition(n_partitions, "user")


@pytest.fixture(scope="module")
def columns():
    return columns_of_rows()


@pytest.fixture(scope="module")
def frame(spark, columns):
    return frame_of(spark, columns)


@pytest.fixture(scope="module")
def local_rows(columns):
    table = pd.DataFrame({name: columns[name] for name in FEATURES})
    return check_training(
        table, columns["spend"], columns["discount"], categorical_features=["plan"]
    )


@pytest.fixture(scope="module")
def units(frame, local_rows):
    from doseforest.spark.cluster_units import Units
    from doseforest.spark.frame_columns import FrameColumns
    from doseforest.spark.frame_input import (
        prepared_frame,
        summarise_frame,
        unit_blocks,
        with_labels,
    )
    from doseforest.spark.jobs import Kept

    named = FrameColumns(FEATURES, ("discount",), "spend", row_id="user", categorical=("plan",))
    prepared = prepared_frame(frame, named, None)
    summary = with_labels(frame, prepared, named, summarise_frame(prepared, named, FEATURES))
    assert summary.categories == local_rows.categories
    with Kept() as kept:
        blocks = kept.keep(unit_blocks(prepared, summary, N_FOLDS, 0))
        yield Units(blocks, kept, N_ROWS, len(FEATURES), N_FOLDS, 0, weighted=False)


def test_codes_are_the_local_ones(units, local_rows):
    blocks = units.blocks.map(lambda block: (block.ids, block.X)).collect()
    ids = np.concatenate([own for own, _ in blocks])
    codes = np.concatenate([own for _, own in blocks])[np.argsort(ids)]
    np.testing.assert_array_equal(codes, local_rows.X)


def test_numbers_of_new_units_are_the_local_ones(units, local_rows):
    from doseforest.spark.category_sums import encode_units

    encoder = encode_units(units, local_rows.category_counts())
    doses = local_rows.dose.values[:, None]
    expected, _ = fit_encoder(
        local_rows.X,
        local_rows.category_counts(),
        np.column_stack([local_rows.y, doses]),
        doses=doses,
    )
    queries = np.vstack([local_rows.X, np.full((1, 4), np.nan)])
    assert units.n_numbers == expected.n_columns
    # Sums are taken in another order.
    np.testing.assert_allclose(
        encoder.encode(queries)[:, 2:], expected.encode(queries)[:, 2:], atol=1e-9
    )
    blocks = units.blocks.map(lambda block: (block.X, block.folds, block.numbers)).collect()
    rows = [np.concatenate(each) for each in zip(*blocks, strict=True)]
    first = rows[1] == 0
    # Training rows have numbers without their own fold: other ones than new units have.
    assert np.abs(rows[2][first] - encoder.encode(rows[0][first])).max() > 1e-3


def test_trees_split_on_sets_of_categories_as_the_local_ones(units, local_rows):
    from doseforest.data.binning import fit_bins
    from doseforest.spark.fold_forests import BinnedFeatures
    from doseforest.spark.forests import ForestPlan, ForestRows, distributed_forest

    codes = {f: tuple(range(n)) for f, n in local_rows.category_counts().items()}
    table = ArrayTable(local_rows.X, categories=codes)
    bins = fit_bins(table, max_bins=64)
    counts = local_rows.category_counts()

    def rows(block):
        values = np.column_stack([block.y, block.dose * block.y])
        return ForestRows(bins.transform(as_table(block.X)), block.ids, None, values, values)

    plan = ForestPlan(n_trees=4, min_node_size=10, seed=7)
    splits = BinnedFeatures(bins, counts=counts)
    grown, _ = distributed_forest(units.blocks.map(rows), bins, plan, categories=splits.categories)
    y, dose = local_rows.y, local_rows.dose.values
    local = CurveForest(4, min_node_size=10, random_state=7, categorical_features=list(counts)).fit(
        local_rows.X, np.column_stack([y, dose * y])
    )
    assert len(grown.category_sets) > 0
    assert_same_bits(local.forest_, grown)


@pytest.fixture(scope="module")
def model(frame):
    from doseforest.spark import SparkCausalForest

    given = {**SMALL, "featureCols": list(FEATURES), "categoricalCols": ["plan"]}
    return SparkCausalForest(**given).fit(frame)


def test_effects_follow_the_categories(model, columns):
    table = pd.DataFrame({name: columns[name] for name in FEATURES})
    effects = model.toLocal().effect(table, 8.0, 2.0)
    in_lyon = columns["city"] == "Lyon"
    # 18 in Lyon, which has a fifth of the 600 rows, and 6 elsewhere; noise of 1.
    assert abs(effects[in_lyon].mean() - 18.0) < 3.0
    elsewhere = ~in_lyon & (columns["slope"] == 1.0)
    assert abs(effects[elsewhere].mean() - 6.0) < 2.0


def test_unseen_and_null_labels_are_answered_as_by_the_file(model, spark, tmp_path):
    new = columns_of_rows(50, seed=1)
    new["city"][:3] = ["Atlantis", None, "Lyon"]
    new["plan"][:2] = [9.0, np.nan]
    scored = model.transform(frame_of(spark, new)).orderBy("user").toArrow()
    model.saveForest(tmp_path / "forest.dose")
    local = load_forest(tmp_path / "forest.dose")
    table = pd.DataFrame({name: new[name] for name in FEATURES})
    np.testing.assert_allclose(
        np.array(scored["curve"].to_pylist()), local.dose_response(table, [2.0, 8.0]), rtol=1e-9
    )
    own = local.dose_response(table, new["discount"][:, None])[:, 0]
    np.testing.assert_allclose(scored["prediction"].to_numpy(), own, rtol=1e-9)


def test_a_saved_model_keeps_its_labels(model, frame, tmp_path):
    from doseforest.spark import SparkCausalForestModel

    model.write().save(f"file://{tmp_path}/model")
    again = SparkCausalForestModel.load(f"file://{tmp_path}/model")
    expected = model.transform(frame).orderBy("user").select("effect").toArrow()
    assert again.transform(frame).orderBy("user").select("effect").toArrow() == expected


def test_what_was_text_in_training_must_be_text(model, frame):
    with pytest.raises(TypeError, match=r"'city' must hold text, as in training\. Got bigint"):
        model.transform(frame.withColumn("city", frame["user"]))
    with pytest.raises(TypeError, match=r"'age' must hold numbers, as in training\. Got string"):
        model.transform(frame.withColumn("age", frame["city"]))


def test_indexed_strings_are_categories_by_their_metadata(frame):
    from pyspark.ml.feature import StringIndexer, VectorAssembler

    from doseforest.spark.category_columns import CategoryPlaces, category_places

    indexer = StringIndexer(inputCol="city", outputCol="index", handleInvalid="keep")
    indexed = indexer.fit(frame).transform(frame)
    names = ("age", "index")
    assert category_places(indexed, names, names) == CategoryPlaces(numbers=(1,))
    joined = VectorAssembler(inputCols=["age", "index"], outputCol="x").transform(indexed)
    assert category_places(joined, "x", names) == CategoryPlaces(numbers=(1,))
    assert not category_places(frame, ("age", "member"), ("age", "member"))


def fit(frame, **changed):
    from doseforest.spark import SparkCausalForest

    given = {**SMALL, "featureCols": list(FEATURES), "correction": "none", "outcomeModel": "core"}
    return SparkCausalForest(**{**given, **changed}).fit(frame)


def test_a_column_of_nulls_leaves_the_other_texts_in_place():
    from doseforest.spark.category_columns import coded_rows

    texts = pa.array([[None, "b"], [None, "a"], [None, "c"]], pa.list_(pa.string()))
    values = np.array([[np.nan, 7.0, np.nan]] * 3)
    coded = coded_rows(values, texts, (0, 2), {0: (), 2: ("a", "b")})
    expected = [[np.nan, 7.0, 1.0], [np.nan, 7.0, 0.0], [np.nan, 7.0, np.nan]]
    np.testing.assert_array_equal(coded, expected)


def test_too_many_levels_are_refused_by_name(frame, monkeypatch):
    from doseforest.spark import category_columns

    monkeypatch.setattr(category_columns, "MOST_LEVELS", 5)
    with pytest.raises(ValueError, match="column 'city' must have at most 5 levels"):
        fit(frame)


def test_numbers_that_are_no_codes_are_refused(frame):
    with pytest.raises(ValueError, match=r"column 'age' must hold whole numbers .* Got -1\.0"):
        fit(frame, categoricalCols=["age"])
