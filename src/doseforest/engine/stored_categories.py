"""Categories of a forest in a file: labels as JSON, sets as an array, and their checks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from doseforest.base.container import require_of
from doseforest.base.dtypes import (
    CATEGORICAL,
    LEAF,
    SET_WORDS,
    WIDE_SET_WORDS,
    Array,
    IntArray,
    SetArray,
    bins_of_codes,
)
from doseforest.data.binning import MAX_BINS
from doseforest.data.categories import LARGEST_CODE
from doseforest.data.feature_table import Categories, Label


def store_categories(categories: Categories) -> list[dict[str, Any]]:
    """Take categories apart into plain JSON.

    >>> store_categories({2: ("b", "a")})
    [{'feature': 2, 'labels': ['b', 'a']}]
    """
    return [{"feature": int(f), "labels": list(labels)} for f, labels in sorted(categories.items())]


def read_categories(stored: Any, n_features: int) -> dict[int, tuple[Label, ...]]:
    """Put categories together that `store_categories` took apart.

    Raises
    ------
    ForestFileError
        Features are out of order, or labels are not distinct texts or distinct numbers.
    """
    _require(isinstance(stored, list) and len(stored) > 0, "has no list of categories")
    categories: dict[int, tuple[Label, ...]] = {}
    last = -1
    for entry in stored:
        _require(set(entry) == {"feature", "labels"}, "has a category of another form")
        feature, labels = entry["feature"], entry["labels"]
        in_order = type(feature) is int and last < feature < n_features
        _require(in_order, "has categorical features out of order")
        _require(isinstance(labels, list), "has labels that are no list")
        fits = all(isinstance(label, str) for label in labels) or all(map(_is_number, labels))
        _require(fits, "has labels that are neither all text nor all numbers")
        _require(len(set(labels)) == len(labels), "has a label twice")
        categories[feature] = tuple(labels)
        last = feature
    return categories


def check_sets(nodes: Array, sets: SetArray, categories: Categories) -> None:
    """Refuse categorical nodes without a set of their own, and sets of bins that there are not.

    The set of the k-th categorical node is the k-th.
    """
    is_split = (nodes["flags"] & LEAF) == 0
    by_set = (nodes["flags"] & CATEGORICAL) > 0
    features: IntArray = nodes["feature"][by_set].astype(np.int64)
    on_categories = np.isin(nodes["feature"], np.array(sorted(categories), dtype=np.int64))
    _require(
        np.array_equal(by_set, is_split & on_categories),
        "has categorical nodes on other features than its categories",
    )
    is_wide = max(map(len, categories.values()), default=0) > MAX_BINS
    n_words = sets.shape[1]
    _require(
        n_words == SET_WORDS or (is_wide and n_words == WIDE_SET_WORDS),
        "has category sets of a size that does not fit its categories",
    )
    _require(len(sets) == len(features), "has not one set per categorical node")
    _require(
        np.array_equal(nodes["threshold"][by_set], np.arange(len(features))),
        "has category sets out of order",
    )
    for feature, labels in categories.items():
        last = bins_of_codes(np.array([max(1, len(labels)) - 1]), n_words)[0]
        beyond = ~_set_of_all(int(last) + 1, n_words)
        strays = sets[features == feature] & beyond
        _require(not strays.any(), "has a set with a bin that there is not")


def _set_of_all(n_bins: int, n_words: int) -> SetArray:
    """The set with every one of so many bins in it."""
    bits = (1 << n_bins) - 1
    return np.array([bits >> 64 * word & 2**64 - 1 for word in range(n_words)], np.uint64)


def _is_number(label: Any) -> bool:
    if type(label) is int:
        return abs(label) <= LARGEST_CODE
    return type(label) is float and math.isfinite(label)


def _require(condition: bool, problem: str) -> None:
    require_of("forest", condition, problem)
