"""Columns of a table by what they mean to a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.pricing.pipeline.problems import PipelineError, nearest

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import PipelineConfig

HAPPENED = (
    *("[columns] outcome", "[columns] propensity", "[columns] group", "[columns] treatment"),
    "[optimise] spent",
)
PLANNED = ("[optimise] supply",)


def feature_names(columns: list[str], config: PipelineConfig) -> list[str]:
    """Features as they were named, or all columns without another role."""
    own = config.columns
    if own.features is not None:
        return list(own.features)
    taken = {*roles(config).values(), *own.treatment, *own.exclude}
    if isinstance(config.optimise.price, str):
        taken.discard(config.optimise.price)  # known before the dose: a feature like others
    result = [name for name in columns if name not in taken]
    if not result:
        raise PipelineError("[columns] leaves no column that could be a feature.")
    return result


def roles(config: PipelineConfig) -> dict[str, str]:
    """Single columns that the configuration names, by the key that names them."""
    own, plan = config.columns, config.optimise
    named = {
        "[columns] outcome": own.outcome,
        "[columns] propensity": own.propensity,
        "[columns] group": own.group,
        "[optimise] value": plan.value,
        "[optimise] price": plan.price,
        "[optimise] spent": plan.spent,
        "[optimise] cell": plan.cell,
        "[optimise] supply": plan.supply,
    }
    return {key: name for key, name in named.items() if isinstance(name, str)}


def check_columns(frame: Any, config: PipelineConfig, *, planned: bool = False) -> None:
    """Refuse a table without the columns that the configuration names.

    Units that are `planned` for have no doses and outcomes yet; rows need no supply where such
    units come from a file of their own.
    """
    known = [str(name) for name in frame.columns]
    asked = list(roles(config).items())
    asked += [("[columns] treatment", name) for name in config.columns.treatment]
    asked += [("[columns] features", name) for name in config.columns.features or ()]
    without = HAPPENED if planned else PLANNED if config.optimise.units is not None else ()
    asked = [(key, name) for key, name in asked if key not in without]
    for key, name in asked:
        if name not in known:
            raise PipelineError(
                f"{key} must be a column of the table. Got {name!r}.{nearest(name, known)}"
            )


def features(frame: Any, config: PipelineConfig) -> Any:
    """The features of a table, a frame."""
    return frame[feature_names([str(name) for name in frame.columns], config)]


def outcome(frame: Any, config: PipelineConfig) -> FloatArray:
    """Outcomes, (n_rows,)."""
    return _numbers(frame, config.columns.outcome)


def treatment(frame: Any, config: PipelineConfig) -> FloatArray:
    """Doses, (n_rows,) or (n_rows, n_components)."""
    columns = [_numbers(frame, name) for name in config.columns.treatment]
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


def propensity(frame: Any, config: PipelineConfig) -> FloatArray | None:
    """Chance of each row's own dose, where it is known."""
    name = config.columns.propensity
    return None if name is None else _numbers(frame, name)


def baseline_of(config: PipelineConfig) -> Any:
    """The dose that effects are measured against, by default no dose at all."""
    given = config.optimise.baseline
    if given is not None:
        return given
    width = len(config.columns.treatment)
    return 0.0 if width == 1 else (0.0,) * width


def groups(frame: Any, config: PipelineConfig) -> Any:
    """Labels of groups, where there are any."""
    name = config.columns.group
    return None if name is None else frame[name].to_numpy()


def amounts(frame: Any, given: float | str | None) -> FloatArray:
    """A column, or a number for all rows, (n_rows,)."""
    if isinstance(given, str):
        return _numbers(frame, given)
    return np.full(len(frame), 1.0 if given is None else float(given))


def _numbers(frame: Any, name: str) -> FloatArray:
    try:
        values: FloatArray = frame[name].to_numpy().astype(np.float64)
    except (TypeError, ValueError) as error:
        raise PipelineError(f"The column {name!r} must hold numbers. {error}") from error
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise PipelineError(
            f"The column {name!r} must hold finite numbers. Got {values[row]} in row {row}."
        )
    return values
