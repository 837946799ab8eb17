"""Memory is counted before growth, and growth keeps to what was counted."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest

from doseforest import CurveForest

SHAPES = {
    "many curve points": {"n": 10_000, "p": 5, "k": 64, "n_trees": 40, "min_node_size": 20},
    "many leaves": {"n": 5_000, "p": 3, "k": 96, "n_trees": 100, "min_node_size": 5},
    "many features": {"n": 20_000, "p": 40, "k": 8, "n_trees": 10, "min_node_size": 20},
    "a positivity term": {"n": 20_000, "p": 5, "k": 32, "n_trees": 10, "zeta": 1.0},
}
MIB = 2**20


def data(n, p, k):
    rng = np.random.default_rng(0)
    y = rng.normal(size=(n, k)).astype(np.float32)
    return rng.normal(size=(n, p)), y, rng.uniform(size=n)


def least_bytes(forest, x, y, spread):
    """What the refusal says that growth needs."""
    with pytest.raises(MemoryError, match="needs about") as refusal:
        forest.set_params(memory_limit=1).fit(x, y, spread=spread)
    amount = re.search(r"needs about ([\d.]+) MiB", str(refusal.value))
    return (float(amount.group(1)) + 0.1) * MIB


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("room", [1.05, 3.0])
def test_growth_takes_no_more_than_the_limit_that_it_accepted(shape, room):
    parameters = dict(SHAPES[shape])
    x, y, spread = data(*(parameters.pop(name) for name in ("n", "p", "k")))
    forest = CurveForest(**parameters, n_jobs=1, random_state=0)
    limit = int(room * least_bytes(forest, x, y, spread))
    forest.set_params(memory_limit=limit)
    tracemalloc.start()
    try:
        forest.fit(x, y, spread=spread)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Blocks of a few megabytes and the interpreter's own objects are not worth counting.
    assert peak <= limit + 12 * MIB


@pytest.mark.parametrize(
    ("parameters", "cure"),
    [({"n_trees": 2000, "min_node_size": 1}, "'n_trees'"), ({"n_trees": 1}, "fewer rows")],
)
def test_a_refusal_names_what_to_change(parameters, cure):
    x, y, _ = data(2000, 4, 8)
    with pytest.raises(MemoryError, match=cure):
        CurveForest(**parameters, memory_limit=1000).fit(x, y)


def test_more_nodes_than_links_can_tell_apart_are_refused():
    x, y, _ = data(20_000, 2, 1)
    with pytest.raises(ValueError, match="'n_trees' parameter must be such"):
        CurveForest(10**6, min_node_size=1, memory_limit=2**60).fit(x, y)
