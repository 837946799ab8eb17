"""Categories as numbers: what is learned, of which rows, and what comes of the unknown."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from doseforest.nuisance.encoding.category_encoding import (
    MAX_INDICATORS,
    MIN_ROWS,
    N_FOLDS,
    fit_encoder,
)
from doseforest.nuisance.outcome.cross_fitted_outcome import cross_fit_outcome
from doseforest.nuisance.outcome.encoded_models import EncodedFit, EncodedModel
from doseforest.nuisance.outcome.outcome_models import Stack
from doseforest.nuisance.outcome.outcome_stack import member_fit
from doseforest.nuisance.treatment import conditional_means
from doseforest.nuisance.treatment.conditional_density import cross_fit_density
from doseforest.nuisance.treatment.conditional_means import cross_fit_means
from doseforest.nuisance.treatment.encoded_densities import EncodedLearner, in_own_numbers
from doseforest.nuisance.treatment.gaussian import Gaussian


def many_levels(n=2000, n_levels=100, seed=0):
    rng = np.random.default_rng(seed)
    code = rng.integers(0, n_levels, n).astype(float)
    level, slope = rng.normal(size=n_levels), rng.normal(size=n_levels)
    dose = rng.normal(size=n) + 0.5 * level[code.astype(int)]
    y = level[code.astype(int)] + dose * slope[code.astype(int)] + rng.normal(size=n)
    return code[:, None], dose, y, level, slope


def test_numbers_come_first_and_stay_and_frequent_categories_get_indicators():
    code = np.repeat([0.0, 1.0, 2.0], [40, 30, MIN_ROWS])
    number = np.where(np.arange(len(code)) % 7 == 0, np.nan, np.arange(len(code)))
    X = np.column_stack([code, number])
    encoder, encoded = fit_encoder(X, {0: 3}, code[:, None])
    assert encoder.n_columns == 5  # a number is learned, too
    np.testing.assert_array_equal(encoded[:, 0], number)
    np.testing.assert_array_equal(encoded[:, 1:4], code[:, None] == [0, 1, 2])
    np.testing.assert_array_equal(encoder.encode(X)[:, :4], encoded[:, :4])


def test_two_categories_are_one_column_as_by_hand():
    code = np.tile([0.0, 1.0], 50)
    _, encoded = fit_encoder(code[:, None], {0: 2}, code[:, None])
    np.testing.assert_array_equal(encoded, code[:, None])


@pytest.mark.parametrize("code", [0.0, np.nan])
def test_a_constant_category_is_a_constant_column(code):
    X = np.full((50, 1), code)
    encoder, encoded = fit_encoder(X, {0: 1}, np.arange(50.0)[:, None])
    np.testing.assert_array_equal(encoded, np.ones((50, 1)))
    assert encoder.encode(np.array([[0.0], [np.nan]])).shape == (2, 1)


def test_missing_values_are_a_category_of_their_own():
    code = np.repeat([0.0, 1.0, np.nan], 30)
    encoder, _ = fit_encoder(code[:, None], {0: 2}, np.nan_to_num(code, nan=5.0)[:, None])
    encoded = encoder.encode(np.array([[0.0], [1.0], [np.nan]]))
    np.testing.assert_array_equal(encoded[:, :3], np.eye(3))
    # Means 0, 1 and 5 less everyone's; without noise there is next to nothing to shrink.
    np.testing.assert_allclose(encoded[:, 3], [-2, -1, 3], rtol=0.01)


def test_what_a_fit_has_not_seen_gets_zeros():
    X, dose, y, _, _ = many_levels()
    seen = X[:, 0] < 90
    encoder, _ = fit_encoder(
        X[seen], {0: 100}, np.column_stack([y, dose])[seen], doses=dose[seen, None]
    )
    unknown = encoder.encode(np.array([[95.0], [np.nan]]))
    np.testing.assert_array_equal(unknown, np.zeros(unknown.shape))
    assert (encoder.encode(np.array([[3.0]])) != 0).any()


def shrunk_by_hand(estimate, precision, left, weight, n_fitted):
    """Estimates less their mean times how much of them is to be believed, by plain loops."""
    mean = sum(precision * estimate) / sum(precision)
    between = sum(p * (e - mean) ** 2 for p, e in zip(precision, estimate, strict=True))
    noise = (left + 10 * (left + between) / weight) / (weight - n_fitted + 10)
    room = sum(precision) - sum(precision**2) / sum(precision)
    truth = max(between - (len(estimate) - 1) * noise, 0) / room
    share = [p * truth / (p * truth + noise) for p in precision]
    return np.array([own * (e - mean) for own, e in zip(share, estimate, strict=True)])


def test_learned_numbers_are_shrunk_means_and_slopes():
    X, dose, y, _, _ = many_levels()
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(y))
    encoder, _ = fit_encoder(
        X, {0: 100}, np.column_stack([y, dose]), doses=dose[:, None], weights=weights
    )
    mean, mass, left, slope, steep, unexplained = (np.zeros(100) for _ in range(6))
    for code in range(100):
        own = X[:, 0] == code
        w, t, v = weights[own], dose[own], y[own]
        mass[code], mean[code] = w.sum(), np.average(v, weights=w)
        left[code] = (w * (v - mean[code]) ** 2).sum()
        centred = t - np.average(t, weights=w)
        steep[code] = (w * centred**2).sum()
        slope[code] = (w * centred * v).sum() / steep[code]
        unexplained[code] = (w * (v - mean[code] - slope[code] * centred) ** 2).sum()
    total = weights.sum()
    learned = encoder.columns[0].learned[:100]
    of_mean = shrunk_by_hand(mean, mass, left.sum(), total, 100)
    of_slope = shrunk_by_hand(slope, steep, unexplained.sum(), total, 200)
    np.testing.assert_allclose(learned[:, 0], of_mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(learned[:, 2], of_slope, rtol=1e-9, atol=1e-12)


def test_learned_numbers_find_the_truth_of_many_levels():
    X, dose, y, level, slope = many_levels(4000)
    encoder, _ = fit_encoder(X, {0: 100}, np.column_stack([y, dose]), doses=dose[:, None])
    learned = encoder.columns[0].learned[:100]
    # 40 rows a level: noise of a slope has a sixth of the slopes' own deviation.
    assert np.corrcoef(learned[:, 2], slope)[0, 1] > 0.97
    assert np.corrcoef(learned[:, 1], level)[0, 1] > 0.9


def test_noise_teaches_next_to_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 100, (2000, 1)).astype(float), rng.normal(size=2000)
    dose = rng.normal(size=2000)
    encoder, _ = fit_encoder(X, {0: 100}, y[:, None], doses=dose[:, None])
    plain = [y[X[:, 0] == code].mean() for code in range(100)]
    # Means of 20 rows deviate by 0.22; what moments take for truth is a small share of that.
    assert encoder.columns[0].learned[:100, 0].std() < 0.3 * np.std(plain)


def test_of_categories_that_occur_once_or_twice_next_to_nothing_is_learned():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 1000, (500, 1)).astype(float)
    y, dose = rng.normal(size=500), rng.normal(size=500)
    encoder, _ = fit_encoder(X, {0: 1000}, y[:, None], doses=dose[:, None])
    mean, slope = encoder.columns[0].learned[X[:, 0].astype(int)].T
    # An outcome is its category's mean in most rows: believed as it is, it would deviate by 1, and
    # slopes through two rows, of the differences of two normals each, by more than that.
    assert mean.std() < 0.2
    assert slope.std() < 0.5


def test_numbers_of_training_rows_are_learned_without_them():
    X, dose, y, _, _ = many_levels(seed=3)
    counts, targets = {0: 100}, np.column_stack([y, dose])
    _, before = fit_encoder(X, counts, targets, doses=dose[:, None], seed=5)
    folds = np.random.default_rng(5).permutation(len(y)) % N_FOLDS
    changed = targets.copy()
    fold = folds == 2
    changed[fold, 0] = np.roll(changed[fold, 0], 1)  # sums to centre with stay the same
    _, after = fit_encoder(X, counts, changed, doses=dose[:, None], seed=5)
    np.testing.assert_allclose(after[fold], before[fold], rtol=1e-9, atol=1e-12)
    assert not np.allclose(after[~fold], before[~fold])


def test_what_numeric_covariates_explain_is_taken_off_before_anything_is_learned():
    X, dose, y, _, slope = many_levels(4000)
    noise = 3 * np.random.default_rng(9).normal(size=4000)
    table = np.column_stack([X, noise])
    targets = np.column_stack([y + noise, dose])
    encoder, _ = fit_encoder(table, {0: 100}, targets, doses=dose[:, None])
    blind, _ = fit_encoder(X, {0: 100}, targets, doses=dose[:, None])
    found, lost = (own.columns[0].learned[:100, 2] for own in (encoder, blind))
    # Slopes of 40 rows with noise of 3 around them are off by 0.5, with noise of 1 by 0.16.
    assert np.mean((found - slope + slope.mean()) ** 2) < 0.05
    assert np.mean((lost - slope + slope.mean()) ** 2) > 0.1


def test_units_of_outcome_and_dose_make_no_difference():
    X, dose, y, _, _ = many_levels()
    first, _ = fit_encoder(X, {0: 100}, np.column_stack([y, dose]), doses=dose[:, None])
    targets = np.column_stack([1e3 * y + 1e6, dose / 50])
    second, _ = fit_encoder(X, {0: 100}, targets, doses=dose[:, None] / 50)
    units = [1e3, 1 / 50, 1e3 * 50]
    expected = first.columns[0].learned * units
    np.testing.assert_allclose(second.columns[0].learned, expected, rtol=1e-5, atol=1e-9)


def test_no_more_than_so_many_indicators_the_most_frequent():
    n_rows = np.arange(80, 30, -1)  # 50 levels, the first the most frequent
    X = np.repeat(np.arange(50.0), n_rows)[:, None]
    encoder, _ = fit_encoder(X, {0: 50}, X)
    assert encoder.columns[0].indicators.tolist() == list(range(MAX_INDICATORS))
    assert encoder.columns[0].learned.shape == (51, 1)


@pytest.fixture(name="rows")
def _rows():
    X, dose, y, _, _ = many_levels(600)
    return X, dose, y, np.arange(600) % 4


def test_an_encoder_of_a_fold_has_not_seen_it(rows):
    X, dose, y, folds = rows
    fit = EncodedFit(member_fit(LinearRegression()), {0: 100})
    before = cross_fit_outcome(fit, X, dose, y, folds[None])
    changed = np.where(folds == 1, y + X[:, 0], y)
    after = cross_fit_outcome(fit, X, dose, changed, folds[None])
    np.testing.assert_array_equal(after.observed[folds == 1], before.observed[folds == 1])
    assert (after.observed[folds != 1] != before.observed[folds != 1]).any()


def test_members_of_a_fit_share_one_encoder(rows):
    X, dose, y, folds = rows

    def two_members(*data, **settings):
        line = member_fit(LinearRegression())(*data, **settings)["regressor"]
        return {"one": line, "two": line}

    fitted = cross_fit_outcome(EncodedFit(two_members, {0: 100}), X, dose, y, folds[None])
    assert isinstance(fitted.full, EncodedModel)
    assert isinstance(fitted.full.model, Stack)
    assert sum(fitted.weights.values()) == pytest.approx(1)
    at_own_dose = fitted.full.curves(X, dose[:, None])[:, 0]
    np.testing.assert_array_equal(fitted.full.predict(X, dose), at_own_dose)


def test_means_given_categories_come_from_other_folds(rows, monkeypatch):
    X, dose, _, folds = rows
    monkeypatch.setattr(conditional_means, "shrunk_to_mean", lambda own, target, weights: own)
    settings = {"counts": {0: 100}, "regressor": LinearRegression()}
    before = cross_fit_means(X, dose[:, None], folds, **settings)
    changed = np.where(folds == 1, dose + X[:, 0], dose)
    after = cross_fit_means(X, changed[:, None], folds, **settings)
    np.testing.assert_array_equal(after[folds == 1], before[folds == 1])
    assert (after[folds != 1] != before[folds != 1]).any()


def test_means_given_categories_are_found(rows):
    X, dose, _, folds = rows
    found = cross_fit_means(X, dose[:, None], folds, counts={0: 100})[:, 0]
    blind = cross_fit_means(np.zeros(X.shape), dose[:, None], folds)[:, 0]
    # Levels are a fifth of the dose's variance; with 4 to 5 rows a level half of that is found.
    assert np.mean((dose - found) ** 2) < 0.97 * np.mean((dose - blind) ** 2)


def test_densities_of_a_fold_have_not_seen_it(rows):
    X, dose, _, folds = rows
    learner, grid = EncodedLearner(Gaussian(), {0: 100}), np.array([-1.0, 0.0, 1.0])
    before = cross_fit_density(learner, X, dose, folds)
    changed = dose.copy()
    changed[folds == 1] = np.roll(dose[folds == 1], 1)  # the range of all doses stays
    after = cross_fit_density(learner, X, changed, folds)
    first, second = (fitted.out_of_fold(X, grid)[folds == 1] for fitted in (before, after))
    np.testing.assert_array_equal(first, second)


def test_a_known_density_is_told_numbers_as_numbers_and_text_as_codes():
    told = in_own_numbers(lambda X, doses: X, {0: (30, 10), 2: ("b", "a")})
    X = np.array([[0.0, 5.0, 1.0], [1.0, 6.0, 0.0], [np.nan, 7.0, np.nan]])
    expected = [[30, 5, 1], [10, 6, 0], [np.nan, 7, np.nan]]
    np.testing.assert_array_equal(told(X, np.zeros(1)), expected)
