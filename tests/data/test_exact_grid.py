"""The exact grid: sums of channels are exact, so no order of adding can be told from another."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from doseforest._core import LANES
from doseforest.data.checks import LARGEST_VALUE
from doseforest.data.exact_grid import exact_channels, grid_steps, normalised_weights, padded_width

deterministic = settings(derandomize=True, deadline=None, max_examples=150)

SMALLEST_STEP = 2.0**-149  # what float32 can hold
NUMBERS = st.one_of(
    st.floats(-LARGEST_VALUE, LARGEST_VALUE),
    st.floats(-10, 10),
    st.sampled_from([0.0, 1e-300, -1e-300, 1e-44, -1e-44, 1e-38, 8e37, -8e37, 0.1, 1 / 3]),
)
COLUMNS = st.lists(NUMBERS, min_size=1, max_size=40).map(np.array)
SEEDS = st.integers(0, 10**6)


def one_channel(values: NDArray[Any], **options: Any) -> NDArray[np.float32]:
    return exact_channels(values, pad=False, **options)[:, 0]


def naive_step(largest: float) -> float:
    """Return the smallest step of which 2**23 reach the largest value."""
    exponent = -149
    while 2.0 ** (exponent + 23) < largest:
        exponent += 1
    return 2.0**exponent


def spread_out(seed: int, n_rows: int = 400, n_columns: int = 3) -> NDArray[np.float64]:
    """Values of many magnitudes, whose float64 sums depend on their order."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_columns)) * 10.0 ** rng.uniform(-12, 6, (n_rows, n_columns))


# --- the grid ----------------------------------------------------------------------------------


@given(
    largest=st.one_of(
        st.floats(0, LARGEST_VALUE, exclude_min=True), st.integers(-140, 120).map(math.exp2)
    )
)
@deterministic
def test_a_step_is_the_smallest_of_which_2_to_the_23_reach_the_largest_value(
    largest: float,
) -> None:
    assert grid_steps(np.array([largest]))[0] == naive_step(largest)


@given(values=COLUMNS)
@deterministic
def test_channels_are_whole_steps_at_most_half_a_step_off(values: NDArray[np.float64]) -> None:
    channel = one_channel(values).astype(np.float64)
    step = naive_step(np.abs(values).max())
    assert np.isfinite(channel).all()
    assert (channel / step == np.rint(channel / step)).all()
    assert (np.abs(channel) <= 2.0**23 * step).all()
    assert (np.abs(channel - values) <= step / 2).all()


@given(values=COLUMNS)
@deterministic
def test_channels_on_the_grid_stay_as_they_are(values: NDArray[np.float64]) -> None:
    once = one_channel(values)
    assert one_channel(once).tobytes() == once.tobytes()


@given(
    whole=st.lists(st.integers(-(2**23), 2**23), min_size=1, max_size=20),
    exponent=st.integers(-149, 100),
)
@deterministic
def test_up_to_2_to_the_23_whole_steps_are_kept_exactly(whole: list[int], exponent: int) -> None:
    values = np.array([*whole, 2**23]) * 2.0**exponent
    np.testing.assert_array_equal(one_channel(values).astype(np.float64), values)


def test_values_below_the_smallest_step_become_zero() -> None:
    np.testing.assert_array_equal(one_channel(np.array([1e-300, -1e-300, 1e-46])), [0, 0, 0])
    np.testing.assert_array_equal(one_channel(np.zeros(3)), [0, 0, 0])


def test_subnormal_values_keep_whole_smallest_steps() -> None:
    values = np.array([1e-44, 3e-45, -1e-44])
    expected = np.rint(values / SMALLEST_STEP) * SMALLEST_STEP
    np.testing.assert_array_equal(one_channel(values).astype(np.float64), expected)


@pytest.mark.parametrize("code", ["?", "b", "h", "i", "l", "B", "e", "f", "d"])
def test_every_real_type_rounds_like_its_float64_copy(code: str) -> None:
    values = np.arange(-20, 20).reshape(20, 2).astype(code)
    for form in (values, np.asfortranarray(values), np.repeat(values, 2, axis=0)[::2]):
        assert exact_channels(form).tobytes() == exact_channels(values.astype(float)).tobytes()


def test_each_channel_has_its_own_step_whatever_lies_beside_it() -> None:
    values = spread_out(0)
    together = exact_channels(values, values[:, 0], pad=False)
    assert together.shape == (400, 4)
    for column, source in enumerate([0, 1, 2, 0]):
        np.testing.assert_array_equal(together[:, column], one_channel(values[:, source]))


def test_channels_are_padded_with_zeros_to_whole_vectors() -> None:
    for n_channels in range(1, 2 * LANES + 2):
        channels = exact_channels(np.ones((5, n_channels)))
        assert channels.shape == (5, padded_width(n_channels))
        assert padded_width(n_channels) % LANES == 0
        assert padded_width(n_channels) - n_channels in range(LANES)
        assert (channels[:, :n_channels] == 1).all()
        assert not channels[:, n_channels:].any()


@pytest.mark.parametrize("place", [0, 149_999])
def test_rows_of_every_block_share_the_step_of_all_rows(place: int) -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=150_000)
    values[place] = 1000.0
    weights = rng.uniform(0.5, 2, 150_000).astype(np.float32)
    step = naive_step(np.abs(values * weights).max())
    np.testing.assert_array_equal(
        one_channel(values, weights=weights), np.rint(values * weights / step) * step
    )


# --- sums --------------------------------------------------------------------------------------


@given(values=COLUMNS)
@deterministic
def test_the_float64_sum_of_a_channel_is_the_true_sum(values: NDArray[np.float64]) -> None:
    channel = one_channel(values).astype(np.float64)
    assert np.cumsum(channel)[-1] == math.fsum(channel)


@given(seed=SEEDS)
@deterministic
def test_no_order_of_the_rows_changes_a_sum(seed: int) -> None:
    values = spread_out(seed)
    order = np.random.default_rng(seed + 1).permutation(len(values))
    first, second = (exact_channels(form).astype(np.float64) for form in (values, values[order]))
    # One by one, from the front: the order in which a kernel adds.
    assert np.cumsum(first, axis=0)[-1].tobytes() == np.cumsum(second, axis=0)[-1].tobytes()
    assert np.cumsum(values, axis=0)[-1].tobytes() != np.cumsum(values[order], axis=0)[-1].tobytes()


@given(seed=SEEDS, n_parts=st.integers(2, 30))
@deterministic
def test_no_partition_of_the_rows_changes_a_sum(seed: int, n_parts: int) -> None:
    channels = exact_channels(spread_out(seed)).astype(np.float64)
    part = np.random.default_rng(seed + 1).integers(0, n_parts, len(channels))
    parts = [np.cumsum(channels[part == p], axis=0)[-1:].sum(axis=0) for p in range(n_parts)]
    assert np.add.reduce(parts).tobytes() == np.cumsum(channels, axis=0)[-1].tobytes()


@given(seed=SEEDS)
@deterministic
def test_a_sibling_by_subtraction_has_the_bits_of_a_sibling_by_addition(seed: int) -> None:
    channels = exact_channels(spread_out(seed)).astype(np.float64)
    left = np.random.default_rng(seed + 1).random(len(channels)) < 0.3
    by_subtraction = channels.sum(axis=0) - channels[left].sum(axis=0)
    assert by_subtraction.tobytes() == np.cumsum(channels[~left], axis=0)[-1].tobytes()


def test_a_million_rows_of_the_largest_size_add_up_exactly() -> None:
    rng = np.random.default_rng(2)
    channel = one_channel(rng.uniform(0.9, 1.0, 2**20) * LARGEST_VALUE).astype(np.float64)
    assert np.cumsum(channel)[-1] == math.fsum(channel) == np.cumsum(channel[::-1])[-1]


# --- weights -----------------------------------------------------------------------------------


@given(seed=SEEDS, exponent=st.integers(-30, 30))
@deterministic
def test_a_power_of_two_scales_channels_exactly(seed: int, exponent: int) -> None:
    values, factor = spread_out(seed), 2.0**exponent
    expected = (exact_channels(values) * np.float32(factor)).tobytes()
    assert exact_channels(values * factor).tobytes() == expected
    weights = np.full(len(values), factor, np.float32)
    assert exact_channels(values, weights=weights).tobytes() == expected


@given(seed=SEEDS)
@deterministic
def test_weighted_channels_are_the_channels_of_the_products(seed: int) -> None:
    values = spread_out(seed)
    weights = np.random.default_rng(seed).exponential(size=len(values)).astype(np.float32)
    products = values * weights[:, None].astype(np.float64)
    assert exact_channels(values, weights=weights).tobytes() == exact_channels(products).tobytes()


WEIGHTS = hnp.arrays(np.float64, st.integers(2, 40), elements=st.floats(2.0**-10, 2.0**10))


@given(weights=WEIGHTS)
@deterministic
def test_normalised_weights_have_mean_one_and_the_given_ratios(
    weights: NDArray[np.float64],
) -> None:
    normalised = normalised_weights(weights)
    assert normalised.dtype == np.float32
    assert np.mean(normalised, dtype=np.float64) == pytest.approx(1, abs=1e-5)
    tolerance = 2.0**-22 * weights.max() / weights.mean()
    np.testing.assert_allclose(normalised, weights / weights.mean(), rtol=1e-5, atol=tolerance)


@given(weights=WEIGHTS, exponent=st.integers(-110, 110))
@deterministic
def test_a_power_of_two_does_not_change_normalised_weights(
    weights: NDArray[np.float64], exponent: int
) -> None:
    scaled = normalised_weights(weights * 2.0**exponent)
    assert scaled.tobytes() == normalised_weights(weights).tobytes()


@pytest.mark.parametrize("exponent", [-1000, -150])
def test_weights_below_the_range_of_float32_keep_their_ratios(exponent: int) -> None:
    weights = np.array([1.0, 1.5, 2.0, 0.0])
    scaled = normalised_weights(weights * 2.0**exponent)
    np.testing.assert_array_equal(scaled, normalised_weights(weights))


@given(weights=WEIGHTS)
@deterministic
def test_the_order_of_rows_does_not_change_normalised_weights(
    weights: NDArray[np.float64],
) -> None:
    order = np.random.default_rng(len(weights)).permutation(len(weights))
    permuted = normalised_weights(weights[order])
    assert permuted.tobytes() == normalised_weights(weights)[order].tobytes()
