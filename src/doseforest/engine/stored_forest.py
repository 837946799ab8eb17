"""A forest as plain values and named arrays, and back with checks.

A file is trusted with nothing: no code is stored, and a tree whose links leave its arrays or run
in circles is refused before it is walked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from doseforest.base.container import ForestFileError
from doseforest.base.dtypes import CATEGORICAL, LEAF, MAX_FEATURES, MISSING_LEFT, NODE_DTYPE, Array
from doseforest.data.feature_table import Categories
from doseforest.data.sampling import HONESTY_CODES, SamplingPlan
from doseforest.doses.stored_values import FLOATS, INTEGERS, FileChecks
from doseforest.engine.forest import Forest
from doseforest.engine.leaves.leaf_curves import LEAF_CURVES, leaf_curve_from_json
from doseforest.engine.node_checks import check_trees
from doseforest.engine.stored_categories import check_sets, read_categories, store_categories

CHECKS = FileChecks("forest")
require = CHECKS.require

_ARRAYS: dict[str, tuple[np.dtype[Any], int]] = {  # type and number of dimensions
    "nodes": (NODE_DTYPE, 1),
    "gains": (FLOATS, 1),
    "roots": (INTEGERS, 1),
    "leaf_sums": (np.dtype("<f4"), 2),
    "leaf_weights": (np.dtype("<f4"), 1),
    "fallback": (FLOATS, 1),
}


_SETS = "category_sets"  # only where there are categories


def store_forest(forest: Forest, prefix: str = "") -> tuple[dict[str, Any], dict[str, Array]]:
    """Take a forest apart into metadata, which is plain JSON, and named arrays.

    Parameters
    ----------
    forest : Forest
    prefix : str, default=""
        Of the arrays' names, as a folder, to keep them apart from others in one file.

    Raises
    ------
    TypeError
        The forest reads its leaves in a way of the user's own: a file holds no code.
    """
    if LEAF_CURVES.get(forest.leaf_curve.kind) is not type(forest.leaf_curve):
        raise TypeError(
            f"The 'leaf_curve' parameter must be one of {sorted(LEAF_CURVES)} for a forest that is "
            f"saved: a file holds no code. Got {type(forest.leaf_curve).__name__} instead."
        )
    metadata: dict[str, Any] = {
        "plan": forest.plan.to_json(),
        "leaf_curve": forest.leaf_curve.to_json(),
        "n_features": forest.n_features,
        "n_training_rows": forest.n_training_rows,
        "feature_names": None if forest.feature_names is None else list(forest.feature_names),
        "doses": None if forest.doses is None else list(forest.doses),
    }
    arrays = {_place(prefix, name): getattr(forest, name) for name in _ARRAYS}
    if forest.categories:
        metadata["categories"] = store_categories(forest.categories)
        arrays[_place(prefix, _SETS)] = forest.category_sets
    return metadata, arrays


def read_forest(
    metadata: Mapping[str, Any], arrays: Mapping[str, Array], prefix: str = ""
) -> Forest:
    """Put a forest together that `store_forest` took apart.

    Raises
    ------
    ForestFileError
        The forest cannot be walked, its parts do not fit, or its numbers are not finite. Values
        of another type altogether may also raise what reading them raises.
    """
    own = {
        name: CHECKS.array(arrays, _place(prefix, name), dtype, n_dimensions)
        for name, (dtype, n_dimensions) in _ARRAYS.items()
    }
    names, doses = metadata["feature_names"], metadata["doses"]
    n_features = CHECKS.count(metadata, "n_features", 1, MAX_FEATURES)
    categories: Categories = {}
    if "categories" in metadata:
        categories = read_categories(metadata["categories"], n_features)
        own[_SETS] = CHECKS.array(arrays, _place(prefix, _SETS), np.dtype("<u8"), 2)
    forest = Forest(
        **own,
        plan=_plan(metadata["plan"]),
        leaf_curve=leaf_curve_from_json(metadata["leaf_curve"]),
        n_features=n_features,
        n_training_rows=CHECKS.count(metadata, "n_training_rows", 1, 2**40),
        feature_names=None if names is None else CHECKS.names(names, n_features, "feature"),
        doses=None if doses is None else tuple(float(dose) for dose in doses),
        categories=categories,
    )
    _check(forest)
    return forest


def curve_width(forest: Forest) -> int:
    """Number of doses of the curves that a forest answers with."""
    with np.errstate(all="ignore"):
        curve = forest.leaf_curve.solve(forest.fallback[None], forest.fallback, 1)
    return int(curve.shape[1])


def _place(prefix: str, name: str) -> str:
    return f"{prefix}/{name}" if prefix else name


def _plan(values: dict[str, Any]) -> SamplingPlan:
    plan = SamplingPlan(**values)
    require(
        type(plan.seed) is int
        and 0 <= plan.seed < 2**64
        and type(plan.bag_size) is int
        and 1 <= plan.bag_size < 2**63
        and plan.honesty in HONESTY_CODES
        and isinstance(plan.bootstrap, bool)
        and 0 < plan.fraction <= 1
        and 0 < plan.growth_fraction <= 1,
        "has a sampling plan out of range",
    )
    return plan


def _check(forest: Forest) -> None:
    """Refuse a forest that cannot be walked or whose parts do not fit."""
    n_leaves = len(forest.leaf_weights)
    require(len(forest.gains) == len(forest.nodes), "has not one gain per node")
    require(
        forest.leaf_sums.shape == (n_leaves, len(forest.fallback)),
        "has leaf sums that do not fit its leaves",
    )
    require(bool(np.isfinite(forest.doses or ()).all()), "has a non-finite number in doses")
    try:
        forest.leaf_curve.check_width(len(forest.fallback))
    except ValueError as error:
        raise ForestFileError(str(error)) from None
    check_trees(
        forest.nodes,
        forest.roots,
        n_leaves=n_leaves,
        n_features=forest.n_features,
        flags=LEAF | MISSING_LEFT | (CATEGORICAL if forest.categories else 0),
        owner="forest",
    )
    check_sets(forest.nodes, forest.category_sets, forest.categories)
    require(bool((forest.leaf_weights >= 0).all()), "has a negative leaf weight")
