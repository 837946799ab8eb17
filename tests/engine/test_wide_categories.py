"""Features of more than 255 categories: a bin for each, up to 1,023."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from doseforest import CurveForest, ForestFileError, _core, load_forest
from doseforest.base.container import read_container, write_container
from doseforest.data.binning import MAX_CATEGORIES, fit_bins
from doseforest.data.categories import learn_categories
from doseforest.data.feature_table import as_table
from doseforest.data.sampling import SamplingPlan
from doseforest.engine import SplitByScores, TreatmentGuard
from doseforest.engine.growth.memory import memory_need
from doseforest.engine.splits.distances import CURVE_DISTANCES
from doseforest.estimator.corrections.moments import moment_channels
from forests import assert_same_bits, single_tree

N_LEVELS = 300
FREQUENCIES = {
    "equal": np.ones(N_LEVELS),
    "a long tail": np.where(np.arange(N_LEVELS) < 20, 10.0, 0.5),
    "Zipf": 1 / np.arange(1, N_LEVELS + 1),
}
SHAPES = {"noise alone": 0, "two shapes": 2, "any shape": 6}  # of the levels' own curves


def draw(frequency, n_shapes, n_channels, seed, n_rows=6000):
    """Levels, each at least once, and curves on a grid whose sums and means are exact enough."""
    rng = np.random.default_rng(seed)
    shares = FREQUENCIES[frequency]
    drawn = rng.choice(N_LEVELS, size=n_rows - N_LEVELS, p=shares / shares.sum())
    codes = np.concatenate([np.arange(N_LEVELS), drawn])
    curves = rng.normal(size=(N_LEVELS, n_shapes)) @ rng.normal(size=(n_shapes, n_channels))
    noisy = curves[codes] + 2 * rng.normal(size=(n_rows, n_channels))
    return codes, np.round(64 * noisy) / 64


def best_cut_in_order(codes, y, distance, target):
    """Largest gain of the cuts of the raw levels in the order of their means of a target."""
    counts = np.bincount(codes)
    sums = np.stack([np.bincount(codes, column) for column in y.T], axis=1)
    order = np.argsort(np.bincount(codes, target) / counts)
    left, n_left = np.cumsum(sums[order], axis=0)[:-1], np.cumsum(counts[order])[:-1]
    n_right = len(codes) - n_left
    means = left / n_left[:, None], (sums.sum(axis=0) - left) / n_right[:, None]
    distances = CURVE_DISTANCES[distance].function(*means, np.ones(y.shape[1]))
    return (n_left * n_right / len(codes) * distances).max()


def root_gain(codes, y, distance="l2"):
    settings = {"distance": distance, "max_depth": 1, "min_node_size": 1}
    forest = single_tree(categorical_features=[0], **settings).fit(codes[:, None], y)
    return forest.forest_.gains[0]


@pytest.mark.parametrize("distance", ["l1", "l2", "linf", "l2_norm"])
@pytest.mark.parametrize("frequency", FREQUENCIES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_channels", [2, 6, 12])
def test_no_target_orders_raw_levels_better(distance, frequency, shape, n_channels):
    for seed in range(4):
        codes, y = draw(frequency, SHAPES[shape], n_channels, seed)
        gain = root_gain(codes, y, distance)
        for target in (*y.T, y.mean(axis=1)):
            # The same cut is added up in another order: rounding, and nothing else.
            assert gain >= best_cut_in_order(codes, y, distance, target) * (1 - 1e-12)


@pytest.mark.parametrize("frequency", FREQUENCIES)
@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
@pytest.mark.parametrize("seed", range(5))
def test_one_channel_is_split_by_the_best_of_all_subsets(distance, frequency, seed):
    # Of all subsets one that is a cut in the order of the means gains most.
    codes, y = draw(frequency, 1, 1, seed)
    expected = best_cut_in_order(codes, y, distance, y[:, 0])
    assert root_gain(codes, y, distance) == pytest.approx(expected, rel=1e-12)


def test_one_channel_of_all_1023_bins_is_split_by_the_best_of_all_subsets():
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.arange(1023), rng.integers(0, 1023, 5000)])
    y = np.round(64 * rng.normal(size=1023)[codes] + 64 * rng.normal(size=len(codes)))[:, None] / 64
    expected = best_cut_in_order(codes, y, "l2", y[:, 0])
    assert root_gain(codes, y) == pytest.approx(expected, rel=1e-12)


def test_2000_categories_grow_and_the_rarest_share_bin_1022():
    codes = np.repeat(np.arange(2000), np.where(np.arange(2000) < 1022, 3, 2))
    y = np.random.default_rng(1).normal(size=2000)[codes]
    tree = single_tree(min_node_size=1, categorical_features=[0], max_bins=2)
    tree.fit(codes[:, None], y)
    predicted = tree.predict(np.arange(2000.0)[:, None])
    first_of = np.searchsorted(codes, np.arange(1022))
    np.testing.assert_allclose(predicted[:1022], y[first_of], atol=1e-6)
    np.testing.assert_allclose(predicted[1022:], y[codes >= 1022].mean(), atol=1e-6)
    table = learn_categories(as_table(codes[:, None].astype(float)), [0])
    bins = fit_bins(table)
    assert bins.n_bins.tolist() == [MAX_CATEGORIES]
    np.testing.assert_array_equal(bins.transform(table)[:, 0], np.minimum(codes, 1022))


@pytest.mark.parametrize(("n_levels", "dtype"), [(255, np.uint8), (256, np.uint16)])
def test_bins_take_two_bytes_only_where_a_feature_needs_them(n_levels, dtype):
    codes = np.column_stack([np.arange(n_levels), np.arange(n_levels) % 3]).astype(float)
    codes[0, 1] = np.nan
    table = learn_categories(as_table(codes), [0])
    binned = fit_bins(table).transform(table)
    assert binned.dtype == dtype
    np.testing.assert_array_equal(binned[:, 0], codes[:, 0])
    assert binned[0, 1] == 3


def test_numbers_keep_to_255_bins_beside_1000_categories():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.permutation(4000) % 1000, rng.normal(size=4000)])
    table = learn_categories(as_table(x), [0])
    assert fit_bins(table, max_bins=255).n_bins.tolist() == [1000, 255]


def test_bins_of_either_width_give_the_same_bits():
    rng = np.random.default_rng(0)
    n_bins = np.array([255, 7, 40], np.int32)
    bins = rng.integers(0, n_bins + 1, size=(3000, 3)).astype(np.uint8)
    channels = rng.normal(size=(3000, 8)).astype(np.float32)
    rows = rng.permutation(3000).astype(np.uint32)
    ranges = np.array([[0, 1100], [1100, 3000]])
    sets = rng.integers(0, 2**62, size=(2, 4)).astype(np.uint64)
    splits = np.zeros(2), np.array([[0, -1, 1], [2, 11, 0]], np.int32), sets
    results = []
    for own in (bins, bins.astype(np.uint16)):
        sums, counts = np.empty((2, 305, 8)), np.empty((2, 305), np.uint32)
        features = np.arange(3, dtype=np.int32)[None]
        _core.histograms(own, channels, n_bins, rows, ranges, features, 1, sums, counts)
        child_sums, middles, divided = np.empty((2, 2, 8)), np.empty(2, np.int64), rows.copy()
        _core.child_sums(own, channels, n_bins, rows, ranges, *splits, 1, child_sums)
        _core.partition(own, n_bins, divided, ranges, *splits, 1, middles)
        results.append((sums, counts, child_sums, divided, middles))
    for narrow, wide in zip(*results, strict=True):
        np.testing.assert_array_equal(narrow, wide)


def test_bins_of_another_type_are_refused():
    n_bins, rows = np.array([3], np.int32), np.arange(5, dtype=np.uint32)
    cut, sets = np.zeros((1, 3), np.int32), np.zeros((1, 0), np.uint64)
    bins = np.zeros((5, 1), np.int16)
    ranges, middles = np.array([[0, 5]]), np.empty(1, np.int64)
    with pytest.raises(ValueError, match="uint8 or uint16"):
        _core.partition(bins, n_bins, rows, ranges, np.zeros(1), cut, sets, 1, middles)


RNG = np.random.default_rng(3)
N_ROWS = 3000
CITY, SHOP = RNG.integers(0, 700, N_ROWS), RNG.integers(0, 20, N_ROWS)
AGE, DOSE = RNG.normal(size=N_ROWS), RNG.uniform(0, 1, N_ROWS)
CURVES = RNG.normal(size=(720, 4))[CITY] + RNG.normal(size=(20, 4))[SHOP] + AGE[:, None]
FRAME = pd.DataFrame(
    {
        "city": pd.Series([f"city {code}" for code in CITY]).where(RNG.random(N_ROWS) > 0.1, None),
        "shop": [f"shop {code}" for code in SHOP],
        "age": AGE,
    }
)


@pytest.fixture(scope="module", name="fitted")
def _fitted():
    return CurveForest(6, min_node_size=5, random_state=0, n_jobs=1).fit(FRAME, CURVES)


@pytest.mark.parametrize("memory_map", [False, True])
def test_a_wide_forest_comes_back_from_its_file(fitted, tmp_path, memory_map):
    assert fitted.forest_.category_sets.shape[1] == 16
    fitted.save(tmp_path / "model.dose")
    loaded = load_forest(tmp_path / "model.dose", memory_map=memory_map)
    assert_same_bits(loaded, fitted.forest_)
    np.testing.assert_array_equal(loaded.predict(FRAME), fitted.predict(FRAME))
    np.testing.assert_array_equal(loaded.predict_oob(FRAME), fitted.predict_oob(FRAME))
    assert loaded.tree_text() == fitted.tree_text()


def test_bins_and_raw_labels_lead_to_the_same_leaves(fitted):
    weights = fitted.forest_weights(FRAME[:200])
    np.testing.assert_allclose(weights @ CURVES, fitted.predict(FRAME[:200]), atol=1e-5)


def test_unseen_labels_go_with_missing_values(fitted):
    unseen, missing = FRAME[:50].assign(city="elsewhere"), FRAME[:50].assign(city=None)
    np.testing.assert_array_equal(fitted.predict(unseen), fitted.predict(missing))
    assert not np.array_equal(fitted.predict(missing), fitted.predict(FRAME[:50]))


def change_sets(path, change):
    """Write a file again with other category sets."""
    container = read_container(path)
    sets = change(container.arrays["category_sets"])
    write_container(path, container.metadata, {**container.arrays, "category_sets": sets})


def with_words(n_words):
    def change(sets):
        changed = np.zeros((len(sets), n_words), np.uint64)
        changed[:, : sets.shape[1]] = sets[:, :n_words]
        return changed

    return change


def with_bit(bit):
    def change(sets):
        changed = sets.copy()
        changed[0, bit // 64] |= np.uint64(1) << np.uint64(bit % 64)
        return changed

    return change


FORGERIES = {
    "15 words": (with_words(15), "of a size that does not fit"),
    "17 words": (with_words(17), "of a size that does not fit"),
    "no words": (with_words(0), "of a size that does not fit"),
    "a set less": (lambda sets: sets[:-1].copy(), "one set per categorical node"),
    "a bin beyond the labels": (with_bit(800), "a bin that there is not"),
    "a bin of the missing values": (with_bit(1023), "a bin that there is not"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_sets_are_refused(fitted, tmp_path, forgery):
    change, problem = FORGERIES[forgery]
    path = tmp_path / "model.dose"
    fitted.save(path)
    change_sets(path, change)
    with pytest.raises(ForestFileError, match=problem):
        load_forest(path)


def test_wide_sets_are_refused_where_no_feature_needs_them(tmp_path):
    path = tmp_path / "model.dose"
    codes = np.arange(500.0)[:, None] % 100
    CurveForest(2, random_state=0, categorical_features=[0]).fit(codes, codes % 7).save(path)
    change_sets(path, with_words(16))
    with pytest.raises(ForestFileError, match="of a size that does not fit"):
        load_forest(path)


def test_sets_of_four_words_keep_their_meaning_beyond_255_labels(tmp_path):
    # As forests were before there were wide ones: categories 254, 255, … share bin 254.
    codes = np.arange(254.0).repeat(4)[:, None]
    y = np.random.default_rng(2).normal(size=254).repeat(4)
    tree = single_tree(min_node_size=1, categorical_features=[0]).fit(codes, y)
    path = tmp_path / "model.dose"
    tree.save(path)
    container = read_container(path)
    (entry,) = container.metadata["categories"]
    longer = {**entry, "labels": [*entry["labels"], *range(254, 400)]}
    write_container(path, {**container.metadata, "categories": [longer]}, container.arrays)
    loaded = load_forest(path)
    answers = loaded.predict(np.arange(400.0)[:, None])[:, 0]
    np.testing.assert_array_equal(answers[:254], tree.predict(np.arange(254.0)[:, None]))
    assert len(np.unique(answers[254:])) == 1


def test_a_wide_table_counts_for_two_bytes_a_bin():
    sizes = {"n_rows": 10**6, "n_features": 7, "n_channels": 4, "n_leaf_channels": 4}
    rules = {"n_trees": 10, "min_node_size": 20, "plan": SamplingPlan(seed=0)}
    narrow, wide = (memory_need(**sizes, **rules, most_categories=n) for n in (255, 256))
    assert wide.data - narrow.data == 7 * 10**6
    assert wide.forest > narrow.forest


def test_scores_and_a_guard_take_wide_features():
    functions = np.column_stack([DOSE - 0.5])
    effect = RNG.normal(size=700)[CITY] * DOSE
    columns = moment_channels(functions, effect)
    forest = CurveForest(
        2,
        statistic=SplitByScores((0.1,)),
        guard=TreatmentGuard(min_treatment_variance=0.5),
        random_state=0,
    ).fit(FRAME, columns, treatment=DOSE)
    assert forest.forest_.category_sets.shape[1] == 16
    assert len(forest.forest_.category_sets) > 10


def test_1023_categories_and_missing_values_are_split_alike_in_training_and_prediction():
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.arange(MAX_CATEGORIES), rng.integers(0, MAX_CATEGORIES, 4000)])
    y = rng.normal(size=(MAX_CATEGORIES, 3))[codes] + rng.normal(size=(len(codes), 3))
    x = codes.astype(float)[:, None]
    x[rng.random(len(x)) < 0.1] = np.nan  # their bit is the last of a set
    settings = {"honesty": "none", "sample_fraction": 1.0, "min_node_size": 20}
    forest = CurveForest(2, categorical_features=[0], random_state=0, **settings).fit(x, y)
    assert forest.forest_.category_sets.shape[1] == 16
    by_bins = forest.forest_weights(x[:300]) @ y
    np.testing.assert_allclose(by_bins, forest.predict(x[:300]), atol=1e-5)


def test_sets_that_have_no_bit_for_a_bin_are_refused():
    bins, n_bins = np.zeros((4, 1), np.uint16), np.array([300], np.int32)
    rows, ranges = np.arange(4, dtype=np.uint32), np.array([[0, 4]])
    gain, cut, middles = np.ones(1), np.array([[0, -1, 1]], np.int32), np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="sets are too small"):
        _core.partition(
            bins, n_bins, rows, ranges, gain, cut, np.zeros((1, 4), np.uint64), 1, middles
        )
    for dtype, most in ((np.uint8, 256), (np.uint16, 1024)):
        with pytest.raises(ValueError, match="more bins than their type holds"):
            _core.partition(
                bins.astype(dtype),
                np.array([most], np.int32),
                rows,
                ranges,
                gain,
                cut,
                np.zeros((1, 16), np.uint64),
                1,
                middles,
            )
