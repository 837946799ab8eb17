"""Questions at the edge of what can be answered: a sound answer, or an error that says why not."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from causal_tables import small
from doseforest import GeneralizedCausalForest
from doseforest.baselines import LinearCausalForest
from doseforest.corrections.averages import AverageDoseResponse
from doseforest.inference.shape_projection import project as nearest
from doseforest.inference.shape_test import measured_violations, shape_test
from doseforest.inference.shapes import shape_constraints


def draw(n=200, seed=0):
    rng = np.random.default_rng(seed)
    x, dose = rng.normal(size=(n, 2)), rng.uniform(0, 4, size=n)
    return x, dose, x[:, 0] + dose * (1 + x[:, 1]) + rng.normal(size=n)


@pytest.fixture(scope="module")
def forest():
    x, dose, y = draw()
    return small(correction="none", density="none").fit(x, y, treatment=dose)


@pytest.fixture(scope="module")
def as_printed():
    x, dose, y = draw()
    settings = {"n_trees": 3, "outcome_model": LinearRegression(), "random_state": 0, "n_jobs": 1}
    return GeneralizedCausalForest.paper(**settings, baseline=1.0).fit(x, y, treatment=dose)


def _in_order(drawn):
    x, dose, y = drawn
    return x, y, dose


@pytest.mark.parametrize(
    ("spread", "exact"),
    [
        ([0.0, 0.0, 0.0], [0.0, 1.5, 1.5]),  # alike
        ([1.0, 0.0, 1.0], [0.0, 2.0, 2.0]),  # what has no noise stays
        ([0.0, 0.0, 1.0], [0.0, 2.0, 2.0]),
        ([1.0, 0.0, 0.0], [0.0, 1.5, 1.5]),
    ],
)
def test_shapes_of_averages_without_noise_are_finite(spread, exact):
    constraints = shape_constraints("increasing", np.arange(3.0))
    found = nearest(np.array([[0.0, 2.0, 1.0]]), constraints, np.array(spread))
    np.testing.assert_allclose(found[0], exact, atol=1e-6)


def test_covariances_that_leave_a_constraint_no_variance_are_refused():
    constraints = shape_constraints("increasing", np.arange(3.0))
    with pytest.raises(ValueError, match=r"'spread' parameter .* Got 2 of 2 without any instead"):
        nearest(np.array([[0.0, 2.0, 1.0]]), constraints, np.zeros((3, 3)))


def test_linear_causal_forests_draw_a_seed_where_none_is_given():
    x, dose, y = draw()
    for model in (None, LinearRegression()):
        lines = LinearCausalForest(20, random_state=None, outcome_model=model)
        assert np.isfinite(lines.fit(x, y, treatment=dose).slopes(x)).all()
        assert lines.random_state is None
    with pytest.raises(ValueError, match=r"'random_state' parameter must be an int .* Got 'a'"):
        LinearCausalForest(20, random_state="a").fit(x, y, treatment=dose)


def test_violations_of_curvature_are_the_chords_of_all_triples():
    doses = np.array([0.0, 1.0, 3.0, 4.0])
    found = measured_violations(("increasing", "convex"), doses, np.eye(4))
    assert found.places[:6] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert found.places[6:] == [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    above = np.array([0.0, 1.0, 1.0, 1.0])  # concave: the middle lies above the chord
    assert (found.sizes(above[None])[0, 6:8] > 0).all()
    np.testing.assert_allclose(found.sizes(doses[None])[0, 6:], 0.0, atol=1e-12)


def test_curvatures_are_not_tested_at_many_doses():
    doses = np.arange(61.0)
    average = AverageDoseResponse(doses, doses, np.ones(61), np.eye(61))
    for shape in ("concave", ("increasing", "convex")):
        with pytest.raises(ValueError, match=r"'doses' parameter must hold at most 60 .* Got 61"):
            shape_test(average, shape)
    assert shape_test(average, "increasing", n_draws=100).statistic < 0
