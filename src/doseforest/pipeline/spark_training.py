"""The forest trained on a Spark cluster, kept in the same file as one trained here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from doseforest.pipeline.model_names import FOREST
from doseforest.pipeline.problems import PipelineError
from doseforest.pipeline.roles import baseline_of, feature_names
from doseforest.pipeline.steps import TRAINING

if TYPE_CHECKING:
    from doseforest.pipeline.config import PipelineConfig


def train_on_spark(config: PipelineConfig, draft: Path) -> dict[str, Any]:
    """Fit the forest on the cluster of the active Spark session, or of a local one."""
    try:
        from pyspark.sql import SparkSession

        from doseforest import spark
    except ImportError as error:
        raise PipelineError(
            "The Spark engine needs PySpark. Install it with: pip install 'doseforest[spark]'"
        ) from error
    estimator = getattr(spark, "GeneralizedCausalForest", None)
    if estimator is None:
        raise PipelineError("This version of doseforest has no estimator for Spark.")
    session = SparkSession.builder.getOrCreate()
    frame = session.read.parquet(str(config.workspace / TRAINING))
    own = {
        "featureCols": feature_names(frame.columns, config),
        "treatmentCol": config.columns.treatment[0],
        "labelCol": config.columns.outcome,
        "baseline": baseline_of(config),
        "seed": config.pipeline.seed,
    }
    if config.columns.group is not None:
        own["groupCol"] = config.columns.group
    own |= {
        camel_case(name): value for name, value in config.train.parameters.get(FOREST, {}).items()
    }
    model = estimator(**own).fit(frame)
    model.saveForest(str(draft))
    return {"rows": frame.count(), "bytes": draft.stat().st_size, "engine": "spark"}


def camel_case(name: str) -> str:
    """A parameter as Spark spells it: the configuration is the same for both engines.

    >>> camel_case("n_trees"), camel_case("seed")
    ('nTrees', 'seed')
    """
    first, *others = name.split("_")
    return first + "".join(own.title() for own in others)
