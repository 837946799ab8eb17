"""EconML's forest with the effect API: its effects are EconML's own, its level is the outcomes'."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

from bench.designs import DESIGNS
from doseforest.baselines import EconMLForest
from doseforest.baselines.econml_forest import dose_splines, load_causal_forest, spline_curves
from doseforest.evaluation import effect_errors

LINES = {"outcome_model": LinearRegression(), "treatment_model": LinearRegression()}
needs_econml = pytest.mark.skipif(
    find_spec("econml") is None,
    reason="EconML is not installed: pip install 'doseforest[baselines]'",
)


@pytest.fixture(autouse=True)
def _one_thread():
    """On a busy machine the threads of histogram boosting wait for each other for minutes."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module", name="data")
def _data():
    return DESIGNS["confounded"].draw(n=400, seed=0)


def small_forest(**parameters):
    """Few trees, and regressions that take no time."""
    return EconMLForest(**({"n_trees": 40} | LINES | parameters))


@pytest.fixture(scope="module", name="model")
def _model(data):
    return small_forest().fit(data.X, data.y, treatment=data.treatment)


@needs_econml
def test_effects_are_those_that_econml_gives(model, data):
    units, rng = data.X[:50], np.random.default_rng(0)
    own = model.forest_.effect(units, T0=2.0, T1=7.0).ravel()
    np.testing.assert_allclose(model.effect(units, dose=7.0, baseline=2.0), own)
    start, end = rng.uniform(0, 10, (2, 50))
    own = model.forest_.effect(units, T0=start[:, None], T1=end[:, None]).ravel()
    np.testing.assert_allclose(model.effect(units, dose=end, baseline=start), own)


@needs_econml
def test_curves_on_a_grid_and_at_own_doses_agree(model, data):
    grid = np.array([1.0, 4.0, 9.0])
    curves = model.dose_response(data.X[:30], grid)
    assert curves.shape == (30, 3)
    own = grid[np.arange(30) % 3]
    expected = curves[np.arange(30), np.arange(30) % 3]
    np.testing.assert_allclose(model.dose_response(data.X[:30], own[:, None])[:, 0], expected)


@needs_econml
def test_curves_at_the_observed_doses_average_to_the_mean_outcome(model, data):
    fitted = model.dose_response(data.X, data.treatment[:, None])
    assert fitted.mean() == pytest.approx(data.y.mean())


@needs_econml
def test_curves_are_flat_outside_the_observed_doses(model, data):
    low, high = data.support
    curves = model.dose_response(data.X[:5], [low - 3.0, low, high, high + 3.0])
    np.testing.assert_allclose(curves[:, 0], curves[:, 1])
    np.testing.assert_allclose(curves[:, 3], curves[:, 2])


@needs_econml
def test_a_line_without_noise_is_found_exactly():
    # A line is a sum of cubic splines, and the same linear regression takes the same part out of
    # the outcome and out of the splines, so residuals fit without error in every leaf.
    rng = np.random.default_rng(0)
    X, dose = rng.standard_normal((400, 3)), rng.uniform(0, 10, 400)
    model = small_forest().fit(X, 3.0 * dose + X[:, 0], treatment=dose)
    np.testing.assert_allclose(model.effect(X, dose=8.0, baseline=3.0), 15.0, atol=1e-4)
    average = model.dose_response(X, [2.0, 6.0]).mean(axis=0)
    np.testing.assert_allclose(average, np.array([6.0, 18.0]) + X[:, 0].mean(), atol=1e-4)


@needs_econml
def test_units_that_respond_differently_are_told_apart():
    data = DESIGNS["randomised"].draw(n=1500, seed=0)
    model = small_forest().fit(data.X, data.y, treatment=data.treatment)
    effects, exact = model.effect(data.X, 3.0, 9.0), data.effect([3.0], baseline=9.0)[:, 0]
    assert np.corrcoef(effects, exact)[0, 1] > 0.9  # .95 to .98 over six seeds


@needs_econml
def test_the_default_nuisances_are_the_best_of_several():
    data = DESIGNS["linear"].draw(n=200, seed=0)
    model = EconMLForest(n_trees=20, n_folds=2).fit(data.X, data.y, treatment=data.treatment)
    lasso = "WeightedLasso"  # the truth is a line in every feature: no tree comes near
    assert lasso in type(model.forest_.models_y[0][0]).__name__
    assert lasso in type(model.forest_.models_t[0][0]).__name__
    no_effect = float(np.sqrt(np.mean(data.effect() ** 2)))
    assert effect_errors(model, data).rms < 0.5 * no_effect


@needs_econml
def test_given_regressors_stay_unfitted(model):
    assert not hasattr(model.outcome_model, "coef_")


@needs_econml
def test_the_plain_forest_is_econml_s_own_linear_in_the_dose(data):
    model = EconMLForest.linear(n_trees=40, n_folds=2, **LINES)
    model.fit(data.X, data.y, treatment=data.treatment)
    plain = load_causal_forest()(
        model_y=LinearRegression(),
        model_t=LinearRegression(),
        n_estimators=40,
        min_samples_leaf=5,
        cv=2,
        inference=False,
        random_state=0,
        n_jobs=1,
    ).fit(data.y, data.treatment, X=data.X)
    slopes = plain.const_marginal_effect(data.X).ravel()
    np.testing.assert_array_equal(model.partial_effect(data.X, 0.0, 1.0).round(9), slopes.round(9))
    beyond = model.dose_response(data.X, [0.0, 50.0])  # a line does not end at the last dose
    np.testing.assert_allclose(beyond[:, 1] - beyond[:, 0], 50.0 * slopes)
    fitted = model.dose_response(data.X, data.treatment[:, None])
    assert fitted.mean() == pytest.approx(data.y.mean())


@needs_econml
def test_the_plain_forest_takes_regressors_of_one_column_without_a_warning(data):
    trees = RandomForestRegressor(5, random_state=0)
    model = EconMLForest.linear(n_trees=20, outcome_model=trees, treatment_model=trees, n_folds=2)
    model.fit(data.X, data.y, treatment=data.treatment)  # warnings are errors in tests
    assert np.isfinite(model.effect(data.X, 5.0)).all()


def test_knots_are_at_distinct_quantiles():
    dose = np.concatenate([np.zeros(50), np.arange(1.0, 51.0)])[:, None]
    knots = dose_splines(dose, n_knots=5).knots.ravel()  # quantiles 0, 0, .5, 25.25, 50
    np.testing.assert_allclose(knots, [0.0, 0.5, 25.25, 50.0])


def test_curves_are_splines_times_coefficients():
    dose = np.linspace(0.0, 1.0, 30)[:, None]
    splines = dose_splines(dose, n_knots=3).fit(dose)
    rng = np.random.default_rng(0)
    doses, coefficients = rng.random((6, 4)), rng.standard_normal((6, 4))
    curves = spline_curves(splines, coefficients, doses)
    for unit in range(6):
        expected = splines.transform(doses[unit][:, None]) @ coefficients[unit]
        np.testing.assert_allclose(curves[unit], expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dose_splines(np.ones((5, 1)), 4), r"'treatment' .* different doses. Got only 1 "),
        (lambda: dose_splines(np.arange(5.0)[:, None], 1), r"'n_knots' .* at least 2. Got 1 "),
        (lambda: dose_splines(np.arange(5.0)[:, None], 2.5), r"'n_knots' .* at least 2. Got 2.5 "),
    ],
)
def test_errors_name_parameter_rule_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_unfitted_model_says_so():
    with pytest.raises(NotFittedError):
        EconMLForest().dose_response(np.zeros((2, 20)), 1.0)
