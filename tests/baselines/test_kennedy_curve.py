"""The doubly robust average curve: brute force on few rows, and what it promises on many."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from doseforest.baselines import KennedyCurve, cross_fitted_stack, location_scale_kernel
from doseforest.baselines.cross_fitted_stack import cross_fit_stack, line_and_forest
from doseforest.baselines.kennedy_curve import curve_doses, local_lines
from doseforest.baselines.location_scale_kernel import dose_density as fitted_density
from doseforest.doses.smoothing.bandwidths import loo_bandwidth
from doseforest.doses.smoothing.kernels import KERNELS

LINES = {"outcome_model": LinearRegression(), "treatment_model": LinearRegression()}


def confounded(n, seed=0):
    """A wave of the dose, and a feature that raises dose and outcome: E[Y(t)] = 2 sin t."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    dose = X[:, 0] + rng.normal(size=n)
    return X, dose, 2 * np.sin(dose) + 3 * X[:, 0] + 0.5 * rng.normal(size=n)


def weighted_line(dose, outcome, weights, point):
    """Value at a point of the least-squares line."""
    columns = np.column_stack([np.ones(len(dose)), dose - point])
    gram = columns.T @ (weights[:, None] * columns)
    return np.linalg.solve(gram, columns.T @ (weights * outcome))[0]


def test_pseudo_outcomes_are_those_of_a_double_loop():
    X, dose, y = confounded(60)
    model = KennedyCurve(n_doses=4000, n_folds=3, **LINES).fit(X, y, treatment=dose)
    stack, density = model.outcome_model_, model.density_
    expected = np.empty(60)
    for i in range(60):
        outcomes, densities = np.empty(60), np.empty(60)
        for j in range(60):
            line = stack.models.models[stack.models.folds[j]].members[0]
            outcomes[j] = line.predict([[*X[j], dose[i]]])[0]
            z = (dose[i] - density.centre[j]) / density.scale[j]
            densities[j] = density.residual.density(np.array([z]))[0] / density.scale[j]
        gap = y[i] - outcomes[i]
        expected[i] = gap / densities[i] * densities.mean() + outcomes.mean()
    # Averages are interpolated between 4,000 doses: the error is of the order of 1e-6.
    np.testing.assert_allclose(model.pseudo_outcomes_, expected, atol=1e-4)


def test_location_and_scale_are_predicted_without_the_row():
    X, dose, y = confounded(60)
    model = KennedyCurve(n_folds=3, **LINES).fit(X, y, treatment=dose)
    folds = model.outcome_model_.models.folds
    squares = np.empty(60)
    for fold in range(3):
        line = LinearRegression().fit(X[folds != fold], dose[folds != fold])
        squares[folds == fold] = (dose - line.predict(X))[folds == fold] ** 2
        np.testing.assert_allclose(
            model.density_.centre[folds == fold], line.predict(X[folds == fold])
        )
    least = location_scale_kernel.SMALLEST_VARIANCE * squares.mean()
    for fold in range(3):
        line = LinearRegression().fit(X[folds != fold], squares[folds != fold])
        variance = np.maximum(line.predict(X[folds == fold]), least)
        np.testing.assert_allclose(model.density_.scale[folds == fold], np.sqrt(variance))


def test_the_curve_is_a_local_line_through_the_pseudo_outcomes():
    X, dose, y = confounded(80)
    model = KennedyCurve(bandwidth=0.7, **LINES).fit(X, y, treatment=dose)
    grid = model.average_.doses[::20]
    expected = [
        weighted_line(dose, model.pseudo_outcomes_, np.exp(-0.5 * ((dose - t) / 0.7) ** 2), t)
        for t in grid
    ]
    np.testing.assert_allclose(model.average_(grid), expected)
    np.testing.assert_allclose(model.dose_response(X[:2], grid), [expected, expected])


@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 3.0])
def test_leaving_one_out_is_refitting_without_the_row(bandwidth):
    rng = np.random.default_rng(0)
    dose = rng.uniform(0, 10, 120)  # no row far from all others, where lines are not drawn
    y = np.sin(dose) + rng.normal(size=120)
    refitted, closed = np.empty(120), np.empty(120)
    for i in range(120):
        weights = KERNELS["gaussian"].value((dose - dose[i]) / bandwidth)
        others = np.arange(120) != i
        refitted[i] = y[i] - weighted_line(dose[others], y[others], weights[others], dose[i])
        fit = weighted_line(dose, y, weights, dose[i])
        hat = weighted_line(dose, np.eye(120)[i], weights, dose[i])
        closed[i] = (y[i] - fit) / (1 - hat)
    np.testing.assert_allclose(closed, refitted, rtol=1e-6)
    risk = loo_bandwidth(dose, y, "gaussian", [bandwidth]).risks[0]
    assert risk == pytest.approx(np.mean(refitted**2), rel=2e-3)  # the lattice of doses: .1 %


def test_the_bandwidth_has_the_least_error_without_the_row():
    X, dose, y = confounded(300)
    model = KennedyCurve(**LINES).fit(X, y, treatment=dose)
    choice = loo_bandwidth(dose, model.pseudo_outcomes_, "gaussian")
    assert model.bandwidth_ == choice.candidates[np.argmin(choice.risks)]
    assert KennedyCurve(bandwidth=0.4, **LINES).fit(X, y, treatment=dose).bandwidth_ == 0.4


def curve_error(values, grid):
    """Root mean square error against 2 sin t, levels included."""
    return float(np.sqrt(np.mean((values - 2 * np.sin(grid)) ** 2)))


@pytest.mark.parametrize(
    "models",
    [
        {},
        {**LINES, "outcome_model": DummyRegressor()},
        {"treatment_model": DummyRegressor()},
    ],
    ids=["both right", "no outcome model", "no treatment model"],
)
def test_confounding_is_taken_out_by_either_model(models):
    X, dose, y = confounded(700, seed=1)
    grid = np.linspace(-2.0, 2.0, 41)
    naive = local_lines(dose, y, grid, loo_bandwidth(dose, y, "gaussian").bandwidth)
    robust = KennedyCurve(**models).fit(X, y, treatment=dose).average_(grid)
    # The naive curve is off by 3 E[X | T = t] = 1.5 t, rms 1.8 (1.5 to 1.8 over three seeds); the
    # robust ones, over the same seeds, by .16 to .47.
    assert curve_error(naive, grid) > 1.3
    assert curve_error(robust, grid) < 0.65


def test_a_stack_prefers_the_member_that_predicts():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 2))
    for target, best in ((X @ [1.0, 2.0], 0), (np.sign(X[:, 0]), 1)):
        stack = cross_fit_stack(line_and_forest(), X, target, n_folds=3, seed=0)
        assert stack.shares.sum() == pytest.approx(1.0)
        assert stack.shares[best] > 0.9


def test_as_coded_the_nuisances_have_seen_their_rows():
    X, dose, y = confounded(120)
    model = KennedyCurve(as_coded=True, **LINES).fit(X, y, treatment=dose)
    table = np.column_stack([X, dose])
    seen = LinearRegression().fit(table, y).predict(table)
    np.testing.assert_allclose(model.outcome_model_.observed, seen)
    np.testing.assert_allclose(model.density_.centre, LinearRegression().fit(X, dose).predict(X))
    assert np.isfinite(model.pseudo_outcomes_).all()
    grid = np.linspace(-2.0, 2.0, 5)
    averages = [LinearRegression().fit(table, y).predict(at(X, t)).mean() for t in grid]
    np.testing.assert_allclose(model.outcome_model_.average(X, grid), averages)


def at(X, dose):
    return np.column_stack([X, np.full(len(X), dose)])


def test_as_coded_needs_a_dose_that_is_not_repeated():
    X, dose, y = confounded(60)
    model = KennedyCurve(as_coded=True, treatment_model=DecisionTreeRegressor())
    with pytest.raises(ValueError, match="'treatment_model' parameter must leave something"):
        model.fit(X, y, treatment=dose)


@pytest.mark.parametrize("n", [400, 2500])
def test_as_coded_densities_are_read_at_the_places_of_a_wider_table(n):
    X, dose, _ = confounded(n)
    centre, variance = X[:, 0], np.ones(n)
    grid = np.linspace(dose.min(), dose.max(), 50)
    right, coded = (
        fitted_density(dose, centre, variance),
        fitted_density(dose, centre, variance, misread_over=grid),
    )

    def table(values):  # places that R's density() has a sample's values at
        spread = min(values.std(), np.subtract(*np.quantile(values, [0.75, 0.25])) / 1.34)
        margin = 3 * 0.9 * spread * len(values) ** -0.2
        return np.linspace(values.min() - margin, values.max() + margin, 512)

    z = dose - centre
    everything = np.append(z, grid - centre[:, None])
    expected = np.interp(z, table(everything), right.residual.density(table(z)))
    # The bandwidths differ in what a quartile is, and tables in their steps.
    np.testing.assert_allclose(coded.at(dose), expected, rtol=0.02)
    weights = [own.average(grid).mean() / own.at(dose) for own in (right, coded)]
    assert weights[1].max() < weights[0].max() / 5


def test_blocks_do_not_change_averages(monkeypatch):
    X, dose, y = confounded(100)
    whole = KennedyCurve(**LINES).fit(X, y, treatment=dose)
    monkeypatch.setattr(cross_fitted_stack, "BLOCK_UNITS", 7)
    monkeypatch.setattr(location_scale_kernel, "BLOCK_UNITS", 7)
    blocks = KennedyCurve(**LINES).fit(X, y, treatment=dose)
    np.testing.assert_allclose(blocks.pseudo_outcomes_, whole.pseudo_outcomes_)


def test_threads_do_not_change_a_bit():
    X, dose, y = confounded(120)
    one, two = (KennedyCurve(n_folds=2, n_jobs=jobs) for jobs in (1, 2))
    one.fit(X, y, treatment=dose), two.fit(X, y, treatment=dose)
    np.testing.assert_array_equal(two.pseudo_outcomes_, one.pseudo_outcomes_)


def test_missing_features_are_welcome():
    X, dose, y = confounded(200)
    X[::5, 1] = np.nan
    model = KennedyCurve(n_folds=2).fit(X, y, treatment=dose)
    assert np.isfinite(model.effect(X, 1.0, -1.0)).all()


def test_a_dose_that_features_decide_keeps_the_weights_finite():
    X, _, y = confounded(200)
    model = KennedyCurve(**LINES).fit(X, y, treatment=X[:, 0])
    assert np.isfinite(model.pseudo_outcomes_).all()


def test_the_curve_is_flat_outside_the_observed_doses():
    X, dose, y = confounded(100)
    model = KennedyCurve(**LINES).fit(X, y, treatment=dose)
    ends = model.average_(np.array([dose.min(), dose.max()]))
    np.testing.assert_array_equal(model.average_(np.array([-99.0, 99.0])), ends)


def test_the_curve_is_a_line_across_a_gap_that_no_row_reaches():
    X, dose, y = confounded(100)
    dose[:2] = 500.0, 501.0
    model = KennedyCurve(bandwidth=0.5, **LINES).fit(X, y, treatment=dose)
    across = model.average_(np.linspace(100.0, 400.0, 31))
    assert np.isfinite(across).all()
    np.testing.assert_allclose(np.diff(across, 2), 0.0, atol=1e-9)


def test_the_table_of_the_curve_is_neither_coarse_nor_endless():
    dose = np.array([0.0, 1.0])
    assert len(curve_doses(dose, 100.0)) == 101
    assert len(curve_doses(dose, 1e-6)) == 2001


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_doses": 1}, r"'n_doses' .* at least 2\. Got 1 "),
        ({"n_doses": 2.5}, r"'n_doses' .* at least 2\. Got 2\.5 "),
        ({"n_folds": 1}, r"'n_folds' .* at least 2.* Got 1 "),
        ({"n_folds": 31}, r"'n_folds' .* rows \(30\)\. Got 31 "),
        ({"as_coded": "yes"}, r"'as_coded' parameter must be True or False\. Got 'yes' "),
        ({"bandwidth": -1.0}, r"'bandwidth' .* Got -1\.0 "),
        ({"bandwidth": 0.0}, r"'bandwidth' .* Got 0\.0 "),
    ],
)
def test_errors_name_parameter_rule_and_value(parameters, message):
    X, dose, y = confounded(30)
    with pytest.raises(ValueError, match=message):
        KennedyCurve(**parameters).fit(X, y, treatment=dose)


def test_doses_must_differ():
    X, _, y = confounded(30)
    with pytest.raises(ValueError, match=r"'treatment' .* different doses\. Got only 1 "):
        KennedyCurve().fit(X, y, treatment=np.ones(30))


def test_an_unfitted_model_says_so():
    with pytest.raises(NotFittedError):
        KennedyCurve().dose_response(np.zeros((2, 2)), 1.0)
