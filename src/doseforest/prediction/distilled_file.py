"""A distilled forest as plain values and named arrays, and back with checks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from doseforest.dtypes import Array
from doseforest.prediction.distilled_forest import DistilledForest
from doseforest.prediction.forest_file import write_model
from doseforest.prediction.stored_forest import curve_width, read_forest, store_forest
from doseforest.prediction.value_checks import FileChecks
from doseforest.treatments.grids import DoseRange

CHECKS = FileChecks("distilled forest")
PREFIX = "forest"


def save_distilled_forest(model: DistilledForest, path: str | Path) -> None:
    """Write a distilled forest to one file; an interrupted write leaves nothing behind."""
    forest, arrays = store_forest(model.forest, PREFIX)
    metadata = {
        "forest": forest,
        "baseline": float(model.baseline),
        "error": float(model.error),
        "spread": float(model.spread),
    }
    write_model(path, "distilled_forest", metadata, arrays)


def read_distilled_forest(
    metadata: Mapping[str, Any], arrays: Mapping[str, Array]
) -> DistilledForest:
    """Put a distilled forest together; ForestFileError if its parts do not fit."""
    forest = read_forest(metadata["forest"], arrays, PREFIX)
    CHECKS.require(forest.doses is not None, "has no doses")
    grid = np.array(forest.doses)
    CHECKS.ascending(grid, "doses")
    CHECKS.require(curve_width(forest) == len(grid), "has curves that do not fit its doses")
    baseline = CHECKS.dose(metadata, "baseline")
    within = DoseRange(float(grid[0]), float(grid[-1])).contains(np.array([baseline]))
    CHECKS.require(bool(within.all()), "has a baseline beyond its doses")
    return DistilledForest(
        forest=forest,
        baseline=baseline,
        error=CHECKS.number(metadata, "error", 0.0),
        spread=CHECKS.number(metadata, "spread", 0.0),
    )
