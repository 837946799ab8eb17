"""Shares of sampling noise: what units have in common makes a unit's own standard error surer."""

import numpy as np
import pytest

from doseforest import _core
from doseforest.data.sampling import SamplingPlan
from doseforest.estimator.bags.bag_contrasts import LEAST_DEGREES, contrast_variance
from doseforest.estimator.bags.noise_share import NoiseShare, bags_without, pool_shares
from doseforest.estimator.bags.unit_bags import CurveNoise

N_BAGS, BAG_SIZE = 100, 20


def mean_squares(rng, shares, n_bags=N_BAGS):
    """Mean squares between and within bags of units, whose bags differ with variance 1."""
    between = rng.chisquare(n_bags - 1, len(shares)) / (n_bags - 1)
    n_within = n_bags * (BAG_SIZE - 1)
    within = (1 - shares) * rng.chisquare(n_within, len(shares)) / n_within
    return between, within


def noise_of(between, within, share):
    """Noise of curves of one function, without a direction that no row tells of."""
    n = len(between)
    forms = between[:, None, None], within[:, None, None], np.zeros((n, 1, 1))
    return CurveNoise(np.zeros((n, 1)), *forms, N_BAGS, BAG_SIZE, share)


def variances(between, within, share):
    found = contrast_variance(noise_of(between, within, share), np.ones((len(between), 1, 1)))
    return tuple(own[:, 0] for own in found)


@pytest.mark.parametrize("n_bags", [30, 100])
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_the_mean_and_the_spread_of_shares_are_found(n_bags, spread):
    rng = np.random.default_rng(1)
    shares = rng.uniform(0.25 - spread * 3**0.5, 0.25 + spread * 3**0.5, 40_000)
    found = pool_shares(*mean_squares(rng, shares, n_bags), n_bags, BAG_SIZE)
    # The noise of one share is .24 with 30 bags; of the mean of 40,000 it is .0012.
    assert found.mean == pytest.approx(0.25, abs=0.004)
    assert found.variance == pytest.approx(spread**2, abs=0.002)


def test_expected_shares_bring_variances_nearer_to_the_truth():
    rng = np.random.default_rng(2)
    shares = rng.normal(0.2, 0.05, 5000)
    parts = mean_squares(rng, shares)
    truth = shares + 1 / N_BAGS
    alone, few = variances(*parts, NoiseShare.unknown())
    pooled, more = variances(*parts, pool_shares(*parts, N_BAGS, BAG_SIZE))
    assert np.mean((pooled - truth) ** 2) < 0.5 * np.mean((alone - truth) ** 2)
    assert pooled.mean() == pytest.approx(truth.mean(), rel=0.05)
    assert np.median(few) < 8 < 12 < np.median(more)


def test_degrees_of_freedom_say_how_far_variances_are_off():
    rng = np.random.default_rng(3)
    shares = rng.normal(0.3, 0.06, 20_000)
    parts = mean_squares(rng, shares)
    variance, degrees = variances(*parts, pool_shares(*parts, N_BAGS, BAG_SIZE))
    truth = shares + 1 / N_BAGS
    # A mean square of d degrees of freedom is off by the relative variance 2 / d.
    seen = 2 * truth.mean() ** 2 / np.mean((variance - truth) ** 2)
    assert np.median(degrees) == pytest.approx(seen, rel=0.1)
    assert degrees.min() >= LEAST_DEGREES


def test_without_other_units_the_own_share_has_all_the_weight():
    parts = mean_squares(np.random.default_rng(4), np.full(10, 0.2))
    assert pool_shares(*parts, N_BAGS, BAG_SIZE) == NoiseShare.unknown()
    assert NoiseShare(0.2, 0.0).trust(N_BAGS, BAG_SIZE) == 0.0


def test_bags_leave_out_the_rows_that_no_tree_of_theirs_draws():
    # Every row of a bag is in all its trees where these take the whole half.
    plan = SamplingPlan(seed=7, fraction=0.5, honesty="none", bag_size=4)
    ids, trees = np.arange(500, dtype=np.int64) * 3, np.arange(0, 40, 4)
    counts = np.empty(len(trees), np.int64)
    _core.count_rows(plan.to_core(), trees, ids, 1, counts)
    drawn = np.empty(counts.sum(), np.uint32)
    ends = np.cumsum(counts)
    _core.draw_rows(plan.to_core(), trees, ids, 1, ends - counts, drawn)
    without = bags_without(plan, ids, 10)
    for bag, rows in enumerate(np.split(drawn, ends[:-1])):
        np.testing.assert_array_equal(np.flatnonzero(~without[:, bag]), rows)
