"""Bins: quantiles of the weight, the same routing by bin and by value, nothing else decides."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from doseforest.data.binning import MAX_BINS, SAMPLE_ROWS, FeatureBins, fit_bins
from doseforest.data.exact_grid import normalised_weights
from doseforest.data.feature_table import ArrayTable, as_table

deterministic = settings(derandomize=True, deadline=None, max_examples=100)

LARGEST = np.finfo(np.float64).max
AWKWARD = [
    *(0.0, -0.0, 5e-324, -5e-324, 1e-323, 1.5e-323, 2e-323, 2.2250738585072014e-308),
    *(1.0, np.nextafter(1, 2), np.nextafter(1, 0), np.nextafter(np.nextafter(1, 2), 2)),
    *(1e308, -1e308, LARGEST, -LARGEST, np.nextafter(LARGEST, 0), np.nextafter(-LARGEST, 0)),
]
NUMBERS = st.one_of(
    st.sampled_from(AWKWARD),
    st.integers(-3, 3).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
)
SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=12)
TABLES = hnp.arrays(np.float64, SHAPES, elements=st.one_of(NUMBERS, st.just(np.nan)))
COLUMNS = st.lists(NUMBERS, min_size=1, max_size=60).map(np.array)


def fit_column(values: NDArray[Any], max_bins: int = 64, **options: Any) -> FeatureBins:
    return fit_bins(as_table(np.asarray(values)[:, None]), max_bins=max_bins, **options)


def codes_of(bins: FeatureBins, values: NDArray[Any]) -> NDArray[np.int64]:
    return bins.transform(as_table(np.asarray(values)[:, None]))[:, 0].astype(np.int64)


def naive_codes(edges: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values))


def masses(bins: FeatureBins, values: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
    return np.bincount(codes_of(bins, values), weights, int(bins.n_bins[0]))


def assert_same_edges(first: FeatureBins, second: FeatureBins) -> None:
    assert first.edges.tobytes() == second.edges.tobytes()
    np.testing.assert_array_equal(first.edge_starts, second.edge_starts)


# --- codes -------------------------------------------------------------------------------------


@given(training=TABLES, max_bins=st.integers(2, 20), data=st.data())
@deterministic
def test_codes_equal_a_naive_search_of_the_edges(
    training: NDArray[np.float64], max_bins: int, data: st.DataObject
) -> None:
    bins = fit_bins(as_table(training), max_bins=max_bins)
    width = training.shape[1]
    other = data.draw(hnp.arrays(np.float64, (2, width), elements=NUMBERS))
    for values in (training, other):
        codes = bins.transform(as_table(values))
        assert codes.dtype == np.uint8
        for feature in range(width):
            edges = bins.edges[bins.edge_starts[feature] : bins.edge_starts[feature + 1]]
            np.testing.assert_array_equal(codes[:, feature], naive_codes(edges, values[:, feature]))


def test_many_threads_give_the_codes_of_one() -> None:
    values = np.random.default_rng(0).normal(size=(30_000, 3))
    bins = fit_bins(as_table(values))
    alone, together = (bins.transform(as_table(values), n_threads) for n_threads in (1, 2))
    np.testing.assert_array_equal(alone, together)


@given(values=COLUMNS, max_bins=st.integers(2, 12))
@deterministic
def test_a_value_passes_a_threshold_exactly_when_its_bin_does(
    values: NDArray[np.float64], max_bins: int
) -> None:
    bins = fit_column(values, max_bins)
    near = [np.nextafter(bins.edges, side) for side in (-LARGEST, LARGEST)]
    probes = np.concatenate([values, bins.edges, *near, AWKWARD])
    every_bin = np.arange(bins.n_bins[0])
    thresholds = bins.threshold(np.zeros(len(every_bin), np.int64), every_bin)
    by_value = probes[:, None] <= thresholds
    by_bin = codes_of(bins, probes)[:, None] <= every_bin
    np.testing.assert_array_equal(by_value, by_bin)


@given(values=COLUMNS, max_bins=st.integers(2, 12))
@deterministic
def test_edges_ascend_and_every_bin_holds_a_training_value(
    values: NDArray[np.float64], max_bins: int
) -> None:
    bins = fit_column(values, max_bins)
    assert np.isfinite(bins.edges).all()
    assert (np.diff(bins.edges) > 0).all()
    np.testing.assert_array_equal(np.unique(codes_of(bins, values)), np.arange(bins.n_bins[0]))


def test_thresholds_are_looked_up_feature_by_feature() -> None:
    bins = fit_bins(as_table([[0.0, 5.0, 1.0], [2.0, 5.0, 3.0], [6.0, 5.0, np.nan]]))
    features, own_bins = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 2, 0, 0, 1])
    np.testing.assert_array_equal(
        bins.threshold(features, own_bins), [1, 4, np.inf, np.inf, 2, np.inf]
    )


# --- missing values ----------------------------------------------------------------------------


@given(values=COLUMNS, max_bins=st.integers(2, 12), data=st.data())
@deterministic
def test_missing_values_have_the_bin_after_the_last_and_move_no_edge(
    values: NDArray[np.float64], max_bins: int, data: st.DataObject
) -> None:
    places = data.draw(st.lists(st.integers(0, len(values)), min_size=1, max_size=5))
    with_gaps = np.insert(values, places, np.nan)
    bins = fit_column(with_gaps, max_bins)
    assert_same_edges(bins, fit_column(values, max_bins))
    codes = codes_of(bins, with_gaps)
    assert (codes[np.isnan(with_gaps)] == bins.n_bins[0]).all()
    assert (codes[~np.isnan(with_gaps)] < bins.n_bins[0]).all()


def test_columns_without_variation_have_one_bin() -> None:
    values = np.array([[np.nan, 7.0, 0.0, 7.0], [np.nan, 7.0, -0.0, np.nan]])
    bins = fit_bins(as_table(values))
    np.testing.assert_array_equal(bins.n_bins, [1, 1, 1, 1])
    np.testing.assert_array_equal(bins.transform(as_table(values)), [[1, 0, 0, 0], [1, 0, 0, 1]])


def test_with_the_most_bins_the_missing_code_still_fits_a_byte() -> None:
    values = np.append(np.arange(1000.0), np.nan)
    bins = fit_column(values, MAX_BINS)
    assert bins.n_bins[0] == MAX_BINS
    assert codes_of(bins, values)[-1] == MAX_BINS


# --- where the edges lie -----------------------------------------------------------------------


@given(values=COLUMNS, max_bins=st.integers(2, 80))
@deterministic
def test_few_distinct_values_keep_a_bin_each(values: NDArray[np.float64], max_bins: int) -> None:
    distinct, ranks = np.unique(values, return_inverse=True)
    bins = fit_column(values, max_bins)
    if len(distinct) > max_bins:
        assert bins.n_bins[0] <= max_bins
    else:
        np.testing.assert_array_equal(codes_of(bins, values), ranks)


WEIGHTS = st.lists(st.integers(1, 5), min_size=60, max_size=200).map(np.array)


@given(weights=WEIGHTS, max_bins=st.integers(2, 12))
@deterministic
def test_bins_hold_equal_weight_up_to_one_value(weights: NDArray[np.int64], max_bins: int) -> None:
    values = np.sort(np.random.default_rng(len(weights)).normal(size=len(weights)))
    bins = fit_column(values, max_bins, weights=weights.astype(np.float32))
    share = weights.sum() / max_bins
    assert bins.n_bins[0] == max_bins
    assert (np.abs(masses(bins, values, weights) - share) <= weights.max()).all()


@given(weights=WEIGHTS, max_bins=st.integers(2, 12))
@deterministic
def test_a_weight_of_k_equals_k_copies_of_the_row(
    weights: NDArray[np.int64], max_bins: int
) -> None:
    values = np.random.default_rng(len(weights)).integers(0, 40, len(weights)).astype(float)
    weighted = fit_column(values, max_bins, weights=weights.astype(np.float32))
    assert_same_edges(weighted, fit_column(np.repeat(values, weights), max_bins))


@given(weights=WEIGHTS, max_bins=st.integers(2, 12), data=st.data())
@deterministic
def test_rows_without_weight_move_no_edge(
    weights: NDArray[np.int64], max_bins: int, data: st.DataObject
) -> None:
    values = np.random.default_rng(len(weights)).normal(size=len(weights))
    silent = data.draw(hnp.arrays(bool, len(weights)))
    silent[0] = False
    weights = np.where(silent, 0, weights).astype(np.float32)
    assert_same_edges(
        fit_column(values, max_bins, weights=weights),
        fit_column(values[~silent], max_bins, weights=weights[~silent]),
    )


@given(weights=WEIGHTS, exponent=st.integers(-20, 20))
@deterministic
def test_weights_times_a_power_of_two_move_no_edge(
    weights: NDArray[np.int64], exponent: int
) -> None:
    values = np.random.default_rng(len(weights)).normal(size=len(weights))
    plain, scaled = (
        fit_column(values, 10, weights=normalised_weights(weights * factor))
        for factor in (1.0, 2.0**exponent)
    )
    assert_same_edges(plain, scaled)


@pytest.mark.parametrize("negative", [False, True])
def test_zeros_on_most_rows_leave_the_other_bins_to_the_rest(negative: bool) -> None:
    rng = np.random.default_rng(0)
    rest = rng.normal(size=4_000) if negative else rng.exponential(size=4_000)
    values = np.concatenate([np.zeros(6_000), rest])
    bins = fit_column(values, 64)
    assert bins.n_bins[0] >= 63
    rest_in_bins = masses(bins, rest, np.ones(len(rest)))
    assert rest_in_bins.max() <= len(rest) / 63 + 1


@given(
    n_heavy=st.integers(0, 60),
    n_light=st.integers(10, 150),
    max_bins=st.integers(2, 64),
    seed=st.integers(0, 99),
)
@deterministic
def test_heavy_values_leave_room_for_the_light_ones(
    n_heavy: int, n_light: int, max_bins: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.permutation([*rng.integers(2, 500, n_heavy), *np.ones(n_light, int)])
    bins = fit_column(np.repeat(np.arange(float(len(counts))), counts), max_bins)
    assert min(max_bins, len(counts)) - 1 <= bins.n_bins[0] <= max_bins


@given(n_heavy=st.integers(1, 40), spare=st.integers(2, 24), more=st.integers(0, 100))
@deterministic
def test_heavy_values_that_follow_on_each_other_have_a_bin_each(
    n_heavy: int, spare: int, more: int
) -> None:
    counts = np.append(np.full(n_heavy, 1_000), np.ones(spare + more, int))
    values = np.arange(float(len(counts)))
    codes = codes_of(fit_column(np.repeat(values, counts), n_heavy + spare), values)
    np.testing.assert_array_equal(codes[: n_heavy + 1], np.arange(n_heavy + 1))


def test_rare_values_keep_their_bin_beyond_the_sample() -> None:
    values = np.zeros((SAMPLE_ROWS + 300_000, 1))
    values[7] = 1.0
    values[8] = 2.0
    np.testing.assert_array_equal(fit_bins(as_table(values)).edges, [0.5, 1.5])


# --- what must not matter ----------------------------------------------------------------------

LONG = SAMPLE_ROWS + 50_000


@pytest.fixture(scope="module")
def long_table() -> NDArray[np.float64]:
    rng = np.random.default_rng(3)
    values = np.stack([rng.normal(size=LONG), rng.exponential(size=LONG)], axis=1)
    values[rng.random(LONG) < 0.1, 1] = np.nan
    return values


@pytest.mark.parametrize("n_rows", [500, LONG])
@pytest.mark.parametrize("weighted", [False, True])
def test_permuted_rows_with_their_ids_give_the_same_edges(
    long_table: NDArray[np.float64], n_rows: int, weighted: bool
) -> None:
    rng = np.random.default_rng(4)
    values, ids = long_table[:n_rows], rng.permutation(10 * n_rows)[:n_rows] - 5 * n_rows
    weights = normalised_weights(rng.exponential(size=n_rows)) if weighted else None
    order = rng.permutation(n_rows)
    first = fit_bins(as_table(values), weights=weights, row_ids=ids, seed=9)
    second = fit_bins(
        as_table(values[order]),
        weights=None if weights is None else weights[order],
        row_ids=ids[order],
        seed=9,
    )
    assert_same_edges(first, second)


def test_the_sample_of_a_long_table_follows_ids_and_seed(
    long_table: NDArray[np.float64],
) -> None:
    by_position = fit_bins(as_table(long_table), seed=9)
    assert_same_edges(by_position, fit_bins(as_table(long_table), row_ids=np.arange(LONG), seed=9))
    for options in ({"row_ids": np.arange(LONG) + 1, "seed": 9}, {"seed": 10}):
        other = fit_bins(as_table(long_table), **options)
        assert (other.edges != by_position.edges).any()


def test_the_sample_of_a_long_table_places_quantiles_within_a_percent(
    long_table: NDArray[np.float64],
) -> None:
    bins = fit_bins(as_table(long_table), max_bins=64, seed=9)
    for feature in range(2):
        present = long_table[~np.isnan(long_table[:, feature]), feature]
        edges = bins.edges[bins.edge_starts[feature] : bins.edge_starts[feature + 1]]
        below = np.searchsorted(np.sort(present), edges) / len(present)
        np.testing.assert_allclose(below, np.arange(1, 64) / 64, atol=0.01)


@pytest.mark.parametrize(("n_rows", "block_rows"), [(500, 7), (500, 499), (LONG, 33_333)])
def test_the_size_of_blocks_changes_neither_edges_nor_codes(
    long_table: NDArray[np.float64], n_rows: int, block_rows: int
) -> None:
    whole = ArrayTable(long_table[:n_rows], block_rows=n_rows)
    parts = ArrayTable(long_table[:n_rows], block_rows=block_rows)
    bins = fit_bins(whole, seed=9)
    assert_same_edges(bins, fit_bins(parts, seed=9))
    np.testing.assert_array_equal(bins.transform(whole), bins.transform(parts))


@given(values=hnp.arrays(np.float32, SHAPES, elements={"allow_infinity": False}))
@deterministic
def test_a_float32_array_bins_like_its_float64_copy(values: NDArray[np.float32]) -> None:
    narrow, wide = (fit_bins(as_table(form)) for form in (values, values.astype(np.float64)))
    assert_same_edges(narrow, wide)
    np.testing.assert_array_equal(
        narrow.transform(as_table(values)), wide.transform(as_table(values.astype(np.float64)))
    )
