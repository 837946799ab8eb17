"""Cross-fitting, and any regressor as an outcome model."""

import time
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor

from doseforest.base.concurrency import side_by_side
from doseforest.nuisance.cross_fit import HELD_OUT, cross_fit, draw_folds
from doseforest.nuisance.outcome.cross_fitted_outcome import cross_fit_outcome
from doseforest.nuisance.outcome.outcome_stack import member_fit
from doseforest.nuisance.treatment import Gaussian, cross_fit_density
from doseforest.nuisance.treatment.conditional_means import cross_fit_means


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(120, 2)), rng.uniform(size=120)
    return x, dose, x[:, 0] + 2 * dose + rng.normal(size=120)


def memoriser():
    """A model that knows its training rows by heart."""
    return member_fit(KNeighborsRegressor(1))


def test_a_row_is_never_predicted_by_a_model_that_has_seen_it(rows):
    x, dose, y = rows
    folds = draw_folds(np.arange(120), 4, seed=1)[None]
    outcome = cross_fit_outcome(memoriser(), x, dose, y, folds)
    assert not (outcome.observed == y).any()
    assert (outcome.full.predict(x, dose) == y).all()


def test_out_of_fold_curves_pass_through_the_predictions_at_observed_doses(rows):
    x, dose, y = rows
    folds = np.stack([draw_folds(np.arange(120), 3, seed) for seed in range(2)])
    outcome = cross_fit_outcome(member_fit(LinearRegression()), x, dose, y, folds)
    own = outcome.curves_out_of_fold(x, dose[:, None])[:, 0]
    assert own == pytest.approx(outcome.observed, rel=1e-12)
    on_grid = outcome.curves_out_of_fold(x, np.array([0.25, 0.75]))
    by_row = outcome.curves_out_of_fold(x, np.tile([0.25, 0.75], (120, 1)))
    assert on_grid == pytest.approx(by_row, rel=1e-12)


def test_repeats_average_the_predictions_of_single_ones(rows):
    x, dose, y = rows
    folds = np.stack([draw_folds(np.arange(120), 4, seed) for seed in range(3)])
    fit = member_fit(LinearRegression())
    single = [cross_fit_outcome(fit, x, dose, y, own[None]).observed for own in folds]
    both = cross_fit_outcome(fit, x, dose, y, folds)
    assert both.observed == pytest.approx(np.mean(single, axis=0), rel=1e-12)


def test_rows_held_out_of_everything_are_answered_by_the_model_of_all_others(rows):
    x, dose, y = rows
    folds = draw_folds(np.arange(120), 4, seed=0)
    folds[:40] = -1
    outcome = cross_fit_outcome(member_fit(LinearRegression()), x, dose, y, folds[None])
    others = LinearRegression().fit(np.column_stack([x, dose])[40:], y[40:])
    expected = others.predict(np.column_stack([x, dose])[:40])
    assert outcome.observed[:40] == pytest.approx(expected, rel=1e-10)
    assert outcome.curves_out_of_fold(x, dose[:, None])[:40, 0] == pytest.approx(expected)


def test_folds_are_even_and_keep_groups_together():
    ids = np.repeat(np.arange(50), 3)
    folds = draw_folds(ids, 4, seed=2)
    assert np.ptp(np.bincount(folds[::3])) <= 1
    assert (folds.reshape(50, 3) == folds[::3, None]).all()


def test_weights_reach_the_regressor_and_one_without_weights_is_refused(rows):
    x, dose, y = rows
    weights = np.where(np.arange(120) < 60, 1.0, 0.0)
    members = member_fit(LinearRegression())(x, dose, y, weights=weights)
    half = LinearRegression().fit(np.column_stack([x, dose])[:60], y[:60])
    expected = half.predict(np.column_stack([x, dose]))
    assert members["regressor"].predict(x, dose) == pytest.approx(expected, rel=1e-9)
    with pytest.raises(ValueError, match="must take 'sample_weight'"):
        member_fit(KNeighborsRegressor())(x, dose, y, weights=weights)


def test_a_classifier_gives_probabilities_and_a_binary_outcome_stays_in_its_range(rows):
    x, dose, _ = rows
    y = (x[:, 0] + dose > 0).astype(float)
    classifier = member_fit(LogisticRegression())(x, dose, y, binary=True)["regressor"]
    probabilities = LogisticRegression().fit(np.column_stack([x, dose]), y)
    expected = probabilities.predict_proba(np.column_stack([x, dose]))[:, 1]
    assert classifier.predict(x, dose) == pytest.approx(expected)
    line = member_fit(LinearRegression())(x, dose, y, binary=True)["regressor"]
    curves = line.curves(10 * x, np.array([-5.0, 5.0]))
    assert curves.min() == 0
    assert curves.max() == 1


def test_a_classifier_of_a_number_and_a_model_without_finite_answers_are_refused(rows):
    class Broken(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.full(len(X), np.nan)

    x, dose, y = rows
    with pytest.raises(ValueError, match="may be a classifier only"):
        member_fit(LogisticRegression())(x, dose, y)
    broken = member_fit(Broken())(x, dose, y)["regressor"]
    with pytest.raises(ValueError, match=r"must predict finite numbers. Got nan from its member"):
        broken.predict(x, dose)


def test_the_given_regressor_is_not_touched(rows):
    x, dose, y = rows
    own = RandomForestRegressor(3, random_state=0)
    member_fit(own)(x, dose, y)
    assert not hasattr(own, "estimators_")


def test_whether_an_outcome_is_binary_is_decided_once_for_all_folds(rows):
    x, dose, _ = rows
    y = (dose > 0.5).astype(float)
    y[0] = 2.0  # a model without its fold would see zeros and ones only
    folds = np.arange(120) % 4
    outcome = cross_fit_outcome(member_fit(LinearRegression()), x, dose, y, folds[None])
    models = [model.members["regressor"] for model in outcome.repeats[0].models]
    assert not any(model.binary for model in models)
    weights = np.where(np.arange(120) == 0, 0.0, 1.0)
    weighted = cross_fit_outcome(
        member_fit(LinearRegression()), x, dose, y, folds[None], weights=weights
    )
    assert all(model.members["regressor"].binary for model in weighted.repeats[0].models)


def test_an_unseeded_regressor_can_be_repeated(rows):
    x, dose, y = rows
    fits = [member_fit(RandomForestRegressor(5))(x, dose, y, seed=seed) for seed in (1, 1, 2)]
    first, again, other = (fit["regressor"].predict(x, dose) for fit in fits)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_what_fits_side_by_side_silence_stays_silent_in_all_of_them():
    where = {"filename": "x.py", "lineno": 1, "module": "sklearn.linear_model._least_angle"}

    def fit(item):
        with warnings.catch_warnings():  # its end brings back filters that others count on
            warnings.simplefilter("ignore", ConvergenceWarning)
            time.sleep(0.001 * (item % 3))
        warnings.warn_explicit("Early stopping the lars path", ConvergenceWarning, **where)
        return item

    assert side_by_side(fit, range(60), n_threads=4) == list(range(60))
    with pytest.raises(ConvergenceWarning):  # filters are as they were
        warnings.warn_explicit("Early stopping the lars path", ConvergenceWarning, **where)


def test_a_row_held_out_is_in_no_model_and_predicted_by_that_of_all_others():
    folds = np.array([0, 1, 0, 1, HELD_OUT])
    trained = cross_fit(lambda rows: frozenset(rows.tolist()), folds)
    assert trained.models == ({1, 3}, {0, 2})
    assert trained.full == {0, 1, 2, 3}
    seen = trained.out_of_fold(lambda model, rows: np.isin(rows, list(model)).astype(float))
    assert not seen.any()


def test_means_densities_and_outcomes_hold_out_the_same_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    dose, y = rng.normal(size=200) + x[:, 0], x[:, 0] + rng.normal(size=200)
    folds = np.where(np.arange(200) < 50, HELD_OUT, np.arange(200) % 3)
    spoiled = np.where(folds == HELD_OUT, 1.0, y)

    def means(target):
        return cross_fit_means(x, target[:, None], folds)[:, 0]

    def outcome(target):
        fit = member_fit(LinearRegression())
        return cross_fit_outcome(fit, x, dose, target, folds[None]).observed

    for predicted in (means, outcome):
        np.testing.assert_array_equal(predicted(y), predicted(spoiled))
    other = np.concatenate([dose[:50][::-1], dose[50:]])  # the range of all doses stays
    first, second = (cross_fit_density(Gaussian(), x, own, folds) for own in (dose, other))
    np.testing.assert_array_equal(first.out_of_fold(x, dose[:3]), second.out_of_fold(x, dose[:3]))
