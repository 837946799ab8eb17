"""What must hold between keys of a configuration, beside each key's own rule."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from doseforest.pricing.pipeline.model_names import EXTRAS, MODEL_NAMES
from doseforest.pricing.pipeline.problems import nearest

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import PipelineConfig

FILES = ("parquet", "csv")
MOST_COMPONENTS = 3


def joint_problems(config: PipelineConfig) -> list[str]:
    """All problems, in the order of the sections."""
    checks = (_run, _collect, _columns, _train, _select, _optimise, _trial)
    return [problem for check in checks for problem in check(config)]


def _run(config: PipelineConfig) -> Iterator[str]:
    if config.pipeline.engine == "spark":
        from doseforest.pricing.pipeline.spark_training import spark_problems

        yield from spark_problems(config)


def _collect(config: PipelineConfig) -> Iterator[str]:
    own = config.collect
    if own.source in FILES:
        if own.path is None:
            yield f"[collect] path must be given with source = {own.source!r}: the file of rows."
        elif not config.path(own.path).exists():
            yield (
                "[collect] path must be a file that exists, relative to the configuration. "
                f"Got {own.path!r} instead."
            )
    if own.source == "sql":
        for key in ("url", "table"):
            if getattr(own, key) is None:
                yield f"[collect] {key} must be given with source = 'sql'."
    if own.source == "marketplace" and own.rows is None:
        yield "[collect] rows must be given with source = 'marketplace': how many are drawn."


def _columns(config: PipelineConfig) -> Iterator[str]:
    own = config.columns
    if len(own.treatment) > MOST_COMPONENTS:
        yield (
            f"[columns] treatment must have at most {MOST_COMPONENTS} columns. "
            f"Got {list(own.treatment)} instead."
        )
    named = [own.outcome, *own.treatment]
    twice = [name for name in (own.features or ()) if name in named]
    if twice or own.outcome in own.treatment:
        yield (
            "[columns] features must have neither the outcome nor the treatment. "
            f"Got {(twice or [own.outcome])[0]!r} instead."
        )
    if config.collect.source == "marketplace" and len(own.treatment) != config.collect.options:
        yield (
            f"[columns] treatment must have a column for each of the {config.collect.options} "
            f"options of the marketplace. Got {list(own.treatment)} instead."
        )


def _train(config: PipelineConfig) -> Iterator[str]:
    models = config.train.models
    for name in models:
        if name not in MODEL_NAMES:
            yield f"[train] models has an unknown {name!r}.{nearest(name, MODEL_NAMES)}"
        elif name in EXTRAS and not _installed(EXTRAS[name][0]):
            package, extra = EXTRAS[name]
            yield (
                f"[train] models must not have {name!r} where {package} is missing. Install it "
                f"with: pip install 'doseforest[{extra}]'."
            )
    for name in config.train.parameters:
        if name not in models:
            yield f"[train.{name}] must be of one of the models {list(models)}."


def _select(config: PipelineConfig) -> Iterator[str]:
    tie = config.select.tie
    if tie != "best" and tie not in config.train.models:
        yield (
            f"[select] tie must be 'best' or one of the models {list(config.train.models)}. "
            f"Got {tie!r} instead."
        )
    yield from _components(config, "select", "doses")


def _optimise(config: PipelineConfig) -> Iterator[str]:
    own = config.optimise
    if (own.budget is None) == (own.budget_like is None):
        yield (
            "[optimise] needs either 'budget', an amount per unit, or 'budget_like', the dose "
            "whose cost for everybody is the budget."
        )
    if own.price is None:
        yield "[optimise] price must be given: a number or the column that a dose is a share of."
    if (own.cell is None) != (own.supply is None):
        yield "[optimise] cell and supply must be given together."
    for name in own.compare:
        if name not in config.train.models:
            yield (
                f"[optimise] compare has {name!r}, which is not one of the models "
                f"{', '.join(map(repr, config.train.models))}."
            )
    if own.units is not None and not config.path(own.units).exists():
        yield f"[optimise] units must be a file that exists. Got {own.units!r} instead."
    for key in ("doses", "baseline", "budget_like"):
        yield from _components(config, "optimise", key)


def _trial(config: PipelineConfig) -> Iterator[str]:
    own = config.test
    if own.kind == "marketplace":
        if config.collect.source != "marketplace":
            yield "[test] kind must not be 'marketplace' where rows come from elsewhere."
        if own.control is not None and own.control not in config.optimise.compare:
            yield (
                f"[test] control must be one of [optimise] compare {list(config.optimise.compare)}."
                f" Got {own.control!r} instead."
            )
        if not config.optimise.compare:
            yield "[optimise] compare must name a model for the control arm of the test."
    if own.kind == "results":
        if own.path is None or own.outcome is None:
            yield "[test] path and outcome must be given with kind = 'results'."
        elif not config.path(own.path).exists():
            yield f"[test] path must be a file that exists. Got {own.path!r} instead."


def _components(config: PipelineConfig, section: str, key: str) -> Iterator[str]:
    """Doses must have as many components as there are treatment columns."""
    given = getattr(getattr(config, section), key)
    if given is None:
        return
    first = given[0] if key == "doses" else given
    width = len(first) if isinstance(first, tuple) else 1
    if width != len(config.columns.treatment):
        yield (
            f"[{section}] {key} must have {len(config.columns.treatment)} components, one for "
            f"each treatment column. Got {width} instead."
        )


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False
