"""Treatments of few levels: any codes, unequal shares, two arms, and text that is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression

from doseforest import GeneralizedCausalForest
from doseforest.estimator.training_rows import check_training
from recipes import recipe


def cheap(**parameters):
    settings = {"outcome_model": LinearRegression(), "n_trees": 16, "n_jobs": 1, "random_state": 0}
    correction = recipe(parameters.pop("correction", "orthogonal"), n_rounds=1, leaves=(20,))
    return GeneralizedCausalForest(correction=correction, **{**settings, **parameters})


def draw(n=400, shares=(0.5, 0.3, 0.2), seed=0):
    """Arms at random, with effects 0, 1 and 3 (1 + x1)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    arm = rng.choice(len(shares), size=n, p=shares)
    sizes = np.array([0.0, 1.0, 3.0])[arm]
    return x, arm, x[:, 1] + sizes * (1 + x[:, 0]) + 0.3 * rng.normal(size=n)


def test_codes_of_levels_are_names_only():
    x, arm, y = draw()
    shares = np.tile([0.5, 0.3, 0.2], (400, 1))
    answers = []
    for codes in (np.arange(3.0), np.array([1.0, 2.0, 3.0]), np.array([-4.0, 0.5, 90.0])):
        forest = cheap(correction="none", outcome_model=Arms(), density=shares, baseline=codes[0])
        forest.fit(x, y, treatment=codes[arm])
        np.testing.assert_array_equal(forest.doses_, codes)
        answers.append(forest.average_dose_response().values)
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-9)
    np.testing.assert_allclose(answers[2], answers[0], rtol=1e-9)


class Arms(RegressorMixin, BaseEstimator):
    """The mean of each arm, whatever its code."""

    def fit(self, X, y):
        self.levels_, own = np.unique(X[:, -1], return_inverse=True)
        self.means_ = np.bincount(own, y) / np.bincount(own)
        return self

    def predict(self, X):
        return self.means_[np.searchsorted(self.levels_, X[:, -1])]


def test_arms_of_a_trial_have_their_means():
    x, arm, y = draw(shares=(0.8, 0.1, 0.1))
    forest = cheap(correction="none", outcome_model=Arms(), density=np.array([0.8, 0.1, 0.1])[arm])
    forest.fit(x, y, treatment=arm)
    means = [y[arm == level].mean() for level in range(3)]
    average = forest.average_dose_response()
    errors = np.array([y[arm == level].std() / (arm == level).sum() ** 0.5 for level in range(3)])
    # With chances that all rows share, the mean of an arm plus the mean of what it leaves there is
    # that of the arm, but for folds: they share out the arms unevenly.
    assert (np.abs(average.values - means) < 0.2 * errors).all()
    np.testing.assert_allclose(average.standard_errors, errors, rtol=0.15)


def test_an_effect_of_two_arms_is_a_contrast_of_least_squares():
    x, arm, y = draw(shares=(0.7, 0.3))
    forest = cheap(correction="none", density=np.array([0.7, 0.3])[arm]).fit(x, y, treatment=arm)
    slope = LinearRegression().fit(np.column_stack([x, arm]), y).coef_[-1]
    # Both are adjusted by the same covariates; they differ by how the arms share them out.
    effect = forest.average_effect(1.0, 0.0)
    assert abs(effect.value - slope) < effect.standard_error


def test_effects_of_arms_differ_between_units_as_they_should():
    x, arm, y = draw(n=800)
    forest = cheap(n_trees=40, density=np.tile([0.5, 0.3, 0.2], (800, 1))).fit(x, y, treatment=arm)
    assert forest.treatment_means_ == "known"
    effects = forest.effect(x, 2.0, 0.0)
    # The line gives everyone the mean effect, 3: an error of 3 x1, of standard deviation 3.
    assert np.sqrt(np.mean((effects - 3 * (1 + x[:, 0])) ** 2)) < 1.2


@pytest.mark.parametrize("kind", ["list", "numpy", "pandas", "category", "polars", "one of them"])
def test_text_for_a_treatment_is_refused_with_its_cure(kind):
    labels = ["none", "letter", "visit", "call"] * 10
    given = {
        "list": labels,
        "numpy": np.array(labels),
        "pandas": pd.Series(labels),
        "category": pd.Series(labels, dtype="category"),
        "polars": pl.Series(labels),
        "one of them": [*range(39), "visit"],
    }[kind]
    n_labels = 1 if kind == "one of them" else 4
    named = "'visit'" if kind == "one of them" else "'call', 'letter', 'none', 'visit'"
    message = rf"order that means something. Got text with {n_labels} distinct label\(s\), {named},"
    with pytest.raises(TypeError, match=message):
        check_training(np.zeros((40, 1)), np.zeros(40), given)


def test_codes_of_an_ordered_category_are_taken():
    labels = pd.Series(pd.Categorical(["none", "letter"] * 20, ["none", "letter"], ordered=True))
    rows = check_training(np.zeros((40, 1)), np.zeros(40), labels.cat.codes)
    np.testing.assert_array_equal(rows.dose, np.tile([0.0, 1.0], 20))
