"""Outcome models: algebra against direct computation, fits against known truths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import root
from scipy.special import expit

from doseforest.doses.bases.splines import Spline
from doseforest.nuisance.outcome.boosting import BoostingRecipe, fit_boosting
from doseforest.nuisance.outcome.covariate_terms import fit_covariate_terms, hermite
from doseforest.nuisance.outcome.cross_fitted_outcome import cross_fit_outcome
from doseforest.nuisance.outcome.fold_moments import sum_moments
from doseforest.nuisance.outcome.mixtures import convex_weights
from doseforest.nuisance.outcome.outcome_stack import member_fit
from doseforest.nuisance.outcome.sparse_ridge import SparseFit
from doseforest.nuisance.outcome.spline_core import fit_spline_core, refit_by_likelihood
from doseforest.nuisance.outcome.spline_design import SplineDesign


def rows(n=800, p=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n, p)), rng.uniform(0, 10, size=n)


# --- terms of the covariates -------------------------------------------------------------------


def test_terms_are_lines_powers_and_hinges_and_steps_at_the_quintiles():
    x = np.arange(101.0)[:, None]
    terms = fit_covariate_terms(x)
    standardised = (x[:, 0] - 50) / x.std()
    knots = (np.array([20.0, 40, 60, 80]) - 50) / x.std()
    expected = np.column_stack(
        [standardised, standardised**2 - 1, standardised**3 - 3 * standardised]
        + [np.maximum(standardised - knot, 0) for knot in knots]
        + [standardised > knot for knot in knots]
    )
    np.testing.assert_allclose(terms.evaluate(x), expected, atol=1e-12)


def test_powers_are_lines_outside_of_fences_and_bend_nowhere_else():
    column = np.sinh(np.linspace(-6, 6, 401))  # far outside of three distances of the quartiles
    terms = fit_covariate_terms(column[:, None])
    low, high = terms.power_low[0], terms.power_high[0]
    spread = (column - column.mean()) / column.std()
    quartiles = np.quantile(spread, (0.25, 0.75))
    reach = 3 * (quartiles[1] - quartiles[0])
    np.testing.assert_allclose([low, high], [quartiles[0] - reach, quartiles[1] + reach])
    for degree, inside in ((2, spread**2 - 1), (3, spread**3 - 3 * spread)):
        values = hermite(spread[:, None], np.array([degree]), low[None], high[None])[:, 0]
        within = (spread >= low) & (spread <= high)
        np.testing.assert_allclose(values[within], inside[within], atol=1e-12)
        for fence, beyond in ((low, spread < low), (high, spread > high)):
            slope = degree * fence ** (degree - 1) - (3 if degree == 3 else 0)
            at_fence = fence**2 - 1 if degree == 2 else fence**3 - 3 * fence
            line = at_fence + slope * (spread[beyond] - fence)
            assert beyond.sum() > 30
            np.testing.assert_allclose(values[beyond], line, rtol=1e-9)


def test_a_covariate_with_one_value_in_most_rows_has_no_powers():
    column = np.where(np.arange(200) < 170, 0.0, np.arange(200.0))  # its quartiles are the same
    terms = fit_covariate_terms(np.column_stack([column, np.arange(200.0)]))
    np.testing.assert_array_equal(terms.power_feature, [1, 1])


def test_few_levels_get_a_step_between_each_two():
    x = np.array([0.0, 0, 1, 2, 5, 5])[:, None]
    values = fit_covariate_terms(x).evaluate(x)
    np.testing.assert_array_equal(values[:, 1:], x > np.array([0.5, 1.5, 3.5]))


def test_missing_values_take_the_median_and_an_indicator():
    x = np.array([[1.0, 7], [np.nan, 8], [3, 9], [5, 10]])
    terms = fit_covariate_terms(x)
    values = terms.evaluate(x)
    assert terms.n_linear == 3
    np.testing.assert_array_equal(values[:, 2], [0, 1, 0, 0])
    assert values[1, 0] == values[2, 0]  # the median is 3
    assert np.isfinite(terms.evaluate(np.full((1, 2), np.nan))).all()


def test_constant_and_empty_covariates_add_nothing():
    x = np.column_stack([np.ones(20), np.full(20, np.nan), np.arange(20.0)])
    values = fit_covariate_terms(x).evaluate(x)
    assert np.isfinite(values).all()
    np.testing.assert_array_equal(values[:, :2], 0.0)


# --- moments by fold ---------------------------------------------------------------------------


def test_moments_by_fold_add_up_to_those_of_all_rows():
    rng, z, _ = rows(n=500, p=3)
    y, weights = rng.normal(size=500), rng.uniform(0.5, 2, size=500)
    folds = rng.integers(0, 4, size=500)
    moments = sum_moments(z.__getitem__, 3, y, weights, folds, 4)
    kept = folds != 2
    rest = moments.without(2)
    np.testing.assert_allclose(rest.gram[0], z[kept].T * weights[kept] @ z[kept])
    np.testing.assert_allclose(rest.cross[0], z[kept].T @ (weights * y)[kept])
    coefficients = np.array([0.3, -1.0])
    gaps = y - z[:, [0, 2]] @ coefficients
    direct = (weights * gaps**2)[folds == 2].sum()
    assert moments.only(np.array([0, 2]), fold=2).squared_error(0, coefficients) == pytest.approx(
        direct
    )


# --- the spline core ---------------------------------------------------------------------------


def test_the_core_finds_main_effects_without_shrinking_them():
    rng, x, dose = rows()
    truth = 3 * x[:, 0] - x[:, 1] + np.sin(dose / 2)
    core = fit_spline_core(x, dose, truth + 0.01 * rng.normal(size=len(x)))
    np.testing.assert_allclose(core.predict(x, dose), truth, atol=0.05)


def test_the_core_finds_products_of_covariates_and_dose_functions():
    rng, x, dose = rows(n=2000)

    def mean(x, dose):
        return np.maximum(x[:, 0], 0) * dose + (x[:, 1] > 0) * (dose - 5) ** 2 / 5

    core = fit_spline_core(x, dose, mean(x, dose) + 0.5 * rng.normal(size=len(x)))
    _, fresh, _ = rows(n=500, seed=1)
    grid = np.linspace(1, 9, 9)
    truth = np.column_stack([mean(fresh, np.full(500, dose)) for dose in grid])
    # Noise of 0.5 on 2,000 rows; the spread of the effects themselves is about 4.
    assert np.sqrt(np.mean((core.curves(fresh, grid) - truth) ** 2)) < 0.4
    assert truth.std() > 3


def test_a_homogeneous_outcome_gets_no_products():
    rng, x, dose = rows(n=2000)
    core = fit_spline_core(x, dose, 2 * dose + x[:, 0] + rng.normal(size=len(x)))
    effects = core.curves(x, np.array([2.0, 8.0])) @ [-1.0, 1.0]
    # Noise of 1 on 2,000 rows: an effect of 12 is known to about 0.1.
    assert effects.std() < 0.1
    assert effects.mean() == pytest.approx(12.0, abs=0.3)


def test_curves_are_predictions_at_each_dose():
    rng, x, dose = rows(n=300)
    y = x[:, 0] * dose + rng.normal(size=300)
    for model in member_fit("stack")(x, dose, y).values():
        curves = model.curves(x[:20], dose[:7])
        for column, value in enumerate(dose[:7]):
            at_dose = model.predict(x[:20], np.full(20, value))
            np.testing.assert_allclose(curves[:, column], at_dose, atol=1e-9)


def test_own_doses_are_answered_like_a_grid_of_them():
    rng, x, dose = rows(n=200)
    x[rng.random(x.shape) < 0.1] = np.nan
    y = np.nan_to_num(x[:, 0]) * dose + rng.normal(size=200)
    fitted = cross_fit_outcome(member_fit("stack"), x, dose, y, (np.arange(200) % 2)[None])
    own = rng.uniform(-1, 11, size=(200, 3))
    models = [*fitted.full.members.values(), fitted.full]
    for answer in [*(model.curves for model in models), fitted.curves_out_of_fold]:
        at_all_doses = answer(x, own.ravel()).reshape(200, 200, 3)
        expected = at_all_doses[np.arange(200), np.arange(200)]
        np.testing.assert_allclose(answer(x, own), expected, atol=1e-9)


def test_own_doses_of_many_rows_are_worked_off_in_blocks():
    rng, x, dose = rows(n=300)
    core = fit_spline_core(x, dose, x[:, 0] * dose + rng.normal(size=300))
    many, own = np.tile(x, (30, 1)), rng.uniform(0, 10, size=(9000, 4))
    whole = core.curves(many, own)
    parts = [core.curves(many[k : k + 700], own[k : k + 700]) for k in range(0, 9000, 700)]
    # Matrix products of another height may add up in another order.
    np.testing.assert_allclose(whole, np.concatenate(parts), rtol=1e-10)


def test_a_binary_outcome_is_fitted_by_likelihood_and_kept_to_probabilities():
    rng, x, dose = rows(n=3000)
    truth = expit(x[:, 0] + 0.4 * (dose - 5))
    y = (rng.random(3000) < truth).astype(float)
    core = fit_spline_core(x, dose, y, binary=True)
    predicted = core.predict(x, dose)
    assert core.binary
    assert predicted.min() > 0
    assert predicted.max() < 1
    assert np.sqrt(np.mean((predicted - truth) ** 2)) < 0.05
    for model in member_fit("stack")(x[:600], dose[:600], y[:600], binary=True).values():
        far = model.curves(5 * x[:100], np.array([-5.0, 15.0]))
        assert far.min() >= 0
        assert far.max() <= 1


def test_a_refit_by_likelihood_is_the_mean_of_those_with_the_terms_of_each_fold():
    rng, x, dose = rows(n=300, p=2)
    y = (rng.random(300) < expit(x[:, 0] + x[:, 1] ** 2 - 1)).astype(float)
    design = SplineDesign(x, dose, fit_covariate_terms(x), Spline().fit(dose))
    pool, n_mains = np.array([0, 3]), design.n_mains
    chosen = np.array([[True, False], [True, False], [True, True], [False, False]])
    without = np.concatenate([np.ones((4, n_mains)), chosen], axis=1)
    per_row = np.full(n_mains + 2, 1e-3)
    fit = SparseFit(np.arange(n_mains + 2), per_row, np.zeros(n_mains + 2), without)
    found = refit_by_likelihood(design, pool, fit, y, np.ones(300))
    columns = design.columns(np.arange(300), pool)
    expected = np.zeros((4, n_mains + 2))
    for own, used in zip(expected, without != 0, strict=True):

        def slope(beta, z=columns[:, used]):  # a row counts as much as it says
            chance = expit(z @ beta)
            return z.T @ (y - chance) - 1e-3 * (chance * (1 - chance)).sum() * beta

        solution = root(slope, np.zeros(used.sum()), tol=1e-10)
        assert solution.success
        own[used] = solution.x
    np.testing.assert_allclose(found, expected.mean(axis=0), atol=1e-5)


def test_weights_of_zero_leave_rows_out_of_the_core():
    rng, x, dose = rows()
    y = x[:, 0] + dose
    spoiled = np.where(rng.random(len(x)) < 0.3, 1000.0, y)
    core = fit_spline_core(x, dose, spoiled, weights=(spoiled == y).astype(float))
    np.testing.assert_allclose(core.predict(x, dose), y, atol=0.1)


@pytest.mark.parametrize("levels", [2, 3])
def test_a_dose_of_few_levels_is_fitted(levels):
    rng, x, _ = rows()
    dose = rng.integers(0, levels, size=len(x)).astype(float)
    y = dose**2 * (1 + x[:, 0]) + 0.1 * rng.normal(size=len(x))
    core = fit_spline_core(x, dose, y)
    np.testing.assert_allclose(core.predict(x, dose), dose**2 * (1 + x[:, 0]), atol=0.2)


# --- boosting ----------------------------------------------------------------------------------


@pytest.mark.parametrize("linear", [True, False])
def test_boosting_does_not_depend_on_threads(linear):
    recipe = BoostingRecipe(30, 16, linear=linear, rate=0.2)
    rng, x, dose = rows(n=500)
    x[rng.random(x.shape) < 0.05] = np.nan
    y = np.nan_to_num(x[:, 0]) * dose + rng.normal(size=500)
    one, two = (fit_boosting(x, dose, y, recipe, n_threads=k).predict(x, dose) for k in (1, 2))
    np.testing.assert_array_equal(one, two)
    assert np.corrcoef(one, y)[0, 1] > 0.9


def test_a_shorter_booster_has_only_the_first_trees():
    rng, x, dose = rows(n=300)
    y = x[:, 0] + rng.normal(size=300)
    long = fit_boosting(x, dose, y, BoostingRecipe(40, 8, linear=False))
    short = fit_boosting(x, dose, y, BoostingRecipe(10, 8, linear=False))
    np.testing.assert_array_equal(long.shorter(10).predict(x, dose), short.predict(x, dose))


# --- the stack ---------------------------------------------------------------------------------


def test_convex_weights_equal_a_fine_search():
    rng = np.random.default_rng(4)
    y = rng.normal(size=200)
    predictions = y[:, None] * [0.5, 1.2, 0.0] + rng.normal(size=(200, 3))
    weights = rng.uniform(0.5, 2, size=200)
    grid = np.linspace(0, 1, 101)
    points = np.array([(a, b, 1 - a - b) for a in grid for b in grid if a + b <= 1 + 1e-9])
    errors = ((points @ predictions.T - y) ** 2) @ weights
    found = convex_weights(predictions, y, weights)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0).all()
    np.testing.assert_allclose(found, points[np.argmin(errors)], atol=0.01)


def test_a_perfect_member_gets_all_the_weight():
    y = np.arange(10.0)
    np.testing.assert_allclose(convex_weights(np.column_stack([y, -y]), y), [1.0, 0.0], atol=1e-6)


def test_predictions_of_a_fold_come_from_models_that_have_not_seen_it():
    rng, x, dose = rows(n=240)
    y = x[:, 0] * dose / 5 + rng.normal(size=240)
    folds = np.arange(240) % 2
    fitted = cross_fit_outcome(member_fit("stack"), x, dose, y, folds[None])
    changed = np.where(folds == 0, -3 * y, y)
    other = cross_fit_outcome(member_fit("stack"), x, dose, changed, folds[None])
    for name, member in fitted.repeats[0].models[0].members.items():
        expected = member.predict(x[folds == 0], dose[folds == 0])
        again = other.repeats[0].models[0].members[name].predict(x[folds == 0], dose[folds == 0])
        np.testing.assert_array_equal(expected, again)
    grid = np.array([2.0, 5.0])
    curves = fitted.curves_out_of_fold(x, grid)
    for fold in (0, 1):
        own = fitted.repeats[0].models[fold].curves(x[folds == fold], grid)
        np.testing.assert_array_equal(curves[folds == fold], own)
    np.testing.assert_allclose(
        fitted.observed[folds == 1],
        fitted.repeats[0].models[1].predict(x[folds == 1], dose[folds == 1]),
        atol=1e-9,
    )


def test_the_stack_is_about_as_good_as_its_best_member_out_of_fold():
    rng, x, dose = rows(n=400)
    y = np.where(x[:, 0] > 0, dose, 0.0) + rng.normal(size=400)
    fitted = cross_fit_outcome(member_fit("stack"), x, dose, y, (np.arange(400) % 4)[None])
    errors = []
    for name in fitted.full.members:
        predicted = np.empty(400)
        for fold, stack in enumerate(fitted.repeats[0].models):
            own = fitted.folds == fold
            predicted[own] = stack.members[name].predict(x[own], dose[own])
        errors.append(np.mean((y - predicted) ** 2))
    # The weights minimise this very error over mixtures, the members among them.
    assert np.mean((y - fitted.observed) ** 2) <= min(errors) * (1 + 1e-6)
