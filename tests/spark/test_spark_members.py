"""Regressors of Spark ML and XGBoost in the outcome model are read to the last split."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from test_spark_estimator import SMALL, columns_of_rows, frame_of

from doseforest import load_forest
from spark_here import needs_spark

pytestmark = needs_spark

FILL = np.array([-9.0, -9.0])
CORE = {**SMALL, "outcomeModel": "core", "correction": "none"}


def table_of_rows(n=400, seed=0):
    """Two covariates, one with gaps, the dose, and steps in all of them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    x[rng.random(n) < 0.2, 1] = np.nan
    dose = rng.uniform(0, 5, n)
    y = np.where(x[:, 0] > 0, 3 * (dose > 2), 1.0) + np.where(np.isnan(x[:, 1]), 2.0, x[:, 1])
    return x, dose, y


def filled(x):
    return np.where(np.isnan(x), FILL, x)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("DecisionTreeRegressor", {"maxDepth": 4}),
        ("RandomForestRegressor", {"numTrees": 3, "seed": 1}),
        ("GBTRegressor", {"maxIter": 3, "stepSize": 0.3, "seed": 1}),
    ],
)
def test_trees_of_spark_are_read_to_the_last_digit(spark, name, settings):
    from pyspark.ml import regression
    from pyspark.ml.functions import array_to_vector

    from doseforest.spark.member_trees import read_member

    x, dose, y = table_of_rows()
    rows = pa.table({"x": np.column_stack([filled(x), dose]).tolist(), "label": y})
    frame = spark.createDataFrame(rows).withColumn("features", array_to_vector("x"))
    model = getattr(regression, name)(**settings).fit(frame)
    expected = np.array([row[0] for row in model.transform(frame).select("prediction").collect()])
    trees = read_member(model, FILL)
    # Rows with gaps take the way of what they were filled with; sums have another order.
    np.testing.assert_allclose(trees.predict(x, dose), expected, rtol=1e-12)
    assert len(np.unique(expected)) > 4


def test_trees_of_xgboost_are_read_in_their_own_precision():
    xgboost = pytest.importorskip("xgboost")
    from doseforest.spark.member_trees import READERS

    x, dose, y = table_of_rows()
    x = np.round(x, 1)  # so that values meet thresholds
    table = np.column_stack([filled(x), dose])
    model = xgboost.XGBRegressor(n_estimators=5, max_depth=4, n_jobs=1).fit(table, y)
    trees = READERS["SparkXGBRegressorModel"](model, FILL)
    # Leaves are numbers of 7 digits there.
    np.testing.assert_allclose(trees.predict(x, dose), model.predict(table), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"objective": "count:poisson"}, "'objective' is one of .*Got 'count:poisson'"),
        ({"objective": "reg:logistic"}, "'objective' is one of 'reg:squarederror'"),
        ({"booster": "dart"}, "'booster' is one of 'gbtree'. Got 'dart'"),
        ({"missing": 0.0}, "'missing' is NaN. Got 0.0"),
    ],
)
def test_xgboost_whose_trees_do_not_add_up_to_a_prediction_is_refused(spark, settings, told):
    xgboost_spark = pytest.importorskip("xgboost.spark")
    from doseforest.spark.members import check_members

    with pytest.raises(ValueError, match=told):
        check_members([xgboost_spark.SparkXGBRegressor(**settings)])
    check_members([xgboost_spark.SparkXGBRegressor(objective="reg:absoluteerror")])


def test_members_draw_by_the_seed_of_the_fit(spark):
    from pyspark.ml.regression import RandomForestRegressor

    from doseforest.spark.cluster_units import Units
    from doseforest.spark.members import _for_units

    units = Units(spark.sparkContext.parallelize([0]), None, 10, 1, 3, seed=77, weighted=False)
    assert _for_units(RandomForestRegressor(), units).getSeed() == 77
    assert _for_units(RandomForestRegressor(seed=5), units).getSeed() == 5


def test_members_are_fitted_without_each_fold(spark):
    from pyspark.ml.regression import DecisionTreeRegressor

    from doseforest.data.row_blocks import RowBlock
    from doseforest.spark.cluster_units import Units
    from doseforest.spark.jobs import Kept
    from doseforest.spark.members import fit_given

    folds = np.arange(300) % 3
    x, dose = np.zeros((300, 1)), np.linspace(0, 1, 300)
    block = RowBlock(x, dose, 10.0 * folds, None, np.arange(300), folds)
    with Kept() as kept:
        blocks = kept.keep(spark.sparkContext.parallelize([block], 1))
        units = Units(blocks, kept, 300, 1, 3, 0, weighted=False)
        found = fit_given(units, [DecisionTreeRegressor(maxDepth=1), DecisionTreeRegressor()])
    names = ["DecisionTreeRegressor", "DecisionTreeRegressor 2"]
    assert [list(own) for own in found] == [names] * 4
    means = [own["DecisionTreeRegressor"].predict(x, dose).mean() for own in found]
    # Outcomes are 0, 10 and 20 in the three folds; a tree keeps the mean of what it saw.
    np.testing.assert_allclose(means, [15.0, 10.0, 5.0, 10.0], atol=0.1)


@pytest.fixture(scope="module")
def model(spark):
    from pyspark.ml.regression import GBTRegressor

    from doseforest.spark import SparkCausalForest

    forest = SparkCausalForest(
        **CORE | {"outcomeMembers": [GBTRegressor(maxIter=2, maxDepth=3, seed=1)]}
    )
    return forest.fit(frame_of(spark, columns_of_rows(300)))


def test_members_join_the_stack(model):
    weights = model.summary["outcome_weights"]
    assert list(weights) == ["core", "GBTRegressor"]
    assert sum(weights.values()) == pytest.approx(1.0)


def test_a_forest_with_members_is_served_anywhere(model, spark, tmp_path):
    from doseforest.spark import SparkCausalForestModel

    model.saveForest(tmp_path / "forest.dose")
    rows = frame_of(spark, columns_of_rows(50, seed=1))
    scored = model.transform(rows).orderBy("user").toArrow()
    x = np.stack([scored[name].to_numpy() for name in "abc"], axis=1)
    curves = np.array(scored["curve"].to_pylist())
    np.testing.assert_allclose(
        curves, load_forest(tmp_path / "forest.dose").dose_response(x, [2.0, 8.0]), rtol=1e-12
    )
    model.write().save(f"file://{tmp_path}/model")
    again = SparkCausalForestModel.load(f"file://{tmp_path}/model")
    assert again.transform(rows).orderBy("user").toArrow() == scored


def test_xgboost_alone_is_an_outcome_model(spark):
    pytest.importorskip("xgboost")
    from xgboost.spark import SparkXGBRegressor

    from doseforest.spark import SparkCausalForest

    member = SparkXGBRegressor(n_estimators=8, max_depth=3, num_workers=1)
    forest = SparkCausalForest(**CORE | {"outcomeModel": "members", "outcomeMembers": [member]})
    model = forest.fit(frame_of(spark, columns_of_rows(300)))
    assert model.summary["outcome_weights"] == {"SparkXGBRegressor": 1.0}
    effects = model.toLocal().effect(np.zeros((1, 3)), 8.0, 2.0)
    assert 2.0 < effects[0] < 12.0  # 6, of trees that see 300 rows with noise of 1


def test_an_estimator_is_saved_with_its_members(spark, tmp_path):
    from pyspark.ml.regression import GBTRegressor, RandomForestRegressor

    from doseforest.spark import SparkCausalForest

    members = [GBTRegressor(maxIter=7), RandomForestRegressor(numTrees=5)]
    SparkCausalForest(nTrees=9, outcomeMembers=members).save(f"file://{tmp_path}/estimator")
    again = SparkCausalForest.load(f"file://{tmp_path}/estimator")
    assert again.getNTrees() == 9
    assert [own.uid for own in again.getOutcomeMembers()] == [own.uid for own in members]
    assert again.getOutcomeMembers()[0].getMaxIter() == 7


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"outcomeMembers": ["gbt"]}, TypeError, "must hold regressors of trees: .* Got str"),
        ({"outcomeMembers": "gbt"}, TypeError, "must be a list of regressors. Got str"),
        ({"outcomeModel": "members"}, ValueError, "must hold a regressor with outcomeModel"),
    ],
)
def test_members_that_cannot_be_are_refused_before_any_job(spark, changed, error, message):
    from doseforest.spark import SparkCausalForest

    with pytest.raises(error, match=f"'outcomeMembers' parameter {message}"):
        SparkCausalForest(**CORE | changed).fit(spark.range(3))
