"""Categories under statistics other than means: brute force, and the NumPy twin."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from doseforest import _core
from doseforest.base.dtypes import set_words
from doseforest.doses.smoothing.kernel_channels import kernel_channels
from doseforest.engine import SplitByRatios, SplitByRatioSlopes, SplitByScores
from doseforest.engine.growth.frontier import Splits
from doseforest.engine.growth.grower import StopRules
from doseforest.engine.splits.distances import CURVE_DISTANCES
from doseforest.engine.splits.split_search import scan_histograms, split_gains
from doseforest.engine.splits.split_statistics import StatisticRows
from doseforest.estimator.corrections.moments import moment_channels

DOSES = np.linspace(0.1, 0.9, 5)
RECIPES = {
    "ratios": SplitByRatios(),
    "slopes": SplitByRatioSlopes(),
    "differences": SplitByRatioSlopes(derivative=False),
    "scores": SplitByScores((0.1, 0.0)),
}
RULES = StopRules(min_node_size=5)
NAMED = pytest.mark.parametrize("name", RECIPES)


def columns(name, dose, outcome):
    if name == "scores":
        return moment_channels(np.column_stack([dose - 0.5, (dose - 0.5) ** 2]), outcome), None
    derivative = name == "slopes"
    return kernel_channels(dose, outcome, DOSES, 0.4, "biweight", derivative=derivative), DOSES


def histogram(name, distance, seed, n_rows, n_bins, weighted):
    """Statistic, sums and counts of rows whose category bends the curve of their outcomes."""
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, n_bins + 1, n_rows)  # the last are missing
    dose = rng.uniform(0, 1, n_rows)
    bend = rng.normal(size=(n_bins + 1, 2))[bins]
    outcome = bend[:, 0] * dose + bend[:, 1] * dose**2 + 0.2 * rng.normal(size=n_rows)
    values, doses = columns(name, dose, outcome)
    recipe = RECIPES[name]
    statistic = recipe.lay_out(
        StatisticRows(
            values=values,
            doses=doses,
            quadrature=recipe.point_weights(recipe.n_doses(values.shape[1]), doses, None),
            distance=distance,
            weights=rng.choice([0.5, 1.5], n_rows).astype(np.float32) if weighted else None,
        )
    )
    sums = np.zeros((1, n_bins + 1, statistic.channels.shape[1]))
    counts = np.zeros((1, n_bins + 1), np.uint32)
    np.add.at(sums[0], bins, statistic.channels)
    np.add.at(counts[0], bins, 1)
    return statistic, sums, counts


def compiled(statistic, sums, counts):
    splits = Splits.none(1, set_words=set_words(counts.shape[1] - 1))
    found = splits.gain, splits.cut, splits.sets
    rule = statistic.rule(min_rows=RULES.min_node_size, min_fraction=0.0)
    n_bins = np.array([counts.shape[1] - 1], np.int32)
    features, categorical = np.zeros((1, 1), np.int32), np.ones(1, np.uint8)
    _core.scan_histograms(n_bins, rule, features, sums, counts, 1, *found, categorical)
    twin = scan_histograms(statistic, RULES, n_bins, features, sums, counts, categorical)
    return splits, twin


@NAMED
@pytest.mark.parametrize("distance", sorted(CURVE_DISTANCES))
@pytest.mark.parametrize("weighted", [False, True])
def test_few_categories_are_split_by_the_best_subset(name, distance, weighted):
    statistic, sums, counts = histogram(name, distance, 1, 400, 6, weighted)
    best = -np.inf
    for sides in itertools.product([False, True], repeat=6):  # the first always on the left
        left = np.array([True, *sides])
        rows = int(counts[0] @ left)
        if min(rows, 400 - rows) >= 5:
            own, total = left @ sums[0], sums[0].sum(axis=0)
            best = max(best, split_gains(statistic, own[None], np.array([rows]), total, 400)[0])
    splits, twin = compiled(statistic, sums, counts)
    assert splits.gain[0] == pytest.approx(best, rel=1e-9)
    assert twin.gain[0] == pytest.approx(best, rel=1e-9)
    np.testing.assert_array_equal(splits.sets, twin.sets)


@NAMED
@pytest.mark.parametrize("distance", sorted(CURVE_DISTANCES))
@pytest.mark.parametrize(("n_bins", "weighted"), [(12, False), (40, True), (400, False)])
def test_many_categories_are_split_as_the_twin_splits_them(name, distance, n_bins, weighted):
    statistic, sums, counts = histogram(name, distance, 2, 8000, n_bins, weighted)
    splits, twin = compiled(statistic, sums, counts)
    assert np.isfinite(splits.gain[0])
    assert splits.gain[0] == pytest.approx(twin.gain[0], rel=1e-9)


@NAMED
def test_two_kinds_of_categories_are_told_apart(name):
    rng = np.random.default_rng(3)
    kind = rng.random(40) < 0.5
    bins, dose = rng.integers(0, 40, 8000), rng.uniform(0, 1, 8000)
    outcome = np.where(kind[bins], 2.0, -2.0) * (dose - 0.5) + 0.1 * rng.normal(size=8000)
    values, doses = columns(name, dose, outcome)
    recipe = RECIPES[name]
    weights = recipe.point_weights(recipe.n_doses(values.shape[1]), doses, None)
    statistic = recipe.lay_out(StatisticRows(values, doses, weights, "l2"))
    sums = np.zeros((1, 41, statistic.channels.shape[1]))
    np.add.at(sums[0], bins, statistic.channels)
    counts = np.bincount(bins, minlength=41).astype(np.uint32)[None]
    splits, _ = compiled(statistic, sums, counts)
    left = (int(splits.sets[0, 0]) >> np.arange(40)) & 1 > 0
    assert np.array_equal(left, kind) or np.array_equal(left, ~kind)
