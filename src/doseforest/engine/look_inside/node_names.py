"""Where a node stands, and what its split is called."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from doseforest.base.dtypes import CATEGORICAL, LEAF, MISSING_LEFT, Array, IntArray, bins_of_codes

if TYPE_CHECKING:
    from doseforest.engine.forest import Forest

SHOWN_LABELS = 6


def feature_label(names: Sequence[str] | None, feature: int) -> str:
    """Name of a feature, or its place.

    Examples
    --------
    >>> feature_label(("age", "income"), 1), feature_label(None, 1)
    ('income', 'x[1]')
    """
    return f"x[{feature}]" if names is None else names[feature]


def split_text(forest: Forest, node: int, precision: int) -> str:
    """What a row must satisfy to go left at a split of the forest's node table."""
    record = forest.nodes[node]
    label = feature_label(forest.feature_names, int(record["feature"]))
    missing_left = bool(record["flags"] & MISSING_LEFT)
    side = "left" if missing_left else "right"
    if record["flags"] & CATEGORICAL:
        return f"{label} in {_labels_text(forest, node)}, missing {side}"
    if np.isposinf(record["threshold"]) and not missing_left:
        return f"{label} is not missing"
    return f"{label} <= {record['threshold']:.{precision}g}, missing {side}"


def _labels_text(forest: Forest, node: int) -> str:
    """Labels that go left at a categorical split, the most frequent first."""
    record = forest.nodes[node]
    labels = forest.categories[int(record["feature"])]
    words = forest.category_sets[int(record["threshold"])]
    bins = bins_of_codes(np.arange(len(labels)), len(words))
    is_left = (words[bins // 64] >> (bins % 64).astype(np.uint64)) & np.uint64(1) > 0
    left = [repr(labels[code]) for code in np.flatnonzero(is_left)]
    more = [f"… {len(left) - SHOWN_LABELS} more"] if len(left) > SHOWN_LABELS else []
    return "{" + ", ".join(left[:SHOWN_LABELS] + more) + "}"


def checked_depth(max_depth: int) -> int:
    """Depth to stop at, as given."""
    if not isinstance(max_depth, Integral) or max_depth < 0:
        raise ValueError(
            f"The 'max_depth' parameter must be an int in [0, inf) or None. Got {max_depth!r} "
            "instead."
        )
    return int(max_depth)


def node_depths(nodes: Array, roots: IntArray) -> IntArray:
    """Depth of each node of a forest, 0 at the roots.

    Examples
    --------
    >>> from doseforest.base.dtypes import NODE_DTYPE
    >>> stump = np.array([(0.5, 1, 0, 0, 0), (0, 0, 0, 0, LEAF), (0, 1, 0, 0, LEAF)], NODE_DTYPE)
    >>> node_depths(stump, np.array([0]))
    array([0, 1, 1])
    """
    depths = np.zeros(len(nodes), np.int64)
    is_split = (nodes["flags"] & LEAF) == 0
    level = np.asarray(roots)
    while len(level):  # all trees at once, one level after another
        parents = level[is_split[level]]
        left = nodes["left"][parents].astype(np.int64)
        level = np.concatenate([left, left + 1])
        depths[level] = np.tile(depths[parents] + 1, 2)
    return depths
