"""Forests that several test files grow."""

from __future__ import annotations

import numpy as np

from doseforest import CurveForest

FOREST_ARRAYS = (
    "nodes",
    "gains",
    "roots",
    "leaf_sums",
    "leaf_weights",
    "fallback",
    "category_sets",
)


def single_tree(**parameters):
    """One tree on all rows, without honesty, every distinct value its own bin."""
    fixed = {"n_trees": 1, "sample_fraction": 1.0, "honesty": "none", "max_bins": 255}
    return CurveForest(**{**fixed, "random_state": 0, **parameters})


def assert_same_bits(first, second):
    """Compare two forests byte for byte."""
    for name in FOREST_ARRAYS:
        a, b = getattr(first, name), getattr(second, name)
        assert a.dtype == b.dtype, name
        assert a.shape == b.shape, name
        assert a.tobytes() == b.tobytes(), name


def wavy_data(n=3000, p=8, k=10, seed=0, missing=0.05):
    """Features with some missing values, and curves that depend on three of them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    doses = np.linspace(0, 1, k)
    y = np.sin(2 * x[:, :1]) * doses + (x[:, 1:2] > 0) * doses**2 + rng.normal(size=(n, k)) / 3
    x[rng.random(x.shape) < missing] = np.nan
    return x, y, doses
