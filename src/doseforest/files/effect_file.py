"""An effect forest as plain values and named arrays, and back with checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from doseforest.base.dtypes import MAX_FEATURES, Array, IntArray
from doseforest.data.checks import LARGEST_VALUE
from doseforest.data.feature_table import Categories
from doseforest.doses.bases.dose_basis import basis_levels
from doseforest.doses.boxes import DoseBox
from doseforest.doses.dose_values import MAX_COMPONENTS, Doses
from doseforest.doses.grids import SUPPORT_SLACK, DoseRange
from doseforest.doses.stored_values import FLOATS, INTEGERS
from doseforest.engine.stored_categories import read_categories, store_categories
from doseforest.estimator.bags.stored_bags import outcome_prefix, read_bags, store_bags
from doseforest.estimator.bags.unit_bags import UnitBags
from doseforest.estimator.corrections.kernel_curves import PublishedCorrection, StabilizedCorrection
from doseforest.estimator.corrections.sieve_forests import OrthogonalCorrection
from doseforest.estimator.corrections.stored_corrections import (
    CHECKS,
    read_correction,
    store_correction,
)
from doseforest.estimator.effect_forest import CorrectedOutcome, Correction, EffectForest
from doseforest.files.forest_file import write_model
from doseforest.nuisance.outcome.encoded_models import EncodedModel
from doseforest.nuisance.outcome.outcome_models import SizedModel
from doseforest.nuisance.outcome.stored_outcome_models import (
    read_outcome_model,
    store_outcome_model,
)

MOST_PARTS = 2  # halves, swapped
MOST_FOLDS = 100_000  # of outcome models, over all repeats


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
        "doses": np.asarray(Doses.of(model.doses).plain, FLOATS),
        "effect_columns": np.asarray(model.effect_columns, INTEGERS),
    }
    parts = []
    for number, part in enumerate(model.parts):
        outcome, stored = store_outcome_model(part.outcome, f"parts/{number}/outcome")
        correction, added = store_correction(part.correction, f"parts/{number}/correction")
        parts.append({"outcome": outcome, "correction": correction})
        arrays |= stored | added
    metadata: dict[str, Any] = {
        "n_features": model.n_features,
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "baseline": Doses.of(model.baseline).plain,
        "support": _plain_support(model.ranges),
        "bounded": bool(model.bounded),
        "parts": parts,
    }
    if model.component_levels != _levels_of_bases(model.parts, model.n_components):
        metadata["levels"] = [list(values) for values in model.component_levels]
    if model.categories:
        metadata["categories"] = store_categories(model.categories)
    if model.bags is not None:
        metadata["bags"], stored = store_bags(model.bags)
        arrays |= stored
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
    support = _support(metadata["support"])
    doses = CHECKS.doses(arrays, "doses")
    CHECKS.require(
        Doses.of(doses).n_components == support.n_components,
        "has doses of other components than their range",
    )
    baseline = CHECKS.one_dose(metadata["baseline"], "baseline", support.n_components)
    asked = np.append(doses, baseline)
    CHECKS.require(bool(support.contains(asked, SUPPORT_SLACK).all()), "has doses out of range")
    categories: Categories = {}
    if "categories" in metadata:
        categories = read_categories(metadata["categories"], n_features)
    described = metadata["parts"]
    CHECKS.require(
        isinstance(described, list) and 1 <= len(described) <= MOST_PARTS, "has no parts"
    )
    parts = tuple(
        _part(each, arrays, number, n_features, columns, categories, support.n_components)
        for number, each in enumerate(described)
    )
    return EffectForest(
        parts=parts,
        n_features=n_features,
        feature_names=None if names is None else CHECKS.names(names, n_features, "feature"),
        effect_columns=columns,
        doses=doses,
        baseline=baseline,
        support=support,
        bounded=CHECKS.flag(metadata, "bounded"),
        categories=categories,
        bags=_bags(metadata, arrays, n_features, columns, categories, support.n_components),
        component_levels=_levels(metadata, parts, support),
    )


def _levels_of_bases(
    parts: tuple[CorrectedOutcome, ...], n_components: int
) -> tuple[tuple[float, ...], ...]:
    """Levels of each component as the basis of a correction has them, if any."""
    bases = (getattr(part.correction, "basis", None) for part in parts)
    each = (basis_levels(basis, n_components) for basis in bases if basis is not None)
    return next(each, ((),) * n_components)


def _levels(
    metadata: Mapping[str, Any], parts: tuple[CorrectedOutcome, ...], support: DoseRange | DoseBox
) -> tuple[tuple[float, ...], ...]:
    """Levels of each component, in the file where no basis of a correction has them."""
    of_bases = _levels_of_bases(parts, support.n_components)
    if "levels" not in metadata:
        return of_bases
    CHECKS.require(not any(of_bases), "has levels twice")
    described = metadata["levels"]
    CHECKS.require(
        isinstance(described, list)
        and len(described) == support.n_components
        and all(isinstance(values, list) and len(values) != 1 for values in described),
        "has levels that do not fit its doses",
    )
    for values in described:
        CHECKS.finite(*values)
        CHECKS.increasing(values, "levels")
        small = all(abs(value) <= LARGEST_VALUE for value in values)
        CHECKS.require(small, "has levels out of range")
    return tuple(tuple(map(float, values)) for values in described)


def _part(
    described: Mapping[str, Any],
    arrays: Mapping[str, Array],
    number: int,
    n_features: int,
    columns: IntArray,
    categories: Categories,
    width: int,
) -> CorrectedOutcome:
    place = f"parts/{number}/outcome"
    outcome = _outcome(described["outcome"], arrays, place, n_features, categories)
    codes = _codes(columns, categories)
    place = f"parts/{number}/correction"
    correction = read_correction(described["correction"], arrays, place, len(columns), codes)
    CHECKS.require(
        {*outcome.dose_components, *_correction_components(correction)} == {width},
        "has parts for doses of other components",
    )
    return CorrectedOutcome(outcome, correction)


def _outcome(
    described: Mapping[str, Any],
    arrays: Mapping[str, Array],
    prefix: str,
    n_features: int,
    categories: Categories,
) -> SizedModel:
    """An outcome model of the forest's own features and categories."""
    CHECKS.require(described["n_features"] == n_features, "has an outcome model of other features")
    outcome = read_outcome_model(described, arrays, prefix)
    encodings = outcome.encoder.columns if isinstance(outcome, EncodedModel) else ()
    CHECKS.require(
        {encoding.feature: encoding.n_codes for encoding in encodings}
        == {feature: len(labels) for feature, labels in categories.items()},
        "has an outcome model of other categories",
    )
    return outcome


def _bags(
    metadata: Mapping[str, Any],
    arrays: Mapping[str, Array],
    n_features: int,
    columns: IntArray,
    categories: Categories,
    width: int,
) -> UnitBags | None:
    """The forest of intervals, where the file has one."""
    if "bags" not in metadata:
        return None
    described = metadata["bags"]["outcomes"]
    CHECKS.require(
        isinstance(described, list) and 1 <= len(described) <= MOST_FOLDS,
        "has no outcome models of folds",
    )
    outcomes = tuple(
        _outcome(each, arrays, outcome_prefix(fold), n_features, categories)
        for fold, each in enumerate(described)
    )
    CHECKS.require(
        set().union(*(outcome.dose_components for outcome in outcomes)) == {width},
        "has outcome models of folds for doses of other components",
    )
    return read_bags(
        metadata["bags"],
        arrays,
        outcomes,
        n_features=len(columns),
        codes=_codes(columns, categories),
        n_components=width,
    )


def _codes(columns: IntArray, categories: Categories) -> Categories:
    """Codes of the categorical features that trees split on, by their places there."""
    return {
        place: tuple(range(len(categories[column])))
        for place, column in enumerate(columns.tolist())
        if column in categories
    }


def _correction_components(correction: Correction) -> Iterator[int]:
    """Number of components of the doses that a correction is of, where it says so."""
    if isinstance(correction, OrthogonalCorrection):
        yield Doses.of(correction.projection.nodes).n_components
    elif isinstance(correction, StabilizedCorrection | PublishedCorrection):
        yield Doses.of(correction.grid).n_components


def _plain_support(ranges: tuple[DoseRange, ...]) -> Any:
    plain = [{"low": float(range_.low), "high": float(range_.high)} for range_ in ranges]
    return plain if len(plain) > 1 else plain[0]


def _support(described: Any) -> DoseRange | DoseBox:
    several = isinstance(described, list)
    ranges = tuple(
        DoseRange(CHECKS.dose(each, "low"), CHECKS.dose(each, "high"))
        for each in (described if several else [described])
    )
    CHECKS.require(all(range_.low < range_.high for range_ in ranges), "has no range of doses")
    CHECKS.require(not several or 2 <= len(ranges) <= MAX_COMPONENTS, "has no range of doses")
    return DoseBox(ranges) if several else ranges[0]
