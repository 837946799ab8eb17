"""Each compiled kernel against its NumPy twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doseforest import _core
from doseforest.base.seeds import draw, stream
from doseforest.data.sampling import child_keys, root_keys
from doseforest.engine.growth.frontier import Splits
from doseforest.engine.growth.grower import StopRules
from doseforest.engine.splits.distances import CURVE_DISTANCES
from doseforest.engine.splits.mean_statistic import mean_curve_statistic
from doseforest.engine.splits.split_search import scan_histograms

DRAW_FEATURE = 4


def binned_rows(seed, n_rows, n_features, n_channels):
    """Bins with missing values, channels on the exact grid, and a list of rows with repeats."""
    rng = np.random.default_rng(seed)
    n_bins = rng.integers(1, 12, size=n_features).astype(np.int32)
    bins = rng.integers(0, n_bins + 1, size=(n_rows, n_features)).astype(np.uint8)
    curves = rng.integers(-1000, 1000, size=(n_rows, n_channels)) / 8
    rows = rng.integers(0, n_rows, size=2 * n_rows).astype(np.uint32)
    return rng, n_bins, bins, curves, rows


def histograms_twin(bins, channels, n_bins, rows, ranges, features):
    """Sums and counts of every cell by np.add.at, features laid out one after another."""
    n_cells = max(int((n_bins[own] + 1).sum()) for own in features)
    sums = np.zeros((len(ranges), n_cells, channels.shape[1]))
    counts = np.zeros((len(ranges), n_cells), np.uint32)
    for node, ((begin, end), own) in enumerate(zip(ranges, features, strict=True)):
        inside = rows[begin:end]
        starts = np.cumsum([0, *(n_bins[own] + 1)])[:-1]
        for start, feature in zip(starts, own, strict=True):
            np.add.at(sums[node], start + bins[inside, feature].astype(int), channels[inside])
            np.add.at(counts[node], start + bins[inside, feature].astype(int), 1)
    return sums, counts


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_rows=st.integers(1, 200),
    n_features=st.integers(1, 9),
    n_channels=st.sampled_from([1, 4, 5, 8, 12, 16, 20, 24, 28, 32, 40, 120]),
    n_threads=st.sampled_from([1, 3]),
)
def test_histograms_equal_their_twin(seed, n_rows, n_features, n_channels, n_threads):
    rng, n_bins, bins, curves, rows = binned_rows(seed, n_rows, n_features, n_channels)
    statistic = mean_curve_statistic(curves, quadrature=np.ones(n_channels))
    cuts = np.sort(rng.integers(0, len(rows) + 1, size=4))
    ranges = np.stack([cuts[:-1], cuts[1:]], axis=1)
    mtry = int(rng.integers(1, n_features + 1))
    features = np.stack(
        [np.sort(rng.choice(n_features, mtry, replace=False)) for _ in ranges]
    ).astype(np.int32)
    expected_sums, expected_counts = histograms_twin(
        bins, statistic.channels, n_bins, rows, ranges, features
    )
    n_cells = expected_counts.shape[1]
    sums = np.full((len(ranges), n_cells, statistic.channels.shape[1]), np.nan)
    counts = np.full((len(ranges), n_cells), 99, np.uint32)
    _core.histograms(
        bins, statistic.channels, n_bins, rows, ranges, features, n_threads, sums, counts
    )
    for node, own in enumerate(features):
        used = int((n_bins[own] + 1).sum())
        np.testing.assert_array_equal(sums[node, :used], expected_sums[node, :used])
        np.testing.assert_array_equal(counts[node, :used], expected_counts[node, :used])


@pytest.mark.parametrize("name", sorted(CURVE_DISTANCES))
@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_rows=st.integers(2, 120),
    n_channels=st.sampled_from([1, 3, 6, 14, 26, 33]),
    weighted=st.booleans(),
    positivity=st.sampled_from([None, "conditional", "mixture"]),
    min_rows=st.integers(1, 9),
    min_fraction=st.sampled_from([0.0, 0.2]),
)
def test_the_scan_equals_its_twin(
    name, seed, n_rows, n_channels, weighted, positivity, min_rows, min_fraction
):
    rng, n_bins, bins, curves, rows = binned_rows(seed, n_rows, 3, n_channels)
    weights = rng.choice([0.0, 0.5, 1.5], size=n_rows).astype(np.float32)
    weights[0] = 1.5
    statistic = mean_curve_statistic(
        curves,
        quadrature=rng.choice([0.5, 1.0, 2.0], size=n_channels),
        distance=name,
        weights=weights if weighted else None,
        spread=None if positivity is None else rng.uniform(1, 2, size=(n_rows, 2)) ** [1, 2],
        zeta=0.0 if positivity is None else 0.7,
        positivity=positivity or "conditional",
    )
    rules = StopRules(min_node_size=min_rows, min_child_fraction=min_fraction)
    features = np.arange(3, dtype=np.int32)[None, :]
    sums, counts = histograms_twin(
        bins, statistic.channels, n_bins, rows, np.array([[0, len(rows)]]), features
    )
    splits = Splits.none(1)
    rule = statistic.rule(min_rows=min_rows, min_fraction=min_fraction)
    _core.scan_histograms(
        n_bins, rule, features, sums, counts, 1, splits.gain, splits.cut, splits.sets, None
    )
    twin = scan_histograms(statistic, rules, n_bins, features, sums, counts)
    assert splits.gain[0] == pytest.approx(twin.gain[0], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_candidates", [2, 5, 8])
def test_candidates_are_the_best_splits_of_the_features(seed, n_candidates):
    _, n_bins, bins, curves, rows = binned_rows(seed, 150, 6, 3)
    bins[:, 4], n_bins[4] = bins[:, 2], n_bins[2]  # a tie, which goes to the lower feature
    statistic = mean_curve_statistic(curves, quadrature=np.ones(3))
    features = np.tile(np.arange(6, dtype=np.int32), (2, 1))
    ranges = np.array([[0, 200], [200, 300]])
    sums, counts = histograms_twin(bins, statistic.channels, n_bins, rows, ranges, features)
    splits = Splits.none(2 * n_candidates)
    rule = statistic.rule(min_rows=5, min_fraction=0.0)
    found = splits.gain, splits.cut, splits.sets
    _core.scan_histograms(n_bins, rule, features, sums, counts, 2, *found, None, n_candidates)
    rules = StopRules(min_node_size=5)
    twin = scan_histograms(statistic, rules, n_bins, features, sums, counts, None, n_candidates)
    np.testing.assert_allclose(splits.gain, twin.gain, rtol=1e-9)
    np.testing.assert_array_equal(splits.cut[:, 0], twin.cut[:, 0])
    order = splits.cut[: min(n_candidates, 6), 0].tolist()
    if 2 in order and 4 in order:
        assert order.index(4) == order.index(2) + 1


@pytest.mark.parametrize("n_threads", [1, 3])
def test_child_sums_equal_sums_over_the_rows_of_each_side(n_threads):
    _, n_bins, bins, curves, rows = binned_rows(6, 500, 4, 7)
    channels = curves.astype(np.float32)
    ranges = np.array([[0, 100], [100, 700], [700, 701]])
    splits = Splits.none(3)
    splits.cut[:] = [[0, 1, 0], [1, 2, 1], [2, 0, 0]]
    sums = np.full((3, 2, 7), np.nan)
    cuts = splits.gain, splits.cut, splits.sets
    _core.child_sums(bins, channels, n_bins, rows, ranges, *cuts, n_threads, sums)
    for node, (feature, cut_bin, missing_left) in enumerate(splits.cut):
        inside = rows[slice(*ranges[node])]
        own = bins[inside, feature]
        left = np.where(own == n_bins[feature], bool(missing_left), own <= cut_bin)
        for side, marks in enumerate((left, ~left)):
            np.testing.assert_array_equal(sums[node, side], channels[inside[marks]].sum(axis=0))


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("points of a curve", {"stride": 3}),
        ("settings do not fit", {"settings": np.zeros(7)}),
        ("too few channels", {"channel_weights": np.zeros(4)}),
        ("functions", {"statistic": 4, "n_functions": 0}),
    ],
)
def test_a_rule_that_does_not_fit_its_statistic_is_refused(message, changes):
    fitting = {"statistic": 1, "stride": 4, "settings": np.zeros(8), "channel_weights": np.zeros(8)}
    rest = {"norm": 1, "squared": True, "positivity": 0, "weight_channel": -1, "zeta": 0.0}
    rest |= {"spread_channel": -1, "min_rows": 1, "min_fraction": 0.0}
    _core.SplitRule(**fitting, **rest)
    with pytest.raises(ValueError, match=message):
        _core.SplitRule(**{**fitting, **changes}, **rest)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_partition_equals_a_stable_sort_by_side(n_threads):
    _, n_bins, bins, _, rows = binned_rows(5, 500, 4, 1)
    ranges = np.array([[0, 100], [100, 700], [700, 701], [701, 1000]])
    splits = Splits.none(4)
    splits.cut[:] = [[0, 1, 0], [1, 2, 1], [2, 0, 0], [3, int(n_bins[3]) - 1, 0]]
    expected, expected_middles = rows.copy(), []
    for (begin, end), (feature, cut_bin, missing_left) in zip(ranges, splits.cut, strict=True):
        inside = rows[begin:end]
        own = bins[inside, feature]
        left = np.where(own == n_bins[feature], bool(missing_left), own <= cut_bin)
        expected[begin:end] = np.concatenate([inside[left], inside[~left]])
        expected_middles.append(begin + left.sum())
    middles = np.empty(4, np.int64)
    _core.partition(
        bins, n_bins, rows, ranges, splits.gain, splits.cut, splits.sets, n_threads, middles
    )
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(middles, expected_middles)


@pytest.mark.parametrize("n_selected", [1, 3, 10])
def test_selected_features_have_the_smallest_hashes(n_selected):
    keys = root_keys(7, np.arange(50))
    selected = np.empty((50, n_selected), np.int32)
    _core.select_features(7, keys, 10, 2, selected)
    hashes = draw(stream(7, DRAW_FEATURE, keys)[:, None], np.arange(10, dtype=np.uint64))
    expected = np.sort(np.argsort(hashes, axis=1)[:, :n_selected], axis=1)
    np.testing.assert_array_equal(selected, expected)


def test_features_are_drawn_evenly():
    keys = child_keys(root_keys(3, np.arange(20_000)), 1)
    selected = np.empty((20_000, 2), np.int32)
    _core.select_features(3, keys, 8, 1, selected)
    shares = np.bincount(selected.ravel(), minlength=8) / 20_000
    # Each feature is drawn with probability 1/4; five standard errors of a binomial share.
    np.testing.assert_allclose(shares, 0.25, atol=5 * np.sqrt(0.25 * 0.75 / 20_000))


def test_arrays_of_another_type_are_refused_rather_than_copied():
    with pytest.raises(TypeError):
        _core.select_features(1, np.arange(3, dtype=np.int64), 4, 1, np.empty((3, 2), np.int32))
    with pytest.raises(TypeError):
        _core.select_features(1, np.arange(3, dtype=np.uint64), 4, 1, np.empty((3, 2), np.int64))
