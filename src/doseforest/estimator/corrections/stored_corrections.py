"""Fitted corrections as plain values and named arrays, and back with checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from doseforest.base.container import ForestFileError
from doseforest.base.dtypes import Array
from doseforest.data.feature_table import Categories
from doseforest.doses.dose_values import Doses
from doseforest.doses.stored_values import LARGEST_RESULT
from doseforest.engine.forest import Forest
from doseforest.engine.stored_forest import curve_width, read_forest, store_forest
from doseforest.estimator.corrections.kernel_curves import (
    KernelForest,
    PublishedCorrection,
    StabilizedCorrection,
)
from doseforest.estimator.corrections.sieve_forests import OrthogonalCorrection
from doseforest.estimator.corrections.stored_sieves import (
    CHECKS,
    check_shares,
    read_orthogonal,
    store_orthogonal,
)
from doseforest.estimator.effect_forest import Correction, NoCorrection

__all__ = ["CHECKS", "STORED_CORRECTIONS", "read_correction", "store_correction"]


def store_correction(
    correction: Correction, prefix: str
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Take a correction apart into metadata, which is plain JSON, and named arrays.

    Parameters
    ----------
    correction : one of STORED_CORRECTIONS
    prefix : str
        Of the arrays' names, as a folder, to keep them apart from others in one file.

    Raises
    ------
    TypeError
        The correction or a part of it is the user's own code.

    Examples
    --------
    >>> store_correction(NoCorrection(), "correction")
    ({'kind': 'none'}, {})
    """
    kind = {stored.type: kind for kind, stored in STORED_CORRECTIONS.items()}.get(type(correction))
    if kind is None:
        raise TypeError(
            f"The correction must be one of {sorted(STORED_CORRECTIONS)} to be stored: a file "
            f"holds numbers, not code. Got {type(correction).__name__} instead."
        )
    values, arrays = STORED_CORRECTIONS[kind].store(correction, prefix)
    return {"kind": kind, **values}, arrays


def read_correction(
    values: Mapping[str, Any],
    arrays: Mapping[str, Array],
    prefix: str,
    n_features: int,
    codes: Categories | None = None,
) -> Correction:
    """Put a correction together that `store_correction` took apart.

    Parameters
    ----------
    values, arrays : mappings
        Of a file.
    prefix : str
        With which the arrays were stored.
    n_features : int
        Features that its trees split on.
    codes : mapping, optional
        The categorical ones among them, with codes for labels.

    Raises
    ------
    ForestFileError
        The parts do not fit. Values of another type altogether may also raise what reading them
        raises.
    """
    kind = values["kind"]
    if kind not in STORED_CORRECTIONS:
        raise ForestFileError(
            f"the effect forest has a correction of the unknown kind {kind!r:.80}; "
            "upgrade doseforest"
        )
    stored = STORED_CORRECTIONS[kind]
    correction = stored.read(values, arrays, prefix, n_features)
    for forest in stored.forests(correction):
        CHECKS.require(forest.categories == (codes or {}), "has a forest of other categories")
    return correction


def _store_stabilized(
    correction: StabilizedCorrection, prefix: str
) -> tuple[dict[str, Any], dict[str, Array]]:
    arrays: dict[str, Array] = {
        f"{prefix}/grid": Doses.of(correction.grid).plain,
        f"{prefix}/constant": correction.constant,
    }
    forests = []
    for number, each in enumerate(correction.forests):
        forest, forest_arrays = store_forest(each.forest, f"{prefix}/forests/{number}")
        values = {"shrinkage": float(each.shrinkage), "share": float(each.share)}
        forests.append({"forest": forest, **values})
        arrays |= forest_arrays
    return {"forests": forests}, arrays


def _read_stabilized(
    values: Mapping[str, Any], arrays: Mapping[str, Array], prefix: str, n_features: int
) -> StabilizedCorrection:
    grid = CHECKS.doses(arrays, f"{prefix}/grid")
    forests = []
    for number, each in enumerate(values["forests"]):
        forest = read_forest(each["forest"], arrays, f"{prefix}/forests/{number}")
        CHECKS.require(
            forest.n_features == n_features and len(forest.fallback) == 2 * len(grid),
            "has a forest that does not fit its grid or its features",
        )
        shrinkage = CHECKS.number(each, "shrinkage", 0.0, LARGEST_RESULT)
        forests.append(KernelForest(forest, shrinkage, CHECKS.number(each, "share", 0.0, 1.0)))
    check_shares([each.share for each in forests])
    constant = CHECKS.vector(arrays, f"{prefix}/constant", len(grid))
    return StabilizedCorrection(grid, tuple(forests), constant)


def _store_published(
    correction: PublishedCorrection, prefix: str
) -> tuple[dict[str, Any], dict[str, Array]]:
    forest, arrays = store_forest(correction.forest, f"{prefix}/forest")
    return {"forest": forest}, {f"{prefix}/grid": Doses.of(correction.grid).plain, **arrays}


def _read_published(
    values: Mapping[str, Any], arrays: Mapping[str, Array], prefix: str, n_features: int
) -> PublishedCorrection:
    grid = CHECKS.doses(arrays, f"{prefix}/grid")
    forest = read_forest(values["forest"], arrays, f"{prefix}/forest")
    CHECKS.require(
        forest.n_features == n_features and curve_width(forest) == len(grid),
        "has a forest that does not fit its grid or its features",
    )
    return PublishedCorrection(grid, forest)


def _store_nothing(
    correction: NoCorrection, prefix: str
) -> tuple[dict[str, Any], dict[str, Array]]:
    return {}, {}


def _read_nothing(
    values: Mapping[str, Any], arrays: Mapping[str, Array], prefix: str, n_features: int
) -> NoCorrection:
    return NoCorrection()


@dataclass(frozen=True, slots=True)
class StoredCorrection:
    """How a type of correction is taken apart and put together; see `store_correction`."""

    type: type
    store: Callable[[Any, str], tuple[dict[str, Any], dict[str, Array]]]
    read: Callable[[Mapping[str, Any], Mapping[str, Array], str, int], Correction]
    forests: Callable[[Any], list[Forest]]


def _forests_of_rounds(correction: OrthogonalCorrection) -> list[Forest]:
    return [grown.forest for round_ in correction.rounds for grown in round_.forests]


STORED_CORRECTIONS: dict[str, StoredCorrection] = {
    "orthogonal": StoredCorrection(
        OrthogonalCorrection, store_orthogonal, read_orthogonal, _forests_of_rounds
    ),
    "stabilized": StoredCorrection(
        StabilizedCorrection,
        _store_stabilized,
        _read_stabilized,
        lambda correction: [forest.forest for forest in correction.forests],
    ),
    "kernel": StoredCorrection(
        PublishedCorrection,
        _store_published,
        _read_published,
        lambda correction: [correction.forest],
    ),
    "none": StoredCorrection(NoCorrection, _store_nothing, _read_nothing, lambda correction: []),
}
