"""A distilled forest as plain values and named arrays, and back with checks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array
from doseforest.doses.boxes import observed_support
from doseforest.doses.dose_values import Doses
from doseforest.doses.stored_values import FileChecks
from doseforest.engine.stored_forest import curve_width, read_forest, store_forest
from doseforest.estimator.distilled_forest import DistilledForest
from doseforest.files.forest_file import write_model

CHECKS = FileChecks("distilled forest")
PREFIX = "forest"


def save_distilled_forest(model: DistilledForest, path: str | Path) -> None:
    """Write a distilled forest to one file; an interrupted write leaves nothing behind."""
    write_model(path, "distilled_forest", *store_distilled_forest(model))


def store_distilled_forest(model: DistilledForest) -> tuple[dict[str, Any], dict[str, Array]]:
    """Take a distilled forest apart into metadata, which is plain JSON, and named arrays."""
    forest, arrays = store_forest(model.forest, PREFIX)
    metadata = {
        "forest": forest,
        "baseline": Doses.of(model.baseline).plain,
        "error": float(model.error),
        "spread": float(model.spread),
    }
    if model.has_levels:
        metadata["levels"] = True
    if model.grid is not None:
        arrays = {**arrays, "grid": Doses.of(model.grid).plain}
    return metadata, arrays


def read_distilled_forest(
    metadata: Mapping[str, Any], arrays: Mapping[str, Array]
) -> DistilledForest:
    """Put a distilled forest together; ForestFileError if its parts do not fit."""
    forest = read_forest(metadata["forest"], arrays, PREFIX)
    CHECKS.require(forest.doses is not None or "grid" in arrays, "has no doses")
    own = CHECKS.doses(arrays, "grid") if forest.doses is None else None
    grid = np.array(forest.doses) if own is None else own
    if own is None:
        CHECKS.ascending(Doses.of(grid), "doses")
    CHECKS.require(curve_width(forest) == len(grid), "has curves that do not fit its doses")
    baseline = CHECKS.one_dose(metadata["baseline"], "baseline", Doses.of(grid).n_components)
    within = observed_support(grid).contains(np.array([baseline]))
    CHECKS.require(bool(within.all()), "has a baseline beyond its doses")
    return DistilledForest(
        forest=forest,
        baseline=baseline,
        error=CHECKS.number(metadata, "error", 0.0),
        spread=CHECKS.number(metadata, "spread", 0.0),
        grid=own,
        has_levels="levels" in metadata and CHECKS.flag(metadata, "levels"),
    )
