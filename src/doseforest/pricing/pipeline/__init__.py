"""The pricing loop: experiment rows to models, a policy and its test; see docs/pipeline.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doseforest.base.late import late_names

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import PipelineConfig, read_config
    from doseforest.pricing.pipeline.problems import ConfigError, PipelineError
    from doseforest.pricing.pipeline.runner import plan_pipeline, run_pipeline

_HOMES = {
    "ConfigError": "doseforest.pricing.pipeline.problems",
    "PipelineConfig": "doseforest.pricing.pipeline.config",
    "PipelineError": "doseforest.pricing.pipeline.problems",
    "plan_pipeline": "doseforest.pricing.pipeline.runner",
    "read_config": "doseforest.pricing.pipeline.config",
    "run_pipeline": "doseforest.pricing.pipeline.runner",
}

__all__ = [
    "ConfigError",
    "PipelineConfig",
    "PipelineError",
    "plan_pipeline",
    "read_config",
    "run_pipeline",
]

__getattr__, __dir__ = late_names(__name__, _HOMES)
