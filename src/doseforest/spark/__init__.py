"""The same forest on a cluster: an estimator and a model of Spark ML.

Needs PySpark and Java: ``pip install "doseforest[spark]"``; nothing else of doseforest does.
"""

from __future__ import annotations

from typing import Any

from doseforest.spark.requirements import SparkUnavailableError, require_spark

__all__ = ["SparkCausalForest", "SparkCausalForestModel", "SparkUnavailableError"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_spark()
    from doseforest.spark.estimator import SparkCausalForest
    from doseforest.spark.model import SparkCausalForestModel

    result = {
        "SparkCausalForest": SparkCausalForest,
        "SparkCausalForestModel": SparkCausalForestModel,
    }
    return result[name]


def __dir__() -> list[str]:
    return sorted(__all__)
