"""Boosted trees as arrays: against LightGBM itself, and the kernel against a plain walk."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from doseforest import _core
from doseforest.base.dtypes import LEAF, MISSING_LEFT, NODE_DTYPE, ZERO_MISSING
from doseforest.nuisance.outcome.booster_conversion import ensemble_from_booster
from doseforest.nuisance.outcome.boosting import (
    LINEAR_TREES,
    PLAIN_TREES,
    BoostingRecipe,
    fit_boosting,
)
from doseforest.nuisance.outcome.tree_ensemble import TreeEnsemble

SETTINGS = {
    "objective": "regression",
    "num_leaves": 16,
    "min_data_in_leaf": 5,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "linear_lambda": 0.5,
    "num_threads": 1,
    "verbosity": -1,
}


def rows(n=400, missing=0.15, seed=0):
    """Covariates with gaps, a constant, zeros, few levels and large values; and doses."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 6))
    x[:, 1] = np.where(rng.random(n) < 0.4, 0.0, x[:, 1])
    x[:, 2] = 7.0
    x[:, 3] = rng.integers(-2, 3, size=n)
    x[:, 4] *= 1e9
    x[rng.random(x.shape) < missing] = np.nan
    x[:, 5] = rng.normal(size=n)  # without gaps while it is trained on
    dose = np.where(rng.random(n) < 0.2, 0.0, rng.normal(size=n))
    y = np.nan_to_num(x[:, 0]) * dose + (np.nan_to_num(x[:, 1]) != 0) + 10 + rng.normal(size=n)
    return x, dose, y


def booster_of(x, dose, y, n_trees=30, **changes):
    parameters = {**SETTINGS, **changes}
    data = lightgbm.Dataset(np.column_stack([x, dose]), y, params=parameters)
    return lightgbm.train(parameters, data, n_trees)


def assert_agrees(ensemble, booster, x, dose, **options):
    expected = booster.predict(np.column_stack([x, dose]), **options)
    np.testing.assert_allclose(ensemble.predict(x, dose), expected, rtol=1e-12, atol=1e-12)


# --- against LightGBM ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"linear_tree": True},
        {"use_missing": False},
        {"use_missing": False, "linear_tree": True},
        {"zero_as_missing": True},  # LightGBM has no linear trees for this
    ],
    ids=lambda changes: ", ".join(changes) or "default",
)
def test_predictions_are_those_of_the_booster(changes):
    x, dose, y = rows()
    booster = booster_of(x, dose, y, **changes)
    ensemble = ensemble_from_booster(booster)
    assert ensemble.n_trees == booster.num_trees() == 30
    assert_agrees(ensemble, booster, x, dose)
    fresh, fresh_dose, _ = rows(n=2000, missing=0.4, seed=1)
    fresh[::3, 5] = np.nan  # a gap where training had none
    fresh[::7] *= 1e12
    assert_agrees(ensemble, booster, fresh, fresh_dose)
    ties = np.clip(ensemble.nodes["threshold"], -1e300, 1e300)
    ties[np.abs(ties) < 1e-30] = 0.0  # LightGBM itself takes values up to 1e-35 for zero
    for feature in range(x.shape[1]):
        own = np.resize(ties[ensemble.nodes["feature"] == feature], len(x))
        assert_agrees(
            ensemble, booster, np.column_stack([x[:, :feature], own, x[:, feature + 1 :]]), dose
        )


def test_zeros_that_are_missing_are_split_off_the_doses():
    x, dose, y = rows()
    booster = booster_of(x, dose, 5 * (dose == 0) + y, zero_as_missing=True)
    ensemble = ensemble_from_booster(booster)
    on_dose = ensemble.nodes[ensemble.nodes["feature"] == 6]
    # Zero falls on the other side of at least one of the thresholds than its own value would.
    against = (on_dose["flags"] & MISSING_LEFT > 0) != (on_dose["threshold"] >= 0)
    assert against.any()
    grid = np.array([1.0, 0.0, -1.0, 1e-36, 1e-30, 0.0])
    table = np.column_stack([np.repeat(x, 6, axis=0), np.tile(grid, len(x))])
    expected = booster.predict(table).reshape(len(x), 6)
    np.testing.assert_allclose(ensemble.curves(x, grid), expected, rtol=1e-12)


def test_a_binary_outcome_is_read_with_its_link():
    x, dose, y = rows()
    booster = booster_of(x, dose, (y > 10.5).astype(float), objective="binary")
    ensemble = ensemble_from_booster(booster)
    assert ensemble.link == "logistic"
    assert_agrees(ensemble, booster, x, dose)


@pytest.mark.parametrize("recipe", [LINEAR_TREES, PLAIN_TREES], ids=["linear", "plain"])
def test_levels_and_units_make_no_difference(recipe):
    x, dose, y = rows()
    doses = np.quantile(dose, [0.1, 0.5, 0.9])
    unit, level = np.array([100, 0.01, 3, 1, 1e6, 1e-6]), np.array([1e6, 0, 5, -3, 1e7, 0])
    trees = fit_boosting(x, dose, y, recipe)
    moved = fit_boosting(x * unit + level, 7 * dose + 1000, 1e3 * y + 1e6, recipe)
    said = (moved.curves(x * unit + level, 7 * doses + 1000) - 1e6) / 1e3
    # Not to the last bit: outcomes near 1e6 are rounded to 1e-10, and units are no powers of two.
    np.testing.assert_allclose(said, trees.curves(x, doses), atol=1e-6 * y.std())


@pytest.mark.parametrize("recipe", [LINEAR_TREES, PLAIN_TREES], ids=["linear", "plain"])
def test_a_constant_is_fitted_by_itself(recipe):
    x, dose, _ = rows()
    constant = np.full(len(dose), 0.1)
    trees = fit_boosting(x, dose, constant, recipe)
    np.testing.assert_allclose(trees.predict(x, dose), constant, rtol=1e-9)


@pytest.mark.parametrize("linear", [False, True])
def test_the_first_trees_alone_are_the_booster_cut_short(linear):
    x, dose, y = rows()
    booster = booster_of(x, dose, y, linear_tree=linear)
    for n_trees in (1, 2, 17, 30):
        short = ensemble_from_booster(booster).shorter(n_trees)
        assert short.n_trees == n_trees
        assert_agrees(short, booster, x, dose, num_iteration=n_trees)
    assert short.shorter(1000).n_trees == 30


@pytest.mark.parametrize("linear", [False, True])
def test_trees_that_are_lone_leaves_are_read(linear):
    x, dose, _ = rows(n=50)
    booster = booster_of(x, dose, np.full(50, 3.25), linear_tree=linear)
    ensemble = ensemble_from_booster(booster)
    np.testing.assert_array_equal(ensemble.predict(x, dose), 3.25)


def test_a_dose_alone_is_enough():
    _, dose, y = rows()
    booster = booster_of(np.empty((400, 0)), dose, y, linear_tree=True)
    assert_agrees(ensemble_from_booster(booster), booster, np.empty((400, 0)), dose)


@pytest.mark.parametrize(
    "changes",
    [
        {"objective": "poisson"},
        {"objective": "binary", "sigmoid": 2.0},
        {"boosting": "rf"},
        {"objective": "multiclass", "num_class": 3},
    ],
)
def test_boosters_of_other_kinds_are_refused(changes):
    x, dose, _ = rows()
    booster = booster_of(x, dose, np.resize([0.0, 1.0], 400), n_trees=2, **changes)
    with pytest.raises(ValueError, match="must be boosted with one of the objectives"):
        ensemble_from_booster(booster)


def test_categorical_splits_are_refused():
    x, dose, _ = rows(missing=0.0)
    x[:, 0] = np.arange(400) % 7
    y = np.isin(x[:, 0], [1, 4, 6]) * 1.0
    table = np.column_stack([x, dose])
    data = lightgbm.Dataset(table, y, categorical_feature=[0], params=SETTINGS)
    booster = lightgbm.train(SETTINGS, data, 2)
    with pytest.raises(ValueError, match="must split on numbers"):
        ensemble_from_booster(booster)


# --- curves --------------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="fitted")
def _fitted():
    x, dose, y = rows()
    return fit_boosting(x, dose, y, BoostingRecipe(40, 16, linear=True, rate=0.2)), x, dose


def test_a_curve_is_the_predictions_at_its_doses_to_the_last_bit(fitted):
    ensemble, x, dose = fitted
    grid = np.concatenate([dose[:20], [-9.0, 9.0], dose[:3]])  # neither sorted nor distinct
    curves = ensemble.curves(x, grid)
    for k, value in enumerate(grid):
        np.testing.assert_array_equal(curves[:, k], ensemble.predict(x, np.full(len(x), value)))
    assert np.ptp(curves, axis=1).min() > 0  # every row's curve bends somewhere


def test_own_doses_are_answered_row_by_row(fitted):
    ensemble, x, _ = fitted
    own = np.random.default_rng(3).normal(size=(len(x), 5))
    curves = ensemble.curves(x, own)
    for row in range(0, len(x), 50):
        alone = ensemble.curves(x[row : row + 1], own[row])
        np.testing.assert_array_equal(curves[row : row + 1], alone)


def test_threads_and_builds_give_the_same_bits(fitted):
    ensemble, x, dose = fitted
    many, grid = np.tile(x, (10, 1)), np.sort(dose[:30])
    expected = ensemble.curves(many, grid)
    np.testing.assert_array_equal(ensemble.curves(many, grid, n_threads=3), expected)
    chosen = _core.current_build()
    try:
        for build in _core.available_builds():
            _core.choose_build(build)
            np.testing.assert_array_equal(ensemble.curves(many, grid), expected)
    finally:
        _core.choose_build(chosen)


def test_no_rows_and_no_doses_give_empty_curves(fitted):
    ensemble, x, _ = fitted
    assert ensemble.curves(x[:0], np.array([1.0, 2.0])).shape == (0, 2)
    assert ensemble.curves(x, np.empty(0)).shape == (len(x), 0)


def test_tables_in_other_layouts_are_read_as_they_are(fitted):
    ensemble, x, dose = fitted
    expected = ensemble.predict(x, dose)
    np.testing.assert_array_equal(ensemble.predict(np.asfortranarray(x), dose), expected)
    wide = np.repeat(x, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(ensemble.predict(wide, np.repeat(dose, 2)[::2]), expected)


@pytest.mark.parametrize(
    ("n_columns", "doses", "message"),
    [
        (5, np.zeros(3), r"'X' parameter must have shape \(n_rows, 6\)"),
        (6, np.zeros((7, 3)), r"'doses' parameter must be a grid or have one row per row of X"),
        (6, np.zeros((1, 3)), r"'doses' parameter must be a grid or have one row per row of X"),
        (6, np.array([0.0, np.nan]), r"'doses' parameter must be finite. Got nan"),
        (6, np.array([np.inf]), r"'doses' parameter must be finite. Got inf"),
    ],
)
def test_wrong_shapes_and_doses_are_refused(fitted, n_columns, doses, message):
    ensemble, x, _ = fitted
    with pytest.raises(ValueError, match=message):
        ensemble.curves(x[:, :n_columns], doses)


# --- the kernel against its twin -----------------------------------------------------------------


def random_ensemble(rng, n_trees, n_features):
    """Trees with random splits, a third of them on the dose, and lines in random covariates."""
    nodes, roots, n_leaves = [], [], 0
    for _ in range(n_trees):
        roots.append(len(nodes))
        frontier, n_splits = [len(nodes)], int(rng.integers(0, 20))
        nodes.append(None)
        while frontier:
            place = frontier.pop(0)
            if n_splits == 0:
                nodes[place] = (0.0, n_leaves, 0, 0, LEAF)
                n_leaves += 1
                continue
            n_splits -= 1
            feature = n_features if rng.random() < 1 / 3 else int(rng.integers(n_features))
            flags = int(rng.choice([0, MISSING_LEFT])) | int(rng.choice([0, 0, ZERO_MISSING]))
            nodes[place] = (rng.integers(-4, 5) / 2, len(nodes), feature, 0, flags)
            frontier += [len(nodes), len(nodes) + 1]
            nodes += [None, None]
    counts = rng.integers(0, 4, size=n_leaves)
    return TreeEnsemble(
        roots=np.array(roots),
        nodes=np.array(nodes, NODE_DTYPE),
        leaf_values=rng.normal(size=n_leaves),
        leaf_constants=rng.normal(size=n_leaves),
        leaf_slopes=rng.normal(size=n_leaves),
        term_starts=np.concatenate([[0], np.cumsum(counts)]),
        term_features=rng.integers(0, n_features, size=counts.sum()).astype(np.int32),
        term_coefficients=rng.normal(size=counts.sum()),
        n_features=n_features,
        n_trees=n_trees,
        link="logistic",
    )


def score_twin(ensemble, x, dose):
    """One row at one dose, tree after tree."""
    values, total = np.append(x, dose), 0.0
    for root in ensemble.roots[: ensemble.n_trees]:
        node = ensemble.nodes[root]
        while not node["flags"] & LEAF:
            value = values[node["feature"]]
            missing = np.isnan(value) or (value == 0 and node["flags"] & ZERO_MISSING)
            left = node["flags"] & MISSING_LEFT if missing else value <= node["threshold"]
            node = ensemble.nodes[node["left"] + (0 if left else 1)]
        leaf = node["left"]
        terms = slice(*ensemble.term_starts[leaf : leaf + 2])
        used = x[ensemble.term_features[terms]]
        line = ensemble.leaf_constants[leaf] + ensemble.term_coefficients[terms] @ used
        line += ensemble.leaf_slopes[leaf] * dose
        total += ensemble.leaf_values[leaf] if np.isnan(used).any() else line
    return expit(total)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_trees=st.integers(1, 6),
    n_features=st.integers(1, 4),
    n_rows=st.integers(1, 12),
    n_doses=st.integers(1, 9),
)
def test_scores_equal_their_twin(seed, n_trees, n_features, n_rows, n_doses):
    rng = np.random.default_rng(seed)
    ensemble = random_ensemble(rng, n_trees, n_features)
    x = rng.integers(-5, 6, size=(n_rows, n_features)) / 2
    x[rng.random(x.shape) < 0.2] = np.nan
    doses = rng.integers(-5, 6, size=(n_rows, n_doses)) / 2
    expected = [[score_twin(ensemble, x[i], t) for t in doses[i]] for i in range(n_rows)]
    np.testing.assert_allclose(ensemble.curves(x, doses), expected, rtol=1e-12)


@pytest.mark.parametrize("lean", ["left", "right"])
def test_a_tree_of_great_depth_does_not_exhaust_the_stack(lean):
    n = 200_000  # splits on the dose, one below the other, each with a leaf for one dose
    doses = np.arange(n + 1.0)
    splits = np.concatenate([[0], np.arange(1 if lean == "left" else 2, 2 * n - 1, 2)])
    nodes = np.zeros(2 * n + 1, NODE_DTYPE)
    nodes["flags"] = LEAF
    nodes["flags"][splits] = 0
    nodes["left"][splits] = np.arange(1, 2 * n, 2)
    nodes["left"][nodes["flags"] == LEAF] = np.arange(n + 1)
    nodes["threshold"][splits] = doses[:-1] if lean == "right" else doses[-2::-1]
    dose_of_leaf = doses if lean == "right" else np.append(doses[:1:-1], [0.0, 1.0])
    chain = TreeEnsemble(
        roots=np.array([0]),
        nodes=nodes,
        leaf_values=np.zeros(n + 1),
        leaf_constants=dose_of_leaf,
        leaf_slopes=np.zeros(n + 1),
        term_starts=np.zeros(n + 2, np.int64),
        term_features=np.empty(0, np.int32),
        term_coefficients=np.empty(0),
        n_features=0,
        n_trees=1,
        link="identity",
    )
    np.testing.assert_array_equal(chain.curves(np.empty((1, 0)), doses), [doses])
    nodes["flags"][splits] = ZERO_MISSING
    deep = np.array([7.0 if lean == "left" else n - 7.0])
    np.testing.assert_array_equal(chain.predict(np.empty((1, 0)), deep), deep)


def test_arrays_that_do_not_fit_are_refused_by_the_core(fitted):
    ensemble, x, _ = fitted
    plain = ("n_features", "n_trees", "n_components", "link")
    names = [name for name in TreeEnsemble.__slots__ if name not in plain]
    arrays = {name: getattr(ensemble, name) for name in names}
    arrays["nodes"] = arrays["nodes"].view(np.uint8)
    inputs = {"x": x, "doses": np.zeros((1, 2)), "n_threads": 1, "out": np.empty((len(x), 2))}
    _core.score(**arrays, **inputs)
    shorter = {name: arrays[name][:-1] for name in arrays if name != "roots"}
    for name, value in shorter.items():
        with pytest.raises(ValueError, match=r"do not fit|not whole records"):
            _core.score(**{**arrays, name: value}, **inputs)
    for name, value in {"doses": np.zeros((3, 2)), "out": np.empty((len(x), 3))}.items():
        with pytest.raises(ValueError, match="per row"):
            _core.score(**arrays, **{**inputs, name: value})
