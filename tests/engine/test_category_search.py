"""The split search over categories against brute force, and against its NumPy twin."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doseforest import _core
from doseforest.base.dtypes import BY_SET, set_words
from doseforest.engine.growth.frontier import Splits
from doseforest.engine.growth.grower import StopRules
from doseforest.engine.splits.distances import CURVE_DISTANCES
from doseforest.engine.splits.mean_statistic import mean_curve_statistic
from doseforest.engine.splits.split_search import scan_histograms

deterministic = settings(max_examples=15, derandomize=True, deadline=None)


class Rows:
    """Rows of one categorical feature: bins, of which the last holds missing values, and curves."""

    def __init__(self, seed, n_rows, n_bins, n_channels, *, weighted=False, positivity=None):
        rng = np.random.default_rng(seed)
        self.n_bins = n_bins
        self.bins = rng.integers(0, n_bins + (seed % 3 > 0), n_rows)  # every third has none missing
        # Of a grid on which sums and most products are exact, but too varied for ties.
        self.curves = rng.integers(-4000, 4000, size=(n_rows, n_channels)) / 64
        self.curves += (rng.integers(-2000, 2000, size=(n_bins + 1, n_channels)) / 64)[self.bins]
        self.weights = rng.choice([0.0, 0.5, 1.0, 1.5], size=n_rows).astype(np.float32)
        self.weights[0] = 1.0
        self.weighted = weighted
        first = rng.uniform(1, 2, size=n_rows)
        self.spread = np.stack([first, first**2 + rng.uniform(0.2, 1, size=n_rows)], axis=1)
        self.positivity = positivity
        self.quadrature = rng.choice([0.5, 1.0, 2.0], size=n_channels)

    def statistic(self, distance):
        return mean_curve_statistic(
            self.curves,
            quadrature=self.quadrature,
            distance=distance,
            weights=self.weights if self.weighted else None,
            spread=None if self.positivity is None else self.spread,
            zeta=0.0 if self.positivity is None else 0.7,
            positivity=self.positivity or "conditional",
        )

    @functools.cache  # noqa: B019 - the rows live as long as the test
    def zeta(self, distance):
        return self.statistic(distance).zeta

    def histogram(self, statistic):
        sums = np.zeros((1, self.n_bins + 1, statistic.channels.shape[1]))
        counts = np.zeros((1, self.n_bins + 1), np.uint32)
        np.add.at(sums[0], self.bins, statistic.channels)
        np.add.at(counts[0], self.bins, 1)
        return sums, counts

    def compiled(self, distance, rules):
        statistic = self.statistic(distance)
        splits = Splits.none(1, set_words=set_words(self.n_bins))
        rule = statistic.rule(min_rows=rules.min_node_size, min_fraction=rules.min_child_fraction)
        _core.scan_histograms(
            np.array([self.n_bins], np.int32),
            rule,
            np.zeros((1, 1), np.int32),
            *self.histogram(statistic),
            1,
            splits.gain,
            splits.cut,
            splits.sets,
            np.ones(1, np.uint8),
        )
        return splits

    def twin(self, distance, rules):
        statistic = self.statistic(distance)
        return scan_histograms(
            statistic,
            rules,
            np.array([self.n_bins], np.int32),
            np.zeros((1, 1), np.int32),
            *self.histogram(statistic),
            np.ones(1, np.uint8),
        )

    def gain(self, distance, rules, left):
        """Gain of sending some rows left, from the rows themselves; -inf where that may not be."""
        n = len(self.bins)
        smallest = max(rules.min_node_size, rules.min_child_fraction * n - 1e-9, 1)
        weights = self.weights.astype(float) if self.weighted else np.ones(n)
        sides = [weights * left, weights * ~left]
        if min(left.sum(), (~left).sum()) < smallest or min(side.sum() for side in sides) <= 0:
            return -np.inf
        means = [side @ self.curves / side.sum() for side in sides]
        function = CURVE_DISTANCES[distance].function
        product = sides[0].sum() * sides[1].sum() / weights.sum()
        gain = product * function(means[0], means[1], self.quadrature)
        if self.positivity is None:
            return gain
        spreads = []
        for side in sides:
            first, second = side @ self.spread / side.sum()
            spreads.append(first if self.positivity == "conditional" else second - first**2)
        return gain + self.zeta(distance) * min(spreads)

    def goes_left(self, splits):
        """Rows that a split sends left."""
        bits = np.unpackbits(splits.sets[0].view(np.uint8), bitorder="little").astype(bool)
        missing_left = bool(splits.cut[0, 2])
        return np.where(self.bins == self.n_bins, missing_left, bits[self.bins])

    def best_subset(self, distance, rules):
        """Largest gain over all subsets of the bins, missing values being one more bin."""
        items = np.unique(self.bins)
        sizes = range(1, len(items))
        subsets = itertools.chain(*(itertools.combinations(items, size) for size in sizes))
        gains = [self.gain(distance, rules, np.isin(self.bins, chosen)) for chosen in subsets]
        return max([-np.inf, *gains])

    def best_cut_in_order(self, distance, rules, scores):
        """Largest gain of the cuts of the bins in the order of their scores."""
        order = np.argsort(scores)
        gains = [-np.inf]
        for n_left in range(len(order) + 1):
            left = np.isin(self.bins, order[:n_left])
            missing = self.bins == self.n_bins
            gains += [self.gain(distance, rules, left | side) for side in (missing, left & False)]
        return max(gains)


OPTIONS = {
    "weighted": st.booleans(),
    "positivity": st.sampled_from([None, None, "conditional", "mixture"]),
}
RULES = st.builds(
    StopRules, min_node_size=st.integers(1, 6), min_child_fraction=st.sampled_from([0.0, 0.0, 0.2])
)
# Channels hold 24 bits of a curve times its weight.
CHANNEL_TOLERANCE = 1e-5


@pytest.mark.parametrize("distance", sorted(CURVE_DISTANCES))
@deterministic
@given(
    seed=st.integers(0, 2**31),
    n_rows=st.integers(2, 60),
    n_bins=st.integers(1, 7),
    n_channels=st.sampled_from([1, 3, 6]),
    rules=RULES,
    **OPTIONS,
)
def test_few_categories_are_split_by_the_best_subset(
    distance, seed, n_rows, n_bins, n_channels, rules, weighted, positivity
):
    rows = Rows(seed, n_rows, n_bins, n_channels, weighted=weighted, positivity=positivity)
    expected = rows.best_subset(distance, rules)
    for splits in (rows.compiled(distance, rules), rows.twin(distance, rules)):
        assert splits.gain[0] == pytest.approx(expected, rel=CHANNEL_TOLERANCE)
        if np.isfinite(expected):
            achieved = rows.gain(distance, rules, rows.goes_left(splits))
            assert achieved == pytest.approx(expected, rel=CHANNEL_TOLERANCE)
            assert splits.cut[0, 1] == BY_SET


def test_eight_categories_and_missing_values_are_still_enumerated():
    rows = Rows(1, 400, 8, 3)
    assert len(np.unique(rows.bins)) == 9
    expected = rows.best_subset("l2", StopRules())
    assert rows.compiled("l2", StopRules()).gain[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("distance", sorted(CURVE_DISTANCES))
@deterministic
@given(
    seed=st.integers(0, 2**31),
    n_rows=st.integers(20, 600),
    n_bins=st.sampled_from([9, 12, 40, 255, 256, 1023]),
    n_channels=st.sampled_from([1, 2, 6, 14, 33]),
    rules=RULES,
    **OPTIONS,
)
def test_many_categories_are_split_as_the_twin_splits_them(
    distance, seed, n_rows, n_bins, n_channels, rules, weighted, positivity
):
    rows = Rows(seed, n_rows, n_bins, n_channels, weighted=weighted, positivity=positivity)
    splits, twin = rows.compiled(distance, rules), rows.twin(distance, rules)
    assert splits.gain[0] == pytest.approx(twin.gain[0], rel=1e-9, abs=1e-9)
    if np.isfinite(splits.gain[0]):
        achieved = rows.gain(distance, rules, rows.goes_left(splits))
        assert achieved == pytest.approx(splits.gain[0], rel=CHANNEL_TOLERANCE)


@pytest.mark.parametrize("n_bins", [9, 30, 254, 600])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_one_channel_is_cut_in_the_order_of_the_means(seed, weighted, n_bins):
    rows = Rows(seed, 1500, n_bins, 1, weighted=weighted)
    weights = rows.weights.astype(float) if weighted else np.ones(1500)
    total = np.bincount(rows.bins, weights * rows.curves[:, 0], n_bins + 1)[:n_bins]
    weight = np.bincount(rows.bins, weights, n_bins + 1)[:n_bins]
    rules = StopRules(min_node_size=5)
    expected = rows.best_cut_in_order("l2", rules, total / np.maximum(weight, 0.1))
    gain = rows.compiled("l2", rules).gain[0]
    assert gain == pytest.approx(expected, rel=CHANNEL_TOLERANCE)
    if n_bins == 9 and seed % 3 == 0:  # without missing values the best subset is such a cut
        assert gain == pytest.approx(rows.best_subset("l2", rules), rel=CHANNEL_TOLERANCE)


@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
@pytest.mark.parametrize("seed", range(4))
def test_many_curves_are_parted_no_worse_than_in_the_order_of_any_point(seed, distance):
    # Curves of two shapes, each category's mean over 20 rows: an axis through all points tells more
    # of them than any point alone.
    rng = np.random.default_rng(seed)
    rows = Rows(3 * seed, 5000, 250, 6)
    shapes = rng.normal(size=(2, 6))
    rows.curves = (rng.normal(size=(251, 2)) @ shapes)[rows.bins] + rng.normal(size=(5000, 6))
    counts = np.bincount(rows.bins, minlength=250)
    gain = rows.compiled(distance, StopRules()).gain[0]
    for point in range(6):
        means = np.bincount(rows.bins, rows.curves[:, point], 250) / counts
        expected = rows.best_cut_in_order(distance, StopRules(), means)
        assert gain >= expected * (1 - CHANNEL_TOLERANCE)


@pytest.mark.parametrize("distance", sorted(CURVE_DISTANCES))
def test_two_kinds_of_curves_are_told_apart_whatever_their_level(distance):
    rng = np.random.default_rng(5)
    rows = Rows(0, 4000, 100, 4)
    kind = rng.random(100) < 0.5
    shape = np.array([1.0, -1.0, 1.0, -1.0])  # of the same mean: only the shape differs
    rows.curves = np.where(kind[:, None], shape, -shape)[rows.bins]
    left = rows.goes_left(rows.compiled(distance, StopRules()))
    assert np.array_equal(left, kind[rows.bins]) or np.array_equal(left, ~kind[rows.bins])


def test_of_equal_gains_the_lowest_bins_stay_on_the_left():
    rows = Rows(0, 300, 3, 1)
    rows.bins = np.arange(300) % 3
    rows.curves = np.array([-1.0, 0.0, 1.0])[rows.bins, None]
    for splits in (rows.compiled("l2", StopRules()), rows.twin("l2", StopRules())):
        assert splits.sets[0].tolist() == [1, 0, 0, 0]  # {0} against {1, 2}, not {2} against {0, 1}
        assert not splits.cut[0, 2]  # most rows are on the right


def test_bins_without_rows_go_with_the_missing_values_or_with_most_rows():
    rows = Rows(0, 300, 12, 1)
    rows.bins = np.where(np.arange(300) % 3 > 0, 4, 7)
    rows.curves = (rows.bins == 4).astype(float)[:, None]
    splits = rows.compiled("l2", StopRules())
    assert splits.cut[0, 2]  # two thirds are in bin 4, the lowest, on the left
    assert splits.sets[0, 0] == 2**12 - 1 - 2**7
    rows.bins[:60] = 12  # missing, with the curve of bin 7
    rows.curves[:60] = 0.0
    splits = rows.compiled("l2", StopRules())
    assert not splits.cut[0, 2]
    assert splits.sets[0, 0] == 2**4


def test_equal_curves_gain_nothing():
    rows = Rows(0, 500, 30, 5)
    rows.curves = np.full((500, 5), 0.1)
    assert rows.compiled("l2", StopRules()).gain[0] == 0.0
