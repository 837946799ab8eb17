"""The same forest, bit by bit, whatever the threads, memory, chunks, builds and row order."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest

from doseforest import CurveForest, _core
from doseforest.data.feature_table import ArrayTable
from doseforest.doses.smoothing.kernel_channels import kernel_channels
from doseforest.engine import (
    SplitByMeanSlopes,
    SplitByRatios,
    SplitByRatioSlopes,
    SplitByScores,
    TreatmentGuard,
)
from doseforest.engine.growth import local_engine, memory
from doseforest.estimator.corrections.moments import moment_channels
from forests import assert_same_bits, single_tree, wavy_data

VARIANTS = {
    "defaults": {},
    "features drawn per node": {"mtry": 3},
    "features drawn per tree": {"mtry": 3, "mtry_scope": "tree"},
    "bootstrap": {"sampling": "bootstrap", "honesty": "none"},
    "little bags": {"bag_size": 3, "honesty": "forest"},
    "L1": {"distance": "l1", "min_child_fraction": 0.1},
    "Linf": {"distance": "linf"},
    "positivity": {"zeta": 0.5},
    "user's distance": {"distance": lambda a, b, q: np.abs(a - b).max(axis=-1), "max_bins": 8},
    "slopes of means": {"statistic": SplitByMeanSlopes()},
    "ratios": {"statistic": SplitByRatios(), "mtry": 3, "mtry_scope": "tree"},
    "slopes of ratios": {"statistic": SplitByRatioSlopes(), "distance": "l1"},
    "differences of ratios": {"statistic": SplitByRatioSlopes(derivative=False), "mtry": 4},
    "scores": {"statistic": SplitByScores((0.1, 0.0))},
    "guard": {"guard": TreatmentGuard(15.0, 0.7)},
    "scores under a guard": {
        "statistic": SplitByScores((0.1, 0.0)),
        "guard": TreatmentGuard(min_treatment_variance=0.9),
    },
    "categories": {"categorical_features": [2, 3]},
    "categories, L1, drawn per node": {
        "categorical_features": [2, 3],
        "distance": "l1",
        "zeta": 0.5,
        "mtry": 3,
    },
    "categories under a guard": {
        "categorical_features": [2, 3],
        "guard": TreatmentGuard(min_treatment_variance=0.9),
    },
    "ratios of categories": {"statistic": SplitByRatios(), "categorical_features": [2, 3]},
    "scores of categories under a guard": {
        "statistic": SplitByScores((0.1, 0.0)),
        "categorical_features": [2, 3],
        "guard": TreatmentGuard(min_treatment_variance=0.9),
    },
    "hundreds of categories": {"categorical_features": [2, 4], "mtry": 3},
    "hundreds of categories under a guard": {
        "categorical_features": [4],
        "guard": TreatmentGuard(min_treatment_variance=0.9),
    },
    "scores of hundreds of categories under a guard": {
        "statistic": SplitByScores((0.1, 0.0)),
        "categorical_features": [3, 4],
        "guard": TreatmentGuard(min_treatment_variance=0.9),
    },
    "categories, user's distance": {
        "categorical_features": [2, 3],
        "distance": lambda a, b, q: np.abs(a - b).max(axis=-1),
        "max_bins": 4,
        "max_depth": 3,
    },
}


def columns_of(statistic, curves, doses, treatment):
    """What the statistic of a variant sums, and the doses that it stands for."""
    outcome = curves[:, 4]
    if isinstance(statistic, SplitByScores):
        functions = np.column_stack([treatment - 0.5, (treatment - 0.5) ** 2 - 1 / 12])
        return moment_channels(functions, outcome), None
    if isinstance(statistic, SplitByRatios | SplitByRatioSlopes):
        derivative = getattr(statistic, "derivative", False)
        channels = kernel_channels(
            treatment, outcome, doses, 0.3, "biweight", derivative=derivative
        )
        return channels, doses
    return curves, doses


def with_codes(x, rng):
    """Put codes, ever more of them, into columns 2 to 4; return what they do to the curves."""
    effect = np.zeros((len(x), 10))
    for column, n_codes in ((2, 6), (3, 60), (4, 1200)):
        codes = np.minimum(rng.geometric(3 / n_codes, len(x)) - 1, n_codes - 1)
        x[:, column] = np.where(np.isnan(x[:, column]), np.nan, codes)
        effect += rng.normal(size=(n_codes, 10))[codes]
    return effect


@pytest.fixture(params=VARIANTS, name="grow")
def _grow(request):
    """Grow one of the variants on rows, optionally permuted, chunked or weighted."""
    x, y, doses = wavy_data(n=1500)
    rng = np.random.default_rng(9)
    if "categorical_features" in VARIANTS[request.param]:
        y = y + with_codes(x, rng)
    spread = rng.uniform(0.2, 1, size=len(x))
    weights = rng.uniform(0.5, 2, size=len(x))
    treatment = rng.uniform(0, 1, size=len(x))

    def grow(order=slice(None), weight_factor=1.0, block_rows=None, **parameters):
        settings = {"n_trees": 6, "min_node_size": 5, "max_bins": 32, "random_state": 11}
        forest = CurveForest(**{**settings, **VARIANTS[request.param], **parameters})
        columns, grid = columns_of(forest.statistic, y, doses, treatment)
        ids = np.arange(len(x))[order]
        table = x[order] if block_rows is None else ArrayTable(x[order], block_rows=block_rows)
        grown = forest.fit(
            table,
            columns[order],
            doses=grid,
            spread=spread[order],
            treatment=treatment[order],
            sample_weight=weight_factor * weights[order],
            row_ids=ids,
        ).forest_
        is_wide = 4 in VARIANTS[request.param].get("categorical_features", ())
        assert grown.category_sets.shape[1] == (16 if is_wide else 4)
        return grown

    return grow


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_any_number_of_threads_grows_the_same_forest(grow, n_jobs):
    assert_same_bits(grow(n_jobs=1), grow(n_jobs=n_jobs))


@pytest.mark.parametrize("histogram_bytes", [0, 300_000, 10**9])
def test_any_memory_for_histograms_grows_the_same_forest(grow, histogram_bytes, monkeypatch):
    expected = grow()
    monkeypatch.setattr(memory, "HISTOGRAM_BYTES", histogram_bytes)
    monkeypatch.setattr(local_engine, "ROWS_PER_BIN_TO_KEEP", 1)
    assert_same_bits(expected, grow())


@pytest.mark.parametrize("rows_at_once", [1, 1000])
def test_trees_grown_one_by_one_or_together_are_the_same(grow, rows_at_once, monkeypatch):
    expected = grow()
    monkeypatch.setattr(memory, "ROWS_AT_ONCE", rows_at_once)
    assert_same_bits(expected, grow(n_jobs=1))


def test_any_batch_of_families_grows_the_same_forest(grow, monkeypatch):
    expected = grow()
    monkeypatch.setattr(local_engine, "FAMILIES_AT_ONCE", 3)
    assert_same_bits(expected, grow())


def test_any_chunking_of_the_table_grows_the_same_forest(grow):
    assert_same_bits(grow(), grow(block_rows=97))


@pytest.mark.skipif(len(_core.available_builds()) == 1, reason="this machine runs one build only")
def test_both_kernel_builds_grow_the_same_forest(grow):
    best = _core.current_build()
    expected = grow()
    try:
        _core.choose_build("baseline")
        assert_same_bits(expected, grow())
    finally:
        _core.choose_build(best)


def test_permuted_rows_that_carry_their_ids_grow_the_same_forest(grow):
    order = np.random.default_rng(1).permutation(1500)
    assert_same_bits(grow(), grow(order=order))


@pytest.mark.parametrize("factor", [0.25, 2.0**20])
def test_a_power_of_two_times_the_weights_changes_nothing(grow, factor):
    assert_same_bits(grow(), grow(weight_factor=factor))


@pytest.mark.parametrize("k", [1, 3, 4, 6, 9, 16, 17, 21, 24, 30, 33, 100, 512])
def test_both_builds_agree_for_any_number_of_channels(k):
    rng = np.random.default_rng(k)
    x = rng.normal(size=(300, 3))
    y = rng.normal(size=(300, k))
    best = _core.current_build()
    try:
        forests = []
        for build in _core.available_builds():
            _core.choose_build(build)
            forests.append(single_tree(min_node_size=5).fit(x, y).forest_)
    finally:
        _core.choose_build(best)
    assert len(forests[0].nodes) > 1
    for forest in forests:
        assert_same_bits(forests[0], forest)


def test_two_copies_of_a_row_equal_weight_two():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(250, 4))
    y = rng.integers(-512, 512, size=(250, 3)) / 64
    copies = rng.integers(1, 3, size=250)
    copied = single_tree(min_node_size=1, max_depth=4)
    copied.fit(np.repeat(x, copies, axis=0), np.repeat(y, copies, axis=0))
    weighted = single_tree(min_node_size=1, max_depth=4).fit(x, y, sample_weight=copies)
    np.testing.assert_array_equal(
        copied.forest_.nodes["threshold"], weighted.forest_.nodes["threshold"]
    )
    # Weights are scaled to mean 1 and channels rounded to the grid: 2^-24 of the largest value.
    np.testing.assert_allclose(copied.predict(x), weighted.predict(x), atol=8 * 2.0**-22)


def test_two_copies_of_a_row_equal_weight_two_with_a_positivity_term():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(250, 4))
    y = 100 + rng.normal(size=(250, 3))
    spread = rng.uniform(0.2, 1, size=250)
    copies = rng.integers(1, 3, size=250)
    copied = single_tree(min_node_size=1, max_depth=3, zeta=2.0)
    repeated = np.repeat(np.arange(250), copies)
    copied.fit(x[repeated], y[repeated], spread=spread[repeated])
    weighted = single_tree(min_node_size=1, max_depth=3, zeta=2.0)
    weighted.fit(x, y, spread=spread, sample_weight=copies)
    # Weights have mean 1, so gains by distance are smaller by the mean number of copies; the
    # positivity term is a mean and is not.
    in_copies, in_weights = (forest.forest_.gains[0] for forest in (copied, weighted))
    assert in_weights <= in_copies <= copies.mean() * in_weights


@pytest.mark.parametrize("offset", [0.0, 1e5, 1e6])
def test_what_all_curves_share_hides_no_split_from_weights(offset):
    x = np.arange(10.0).repeat(20)[:, None]
    y = offset + 0.25 * (x > 4)
    weights = np.tile([1.0, 2.0], 100)
    forest = single_tree(min_node_size=5, max_depth=1).fit(x, y, sample_weight=weights)
    assert forest.forest_.nodes["threshold"][0] == 4.5


def test_equal_weights_are_no_weights():
    x, y, _ = wavy_data(n=500)
    plain = CurveForest(3, random_state=0).fit(x, y).forest_
    weighted = CurveForest(3, random_state=0).fit(x, y, sample_weight=np.full(500, 7.0)).forest_
    assert_same_bits(plain, weighted)


def _fit_in_child(seed):
    x, y, _ = wavy_data(n=500)
    return CurveForest(3, n_jobs=2, random_state=seed).fit(x, y).predict(x[:5])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forests_grow_in_forked_children_of_a_process_that_has_grown_one():
    expected = _fit_in_child(1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        children = pool.map(_fit_in_child, [1, 1, 2])
    np.testing.assert_array_equal(children[0], expected)
    np.testing.assert_array_equal(children[1], expected)
    assert not np.array_equal(children[2], expected)


def test_the_seed_decides():
    x, y, _ = wavy_data(n=500)
    first, again, other = (CurveForest(3, random_state=s).fit(x, y).forest_ for s in (1, 1, 2))
    assert_same_bits(first, again)
    assert first.nodes.tobytes() != other.nodes.tobytes()
