"""The pricing loop: experiment rows to models, a policy and its test; see docs/pipeline.md."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from doseforest.pipeline.config import PipelineConfig, read_config
    from doseforest.pipeline.problems import ConfigError, PipelineError
    from doseforest.pipeline.runner import plan_pipeline, run_pipeline

_HOMES = {
    "ConfigError": "problems",
    "PipelineConfig": "config",
    "PipelineError": "problems",
    "plan_pipeline": "runner",
    "read_config": "config",
    "run_pipeline": "runner",
}

__all__ = [
    "ConfigError",
    "PipelineConfig",
    "PipelineError",
    "plan_pipeline",
    "read_config",
    "run_pipeline",
]


def __getattr__(name: str) -> Any:
    """Import public names on first use: a configuration is read without what fits models."""
    if name not in _HOMES:
        raise AttributeError(f"module 'doseforest.pipeline' has no attribute {name!r}")
    return getattr(import_module(f"doseforest.pipeline.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
