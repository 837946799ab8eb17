"""The pipeline with its forest trained on Spark, by one word of the configuration."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from doseforest import load_forest
from doseforest.policy import load_policy
from doseforest.pricing.pipeline import plan_pipeline, run_pipeline
from doseforest.pricing.pipeline.manifest import Manifest
from doseforest.pricing.pipeline.spark_training import train_on_spark
from doseforest.pricing.pipeline.steps import TRAINING
from pipeline_runs import config_of, orders, write_rows
from spark_here import needs_spark

N_ROWS = 2000
FOREST_FILE = "train/forest.dose"
SMALL = {
    "n_trees": 8,
    "nuisance_trees": 4,
    "n_folds": 3,
    "n_rounds": 1,
    "leaf_sizes": [40],
    "overlap": False,  # its own tests are in test_spark_overlap.py
}
SPARK = {
    "pipeline": {"engine": "spark"},
    "train": {"models": ["forest", "linear", "boosting"], "forest": SMALL},
    "optimise": {"compare": ["linear"]},
    "select": {"tie": "forest"},
}


@pytest.fixture(scope="module")
def finished(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    write_rows(folder, n=N_ROWS)
    run_pipeline(config_of(folder, **SPARK))
    assert spark.range(3).count() == 3  # a session that it found goes on
    return folder


@needs_spark
def test_every_stage_works_with_a_forest_of_spark(finished):
    workspace = finished / "out/pipeline"
    steps = Manifest.read(workspace).steps
    assert steps["train forest"].metrics["engine"] == "spark"
    assert (
        steps["train forest"].metrics["rows"]
        == steps["train linear"].metrics["rows"]
        == 0.6 * N_ROWS
    )
    assert "engine" not in steps["train linear"].metrics  # other models are trained here
    decided = load_policy(workspace / "publish/policy.dose").decide(
        pd.DataFrame({"hunter": [0, 1], "income": 0.5, "fare": 10.0})
    )
    assert set(decided.doses) <= {0.0, 0.1, 0.2}


@needs_spark
def test_hunters_answer_discounts_as_they_do(finished):
    forest = load_forest(finished / "out/pipeline" / FOREST_FILE)
    assert forest.feature_names == ("hunter", "income", "fare")
    units = np.array([[hunter, 0.5, 10.0] for hunter in (0.0, 1.0)])
    lazy, hunter = forest.effect(units, 0.2)
    # 0 and .4. Of 1,200 rows some 200 have each dose and kind: the difference of two differences
    # has a standard error of .1 at most, and is shrunk by a forest as small as this one.
    assert hunter - lazy > 0.1


@needs_spark
def test_a_second_fit_writes_the_same_bytes(finished, tmp_path):
    shutil.copy(finished / "rows.parquet", tmp_path)
    shutil.copy(finished / "results.csv", tmp_path)
    run_pipeline(config_of(tmp_path, **SPARK))
    own, other = ((at / "out/pipeline" / FOREST_FILE).read_bytes() for at in (finished, tmp_path))
    assert own == other


@needs_spark
def test_another_engine_trains_the_forest_alone_anew(finished):
    local = SPARK | {"pipeline": {"engine": "local"}, "train": SPARK["train"] | {"forest": {}}}
    states = {own.step.name: own.state for own in plan_pipeline(config_of(finished, **local))}
    assert states["train linear"] == states["train boosting"] == states["collect"]
    assert states["train forest"] != states["collect"]


@needs_spark
def test_parameters_that_spark_lacks_are_refused_before_anything_runs(tmp_path):
    write_rows(tmp_path, n=60)
    train = SPARK["train"] | {"forest": {"n_tree": 7}}
    with pytest.raises(ValueError, match=r"\[train.forest\].*'n_tree'. Did you mean 'n_trees'"):
        config_of(tmp_path, **SPARK | {"train": train})


@pytest.mark.parametrize(
    ("missing", "cure"),
    [("pyspark", r"pip install \"doseforest\[spark\]\""), ("java", "openjdk-17-jre-headless")],
)
def test_without_what_spark_needs_the_error_says_how_to_get_it(
    missing, cure, tmp_path, monkeypatch
):
    write_rows(tmp_path, n=60)
    found = None if missing == "pyspark" else missing
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found)
    monkeypatch.setattr("doseforest.spark.requirements._has_java", lambda: False)
    with pytest.raises(ValueError, match=cure):
        config_of(tmp_path, **SPARK)


@needs_spark
def test_a_forest_of_two_discounts_is_trained_on_spark(spark, tmp_path):
    write_rows(tmp_path, n=60)
    rows = orders(N_ROWS)
    rows["other"] = np.random.default_rng(2).permutation(rows["discount"])
    config = config_of(tmp_path, **SPARK)
    columns = replace(config.columns, treatment=("discount", "other"))
    (config.workspace / "collect").mkdir(parents=True)
    rows.to_parquet(config.workspace / TRAINING, index=False)
    config = replace(config, columns=columns, optimise=replace(config.optimise, baseline=None))
    metrics = train_on_spark(config, tmp_path / "joint.dose")
    assert metrics["rows"] == N_ROWS
    forest = load_forest(tmp_path / "joint.dose")
    assert forest.support.n_components == 2
    # The other discount is noise: hunters answer the first alone.
    units = np.array([[1.0, 0.5, 10.0]])
    first, second = (float(forest.effect(units, dose, [0, 0])[0]) for dose in ([0.2, 0], [0, 0.2]))
    assert first > second + 0.1
