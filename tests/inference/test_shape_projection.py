"""Projections of curves on shapes, against other people's algorithms and what theory says."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.isotonic import isotonic_regression

from doseforest.inference.shapes.shape_projection import project, squared_distances
from doseforest.inference.shapes.shapes import checked_shape, shape_constraints

SHAPES = [
    *("increasing", "decreasing", "concave", "convex"),
    *itertools.product(("increasing", "decreasing"), ("concave", "convex")),
]


def grid(n_doses, seed=0):
    return np.cumsum(np.random.default_rng(seed).uniform(0.2, 1.0, size=n_doses))


def curves(n_rows, n_doses, seed=0):
    return np.random.default_rng([seed, 1]).normal(size=(n_rows, n_doses)).cumsum(axis=1)


@pytest.mark.parametrize("n_doses", [2, 5, 21])
def test_monotone_projections_are_isotonic_regressions(n_doses):
    doses, values = grid(n_doses), curves(200, n_doses)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, size=n_doses)
    for shape, rising in (("increasing", True), ("decreasing", False)):
        ours = project(values, shape_constraints(shape, doses), 1 / weights)
        theirs = [isotonic_regression(y, sample_weight=weights, increasing=rising) for y in values]
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_projections_are_those_of_non_negative_least_squares(shape):
    doses, values = grid(15), curves(50, 15)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, size=15)
    constraints = shape_constraints(shape, doses)
    dual = (constraints / np.linalg.norm(constraints, axis=1, keepdims=True)).T
    root = np.sqrt(weights)
    ours = project(values, constraints, 1 / weights)
    for own, found in zip(values, ours, strict=True):
        multipliers, _ = nnls(dual / root[:, None], -root * own, maxiter=10_000)
        np.testing.assert_allclose(found, own + dual @ multipliers / weights, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
def test_few_constraints_say_all_of_a_shape(shape):
    doses = grid(8)
    shaped = project(curves(200, 8), shape_constraints(shape, doses))
    slopes = np.diff(shaped) / np.diff(doses)
    names = checked_shape(shape)
    signs = {"increasing": slopes, "decreasing": -slopes}
    bends = np.diff(slopes)
    signs |= {"convex": bends, "concave": -bends}
    assert min(signs[name].min() for name in names) > -1e-9


def test_a_covariance_can_be_the_metric():
    rng = np.random.default_rng(0)
    doses, values, root = grid(6), curves(40, 6), rng.normal(size=(6, 6))
    covariance = root @ root.T + np.eye(6)
    constraints = shape_constraints("concave", doses)
    # In the coordinates of the inverse root the metric is plain.
    half = np.linalg.cholesky(covariance)
    turned = project(np.linalg.solve(half, values.T).T, constraints @ half)
    ours = project(values, constraints, covariance)
    np.testing.assert_allclose(ours, turned @ half.T, atol=1e-8)
    away = np.linalg.solve(half, (values - ours).T)
    distances = squared_distances(values, constraints, covariance)
    np.testing.assert_allclose(distances, (away**2).sum(axis=0), atol=1e-8)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.sampled_from(SHAPES),
    n_doses=st.integers(3, 12),
    seed=st.integers(0, 10_000),
    size=st.sampled_from([1e-3, 1.0, 1e6]),
)
def test_projections_come_closer_to_every_curve_of_the_shape(shape, n_doses, seed, size):
    doses = grid(n_doses, seed)
    constraints = shape_constraints(shape, doses)
    values = size * curves(30, n_doses, seed)
    shaped = size * project(curves(30, n_doses, seed + 1), constraints)
    after = project(values, constraints)
    before = ((values - shaped) ** 2).sum(axis=1)
    assert (((after - shaped) ** 2).sum(axis=1) <= before + 1e-9 * size**2).all()
    np.testing.assert_allclose(project(after, constraints), after, atol=1e-9 * size)


def test_curves_of_the_shape_stay_and_signs_turn_shapes_around():
    doses, values = grid(9), curves(40, 9)
    up, down = (shape_constraints(shape, doses) for shape in ("increasing", "decreasing"))
    np.testing.assert_allclose(project(-values, down), -project(values, up), atol=1e-12)
    line = 3.0 - 2.0 * doses[None]
    np.testing.assert_array_equal(project(line, down), line)


def test_what_is_projected_does_not_depend_on_the_other_rows():
    constraints = shape_constraints("concave", grid(10))
    values = curves(5000, 10)  # more than fit in one block
    np.testing.assert_array_equal(
        project(values, constraints)[4990:], project(values[4990:], constraints)
    )


@pytest.mark.parametrize(
    "shape", ["rising", ("increasing", "decreasing"), (), 3, ("convex", "convex"), None, ("up",)]
)
def test_shapes_that_do_not_exist_are_refused(shape):
    with pytest.raises(ValueError, match=r"'shape' parameter must be one of increasing.*Got"):
        checked_shape(shape)


def test_shapes_need_doses():
    with pytest.raises(ValueError, match=r"at least 3 doses for the shape increasing and concave"):
        shape_constraints(("concave", "increasing"), np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match=r"at least 2 doses .* Got 1 instead"):
        shape_constraints("increasing", np.array([0.0]))
