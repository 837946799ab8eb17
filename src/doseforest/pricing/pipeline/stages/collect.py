"""Rows come in: checked, split by groups into those that train and those that judge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.evaluation.candidates import split_parts
from doseforest.pricing.pipeline import roles
from doseforest.pricing.pipeline.problems import PipelineError
from doseforest.pricing.pipeline.row_tables import read_source, read_table, write_table
from doseforest.pricing.pipeline.steps import HELD_OUT, TRAINING, UNITS

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import PipelineConfig
    from doseforest.pricing.pipeline.steps import Step

LEAST_ROWS = 50  # of each part


def run(step: Step, config: PipelineConfig, drafts: Path) -> dict[str, Any]:
    """Write training rows, held-out rows, and units to plan for."""
    frame = read_source(config)
    roles.check_columns(frame, config)
    roles.outcome(frame, config)  # finite numbers, or an error
    dose = roles.treatment(frame, config)
    if not len(np.unique(dose, axis=0)) > 1:
        raise PipelineError("[columns] treatment must vary over the rows.")
    names = roles.feature_names([str(name) for name in frame.columns], config)
    kept = dict.fromkeys([*config.columns.treatment, *roles.roles(config).values(), *names])
    frame = frame[[name for name in kept if name in frame.columns]]
    labels = roles.groups(frame, config)
    ids = np.arange(len(frame)) if labels is None else np.unique(labels, return_inverse=True)[1]
    share = config.collect.holdout
    train, judge = split_parts(ids, (1.0 - share, share), config.pipeline.seed)
    if min(len(train), len(judge)) < LEAST_ROWS:
        raise PipelineError(
            f"The table must have {LEAST_ROWS} rows or more to train and to hold out. "
            f"Got {len(train)} and {len(judge)} instead."
        )
    units = _units(config, frame.iloc[judge])
    for name, part in (
        (TRAINING, frame.iloc[train]),
        (HELD_OUT, frame.iloc[judge]),
        (UNITS, units),
    ):
        write_table(part.reset_index(drop=True), drafts / Path(name).name)
    return {
        "training rows": len(train),
        "held-out rows": len(judge),
        "units to plan for": len(units),
        "features": names,
        "mean outcome": float(roles.outcome(frame, config).mean()),
        "distinct doses": len(np.unique(dose, axis=0)),
    }


def _units(config: PipelineConfig, held_out: Any) -> Any:
    """Whom doses are planned for: of a file, of the marketplace, or the held-out rows."""
    most, seed = config.optimise.plan_units, config.pipeline.seed
    if config.collect.source == "marketplace" and config.optimise.units is None:
        from doseforest.pricing.pipeline.market_source import planned_units

        return planned_units(config.collect, most, seed)
    given = config.optimise.units
    frame = held_out if given is None else read_table(config.path(given))
    cell = config.optimise.cell
    if len(frame) <= most:
        return frame
    # Cells stay whole: their supply is for all of their units.
    ids = np.arange(len(frame)) if cell is None else np.unique(frame[cell], return_inverse=True)[1]
    part, _ = split_parts(ids, (most / len(frame), 1 - most / len(frame)), seed)
    return frame.iloc[part]
