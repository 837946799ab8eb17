"""The steps of a pipeline: what each reads, writes and depends on.

A stage is one step, but for the training, which has one for each model: adding a model fits that
one alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doseforest.pricing.pipeline.model_names import FOREST
from doseforest.pricing.pipeline.roles import roles

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import PipelineConfig

STAGES = ("collect", "train", "select", "optimise", "publish", "test")


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of work with its artifacts, all of them paths inside the workspace."""

    name: str
    stage: str  # of STAGES; the module that does the work
    settings: dict[str, Any]  # that results depend on, and nothing else
    outputs: tuple[str, ...]
    inputs: tuple[str, ...] = ()  # artifacts of earlier steps
    files: tuple[Path, ...] = ()  # outside of the workspace
    model: str | None = None  # of a training step
    copies: tuple[Path, ...] = ()  # outside of the workspace, remade when they are lost

    def work(self) -> Callable[..., dict[str, Any]]:
        """The function of the stage: of this step, the configuration and a folder, to metrics."""
        home = "trial" if self.stage == "test" else self.stage
        work: Callable[..., dict[str, Any]] = import_module(
            f"doseforest.pricing.pipeline.stages.{home}"
        ).run
        return work


def steps_of(config: PipelineConfig) -> tuple[Step, ...]:
    """The steps of a configuration, in their order."""
    steps = [_collect(config), *_training(config), _select(config), _optimise(config)]
    steps.append(_publish(config))
    if config.test.kind != "none":
        steps.append(_test(config))
    return tuple(steps)


def model_file(name: str) -> str:
    """Where a model is kept.

    >>> model_file("forest"), model_file("boosting")
    ('train/forest.dose', 'train/boosting.joblib')
    """
    return f"train/{name}.{'dose' if name == 'forest' else 'joblib'}"


def plan_file(name: str) -> str:
    """Where the plan of a model is kept."""
    return f"optimise/{name}.json"


TRAINING, HELD_OUT, UNITS = (
    "collect/train.parquet",
    "collect/holdout.parquet",
    "collect/units.parquet",
)
SELECTION, POLICY, CARD = "select/selection.json", "publish/policy.dose", "publish/card.json"
RESULT = "test/result.json"


def _collect(config: PipelineConfig) -> Step:
    own = config.collect
    files = [config.path(own.path)] if own.path is not None else []
    if own.source == "sql" and str(own.url).startswith("sqlite:///"):
        database = config.path(str(own.url).removeprefix("sqlite:///"))
        log = database.with_name(f"{database.name}-wal")  # what is written, and not yet moved over
        files += [database, log] if log.exists() else [database]
    if config.optimise.units is not None:
        files.append(config.path(config.optimise.units))
    settings = config.plain("collect", "columns") | {"roles": roles(config)} | _seed(config)
    settings["units"] = [config.optimise.units, config.optimise.plan_units]
    return Step("collect", "collect", settings, (TRAINING, HELD_OUT, UNITS), files=tuple(files))


def _training(config: PipelineConfig) -> list[Step]:
    return [
        Step(
            f"train {name}",
            "train",
            config.plain("columns")
            | {"model": name, "parameters": config.train.parameters.get(name, {})}
            | {"engine": _engine(name, config), "baseline": config.optimise.baseline}
            | _taken(config)
            | _seed(config),
            (model_file(name),),
            (TRAINING,),
            model=name,
        )
        for name in config.train.models
    ]


def _engine(model: str, config: PipelineConfig) -> str:
    """Where a model is trained: all but the forest are trained here in any case."""
    return config.pipeline.engine if model == FOREST else "local"


def _select(config: PipelineConfig) -> Step:
    settings = config.plain("columns", "select") | {"models": list(config.train.models)}
    plan = config.optimise
    settings |= {"baseline": plan.baseline, "cost": [plan.price, plan.spent]}
    settings |= _taken(config) | _seed(config)
    inputs = (HELD_OUT, *map(model_file, config.train.models))
    return Step("select", "select", settings, (SELECTION,), inputs)


def _optimise(config: PipelineConfig) -> Step:
    settings = config.plain("columns", "optimise") | {"models": list(config.train.models)}
    settings |= {"treatments": config.columns.treatment} | _seed(config)
    inputs = (TRAINING, HELD_OUT, UNITS, SELECTION, *map(model_file, config.train.models))
    # Every model has a plan file, empty for those that are neither selected nor compared: which
    # one is selected is not known beforehand.
    outputs = ("optimise/doses.parquet", *map(plan_file, config.train.models))
    return Step("optimise", "optimise", settings, outputs, inputs)


def _publish(config: PipelineConfig) -> Step:
    settings = config.plain("columns", "optimise", "publish") | _seed(config)
    models = config.train.models
    inputs = (UNITS, SELECTION, *map(plan_file, models), *map(model_file, models))
    target = config.publish.target
    copies = () if target is None else (config.path(target),)
    return Step("publish", "publish", settings, (POLICY, CARD), inputs, copies=copies)


def _test(config: PipelineConfig) -> Step:
    settings = config.plain("columns", "optimise", "test") | _seed(config)
    files: tuple[Path, ...] = ()
    models = config.train.models
    if config.test.kind == "results":
        files = (config.path(str(config.test.path)),)
        inputs: tuple[str, ...] = ()
    else:
        settings |= config.plain("collect")
        inputs = (POLICY, SELECTION, *map(plan_file, models), *map(model_file, models))
    return Step("test", "test", settings, (RESULT,), inputs, files)


def _taken(config: PipelineConfig) -> dict[str, Any]:
    """Columns with a role of their own, where all others are features."""
    return {} if config.columns.features is not None else {"roles": roles(config)}


def _seed(config: PipelineConfig) -> dict[str, Any]:
    return {"seed": config.pipeline.seed}
