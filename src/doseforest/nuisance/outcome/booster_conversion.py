"""LightGBM's text form of a booster, read into a `TreeEnsemble`.

The text holds thresholds, leaf values and coefficients to their last digit, shrunken and with the
initial score in the first tree, so the ensemble is the booster up to the order of additions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import (
    LEAF,
    MISSING_LEFT,
    NODE_DTYPE,
    ZERO_MISSING,
    Array,
    FloatArray,
    IntArray,
)
from doseforest.nuisance.outcome.tree_ensemble import TreeEnsemble

LINK_OF_OBJECTIVE = {"regression": "identity", "binary sigmoid:1": "logistic"}

# Bits of LightGBM's decision_type, and what it does with NaN according to the missing type.
CATEGORICAL, DEFAULT_LEFT = 1, 2
NAN_IS_ZERO, ZERO_IS_MISSING = 0, 1  # (decision_type >> 2) & 3; 2: NaN is missing


@dataclass(frozen=True, slots=True)
class ReadTree:
    """One tree with its own numbers: nodes breadth-first, leaves in the order of their nodes."""

    nodes: Array  # (n_nodes,) NODE_DTYPE
    values: FloatArray  # (n_leaves,)
    constants: FloatArray  # (n_leaves,)
    term_counts: IntArray  # (n_leaves,)
    term_features: IntArray  # (n_terms,), the dose among them
    term_coefficients: FloatArray  # (n_terms,)


def ensemble_from_booster(booster: Any, n_components: int = 1) -> TreeEnsemble:
    """Read a `lightgbm.Booster` whose last feature is the dose, or its last ones the components.

    Examples
    --------
    >>> import lightgbm
    >>> table, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)
    >>> settings = {"verbosity": -1, "min_data_in_leaf": 1, "linear_tree": True}
    >>> data = lightgbm.Dataset(table, y, params=settings)
    >>> booster = lightgbm.train(settings, data, num_boost_round=5)
    >>> ensemble = ensemble_from_booster(booster)
    >>> np.allclose(ensemble.predict(table[:, :1], table[:, 1]), booster.predict(table))
    True
    """
    text = booster.model_to_string(num_iteration=-1).partition("\nend of trees")[0]
    head, *blocks = text.split("\nTree=")
    header = _fields(head)
    objective = header.get("objective", "none")
    if objective not in LINK_OF_OBJECTIVE or "average_output" in head.splitlines():
        raise ValueError(
            "The 'booster' parameter must be boosted with one of the objectives "
            f"{sorted(LINK_OF_OBJECTIVE)}. Got objective {objective!r} instead."
        )
    last = int(header["max_feature_idx"])
    trees = [_tree(_fields(block)) for block in blocks]
    ensemble = join_trees(trees, last, LINK_OF_OBJECTIVE[objective])
    return replace(ensemble, n_features=last + 1 - n_components, n_components=n_components)


def _fields(block: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in block.splitlines() if "=" in line)


def _floats(text: str) -> FloatArray:
    return np.array(text.split(), np.float64)


def _integers(text: str) -> IntArray:
    return np.array(text.split(), np.int64)


def _tree(fields: dict[str, str]) -> ReadTree:
    codes, left = breadth_first(
        _integers(fields["left_child"]).tolist(), _integers(fields["right_child"]).tolist()
    )
    is_split = codes >= 0
    split, leaf = codes[is_split], ~codes[~is_split]
    threshold = _floats(fields["threshold"])[split]
    nodes = np.zeros(len(codes), NODE_DTYPE)
    nodes["flags"] = LEAF
    nodes["flags"][is_split] = _flags(_integers(fields["decision_type"])[split], threshold)
    nodes["threshold"][is_split] = threshold
    nodes["feature"][is_split] = _integers(fields["split_feature"])[split]
    nodes["left"][is_split] = left
    nodes["left"][~is_split] = np.arange(len(leaf))
    values = _floats(fields["leaf_value"])
    if fields["is_linear"] == "0":
        none = np.zeros(0, np.int64)
        return ReadTree(nodes, values[leaf], values[leaf], np.zeros_like(leaf), none, _floats(""))
    counts = _integers(fields["num_features"])
    starts = np.cumsum(counts) - counts
    places = np.concatenate([np.arange(starts[k], starts[k] + counts[k]) for k in leaf])
    return ReadTree(
        nodes=nodes,
        values=values[leaf],
        constants=_floats(fields["leaf_const"])[leaf],
        term_counts=counts[leaf],
        term_features=_integers(fields["leaf_features"])[places],
        term_coefficients=_floats(fields["leaf_coeff"])[places],
    )


def breadth_first(left: list[int], right: list[int]) -> tuple[IntArray, list[int]]:
    """Order of the nodes, and where the left child of each split comes.

    A node is LightGBM's number of a split, or the complement of its number of a leaf.
    """
    order = [0 if left else ~0]
    places = []
    for node in order:  # grows on the way
        if node >= 0:
            places.append(len(order))
            order += [left[node], right[node]]
    return np.array(order), places


def _flags(decision_type: IntArray, threshold: FloatArray) -> IntArray:
    """Flags of the splits."""
    if (decision_type & CATEGORICAL).any():
        raise ValueError("The 'booster' parameter must split on numbers. Got a categorical split.")
    missing = (decision_type >> 2) & 3
    by_default = (decision_type & DEFAULT_LEFT) > 0
    missing_left = np.where(missing == NAN_IS_ZERO, threshold >= 0, by_default)
    flags = MISSING_LEFT * missing_left + ZERO_MISSING * (missing == ZERO_IS_MISSING)
    return np.asarray(flags, np.int64)


def join_trees(trees: list[ReadTree], n_features: int, link: str) -> TreeEnsemble:
    """The sum of trees whose last feature, after `n_features` covariates, is the dose."""
    nodes = np.concatenate([tree.nodes for tree in trees])
    sizes = np.array([len(tree.nodes) for tree in trees])
    roots = np.cumsum(sizes) - sizes
    is_leaf = nodes["flags"] == LEAF
    n_leaves = int(is_leaf.sum())
    nodes["left"] += np.repeat(roots, sizes).astype(np.int32)
    nodes["left"][is_leaf] = np.arange(n_leaves)

    leaf = np.repeat(np.arange(n_leaves), np.concatenate([tree.term_counts for tree in trees]))
    features = np.concatenate([tree.term_features for tree in trees])
    coefficients = np.concatenate([tree.term_coefficients for tree in trees])
    of_dose = features == n_features
    slopes = np.bincount(leaf[of_dose], coefficients[of_dose], minlength=n_leaves)
    counts = np.bincount(leaf[~of_dose], minlength=n_leaves)
    return TreeEnsemble(
        roots=roots,
        nodes=nodes,
        leaf_values=np.concatenate([tree.values for tree in trees]),
        leaf_constants=np.concatenate([tree.constants for tree in trees]),
        leaf_slopes=slopes.astype(np.float64),
        term_starts=np.concatenate([[0], np.cumsum(counts)]),
        term_features=features[~of_dose].astype(np.int32),
        term_coefficients=coefficients[~of_dose],
        n_features=n_features,
        n_trees=len(trees),
        link=link,
    )
