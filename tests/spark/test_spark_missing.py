"""Without PySpark or Java the rest works, and the message says what to install."""

from __future__ import annotations

import importlib.util

import pytest

from doseforest import spark
from doseforest.spark import requirements


def test_without_pyspark_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(spark.SparkUnavailableError, match=r'pip install "doseforest\[spark\]"'):
        _ = spark.SparkCausalForest


def test_without_java_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(requirements.shutil, "which", lambda name: None)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(spark.SparkUnavailableError, match="openjdk-17-jre-headless"):
        _ = spark.SparkCausalForestModel


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'RandomForest'"):
        _ = spark.RandomForest
    assert "SparkCausalForest" in dir(spark)
