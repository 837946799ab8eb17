"""Designs that no term of the model was made for: drawn, exact, and the same in other processes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from bench.designs import WORLDS


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_outcomes_are_their_means_and_noise_of_the_scale_that_is_given(name):
    drawn = pickle.loads(pickle.dumps(WORLDS[name])).draw(n=4000, seed=0)
    mean = drawn.mean(drawn.treatment[:, None])[:, 0]
    scale = drawn.noise_scale(drawn.treatment[:, None])[:, 0]
    standardised = (drawn.y - mean) / scale
    if name != "purchases":  # a coin whose chance is near 0 or 1 has no scale to divide by
        assert abs(standardised.mean()) < 4 / np.sqrt(4000)
        assert 0.75 < standardised.std() < 1.25  # tails of three degrees of freedom are heavy
    assert abs((drawn.y - mean).mean()) < 4 * np.sqrt((scale**2).mean() / 4000)


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_effects_differ_between_units_and_doses_are_inside_the_data(name):
    drawn = WORLDS[name].draw(n=1000, seed=1)
    assert np.std(drawn.effect(), axis=0).max() > 0.1
    assert drawn.treatment.min() <= drawn.baseline < drawn.doses[0]
    assert drawn.doses[-1] < drawn.treatment.max()


def test_there_are_twelve():
    assert len(WORLDS) == 12
