"""Forests with curves of a shape, and the test whether data reject a shape."""

from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from bench.studies.coverage.shape_draws import reversed_curve
from causal_tables import small
from doseforest import GeneralizedCausalForest
from doseforest.estimator.averages.average_curves import AverageDoseResponse
from doseforest.inference.shapes.shape_test import measured_violations, shape_test
from doseforest.inference.shapes.shaped_forest import shaped_forest, straight_between
from doseforest.inference.shapes.shapes import checked_shape

DOSES = np.linspace(0.0, 10.0, 21)


def covariance(shared=0.5, width=1.5):
    """Of averages at the doses: half is the luck of the units, half local noise, more at edges."""
    points = np.linspace(-15.0, 25.0, 4001)
    kernels = np.maximum(1 - ((points - DOSES[:, None]) / width) ** 2, 0.0)
    local = kernels @ kernels.T
    local /= local.max()
    error = 0.1 * (1 + np.abs(DOSES / 5 - 1) ** 6)
    return (shared + (1 - shared) * local) * np.outer(error, error)


def rejected(curve, shape, n_draws=500, seed=0, **known):
    """Share of noisy curves for which the shape is rejected at 5 %."""
    spread, names = covariance(**known), checked_shape(shape)
    draws = np.random.default_rng(seed).multivariate_normal(curve, spread, size=n_draws)
    violations = measured_violations(names, DOSES, spread)
    critical = np.quantile(violations.largest_of_noise(spread, 10_000, seed=1), 0.95)
    return np.mean(violations.largest(draws) > critical)


@pytest.mark.parametrize("shared", [0.0, 0.5])
@pytest.mark.parametrize("shape", ["increasing", "concave", ("decreasing", "convex")])
def test_a_flat_curve_is_rejected_as_often_as_promised(shape, shared):
    # 500 draws at 5 %: a standard error of 1 %; 7 % is two of them above, 2.5 % as far below.
    assert 0.025 <= rejected(np.full(21, 2.0), shape, shared=shared) <= 0.07


def test_curves_of_the_shape_are_hardly_ever_rejected():
    assert rejected(0.2 * DOSES, "increasing") == 0.0
    assert rejected(-0.03 * (DOSES - 4) ** 2, "concave") < 0.02


def test_reversals_of_four_standard_errors_are_found():
    errors = np.sqrt(np.diag(covariance()))
    for shared in (0.0, 0.5):
        assert rejected(reversed_curve(DOSES, errors), "increasing", shared=shared) > 0.9
    assert rejected(-reversed_curve(DOSES, errors), "decreasing") > 0.9
    valley = 4 * errors * (np.abs(DOSES / 5 - 1) > 0.5)
    assert rejected(valley, "concave") > 0.9


def test_the_test_says_where_a_shape_is_violated_and_what_would_fit():
    values = np.where(DOSES == 5.0, -3.0, 0.1 * DOSES)
    spread = np.eye(21) / 100
    found = shape_test(AverageDoseResponse(values, np.full(21, 0.1), spread, DOSES), "increasing")
    assert found.worst[1] == 5.0
    assert found.p_value == pytest.approx(1 / 10_001)
    assert (np.diff(found.projected) >= -1e-12).all()
    assert "reject that the average curve is increasing: between doses" in str(found)
    kept = shape_test(
        AverageDoseResponse(0.1 * DOSES, np.full(21, 0.1), spread, DOSES), "increasing"
    )
    np.testing.assert_array_equal(kept.projected, kept.values)
    assert "do not reject" in str(kept)
    assert "the estimate itself is" in str(kept)


@pytest.mark.parametrize("shape", ["increasing", "decreasing", "concave", "convex"])
def test_a_curve_without_noise_is_flat_up_to_rounding(shape):
    values = np.full(21, 3.3) + 1e-15 * np.random.default_rng(0).normal(size=21)
    flat = AverageDoseResponse(values, np.zeros(21), np.zeros((21, 21)), DOSES)
    found = shape_test(flat, shape, n_draws=100)
    assert (found.statistic, found.p_value) == (0.0, 1.0)
    steep = AverageDoseResponse(-DOSES, np.zeros(21), np.zeros((21, 21)), DOSES)
    assert shape_test(steep, "increasing", n_draws=100).p_value < 0.05


def test_tests_of_shape_refuse_bad_arguments():
    average = AverageDoseResponse(DOSES, np.ones(21), np.eye(21), DOSES)
    with pytest.raises(ValueError, match=r"'n_draws' parameter must be an int of at least 100"):
        shape_test(average, "concave", n_draws=10)
    with pytest.raises(ValueError, match=r"'random_state' .* Got -1 instead"):
        shape_test(average, "concave", random_state=-1)
    back = AverageDoseResponse(DOSES, np.ones(21), np.eye(21), DOSES[::-1])
    with pytest.raises(ValueError, match=r"'doses' parameter must hold ascending doses"):
        shape_test(back, "concave")


def rising(n=400, seed=300):
    """Outcomes that rise with the dose and flatten, faster for some units than for others."""
    rng = np.random.default_rng(seed)
    x, dose = rng.normal(size=(n, 2)), rng.uniform(0, 4, size=n)
    return x, dose, exact(x, dose[:, None])[:, 0] + rng.normal(size=n)


def exact(x, doses):
    return x[:, :1] + (1 + (x[:, 1:] > 0)) * np.sqrt(np.atleast_2d(doses))


@pytest.fixture(scope="module")
def fitted():
    x, dose, y = rising()
    return small(baseline=2.0, density="none").fit(x, y, treatment=dose)


def test_the_error_falls_when_the_shape_is_true(fitted):
    x, _, _ = rising(1000, seed=301)
    doses = np.linspace(0.1, 3.9, 20)
    truth = exact(x, doses)
    free = np.mean((fitted.dose_response(x, doses) - truth) ** 2)
    up, both = (
        np.mean((shaped_forest(fitted, shape).dose_response(x, doses) - truth) ** 2)
        for shape in ("increasing", ("increasing", "concave"))
    )
    assert up < free  # projections on more of the truth can only help more
    assert both < min(0.98 * free, up)


def test_shaped_curves_have_the_shape_at_any_doses(fitted):
    x, _, _ = rising(50, seed=302)
    doses = np.sort(np.random.default_rng(0).uniform(-0.1, 4.1, size=60))  # a bit beyond too
    shaped = shaped_forest(fitted, ("increasing", "concave"))
    slopes = np.diff(shaped.dose_response(x, doses)) / np.diff(doses)
    assert slopes.min() > -1e-8
    assert np.diff(slopes).max() < 1e-7
    own = shaped.dose_response(x, np.broadcast_to(doses, (50, 60)))
    np.testing.assert_allclose(own, shaped.dose_response(x, doses), rtol=1e-12)


def test_shaped_forests_answer_all_questions_about_effects(fitted):
    x, _, _ = rising(40, seed=302)
    shaped = shaped_forest(fitted, "increasing", doses=np.linspace(0.5, 3.5, 7))
    curves = shaped.dose_response(x, [1.0, 3.0])
    np.testing.assert_allclose(shaped.effect(x, 3.0, 1.0), curves[:, 1] - curves[:, 0])
    np.testing.assert_allclose(
        shaped.partial_effect(x, 1.0, 3.0), (curves[:, 1] - curves[:, 0]) / 2
    )
    assert shaped.dose_response(x).shape == (40, len(fitted.doses_))
    assert shaped.baseline == 2.0
    framed = shaped.set_output(transform="pandas").dose_response(x, [1.0, 3.0])
    assert framed.columns.tolist() == ["1", "3"]
    again = shaped_forest(fitted.model_, "increasing", np.linspace(0.5, 3.5, 7))
    np.testing.assert_array_equal(again.dose_response(x), shaped.dose_response(x))
    with pytest.raises(TypeError, match="cannot be saved"):
        shaped.save("nowhere")


def test_elasticities_of_shaped_curves_have_the_sign_of_the_shape(fitted):
    x, _, _ = rising(40, seed=302)
    x[:, 0] = 3.0  # outcomes are positive
    assert shaped_forest(fitted, "increasing").elasticity(x, 2.0).min() > -1e-9
    assert shaped_forest(fitted, "decreasing").elasticity(x, 2.0).max() < 1e-9
    assert shaped_forest(fitted, "increasing").elasticity(x, 2.0).max() > 0.3


def test_shaped_curves_of_binary_outcomes_stay_between_zero_and_one():
    x, dose, y = rising(300)
    forest = GeneralizedCausalForest(
        correction="none", outcome_model=LinearRegression(), baseline=2.0, n_jobs=1, random_state=0
    )
    curves = shaped_forest(forest.fit(x, y > 2, treatment=dose), "convex").dose_response(3 * x)
    assert curves.min() >= 0
    assert curves.max() <= 1


def test_forests_test_the_shape_of_their_average_curve(fitted):
    assert fitted.tests.shape("increasing").p_value > 0.5
    found = fitted.tests.shape("decreasing", [3.0, 1.0, 2.0])
    assert found.doses.tolist() == [1.0, 2.0, 3.0]
    assert found.p_value < 0.01
    average = fitted.average_dose_response([1.0, 2.0, 3.0])
    assert found.statistic == shape_test(average, "decreasing").statistic


def test_forests_refuse_shapes_and_doses_that_make_no_sense(fitted):
    for ask in (partial(shaped_forest, fitted), fitted.tests.shape):
        with pytest.raises(ValueError, match=r"'shape' parameter must be one of .*Got 'up'"):
            ask("up")
        with pytest.raises(ValueError, match=r"'doses' parameter must lie in the support"):
            ask("concave", doses=[0.0, 1.0, 99.0])
    with pytest.raises(ValueError, match=r"'doses' .* at least 3 doses"):
        fitted.tests.shape("concave", doses=[1.0, 2.0])


def test_shapes_are_those_of_doses_of_one_component():
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(200, 2)), rng.uniform(0, 4, size=(200, 2))
    forest = small(correction="none", baseline=[2.0, 2.0])
    forest.fit(x, dose.sum(axis=1), treatment=dose)
    for ask in (partial(shaped_forest, forest), forest.tests.shape):
        with pytest.raises(ValueError, match=r"one component .* doses of 2 components instead"):
            ask("increasing")


def test_curves_are_straight_between_doses_and_beyond():
    grid, values = np.array([0.0, 1.0, 3.0]), np.array([[0.0, 2.0, 2.0]])
    asked = np.array([[-1.0, 0.5, 1.0, 2.0, 9.0]])
    np.testing.assert_allclose(straight_between(grid, values, asked), [[-2.0, 1.0, 2.0, 2.0, 2.0]])
