"""The forest of intervals as plain values and named arrays, and back with checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array
from doseforest.data.feature_table import Categories
from doseforest.doses.bases.dose_basis import basis_components, read_basis, store_basis
from doseforest.doses.stored_values import FileChecks
from doseforest.engine.stored_forest import read_forest, store_forest
from doseforest.estimator.bags.noise_share import MOST_VARIANCE, NoiseShare
from doseforest.estimator.bags.unit_bags import LEAST_SPREAD, UnitBags
from doseforest.nuisance.outcome.outcome_models import OutcomeModel
from doseforest.nuisance.outcome.stored_outcome_models import store_outcome_model

CHECKS = FileChecks("forest of intervals")
PREFIX = "bags"


def store_bags(bags: UnitBags) -> tuple[dict[str, Any], dict[str, Array]]:
    """Take a forest of intervals apart; TypeError if its basis is the user's own code."""
    forest, arrays = store_forest(bags.forest, f"{PREFIX}/forest")
    arrays[f"{PREFIX}/spread"] = bags.spread
    outcomes = []
    for fold, model in enumerate(bags.outcomes):
        described, stored = store_outcome_model(model, outcome_prefix(fold))
        outcomes.append(described)
        arrays |= stored
    described_bags = {
        "forest": forest,
        "basis": store_basis(bags.basis),
        "outcomes": outcomes,
        "share": asdict(bags.share),
    }
    return described_bags, arrays


def outcome_prefix(fold: int) -> str:
    """Of the names of arrays that the outcome model of a fold has."""
    return f"{PREFIX}/outcomes/{fold}"


def read_bags(
    values: Mapping[str, Any],
    arrays: Mapping[str, Array],
    outcomes: tuple[OutcomeModel, ...],
    *,
    n_features: int,
    codes: Categories,
    n_components: int,
) -> UnitBags:
    """Put a forest of intervals together; ForestFileError if its parts do not fit.

    Parameters
    ----------
    values, arrays : mappings
        Of a file.
    outcomes : tuple of models
        Of the folds, read and checked.
    n_features : int
        Features that its trees split on.
    codes : mapping
        The categorical ones among them, with codes for labels.
    n_components : int
        Of a dose.
    """
    basis = read_basis(values["basis"])
    CHECKS.require(basis_components(basis) == n_components, "is for doses of other components")
    k = basis.n_functions - 1
    forest = read_forest(values["forest"], arrays, f"{PREFIX}/forest")
    CHECKS.require(
        forest.n_features == n_features and len(forest.fallback) == k * (k + 1) // 2 + k,
        "does not fit its functions of the dose or its features",
    )
    CHECKS.require(forest.categories == codes, "has other categories")
    size = forest.plan.bag_size
    CHECKS.require(
        size >= 2 and forest.n_trees % size == 0 and forest.n_trees >= 2 * size,
        "has trees that are not in bags",
    )
    spread = CHECKS.vector(arrays, f"{PREFIX}/spread", k)
    # Of a function that is next to 0 in all rows, moments divided by its spread would overflow.
    CHECKS.require(bool(((spread == 0) | (spread >= LEAST_SPREAD)).all()), "has no proper spread")
    CHECKS.moderate(forest.fallback, f"{PREFIX}/forest/fallback")
    with np.errstate(all="ignore"):
        means = forest.leaf_sums / np.maximum(forest.leaf_weights, np.float32(1e-6))[:, None]
    CHECKS.moderate(means.astype(np.float64), f"{PREFIX}/forest/leaf_sums")
    return UnitBags(forest, basis, spread, outcomes, _share(values.get("share")))


def _share(values: Any) -> NoiseShare:
    """Shares of other units; files from before there were any go by a unit's own."""
    if values is None:
        return NoiseShare.unknown()
    return NoiseShare(
        CHECKS.number(values, "mean", 0.0, 1.0),
        CHECKS.number(values, "variance", 0.0, MOST_VARIANCE),
    )
