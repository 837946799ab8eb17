"""The R-risk: effects are judged, levels are not, and the judge is the same for every model."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV

from bench.designs import DESIGNS
from doseforest import GeneralizedCausalForest
from doseforest.baselines import AverageCurve, OutcomeRegressor, ZeroEffect, boosting
from doseforest.corrections import Orthogonal
from doseforest.doses.curve_effects import dose_table
from doseforest.evaluation import effect_errors, effect_risk, fit_yardstick
from doseforest.evaluation.risks import mean_risk

N_TRAINED, N_JUDGED = 400, 200


class Curves:
    """A function of (X, doses) as a model."""

    def __init__(self, function):
        self.function = function

    def dose_response(self, X, doses):
        return self.function(np.asarray(X), dose_table(doses, len(X)).values)


class Trial:
    """A design split into rows that models see and rows that judge them."""

    def __init__(self, name, seed=300):
        self.data = DESIGNS[name].draw(n=N_TRAINED + N_JUDGED, seed=seed)
        self.held = slice(N_TRAINED, None)
        d = self.data
        self.judged = (d.X[self.held], d.y[self.held], d.treatment[self.held])
        self.yardstick = fit_yardstick(*self.judged, n_jobs=1)
        self.truth = Curves(lambda X, doses: d.mean(doses, X))

    def fit(self, model):
        d, seen = self.data, slice(0, N_TRAINED)
        return model.fit(d.X[seen], d.y[seen], treatment=d.treatment[seen])

    def true_error(self, model):
        return effect_errors(model, self.data, X=self.judged[0]).rms


drawn = functools.cache(Trial)


@pytest.fixture(params=["randomised", "confounded", "steps"])
def trial(request):
    return drawn(request.param)


@pytest.fixture
def confounded():
    return drawn("confounded")


def test_models_are_ranked_as_their_true_errors_rank_them(trial):
    zero = trial.fit(ZeroEffect())
    linear = trial.fit(OutcomeRegressor(LinearRegression()))
    boosted = trial.fit(boosting())
    models = sorted([zero, linear, boosted, trial.truth], key=trial.true_error)
    risks = [trial.yardstick.risk(model) for model in models]
    assert models[0] is trial.truth
    errors = [trial.true_error(model) for model in models]
    for k in range(3):
        # Of models that are nearly as good as each other either may win.
        if errors[k] < 0.8 * errors[k + 1]:
            assert risks[k].value < risks[k + 1].value
    # The comparison of no effect with the truth is far beyond its standard error.
    gap = trial.yardstick.risk(zero).minus(trial.yardstick.risk(trial.truth))
    assert gap.value > 3 * gap.standard_error


def test_the_gap_to_the_truth_is_the_squared_error_of_the_shape():
    # A dose that is drawn by itself has the same mean shape for all: the oracle is the mean square
    # of (f - mu) less its mean over doses, and the R-risk has to find it within its own noise.
    rng = np.random.default_rng(300)
    x, dose = rng.uniform(-1, 1, size=(2000, 2)), rng.uniform(0, 2, size=2000)
    y = np.sin(2 * x[:, 1]) + (1 + x[:, 0]) * dose + 0.5 * rng.normal(size=2000)
    truth = Curves(lambda X, doses: (1 + X[:, :1]) * doses)
    wrong = Curves(lambda X, doses: 0.5 * doses)
    yardstick = fit_yardstick(x, y, dose)
    gap = yardstick.risk(wrong).minus(yardstick.risk(truth))
    oracle = np.mean((0.5 + x[:, 0]) ** 2) * np.var(dose)
    assert abs(gap.value - oracle) < 3 * gap.standard_error
    assert gap.standard_error < 0.1 * oracle
    assert yardstick.risk(truth).value == pytest.approx(0.25, rel=0.15)  # little but the noise


def test_a_function_of_the_covariates_alone_changes_nothing(confounded):
    def moved(X, doses):
        return confounded.data.mean(doses, X) + 100 * np.abs(X[:, :1]) + np.exp(X[:, 1:2])

    plain = confounded.yardstick.risk(confounded.truth)
    assert confounded.yardstick.risk(Curves(moved)).per_row == pytest.approx(
        plain.per_row, rel=1e-6, abs=1e-9
    )


def test_the_risk_can_be_repeated_whatever_the_threads(confounded):
    again = effect_risk(confounded.truth, *confounded.judged, n_jobs=2)
    first = confounded.yardstick.risk(confounded.truth)
    assert np.array_equal(again.per_row, first.per_row)
    other = effect_risk(confounded.truth, *confounded.judged, random_state=1)
    assert other.value != first.value


def test_levels_of_a_dose_are_judged_one_by_one():
    rng = np.random.default_rng(300)
    x = rng.normal(size=(300, 2))
    dose = rng.integers(0, 3, size=300).astype(float)
    effects = np.array([0.0, 4.0, -1.0])
    y = x[:, 0] + effects[dose.astype(int)] + rng.normal(size=300)
    yardstick = fit_yardstick(x, y, dose)
    assert np.array_equal(yardstick.cells, [0.0, 1.0, 2.0])
    assert yardstick.chances.sum(axis=1) == pytest.approx(np.ones(300))
    right = AverageCurve(lambda doses: effects[doses.astype(int)])
    straight = AverageCurve(lambda doses: -0.5 * doses)
    assert yardstick.risk(right).value < 0.5 * yardstick.risk(straight).value


def test_rows_without_weight_have_no_say(confounded):
    x, y, dose = confounded.judged
    weights = np.where(np.arange(N_JUDGED) < 150, 2.0, 0.0)
    spoilt = np.where(weights > 0, y, 1e6)
    one = effect_risk(confounded.truth, x, y, dose, sample_weight=weights)
    other = effect_risk(confounded.truth, x, spoilt, dose, sample_weight=weights)
    assert one.value == other.value
    assert one.standard_error == other.standard_error


def test_rows_of_a_group_are_one_draw():
    # Every row four times: no more is known than by the rows once.
    loss = np.random.default_rng(0).normal(size=50) ** 2
    alone = mean_risk(loss, np.full(50, 0.02), np.arange(50))
    copies = mean_risk(np.tile(loss, 4), np.full(200, 0.005), np.tile(np.arange(50), 4))
    assert copies.standard_error == pytest.approx(alone.standard_error)
    assert alone.standard_error == pytest.approx(loss.std(ddof=1) / np.sqrt(50))


def test_rows_of_a_group_share_a_fold(confounded):
    x, y, dose = confounded.judged
    groups = np.repeat(np.arange(N_JUDGED // 4), 4)
    risk = effect_risk(confounded.truth, x, y, dose, groups=groups)
    assert np.array_equal(risk.clusters, groups)
    assert risk.value != confounded.yardstick.risk(confounded.truth).value  # other folds


def test_risks_on_other_rows_are_not_compared(confounded):
    risk = confounded.yardstick.risk(confounded.truth)
    fewer = mean_risk(risk.per_row[:50], np.full(50, 0.02), np.arange(50))
    with pytest.raises(ValueError, match=r"'other' parameter must be a risk on the same rows"):
        risk.minus(fewer)


def test_doses_beyond_the_support_are_taken_for_the_nearest(confounded):
    d = confounded.data
    narrow = np.flatnonzero(np.abs(d.treatment[:N_TRAINED] - np.median(d.treatment)) < 2)
    forest = GeneralizedCausalForest(
        correction="none", outcome_model=LinearRegression(), baseline=float(np.median(d.treatment))
    ).fit(d.X[narrow], d.y[narrow], treatment=d.treatment[narrow])
    x, y, dose = confounded.judged
    low, high = forest.support_.low, forest.support_.high
    assert dose.min() < low < high < dose.max()
    kept_in = Curves(lambda X, doses: forest.dose_response(X, np.clip(doses, low, high)))
    score = forest.score(x, y, treatment=dose)
    assert score == pytest.approx(-confounded.yardstick.risk(kept_in).value)
    assert score == -confounded.yardstick.risk(forest.model_).value


def test_frames_reach_the_model_as_they_are(confounded):
    x, y, dose = confounded.judged
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(x.shape[1])])
    seen = []
    model = Curves(lambda X, doses: np.zeros(doses.shape))
    model.dose_response = lambda X, doses: (
        seen.append(X) or np.zeros(dose_table(doses, len(X)).shape)
    )
    effect_risk(model, frame, y, dose)
    assert all(X is frame for X in seen)


def test_a_handful_of_rows_can_be_judged():
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(12, 2)), rng.uniform(size=12)
    risk = effect_risk(AverageCurve(np.square), x, dose**2, dose)
    assert np.isfinite([risk.value, risk.standard_error]).all()


@pytest.mark.parametrize("n_ones", [0, 1, 24])
def test_outcomes_of_which_a_fold_knows_one_kind_can_be_judged(n_ones):
    rng = np.random.default_rng(0)
    x, dose, y = rng.normal(size=(24, 2)), rng.uniform(size=24), (np.arange(24) < n_ones) * 1.0
    risk = effect_risk(AverageCurve(np.zeros_like), x, y, dose)
    assert risk.value == pytest.approx(y.var(), rel=0.2, abs=1e-20)  # 24 rows tell of no level


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_folds": 1}, r"'n_folds' parameter must be an int of at least 2. Got 1"),
        ({"n_folds": 30}, r"'n_folds' parameter must be at most the number of rows .* 20. Got 30"),
        ({"groups": np.zeros(20)}, r"'n_folds' parameter must be at most .* 1. Got 4"),
        ({"groups": np.zeros(3)}, r"'groups' parameter must have one entry per row of X \(20\)"),
        ({"random_state": -1}, r"'random_state' parameter must be an int of at least 0. Got -1"),
        ({"sample_weight": -np.ones(20)}, r"'sample_weight' parameter must not be negative"),
        ({"treatment": np.zeros(3)}, r"'treatment' parameter must have one row per row of X"),
        ({"y": [np.nan] * 20}, r"'y' parameter must hold finite numbers"),
    ],
)
def test_what_does_not_fit_is_refused(changed, message):
    given = {"X": np.zeros((20, 1)), "y": np.arange(20.0), "treatment": np.arange(20.0), **changed}
    with pytest.raises(ValueError, match=message):
        effect_risk(AverageCurve(np.sqrt), **given)


@pytest.mark.parametrize(
    "curves", [lambda X, doses: doses[:, :1], lambda X, doses: np.full(doses.shape, np.nan)]
)
def test_a_model_without_a_finite_curve_for_every_row_is_refused(confounded, curves):
    with pytest.raises(ValueError, match=r"'model' parameter must give a finite outcome for each"):
        confounded.yardstick.risk(Curves(lambda X, doses: curves(X, doses)[:, :11] + 0.0))


def test_a_search_picks_the_parameters_of_the_better_curves():
    rng = np.random.default_rng(300)
    x = rng.uniform(-1, 1, size=(400, 2))
    dose = 2 + x[:, 1] + rng.uniform(-2, 2, size=400)
    y = 3 * x[:, 1] + 2 * np.sign(x[:, 0]) * dose + rng.normal(size=400)
    forest = GeneralizedCausalForest(
        n_trees=8,
        correction=Orthogonal(n_rounds=1, leaf_sizes=20),
        outcome_model=LinearRegression(),
        treatment_model=LinearRegression(),
        baseline=2.0,
        random_state=0,
    )
    grid = [{"correction__leaf_sizes": [10, 80]}, {"correction": ["none"]}]
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(forest, grid, cv=2).fit(x, y, treatment=dose)
    # Without a correction, or with leaves of 80 of a tree's 70 growth rows: one slope for all.
    assert search.best_params_ == {"correction__leaf_sizes": 10}
    exact = 2 * np.sign(x[:, 0])
    error = np.sqrt(np.mean((search.best_estimator_.effect(x, 3.0) - exact) ** 2))
    assert error < 1.2  # 2 for the average effect
