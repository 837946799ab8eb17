"""The forest trained on a Spark cluster, kept in the same file as one trained here."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doseforest.pricing.pipeline.model_names import FOREST
from doseforest.pricing.pipeline.problems import PipelineError, nearest
from doseforest.pricing.pipeline.roles import baseline_of, feature_names
from doseforest.pricing.pipeline.steps import TRAINING

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import PipelineConfig

ROW = "_row"  # new column: where a row is in the file, the same however it is read


def train_on_spark(config: PipelineConfig, draft: Path) -> dict[str, Any]:
    """Fit the forest on the cluster of the active Spark session, or of one for this fit."""
    from pyspark.sql import functions

    from doseforest.spark import SparkCausalForest

    with _session() as session:
        rows = session.read.parquet(str(config.workspace / TRAINING))
        own = {
            "featureCols": feature_names(rows.columns, config),
            **_treatment(config.columns.treatment),
            "labelCol": config.columns.outcome,
            "rowIdCol": ROW,
            "baseline": baseline_of(config),
            "seed": config.pipeline.seed,
            "progress": False,
        }
        if config.columns.group is not None:
            own["groupCol"] = config.columns.group
        frame = rows.withColumn(ROW, functions.col("_metadata.row_index"))
        names = _spark_names()
        given = config.train.parameters.get(FOREST, {})
        own |= {names[name]: value for name, value in given.items()}
        model = SparkCausalForest(**own).fit(frame)
        n_rows = frame.count()
    model.saveForest(str(draft))
    return {"rows": n_rows, "bytes": draft.stat().st_size, "engine": "spark"}


def _treatment(names: Sequence[str]) -> dict[str, Any]:
    return {"treatmentCol": names[0]} if len(names) == 1 else {"treatmentCols": list(names)}


def spark_problems(config: PipelineConfig) -> Iterator[str]:
    """What keeps the forest of a configuration from Spark."""
    from doseforest.spark.requirements import SparkUnavailableError, require_spark

    try:
        require_spark()
    except SparkUnavailableError as error:
        yield f"[pipeline] engine must be 'local' here. {error}"
        return
    known = _spark_names()
    for name in config.train.parameters.get(FOREST, {}):
        if name not in known:
            yield (
                f"[train.{FOREST}] must have parameters of the forest on Spark with engine = "
                f"'spark'. Got {name!r}.{nearest(name, known)}"
            )


def _spark_names() -> dict[str, str]:
    """Parameters as Spark spells them, by their names in a configuration, which suits both."""
    from doseforest.spark import SparkCausalForest

    return {snake_case(name): name for name in SparkCausalForest.TABLE}


def snake_case(name: str) -> str:
    """A name of Spark's as the rest of the library spells it.

    >>> snake_case("nTrees"), snake_case("taskMemoryMB")
    ('n_trees', 'task_memory_mb')
    """
    return re.sub("(?<=[a-z])([A-Z])", r"_\1", name).lower()


@contextmanager
def _session() -> Iterator[Any]:
    """The session of this process, or one that is stopped after use."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    result = SparkContext._active_spark_context is not None  # another thread may have started it
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        session = SparkSession.builder.appName("doseforest pipeline").getOrCreate()
    except Exception as error:
        raise PipelineError(f"Spark does not start: {error}") from error
    try:
        yield session
    finally:
        if not result:
            session.stop()
