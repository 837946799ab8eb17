"""Splits against searches that share no code with the engine: scikit-learn and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from doseforest import CurveForest
from doseforest.base.dtypes import LEAF, MISSING_LEFT
from doseforest.engine.splits.distances import CURVE_DISTANCES, l2
from forests import single_tree

# A gain computed from means of float32 channels on arbitrary values.
ARBITRARY_TOLERANCE = 1e-5


def rows_by_node(forest, x):
    """Rows of each node, walked on raw values."""
    rows = {0: np.arange(len(x))}
    for number, node in enumerate(forest.nodes):
        if node["flags"] & LEAF:
            continue
        own = rows[number]
        values = x[own, node["feature"]]
        missing_left = bool(node["flags"] & MISSING_LEFT)
        left = np.where(np.isnan(values), missing_left, values <= node["threshold"])
        rows[int(node["left"])], rows[int(node["left"]) + 1] = own[left], own[~left]
    return rows


def best_stump_gain(x, y, min_leaf):
    """Largest drop of the sum of squares by one cut, by scikit-learn."""
    if len(x) < 2 * min_leaf:
        return 0.0
    tree = DecisionTreeRegressor(max_depth=1, min_samples_leaf=min_leaf, random_state=0).fit(x, y)
    grown = tree.tree_
    if grown.node_count == 1:
        return 0.0
    squares = grown.impurity * grown.n_node_samples * np.atleast_2d(y.T).shape[0]
    return float(squares[0] - squares[1:].sum())


def generated(seed, n, p, k, *, levels, exact):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, levels, size=(n, p)).astype(float) if levels else rng.normal(size=(n, p))
    y = rng.integers(-4096, 4096, size=(n, k)) / 64 if exact else rng.lognormal(2, 2, size=(n, k))
    quadrature = rng.choice([0.25, 1.0, 4.0] if exact else [0.3, 1.0, 2.7], size=k)
    return x, y, quadrature


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 60),
    p=st.integers(1, 4),
    k=st.integers(1, 9),
    min_leaf=st.integers(1, 5),
    levels=st.sampled_from([0, 2, 7]),
    exact=st.booleans(),
)
def test_every_split_gains_what_scikit_learn_would_gain(seed, n, p, k, min_leaf, levels, exact):
    x, y, quadrature = generated(seed, n, p, k, levels=levels, exact=exact)
    forest = single_tree(min_node_size=min_leaf).fit(x, y, quadrature=quadrature).forest_
    scaled = y * np.sqrt(quadrature)
    scale = max(1.0, float((scaled**2).sum()))
    tolerance = 1e-9 if exact else ARBITRARY_TOLERANCE
    for number, rows in rows_by_node(forest, x).items():
        expected = best_stump_gain(x[rows], scaled[rows], min_leaf)
        # scikit-learn subtracts sums of squares, so its own rounding goes by their size.
        least = (1e-13 if exact else tolerance) * scale
        assert forest.gains[number] == pytest.approx(expected, rel=tolerance, abs=least)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 80),
    k=st.integers(1, 20),
    min_leaf=st.integers(1, 5),
    exact=st.booleans(),
)
def test_predictions_equal_scikit_learns_multi_output_tree(seed, n, k, min_leaf, exact):
    x, y, quadrature = generated(seed, n, 3, k, levels=0, exact=exact)
    scaled = y * np.sqrt(quadrature)
    oracle = DecisionTreeRegressor(min_samples_leaf=min_leaf, random_state=0).fit(x, scaled)
    expected = oracle.predict(x).reshape(n, k) / np.sqrt(quadrature)
    ours = single_tree(min_node_size=min_leaf).fit(x, y, quadrature=quadrature).predict(x)
    tolerance = 1e-9 if exact else ARBITRARY_TOLERANCE
    np.testing.assert_allclose(ours, expected, rtol=tolerance, atol=tolerance * np.abs(y).max())


def brute_force_gain(x, y, weights, distance, quadrature, min_rows):
    """Largest gain over every feature, cut and side of the missing values."""
    best = 0.0
    for column in x.T:
        missing = np.isnan(column)
        for cut in np.unique(column[~missing]):
            for missing_left in (False, True):
                left = np.where(missing, missing_left, column <= cut)
                if min(left.sum(), (~left).sum()) < min_rows:
                    continue
                n1, n2 = weights[left].sum(), weights[~left].sum()
                if min(n1, n2) <= 0:
                    continue
                means = [
                    np.average(y[side], axis=0, weights=weights[side]) for side in (left, ~left)
                ]
                best = max(best, n1 * n2 / (n1 + n2) * float(distance(*means, quadrature)))
    return best


@pytest.mark.parametrize("name", sorted(CURVE_DISTANCES))
@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(2, 40),
    k=st.integers(1, 7),
    min_leaf=st.integers(1, 4),
    share_missing=st.sampled_from([0.0, 0.3]),
    weighted=st.booleans(),
)
def test_the_first_split_equals_brute_force(name, seed, n, k, min_leaf, share_missing, weighted):
    x, y, quadrature = generated(seed, n, 2, k, levels=6, exact=True)
    rng = np.random.default_rng(seed + 1)
    x[rng.random(x.shape) < share_missing] = np.nan
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) if weighted else np.ones(n)
    weights[0] = 1.0
    forest = single_tree(distance=name, min_node_size=min_leaf, max_depth=1)
    forest.fit(x, y, quadrature=quadrature, sample_weight=weights)
    normalised = weights * n / weights.sum()
    expected = brute_force_gain(
        x, y, normalised, CURVE_DISTANCES[name].function, quadrature, min_leaf
    )
    # Weighted channels are rounded to the grid, a relative 2^-24 of the largest value.
    tolerance = 1e-4 if weighted else 1e-9
    # A leaf has gain 0: a split that was missed shows as well as a wrong one.
    assert forest.forest_.gains[0] == pytest.approx(expected, rel=tolerance, abs=tolerance * n)


@pytest.mark.parametrize("name", sorted(CURVE_DISTANCES))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_numpy_search_grows_the_trees_of_the_compiled_one(name, weighted):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 5))
    x[rng.random(x.shape) < 0.1] = np.nan
    y = np.nan_to_num(x[:, :1]) * np.arange(6) + rng.normal(size=(400, 6))
    weights = rng.uniform(0.5, 2, size=400) if weighted else None
    spread = rng.uniform(0.1, 1, size=400)

    def grown(distance):
        forest = CurveForest(
            4, distance=distance, min_node_size=5, mtry=3, zeta=0.3, max_bins=16, random_state=5
        )
        return forest.fit(x, y, doses=np.arange(6.0), sample_weight=weights, spread=spread).forest_

    compiled, twin = grown(name), grown(CURVE_DISTANCES[name].function)
    np.testing.assert_array_equal(compiled.nodes, twin.nodes)
    np.testing.assert_allclose(compiled.gains, twin.gains, rtol=1e-9)


def test_a_distance_of_the_user_is_searched_as_given():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = np.column_stack([np.sign(x[:, 0]), 100 * np.sign(x[:, 1])])

    def first_point_only(left, right, quadrature):
        return l2(left[..., :1], right[..., :1], quadrature[:1])

    forest = single_tree(distance=first_point_only, max_depth=1).fit(x, y).forest_
    assert forest.nodes["feature"][0] == 0
    assert single_tree(max_depth=1).fit(x, y).forest_.nodes["feature"][0] == 1


@pytest.mark.parametrize("positivity", ["conditional", "mixture"])
def test_the_positivity_term_is_the_smaller_spread_of_the_children(positivity):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 5, size=(60, 1)).astype(float)
    y = rng.integers(-64, 64, size=(60, 3)) / 8
    moments = np.column_stack([rng.integers(0, 16, 60) / 16, rng.integers(32, 64, 60) / 16])
    spread = moments[:, 0] if positivity == "conditional" else moments
    zeta = 1000.0  # the term decides
    forest = single_tree(zeta=zeta, positivity=positivity, min_node_size=1, max_depth=1)
    forest.fit(x, y, spread=spread)

    def term(side):
        first, second = moments[side].mean(axis=0)
        return first if positivity == "conditional" else second - first**2

    scale = ((y - y.mean(axis=0)) ** 2).sum(axis=1).mean() if positivity == "conditional" else 1.0
    expected = 0.0
    for cut in np.unique(x)[:-1]:
        left = x[:, 0] <= cut
        difference = y[left].mean(axis=0) - y[~left].mean(axis=0)
        gain = left.sum() * (~left).sum() / 60 * (difference**2).sum()
        expected = max(expected, gain + zeta * scale * min(term(left), term(~left)))
    assert forest.forest_.gains[0] == pytest.approx(expected, rel=1e-6)


def test_a_share_of_rows_is_not_rounded_up_by_its_own_rounding():
    x = np.arange(100.0)[:, None]  # 0.07 * 100 is a little more than 7 in floating point
    y = (x[:, 0] >= 7).astype(float)
    forest = single_tree(min_node_size=1, max_depth=1, min_child_fraction=0.07).fit(x, y)
    assert forest.forest_.nodes["threshold"][0] == 6.5


@pytest.mark.parametrize("fraction", [0.0, 0.2, 0.4, 0.5])
def test_no_child_is_smaller_than_its_share(fraction):
    rng = np.random.default_rng(2)
    x = rng.exponential(size=(500, 2))
    y = x[:, :1] ** 3
    forest = single_tree(min_child_fraction=fraction).fit(x, y).forest_
    rows = rows_by_node(forest, x)
    for number, node in enumerate(forest.nodes):
        if not node["flags"] & LEAF:
            children = [len(rows[int(node["left"]) + side]) for side in (0, 1)]
            assert min(children) >= fraction * len(rows[number])


@pytest.mark.parametrize(
    ("rule", "value"), [("max_depth", 3), ("min_node_size", 17), ("min_info_gain", 4.0)]
)
def test_the_stopping_rules_hold_at_every_node(rule, value):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(600, 3))
    y = x[:, :1] + x[:, 1:2] ** 2
    unruly = single_tree(min_node_size=1).fit(x, y).forest_
    forest = single_tree(**{"min_node_size": 1, rule: value}).fit(x, y).forest_
    smallest_leaf = forest.leaf_weights.min()
    smallest_gain = forest.gains[forest.gains > 0].min()
    held = {
        "max_depth": forest.tree_depths()[0] == value,
        "min_node_size": smallest_leaf >= value,
        "min_info_gain": smallest_gain > value,
    }
    assert held[rule]
    assert len(unruly.nodes) > len(forest.nodes)


@pytest.mark.parametrize("smallest", [0.1, 1e-6])
def test_equal_curves_are_never_split_however_they_round(smallest):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(997, 4))
    y = np.full((997, 5), 0.1)
    weights = np.exp(rng.uniform(np.log(smallest), 1, size=997))
    assert len(single_tree(min_node_size=1).fit(x, y).forest_.nodes) == 1
    assert len(single_tree(min_node_size=1).fit(x, y, sample_weight=weights).forest_.nodes) == 1
