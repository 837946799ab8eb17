"""The Spark ML estimator: it learns curves, refuses bad input early, and its models travel."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from spark_here import needs_spark

pytestmark = needs_spark

N_ROWS = 600
SMALL = {
    "nTrees": 12,
    "nuisanceTrees": 6,
    "nFolds": 3,
    "nRounds": 1,
    "leafSizes": [30],
    "featureCols": ["a", "b", "c"],
    "treatmentCol": "discount",
    "labelCol": "spend",
    "rowIdCol": "user",
    "doses": [2.0, 8.0],
    "baseline": 2.0,
    "overlap": False,  # its own tests are in test_spark_overlap.py
}


def columns_of_rows(n=N_ROWS, seed=0):
    """Curves with slope 1 + 2 where a > 0; the discount follows b, which raises spending too.

    Covariates with few values have few spline terms, which keeps the fits short.
    """
    rng = np.random.default_rng(seed)
    x = rng.integers(-1, 2, size=(n, 3)).astype(float)
    dose = np.clip(5 + x[:, 1] + rng.normal(size=n) * 2, 0, 10)
    slope = 1 + 2 * (x[:, 0] > 0)
    spend = slope * dose + 3 * x[:, 1] + rng.normal(size=n)
    names = ("a", "b", "c", "discount", "spend")
    columns = dict(zip(names, (*x.T, dose, spend), strict=True))
    return columns | {"user": np.arange(n), "slope": slope.astype(float)}


def frame_of(spark, columns, n_partitions=2):
    import pyarrow as pa

    return spark.createDataFrame(pa.table(columns)).repartition(n_partitions, "user")


@pytest.fixture(scope="module")
def frame(spark):
    made = frame_of(spark, columns_of_rows()).cache()
    yield made
    made.unpersist()


@pytest.fixture(scope="module")
def estimator(spark):
    from doseforest.spark import SparkCausalForest

    return SparkCausalForest(**SMALL)


@pytest.fixture(scope="module")
def model(estimator, frame):
    return estimator.fit(frame)


def test_effects_follow_the_units(model, spark):
    test = columns_of_rows(300, seed=1)
    scored = model.transform(frame_of(spark, test)).select("user", "effect").toArrow()
    order = np.argsort(scored["user"].to_numpy())
    effects = np.array(scored["effect"].to_pylist())[order]
    np.testing.assert_array_equal(effects[:, 0], 0.0)  # at the baseline itself
    truth = 6 * test["slope"]
    # Effects are 6 or 18. The outcome model alone, without heterogeneity, has an error of 6; with
    # 600 rows and noise of 1 a third of that leaves room for other seeds.
    assert np.sqrt(np.mean((effects[:, 1] - truth) ** 2)) < 2.0
    assert abs(effects[:, 1].mean() - truth.mean()) < 1.0


def test_a_row_is_answered_as_by_the_local_forest(model, frame):
    rows = model.transform(frame).limit(50).toArrow()
    x = np.stack([rows[name].to_numpy() for name in "abc"], axis=1)
    local = model.toLocal()
    curves = np.array(rows["curve"].to_pylist())
    np.testing.assert_allclose(curves, local.dose_response(x, [2.0, 8.0]), rtol=1e-12)
    own = local.dose_response(x, rows["discount"].to_numpy()[:, None])[:, 0]
    np.testing.assert_allclose(rows["prediction"].to_numpy(), own, rtol=1e-12)


def test_partitions_do_not_matter_and_may_be_empty(estimator, model, spark):
    frame = frame_of(spark, columns_of_rows(), n_partitions=5)
    again = estimator.fit(frame.union(frame.limit(0)))
    x = np.random.default_rng(2).normal(size=(50, 3))
    # Trees are the same; sums of products are rounded in another order.
    np.testing.assert_allclose(
        again.toLocal().dose_response(x), model.toLocal().dose_response(x), rtol=1e-6, atol=1e-6
    )


def test_a_vector_column_gives_the_same_answers_as_columns(frame):
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import VectorAssembler

    from doseforest.spark import SparkCausalForest

    by_columns = SparkCausalForest(**SMALL, correction="none", outcomeModel="core")
    by_vector = by_columns.copy()
    by_vector.clear(by_vector.featureCols)
    assembler = VectorAssembler(inputCols=["a", "b", "c"], outputCol="features")
    fitted = Pipeline(stages=[assembler, by_vector]).fit(frame)
    own, other = fitted.stages[-1].toLocal(), by_columns.fit(frame).toLocal()
    assert own.feature_names == other.feature_names == ("a", "b", "c")
    x = np.random.default_rng(2).normal(size=(20, 3))
    np.testing.assert_allclose(own.dose_response(x), other.dose_response(x), rtol=1e-9, atol=1e-9)
    assert "effect" in fitted.transform(frame).columns


def test_a_saved_model_answers_the_same(model, frame, tmp_path):
    from pyspark.ml import PipelineModel

    from doseforest import load_forest
    from doseforest.spark import SparkCausalForestModel

    path = f"file://{tmp_path}/model"
    model.write().overwrite().save(path)
    again = SparkCausalForestModel.load(path)
    assert again.uid == model.uid
    assert again.getDoses() == [2.0, 8.0]
    assert again.summary == model.summary
    expected = model.transform(frame).orderBy("user").select("effect").toArrow()
    assert again.transform(frame).orderBy("user").select("effect").toArrow() == expected
    PipelineModel([model]).write().overwrite().save(f"{path}-pipeline")
    assert PipelineModel.load(f"{path}-pipeline").stages[0].summary == model.summary
    model.saveForest(tmp_path / "forest.dose")
    x = np.zeros((1, 3))
    np.testing.assert_array_equal(
        load_forest(tmp_path / "forest.dose").dose_response(x), model.toLocal().dose_response(x)
    )


def test_what_was_not_written_to_the_end_is_refused(model, tmp_path):
    import shutil

    from doseforest import ForestFileError
    from doseforest.spark import SparkCausalForestModel

    path = tmp_path / "model"
    model.write().save(f"file://{path}")
    shutil.copytree(path, tmp_path / "lost")
    shutil.rmtree(path / "manifest")
    with pytest.raises(ForestFileError, match="manifest, which is written last, is missing"):
        SparkCausalForestModel.load(f"file://{path}")
    for part in (tmp_path / "lost" / "chunks").glob("*.parquet"):
        part.unlink()
    with pytest.raises(ForestFileError, match="has 0 chunks and should have"):
        SparkCausalForestModel.load(f"file://{tmp_path}/lost")


def test_a_forest_from_this_machine_scores_a_frame(frame):
    from sklearn.linear_model import LinearRegression

    from doseforest import GeneralizedCausalForest as LocalForest
    from doseforest.spark import SparkCausalForestModel

    columns = columns_of_rows(200)
    x = np.stack([columns[name] for name in "abc"], axis=1)
    local = LocalForest(
        n_trees=8,
        outcome_model=LinearRegression(),
        correction="none",
        baseline=2.0,
        random_state=0,
    ).fit(x, columns["spend"], treatment=columns["discount"])
    scorer = SparkCausalForestModel.fromLocal(
        local, featureCols=["a", "b", "c"], doses=[3.0], baseline=1.0
    )
    rows = scorer.transform(frame.drop("discount")).toArrow()
    assert "prediction" not in rows.column_names
    own = np.stack([rows[name].to_numpy() for name in "abc"], axis=1)
    effects = np.array(rows["effect"].to_pylist())[:, 0]
    np.testing.assert_allclose(effects, local.effect(own, 3.0, 1.0), atol=1e-9)
    with pytest.raises(TypeError, match=r"must be a fitted forest of effects\. Got int"):
        SparkCausalForestModel.fromLocal(3)


def test_rows_without_weight_are_as_good_as_absent(spark):
    from doseforest.spark import SparkCausalForest

    forest = SparkCausalForest(**SMALL, correction="none", outcomeModel="core", weightCol="weight")
    columns = columns_of_rows(300)
    columns["weight"] = np.where(np.arange(300) % 3 == 0, 2.0, 1.0)
    noise = {name: own.copy() for name, own in columns.items()}
    noise |= {"user": np.arange(300) + 1000, "spend": np.full(300, 1e6), "weight": np.zeros(300)}
    both = {name: np.append(own, noise[name]) for name, own in columns.items()}
    x = np.random.default_rng(2).integers(-1, 2, size=(20, 3)).astype(float)
    np.testing.assert_allclose(
        forest.fit(frame_of(spark, both)).toLocal().dose_response(x),
        forest.fit(frame_of(spark, columns)).toLocal().dose_response(x),
        atol=1e-6,
    )


def test_rows_of_groups_with_weights_are_learned_from(spark):
    from doseforest.spark import SparkCausalForest

    columns = columns_of_rows()
    columns["weight"] = np.random.default_rng(3).uniform(0.5, 2, N_ROWS)
    columns["city"] = np.array([f"city {user // 3}" for user in columns["user"]])
    given = {name: own for name, own in SMALL.items() if name != "rowIdCol"}
    forest = SparkCausalForest(**given, weightCol="weight", groupCol="city", outcomeModel="core")
    local = forest.fit(frame_of(spark, columns)).toLocal()
    effects = local.effect([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], 8.0, 2.0)
    np.testing.assert_allclose(effects, [18.0, 6.0], atol=3.0)  # noise of 1 in 600 rows


def test_a_fit_reports_what_it_did_and_leaves_nothing_behind(model, frame, spark):
    summary = model.summary
    assert summary["n_rows"] == N_ROWS
    assert sum(summary["outcome_weights"].values()) == pytest.approx(1.0)
    assert summary["growth"]["correction"]["whole_trees_in_tasks"] == 12
    assert len(summary["average_curve"]) == len(summary["doses"])
    names = {own.name() for own in spark.sparkContext._jsc.getPersistentRDDs().values()}
    assert not any("PythonRDD" in str(name) or name is None for name in names)


def test_averages_over_a_frame_are_the_means_of_its_curves(model, frame):
    curves = np.array(model.transform(frame).select("curve").toArrow()["curve"].to_pylist())
    np.testing.assert_allclose(model.averageDoseResponse(frame), curves.mean(axis=0))


def test_doses_beyond_those_of_training_are_answered_as_the_nearest(model, spark):
    far = columns_of_rows(20, seed=3)
    far["discount"][:10], far["discount"][10:] = 50.0, -3.0
    low, high = model.toLocal().support.low, model.toLocal().support.high
    near = far | {"discount": np.clip(far["discount"], low, high)}
    told = [
        np.array(model.transform(frame_of(spark, own)).orderBy("user").toArrow()["prediction"])
        for own in (far, near)
    ]
    np.testing.assert_array_equal(*told)  # no null: Spark's evaluators take none
    assert np.isfinite(told[0]).all()


@pytest.mark.filterwarnings("ignore:unclosed running multiprocessing pool:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_cross_validation_chooses_a_parameter(frame):
    from pyspark.ml.evaluation import RegressionEvaluator
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

    from doseforest.spark import SparkCausalForest

    forest = SparkCausalForest(**SMALL, correction="none", outcomeModel="core")
    grid = ParamGridBuilder().addGrid(forest.getParam("maxBins"), [16, 32]).build()
    evaluator = RegressionEvaluator(labelCol="spend", predictionCol="prediction")
    chosen = CrossValidator(
        estimator=forest, estimatorParamMaps=grid, evaluator=evaluator, numFolds=2, seed=0
    ).fit(frame)
    gc.collect()  # Spark leaves its thread pool open, and this is the place to say so
    assert len(chosen.avgMetrics) == 2
    assert max(chosen.avgMetrics) < 6  # the outcomes' own deviation is about 9


def test_parameters_are_explained_and_copied(estimator):
    text = estimator.explainParams()
    assert (
        "treatmentCol: column of the observed doses (default: treatment, current: discount)" in text
    )
    changed = estimator.copy({estimator.getParam("nTrees"): 7})
    assert (changed.getNTrees(), estimator.getNTrees()) == (7, 12)
    assert estimator.copy().setMaxBins(9).getMaxBins() == 9


def test_an_estimator_is_saved_and_loaded(estimator, tmp_path):
    from doseforest.spark import SparkCausalForest

    estimator.save(f"file://{tmp_path}/estimator")
    again = SparkCausalForest.load(f"file://{tmp_path}/estimator")
    assert again.getFeatureCols() == ["a", "b", "c"]
    assert again.getDoses() == [2.0, 8.0]
