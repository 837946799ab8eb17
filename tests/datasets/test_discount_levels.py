"""Ride requests with six discount levels: what is drawn, and the truth behind it."""

from __future__ import annotations

import numpy as np
import pytest

from bench.designs import DISCOUNT_DESIGNS
from doseforest.datasets.discount_levels import FEATURES, LEVELS

NAMES = sorted(DISCOUNT_DESIGNS)


@pytest.mark.parametrize("name", NAMES)
def test_the_exact_chance_is_the_share_of_orders_at_every_level(name):
    data = DISCOUNT_DESIGNS[name].draw(n=60_000, seed=5)
    for level in LEVELS:
        at = data.treatment == level
        shares = data.y[at].mean(), data.mean(level)[at].mean()
        # 10,000 rows a level: a standard error of .005 at most.
        assert abs(shares[0] - shares[1]) < 0.02
        assert abs(at.mean() - 1 / 6) < 0.008


@pytest.mark.parametrize("name", NAMES)
def test_chances_are_chances_and_no_discount_changes_nothing(name):
    data = DISCOUNT_DESIGNS[name].draw(n=20_000, seed=6)
    chances = data.mean(LEVELS)
    assert chances.shape == (20_000, 6)
    assert 0.09 < chances.min() < chances.max() < 0.98
    assert np.array_equal(data.effect(LEVELS[0]), np.zeros((20_000, 1)))
    assert data.X.shape[1] == len(FEATURES)


def test_regimes_share_the_requests_and_what_the_largest_discount_does():
    drawn = [DISCOUNT_DESIGNS[name].draw(n=500, seed=7) for name in NAMES]
    for data in drawn[1:]:
        assert np.array_equal(data.X, drawn[0].X)
        assert np.allclose(data.effect(LEVELS[-1]), drawn[0].effect(LEVELS[-1]))


def test_curves_bend_as_their_regimes_say():
    near, step, early = (
        DISCOUNT_DESIGNS[name].draw(n=5000, seed=8)
        for name in ("near_linear", "threshold", "saturating")
    )
    shares = {
        data.name: data.effect(LEVELS[1:]).mean(axis=0) / data.effect(LEVELS[-1]).mean()
        for data in (near, step, early)
    }
    assert np.abs(shares["near_linear"] - LEVELS[1:] / LEVELS[-1]).max() < 0.05
    assert shares["saturating"][1] > 0.7  # at a discount of 10 per cent
    jumps = np.abs(np.diff(step.effect(LEVELS), axis=1))
    assert np.median(jumps.max(axis=1) / jumps.sum(axis=1)) > 0.6  # mostly one step
    assert (near.effect(LEVELS[-1]) < 0).mean() > 0.005  # a few do not like discounts


def test_a_seed_decides_everything():
    one, same, other = (DISCOUNT_DESIGNS["threshold"].draw(n=100, seed=s) for s in (1, 1, 2))
    assert np.array_equal(one.X, same.X)
    assert np.array_equal(one.y, same.y)
    assert not np.array_equal(one.X, other.X)
