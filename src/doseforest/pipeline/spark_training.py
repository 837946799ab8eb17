"""The forest trained on a Spark cluster, kept in the same file as one trained here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from doseforest.pipeline.model_names import FOREST
from doseforest.pipeline.problems import PipelineError
from doseforest.pipeline.roles import feature_names
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
    names = feature_names(frame.columns, config)
    dose = list(config.columns.treatment)
    own = {
        "featureCols": names,
        "treatmentCol": dose[0] if len(dose) == 1 else dose,
        "labelCol": config.columns.outcome,
        "seed": config.pipeline.seed,
    }
    model = estimator(**own, **config.train.parameters.get(FOREST, {})).fit(frame)
    model.saveForest(str(draft))
    return {"rows": frame.count(), "bytes": draft.stat().st_size, "engine": "spark"}
