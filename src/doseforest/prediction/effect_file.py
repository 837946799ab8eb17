"""An effect forest as plain values and named arrays, and back with checks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from doseforest.corrections.stored_corrections import CHECKS, read_correction, store_correction
from doseforest.data.table import Categories
from doseforest.dtypes import MAX_FEATURES, Array, IntArray
from doseforest.nuisance.encoded_models import EncodedModel
from doseforest.nuisance.stored_models import read_outcome_model, store_outcome_model
from doseforest.prediction.effect_forest import CorrectedOutcome, EffectForest
from doseforest.prediction.forest_file import write_model
from doseforest.prediction.stored_categories import read_categories, store_categories
from doseforest.prediction.value_checks import FLOATS, INTEGERS
from doseforest.treatments.grids import SUPPORT_SLACK, DoseRange

MOST_PARTS = 2  # halves, swapped


def save_effect_forest(model: EffectForest, path: str | Path) -> None:
    """Write an effect forest to one file; an interrupted write leaves nothing behind.

    Raises
    ------
    TypeError
        The outcome model or the basis of the dose is the user's own code.
    """
    try:
        metadata, arrays = store_effect_forest(model)
    except TypeError as error:
        raise TypeError(
            f"{error} What GeneralizedCausalForest.distill() returns can be saved in any case: it "
            "is one forest of curves."
        ) from error
    write_model(path, "effect_forest", metadata, arrays)


def store_effect_forest(model: EffectForest) -> tuple[dict[str, Any], dict[str, Array]]:
    """Take an effect forest apart into metadata, which is plain JSON, and named arrays."""
    arrays: dict[str, Array] = {
        "doses": np.asarray(model.doses, FLOATS),
        "effect_columns": np.asarray(model.effect_columns, INTEGERS),
    }
    parts = []
    for number, part in enumerate(model.parts):
        outcome, own = store_outcome_model(part.outcome, f"parts/{number}/outcome")
        correction, added = store_correction(part.correction, f"parts/{number}/correction")
        parts.append({"outcome": outcome, "correction": correction})
        arrays |= own | added
    metadata: dict[str, Any] = {
        "n_features": model.n_features,
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "baseline": float(model.baseline),
        "support": {"low": float(model.support.low), "high": float(model.support.high)},
        "bounded": bool(model.bounded),
        "parts": parts,
    }
    if model.categories:
        metadata["categories"] = store_categories(model.categories)
    return metadata, arrays


def read_effect_forest(metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> EffectForest:
    """Put an effect forest together; ForestFileError if its parts do not fit."""
    n_features = CHECKS.count(metadata, "n_features", 1, MAX_FEATURES)
    names = metadata["feature_names"]
    columns: IntArray = CHECKS.array(arrays, "effect_columns", INTEGERS, 1)
    CHECKS.require(
        len(columns) > 0
        and columns[0] >= 0
        and columns[-1] < n_features
        and bool((columns[1:] > columns[:-1]).all()),
        "has effect columns that are no features",
    )
    support = DoseRange(
        CHECKS.dose(metadata["support"], "low"), CHECKS.dose(metadata["support"], "high")
    )
    CHECKS.require(support.low < support.high, "has no range of doses")
    doses = CHECKS.doses(arrays, "doses")
    baseline = CHECKS.dose(metadata, "baseline")
    asked = np.append(doses, baseline)
    CHECKS.require(bool(support.contains(asked, SUPPORT_SLACK).all()), "has doses out of range")
    categories: Categories = {}
    if "categories" in metadata:
        categories = read_categories(metadata["categories"], n_features)
    described = metadata["parts"]
    CHECKS.require(
        isinstance(described, list) and 1 <= len(described) <= MOST_PARTS, "has no parts"
    )
    return EffectForest(
        parts=tuple(
            _part(own, arrays, number, n_features, columns, categories)
            for number, own in enumerate(described)
        ),
        n_features=n_features,
        feature_names=None if names is None else CHECKS.names(names, n_features, "feature"),
        effect_columns=columns,
        doses=doses,
        baseline=baseline,
        support=support,
        bounded=CHECKS.flag(metadata, "bounded"),
        categories=categories,
    )


def _part(
    described: Mapping[str, Any],
    arrays: Mapping[str, Array],
    number: int,
    n_features: int,
    columns: IntArray,
    categories: Categories,
) -> CorrectedOutcome:
    CHECKS.require(
        described["outcome"]["n_features"] == n_features,
        "has an outcome model of other features",
    )
    outcome = read_outcome_model(described["outcome"], arrays, f"parts/{number}/outcome")
    encodings = outcome.encoder.columns if isinstance(outcome, EncodedModel) else ()
    CHECKS.require(
        {own.feature: own.n_codes for own in encodings}
        == {feature: len(labels) for feature, labels in categories.items()},
        "has an outcome model of other categories",
    )
    codes = {
        place: tuple(range(len(categories[column])))
        for place, column in enumerate(columns.tolist())
        if column in categories
    }
    place = f"parts/{number}/correction"
    correction = read_correction(described["correction"], arrays, place, len(columns), codes)
    return CorrectedOutcome(outcome, correction)
