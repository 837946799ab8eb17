"""Doses of several components on Spark: two discounts at once, an arm and its dose."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from test_spark_estimator import SMALL as ONE_DOSE
from test_spark_estimator import frame_of

from doseforest import GeneralizedCausalForest as LocalForest
from spark_here import needs_spark

pytestmark = needs_spark

N_ROWS = 800
DOSES = [[0.0, 0.0], [4.0, 0.0], [4.0, 4.0]]
SMALL = {
    **{key: value for key, value in ONE_DOSE.items() if key not in ("treatmentCol", "overlap")},
    "featureCols": ["a", "b"],
    "treatmentCols": ["express", "premium"],
    "labelCol": "orders",
    "doses": DOSES,
    "baseline": [0.0, 0.0],
}
ONE = {"treatmentCols": None, "treatmentCol": "express", "doses": None, "baseline": None}


def columns_of_rows(n=N_ROWS, seed=0):
    """Orders rise by 1 a point of either discount, by 2 more of the first where a > 0.

    The first discount follows b, which raises orders too.
    """
    rng = np.random.default_rng(seed)
    x = rng.integers(-1, 2, size=(n, 2)).astype(float)
    first = np.clip(2 + x[:, 1] + 2 * rng.normal(size=n), 0, 5)
    second = rng.uniform(0, 5, size=n)
    slope = 1.0 + 2 * (x[:, 0] > 0)
    orders = slope * first + second + 2 * x[:, 1] + rng.normal(size=n)
    names = ("a", "b", "express", "premium", "orders", "slope")
    columns = dict(zip(names, (*x.T, first, second, orders, slope), strict=True))
    return columns | {"user": np.arange(n)}


def estimator(**changed):
    from doseforest.spark import SparkCausalForest

    return SparkCausalForest(**{**SMALL, **changed})


@pytest.fixture(scope="module")
def frame(spark):
    made = frame_of(spark, columns_of_rows()).cache()
    yield made
    made.unpersist()


@pytest.fixture(scope="module")
def model(frame):
    return estimator().fit(frame)


def test_effects_of_two_discounts_are_learned(model, frame):
    rows = model.transform(frame).select("effect", "curve", "slope").collect()
    effect = np.array([row["effect"] for row in rows])
    slope = np.array([row["slope"] for row in rows])
    np.testing.assert_allclose(effect[:, 0], 0.0, atol=1e-12)  # against the baseline itself
    # Four points at slopes of 1 and 3, and 4 more of the second discount; in units of the noise
    # the mean of 800 rows is known to about .1, and half a unit leaves room for shrinkage.
    for own in (1.0, 3.0):
        mean = effect[slope == own].mean(axis=0)
        np.testing.assert_allclose(mean[1:], [4 * own, 4 * own + 4], atol=0.5)


def test_partitions_do_not_change_the_answers(model, spark, frame):
    again = estimator(numPartitions=5).fit(frame)
    first, second = (
        np.asarray(own.toLocal().dose_response(np.array([[0.0, 1.0], [1.0, 0.0]]), DOSES))
        for own in (model, again)
    )
    np.testing.assert_allclose(first, second, rtol=1e-6)  # sums of products in another order


def test_predictions_are_at_the_rows_own_pair_of_doses(model, frame):
    rows = model.transform(frame).select("a", "b", "express", "premium", "prediction").collect()
    table = np.array([list(row) for row in rows])
    own = np.asarray(model.toLocal().dose_response(table[:, :2], table[:, None, 2:4]))[:, 0]
    np.testing.assert_allclose(table[:, 4], own)
    without = model.transform(frame.drop("premium"))
    assert "prediction" not in without.columns
    assert "effect" in without.columns


def test_models_are_saved_and_loaded(model, frame, tmp_path):
    from doseforest.spark import SparkCausalForestModel

    model.write().save(f"file://{tmp_path}/model")
    again = SparkCausalForestModel.load(f"file://{tmp_path}/model")
    assert again.getDoses() == DOSES
    np.testing.assert_array_equal(
        again.averageDoseResponse(frame), model.averageDoseResponse(frame)
    )
    assert model.summary["doses"] == DOSES
    model.saveForest(tmp_path / "joint.dose")
    assert (tmp_path / "joint.dose").stat().st_size > 0


def test_a_local_forest_of_pairs_scores_frames(spark, frame):
    from doseforest.spark import SparkCausalForestModel

    columns = columns_of_rows(300, seed=1)
    X = np.column_stack([columns["a"], columns["b"]])
    pairs = np.column_stack([columns["express"], columns["premium"]])
    local = LocalForest(
        n_trees=8,
        outcome_model=LinearRegression(),
        baseline=[1.0, 1.0],
        random_state=0,
        n_jobs=1,
    ).fit(X, columns["orders"], treatment=pairs)
    scorer = SparkCausalForestModel.fromLocal(
        local,
        featureCols=["a", "b"],
        treatmentCols=["express", "premium"],
        doses=DOSES[1:],
        baseline=[1.0, 1.0],
    )
    rows = scorer.transform(frame).select("a", "b", "effect").limit(20).collect()
    for row in rows:
        unit = np.array([[row["a"], row["b"]]])
        curve = np.asarray(local.dose_response(unit, [*DOSES[1:], [1.0, 1.0]]))[0]
        np.testing.assert_allclose(row["effect"], curve[:-1] - curve[-1])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"treatmentCols": ["express"]}, r"'treatmentCols' .* 2 to 3 columns.*\['express'\]"),
        ({"treatmentCols": ["express", "express"]}, r"'treatmentCols' .* each its own"),
        ({"treatmentCols": ["express", "nothing"]}, r"'treatmentCols' .* Got 'nothing' instead"),
        ({"doses": [1.0, 2.0, 3.0]}, r"'doses' .* 2 components"),
        ({"doses": [[9.0, 0.0]]}, r"'doses' .* Got \(9, 0\)"),
        ({"baseline": 0.0}, r"'baseline' .* one dose of 2 components. Got 0.0"),
        (ONE | {"basis": "tensor"}, r"'basis' .* one component .* Got 'tensor'"),
    ],
)
def test_bad_doses_of_several_components_are_named(frame, changed, message):
    with pytest.raises(ValueError, match=message):
        estimator(**changed).fit(frame)


def test_components_that_are_null_or_constant_are_named(spark):
    columns = columns_of_rows(60)
    columns["premium"] = np.where(np.arange(60) < 3, np.nan, columns["premium"])
    with pytest.raises(ValueError, match=r"'treatmentCols' column 'premium' .*Got 3 other row"):
        estimator().fit(frame_of(spark, columns))
    columns["premium"] = np.ones(60)
    with pytest.raises(ValueError, match=r"'treatmentCols' column 'premium' must vary.*Got 1 in"):
        estimator().fit(frame_of(spark, columns))


def test_what_needs_one_component_says_so(model, frame):
    from pyspark.ml.regression import GBTRegressor

    for question in (model.overlapReport, model.averageCurve):
        with pytest.raises(ValueError, match="a dose of one component"):
            question()
    with pytest.raises(ValueError, match=r"'outcomeMembers' .* 'treatmentCols'.* Got 1 instead"):
        estimator(outcomeMembers=[GBTRegressor()]).fit(frame)
