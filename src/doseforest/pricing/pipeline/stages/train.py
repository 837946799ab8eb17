"""One model is fitted and kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from doseforest.pricing.pipeline.model_names import FOREST
from doseforest.pricing.pipeline.pipeline_models import fit_model, save_model
from doseforest.pricing.pipeline.row_tables import read_table
from doseforest.pricing.pipeline.steps import TRAINING

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import PipelineConfig
    from doseforest.pricing.pipeline.steps import Step


def run(step: Step, config: PipelineConfig, drafts: Path) -> dict[str, Any]:
    """Fit the model of a step on the training rows."""
    name = str(step.model)
    draft = drafts / Path(step.outputs[0]).name
    if config.pipeline.engine == "spark" and name == FOREST:
        from doseforest.pricing.pipeline.spark_training import train_on_spark

        return train_on_spark(config, draft)
    frame = read_table(config.workspace / TRAINING)
    save_model(name, fit_model(name, frame, config), draft)
    return {"rows": len(frame), "bytes": draft.stat().st_size}
