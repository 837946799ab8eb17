"""The forest file: a forest in a container of arrays, checked on the way in.

A file is trusted with nothing: no code is stored, and a tree whose links leave its arrays or run
in circles is refused before it is walked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from doseforest.data.sampling import HONESTY_CODES, SamplingPlan
from doseforest.dtypes import LEAF, MAX_FEATURES, MISSING_LEFT, NODE_DTYPE, Array
from doseforest.leaves.leaf_curves import LEAF_CURVES, leaf_curve_from_json
from doseforest.prediction.container import ForestFileError, read_container, write_container
from doseforest.prediction.forest import Forest
from doseforest.prediction.node_checks import check_trees, require_of

KIND = "forest"
FORMAT_VERSION = 1  # of the forest inside the container; raised when a reader must know more

_ARRAYS: dict[str, tuple[Any, int]] = {  # type and number of dimensions
    "nodes": (NODE_DTYPE, 1),
    "gains": (np.dtype("<f8"), 1),
    "roots": (np.dtype("<i8"), 1),
    "leaf_sums": (np.dtype("<f4"), 2),
    "leaf_weights": (np.dtype("<f4"), 1),
    "fallback": (np.dtype("<f8"), 1),
}


def save_forest(forest: Forest, path: str | Path) -> None:
    """Write a forest to one file; an interrupted write leaves nothing behind."""
    if LEAF_CURVES.get(forest.leaf_curve.kind) is not type(forest.leaf_curve):
        raise TypeError(
            f"The 'leaf_curve' parameter must be one of {sorted(LEAF_CURVES)} for a forest that is "
            f"saved: a file holds no code. Got {type(forest.leaf_curve).__name__} instead."
        )
    metadata: dict[str, Any] = {
        "kind": KIND,
        "format_version": FORMAT_VERSION,
        "plan": forest.plan.to_json(),
        "leaf_curve": forest.leaf_curve.to_json(),
        "n_features": forest.n_features,
        "n_training_rows": forest.n_training_rows,
        "feature_names": None if forest.feature_names is None else list(forest.feature_names),
        "doses": None if forest.doses is None else list(forest.doses),
    }
    write_container(path, metadata, {name: getattr(forest, name) for name in _ARRAYS})


def load_forest(path: str | Path, *, memory_map: bool = False, verify: bool = True) -> Forest:
    """Read a forest that `Forest.save` or `CurveForest.save` wrote.

    Parameters
    ----------
    path : str or Path
    memory_map : bool, default=False
        Leave the arrays on disk and read them as they are used; processes share the pages.
    verify : bool, default=True
        Check the checksums of the arrays; without it a memory-mapped forest opens at once.

    Raises
    ------
    ForestFileError
        The file is damaged, is not a forest, or was written by a newer version.

    Examples
    --------
    >>> import doseforest, numpy as np, tempfile, pathlib
    >>> x = np.arange(40.0)[:, None]
    >>> forest = doseforest.CurveForest(n_trees=4, random_state=0).fit(x, x)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.dose"
    >>> forest.save(path)
    >>> np.array_equal(doseforest.load_forest(path).predict(x), forest.predict(x))
    True
    """
    container = read_container(path, memory_map=memory_map, verify=verify)
    try:
        return _forest(container.metadata, container.arrays)
    except ForestFileError as error:
        raise ForestFileError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise ForestFileError(
            f"{path}: the description of the forest is not valid "
            f"({type(error).__name__}: {error}); the file is damaged, save the forest again"
        ) from error


def _forest(metadata: dict[str, Any], arrays: dict[str, Array]) -> Forest:
    if metadata["kind"] != KIND:
        raise ForestFileError(f"holds a {metadata['kind']!r}, not a forest")
    version = metadata["format_version"]
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ForestFileError(
            f"was written by a newer doseforest (forest format {version}; this one reads up to "
            f"{FORMAT_VERSION}); upgrade doseforest"
        )
    for name, (dtype, n_dimensions) in _ARRAYS.items():
        _require(name in arrays, f"lacks the array {name!r}")
        _require(
            arrays[name].dtype == dtype and arrays[name].ndim == n_dimensions,
            f"array {name!r} has the wrong type or shape",
        )
    names, doses = metadata["feature_names"], metadata["doses"]
    forest = Forest(
        **{name: arrays[name] for name in _ARRAYS},
        plan=_plan(metadata["plan"]),
        leaf_curve=leaf_curve_from_json(metadata["leaf_curve"]),
        n_features=_count(metadata, "n_features", MAX_FEATURES),
        n_training_rows=_count(metadata, "n_training_rows", 2**40),
        feature_names=None if names is None else tuple(str(name) for name in names),
        doses=None if doses is None else tuple(float(dose) for dose in doses),
    )
    _check(forest)
    return forest


def _plan(values: dict[str, Any]) -> SamplingPlan:
    plan = SamplingPlan(**values)
    _require(
        type(plan.seed) is int
        and 0 <= plan.seed < 2**64
        and type(plan.bag_size) is int
        and plan.bag_size >= 1
        and plan.honesty in HONESTY_CODES
        and isinstance(plan.bootstrap, bool)
        and 0 < plan.fraction <= 1
        and 0 < plan.growth_fraction <= 1,
        "the sampling plan is out of range",
    )
    return plan


def _count(metadata: dict[str, Any], name: str, most: int) -> int:
    value = metadata[name]
    _require(type(value) is int and 1 <= value <= most, f"{name} is out of range")
    return int(value)


def _check(forest: Forest) -> None:
    """Refuse a forest that cannot be walked or whose numbers are not finite."""
    n_leaves = len(forest.leaf_weights)
    _require(len(forest.gains) == len(forest.nodes), "has not one gain per node")
    _require(
        forest.leaf_sums.shape == (n_leaves, len(forest.fallback)),
        "has leaf sums that do not fit its leaves",
    )
    _require(
        forest.feature_names is None or len(forest.feature_names) == forest.n_features,
        "has not one name per feature",
    )
    try:
        forest.leaf_curve.check_width(len(forest.fallback))
    except ValueError as error:
        raise ForestFileError(str(error)) from None

    check_trees(
        forest.nodes,
        forest.roots,
        n_leaves=n_leaves,
        n_features=forest.n_features,
        flags=LEAF | MISSING_LEFT,
        owner="forest",
    )
    for name in ("gains", "leaf_sums", "leaf_weights", "fallback"):
        _require(
            bool(np.isfinite(getattr(forest, name)).all()), f"has a non-finite number in {name}"
        )
    _require(bool((forest.leaf_weights >= 0).all()), "has a negative leaf weight")


def _require(condition: bool, problem: str) -> None:
    require_of("forest", condition, problem)
