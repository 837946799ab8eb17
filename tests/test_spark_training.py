"""Training on Spark as the pipeline asks for it, with a stand-in for the cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from doseforest.pipeline import PipelineConfig, PipelineError
from doseforest.pipeline.spark_training import train_on_spark
from pipeline_runs import config_of, tables, write_rows

SPARK = {
    "pipeline": {"engine": "spark"},
    "columns": {"group": "cell"},
    "optimise": {"compare": []},
}


@pytest.fixture
def config(tmp_path, monkeypatch):
    write_rows(tmp_path, n=60)
    monkeypatch.setattr("doseforest.pipeline.config_checks._installed", lambda name: True)
    train = {"models": ["forest"], "forest": {"n_trees": 7}}
    plain = tables(**SPARK) | {"train": train}
    return PipelineConfig.from_tables(plain, tmp_path)


def test_the_estimator_gets_columns_and_parameters_in_its_own_spelling(
    config, tmp_path, monkeypatch
):
    given = {}

    class Estimator:
        def __init__(self, **parameters):
            given.update(parameters)

        def fit(self, frame):
            return SimpleNamespace(saveForest=lambda path: Path(path).write_bytes(b"forest"))

    frame = SimpleNamespace(columns=["hunter", "income", "fare"], count=lambda: 3)
    reader = SimpleNamespace(parquet=lambda path: frame)
    session = SimpleNamespace(read=reader)
    builder = SimpleNamespace(getOrCreate=lambda: session)
    sql = ModuleType("pyspark.sql")
    sql.SparkSession = SimpleNamespace(builder=builder)
    spark = ModuleType("doseforest.spark")
    spark.GeneralizedCausalForest = Estimator
    monkeypatch.setitem(sys.modules, "pyspark", ModuleType("pyspark"))
    monkeypatch.setitem(sys.modules, "pyspark.sql", sql)
    monkeypatch.setitem(sys.modules, "doseforest.spark", spark)
    monkeypatch.setattr("doseforest.spark", spark, raising=False)
    found = train_on_spark(config, tmp_path / "forest.dose")
    assert found == {"rows": 3, "bytes": 6, "engine": "spark"}
    assert given == {
        "featureCols": ["hunter", "income", "fare"],
        "treatmentCol": "discount",
        "labelCol": "ordered",
        "groupCol": "cell",
        "baseline": 0.0,
        "seed": 0,
        "nTrees": 7,
    }


def test_without_pyspark_the_error_says_how_to_get_it(config, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(PipelineError, match=r"pip install 'doseforest\[spark\]'"):
        train_on_spark(config, tmp_path / "forest.dose")


def test_two_discounts_are_refused_on_spark(tmp_path, monkeypatch):
    write_rows(tmp_path, n=60)
    monkeypatch.setattr("doseforest.pipeline.config_checks._installed", lambda name: True)
    with pytest.raises(ValueError, match="treatment must be one column with engine = 'spark'"):
        config_of(tmp_path, pipeline={"engine": "spark"}, columns={"treatment": ["a", "b"]})
