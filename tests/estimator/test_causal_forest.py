"""GeneralizedCausalForest: what it answers, what it refuses, what it says."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from doseforest import GeneralizedCausalForest
from doseforest.doses.grids import BaselineWarning
from doseforest.estimator.unit_support import OverlapWarning
from recipes import recipe

NAMES = ["income", "age", "visits"]


class Slopes(RegressorMixin, BaseEstimator):
    """Least squares on x, t and x t: fast, and right about the data below."""

    def fit(self, X, y):
        self.line_ = LinearRegression().fit(self._columns(X), y)
        return self

    def predict(self, X):
        return self.line_.predict(self._columns(X))

    def _columns(self, X):
        filled = np.nan_to_num(X)
        return np.hstack([filled, filled[:, :-1] * filled[:, -1:]])


def draw(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x, dose = rng.normal(size=(n, 3)), rng.uniform(0, 4, size=n)
    return x, dose, 10 + x[:, 0] + dose * (1 + 0.5 * x[:, 1]) + 0.5 * rng.normal(size=n)


def small(**parameters):
    settings = {"outcome_model": Slopes(), "n_trees": 40, "random_state": 0, "n_jobs": 1}
    return GeneralizedCausalForest(**{**settings, **parameters})


@pytest.fixture(scope="module")
def fitted():
    x, dose, y = draw()
    return small().fit(x, y, treatment=dose)


@pytest.fixture(scope="module")
def stacked():
    x, dose, y = draw()
    return GeneralizedCausalForest(n_trees=40, random_state=0, n_jobs=1).fit(x, y, treatment=dose)


def test_curves_come_on_the_grid_by_default_and_at_any_dose(fitted):
    x, _, _ = draw(30, seed=1)
    on_grid = fitted.dose_response(x)
    assert on_grid.shape == (30, len(fitted.doses_))
    some = fitted.dose_response(x, [1.0, 2.5])
    own = fitted.dose_response(x, np.column_stack([np.full(30, 1.0), np.full(30, 2.5)]))
    assert some == pytest.approx(own, rel=1e-12)
    assert fitted.dose_response(x, 2.5)[:, 0] == pytest.approx(some[:, 1], rel=1e-12)


def test_effects_are_differences_of_curves(fitted):
    x, _, _ = draw(30, seed=1)
    curves = fitted.dose_response(x, [1.0, 3.0])
    assert fitted.effect(x, 3.0, 1.0) == pytest.approx(curves[:, 1] - curves[:, 0])
    assert fitted.partial_effect(x, 1.0, 3.0) == pytest.approx((curves[:, 1] - curves[:, 0]) / 2)
    own = fitted.effect(x, np.linspace(1, 3, 30), baseline=1.0)
    assert own[-1] == pytest.approx(curves[-1, 1] - curves[-1, 0])
    assert own[0] == pytest.approx(0.0)
    default = fitted.effect(x, 3.0)
    assert default == pytest.approx(fitted.effect(x, 3.0, fitted.baseline_))


def test_effects_are_close_to_the_truth(fitted, stacked):
    x, _, _ = draw(300, seed=2)
    exact = 2 * (1 + 0.5 * x[:, 1])
    # Least squares of the right form errs by about .5 sqrt(7 / 400) = .07 over 2 doses; the stack
    # has to find the product by itself.
    assert np.sqrt(np.mean((fitted.effect(x, 3.0, 1.0) - exact) ** 2)) < 0.15
    assert np.sqrt(np.mean((stacked.effect(x, 3.0, 1.0) - exact) ** 2)) < 0.4


def test_elasticity_is_the_slope_of_logarithms(fitted):
    x = np.zeros((1, 3))
    outcome, ahead = fitted.dose_response(x, [2.0, 2.1])[0]
    expected = 2.0 * (ahead - outcome) / 0.1 / outcome  # nearly linear data
    assert fitted.elasticity(x, 2.0)[0] == pytest.approx(expected, rel=0.05)
    exact = 2.0 / 12.0
    assert fitted.elasticity(x, 2.0)[0] == pytest.approx(exact, rel=0.15)


def test_an_elasticity_of_a_negative_outcome_is_refused():
    x, dose, y = draw()
    below = small().fit(x, y - 50, treatment=dose)
    with pytest.raises(ValueError, match=r"positive expected outcome for an elasticity. Got -3"):
        below.elasticity(x, 2.0)


def test_frames_and_arrays_give_the_same_curves():
    x, dose, y = draw()
    curves = []
    for table in (x, pd.DataFrame(x, columns=NAMES), pl.DataFrame(x, schema=NAMES)):
        forest = small(n_trees=8).fit(table, y, treatment=dose)
        curves.append(forest.dose_response(table[:20]))
    assert np.array_equal(curves[0], curves[1])
    assert np.array_equal(curves[0], curves[2])
    shuffled = pd.DataFrame(x, columns=NAMES)[NAMES[::-1]]
    assert np.array_equal(forest.dose_response(shuffled[:20]), curves[0])


def test_missing_values_are_welcome():
    x, dose, y = draw()
    x[::7, 0] = np.nan
    forest = GeneralizedCausalForest(n_trees=8, random_state=0, n_jobs=1)
    curves = forest.fit(x, y, treatment=dose).dose_response(x)
    assert np.isfinite(curves).all()


def test_the_same_seed_gives_the_same_forest_whatever_the_threads(stacked):
    x, dose, y = draw()
    again = clone(stacked).set_params(n_jobs=2).fit(x, y, treatment=dose)
    assert np.array_equal(again.dose_response(x), stacked.dose_response(x))
    other = clone(stacked).set_params(random_state=1).fit(x, y, treatment=dose)
    assert not np.array_equal(other.dose_response(x), stacked.dose_response(x))


def test_a_binary_outcome_stays_a_probability():
    x, dose, y = draw(600)
    bought = (y > 12).astype(float)
    forest = GeneralizedCausalForest(n_trees=40, random_state=0, n_jobs=1)
    curves = forest.fit(x, bought, treatment=dose).dose_response(3 * x)
    assert curves.min() >= 0
    assert curves.max() <= 1


def test_what_was_chosen_is_visible(stacked):
    assert sum(stacked.outcome_weights_.values()) == pytest.approx(1.0)
    assert len(stacked.rounds_) == 2
    for report in stacked.rounds_:
        assert 0 <= report["strength"] <= 1
        assert sum(report["shares"].values()) <= 1 + 1e-9
    assert stacked.average.treatment_weights.name in stacked.average.treatment_weights.scores


def test_the_outcome_model_alone_is_a_forest_without_correction():
    x, dose, y = draw()
    forest = small().fit(x, y, treatment=dose)
    alone = small(correction="none").fit(x, y, treatment=dose)
    assert np.array_equal(alone.dose_response(x), forest.outcome_model_.dose_response(x))
    whole = Slopes().fit(np.column_stack([x, dose]), y)
    expected = whole.predict(np.column_stack([x, np.full(len(x), 2.0)]))
    assert alone.dose_response(x, 2.0)[:, 0] == pytest.approx(expected)


def test_trees_split_on_effect_features_only():
    x, dose, y = draw()
    y = y + 5 * np.sin(3 * x[:, 1]) * dose  # more than the outcome model sees, in feature 1
    table = pd.DataFrame(x, columns=NAMES)
    forest = small(effect_features=["age", 2]).fit(table, y, treatment=dose)
    grown = forest.model_.parts[0].correction.rounds[0].forests[0].forest
    assert grown.n_features == 2
    assert forest.model_.effect_columns.tolist() == [1, 2]
    same = small(controls=["income"]).fit(table, y, treatment=dose)
    assert np.array_equal(same.dose_response(table), forest.dose_response(table))


def test_swapped_halves_answer_for_the_rows_they_have_not_seen():
    x, dose, y = draw()
    forest = small(honesty="swap").fit(x, y, treatment=dose)
    first, second = forest._fitted.parts
    assert np.array_equal(first.rows.grows, ~second.rows.grows)
    half = np.flatnonzero(first.rows.grows)
    line = Slopes().fit(np.column_stack([x, dose])[half], y[half])
    unseen = np.flatnonzero(~first.rows.grows)
    expected = line.predict(np.column_stack([x, dose])[unseen])
    assert first.outcome.observed[unseen] == pytest.approx(expected)
    # The curve of a new unit is the mean of the two.
    new = draw(5, seed=3)[0]
    parts = [
        part.correction.curves(part.outcome, new, new, np.array([1.0]), 1)
        for part in forest.model_.parts
    ]
    assert forest.dose_response(new, 1.0) == pytest.approx(np.mean(parts, axis=0))
    assert forest.average_effect(3.0, 1.0).value == pytest.approx(2.0, abs=0.3)
    assert [report["half"] for report in forest.rounds_] == [0, 1]
    assert sum(forest.outcome_weights_.values()) == pytest.approx(1.0)


def test_averages_are_right_within_their_standard_errors(fitted):
    # Average outcome 10 + t: x has mean zero in the population. Five standard errors are enough
    # for a whole curve.
    average = fitted.average_dose_response()
    gap = average.values - (10 + average.doses)
    assert (np.abs(gap) < 5 * average.standard_errors).all()
    # The curves of 400 units have a standard deviation of about sqrt(1 + t^2 / 4).
    spread = np.sqrt(1 + average.doses**2 / 4) / np.sqrt(400)
    assert (average.standard_errors > 0.7 * spread).all()
    # The noise of local lines comes on top: .5 sqrt(.6 / (400 .25 h)) = .05 inside, twice that and
    # more at the ends.
    assert (average.standard_errors < spread + 0.2).all()
    effect = fitted.average_effect(3.0, 1.0)
    assert abs(effect.value - 2.0) < 5 * effect.standard_error


def test_known_densities_and_named_ones_are_taken():
    x, dose, y = draw()
    for density in ("none", "gaussian", np.full(400, 0.25), lambda X, t: np.full(t.shape, 0.25)):
        forest = small(n_trees=4, density=density).fit(x, y, treatment=dose)
        assert forest.average_effect(3.0, 1.0).value == pytest.approx(2.0, abs=0.3)


@pytest.mark.parametrize(("correction", "most"), [("stabilized", 0.3), ("kernel", 1.5)])
def test_kernel_corrections_take_a_bandwidth_or_choose_one(correction, most):
    x, dose, y = draw()
    chosen = {}
    for asked in (None, "rule_of_thumb", "leave_one_out", 1.5):
        forest = small(
            correction=recipe(correction, bandwidth=asked), n_trees=4, density="gaussian"
        )
        forest.fit(x, y, treatment=dose)
        chosen[asked] = forest.rounds_[0]["bandwidth"]
        exact = 2 * (1 + 0.5 * x[:, 1])
        # The published form puts noisy means of a few rows in place of a right outcome model.
        assert np.sqrt(np.mean((forest.effect(x, 3.0, 1.0) - exact) ** 2)) < most
    assert chosen[1.5] == 1.5
    factor = {"stabilized": 2.0, "kernel": 1.0}[correction]
    assert chosen[None] == pytest.approx(factor * chosen["rule_of_thumb"])
    assert chosen["leave_one_out"] not in (chosen[None], chosen["rule_of_thumb"])


def test_the_bandwidth_of_averages_is_a_choice_of_its_own():
    x, dose, y = draw()
    averages = []
    for asked in ("leave_one_out", "rule_of_thumb", 0.5):
        forest = small(n_trees=4, average_bandwidth=asked, density="none").fit(x, y, treatment=dose)
        averages.append(forest.average_dose_response([2.0]).values[0])
        assert averages[-1] == pytest.approx(12.0, abs=0.4)
    assert len(set(averages)) == 3


def test_units_without_support_at_a_dose_are_flagged():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 2))
    dose = 3 * x[:, 0] + rng.normal(size=800)
    y = x[:, 1] + dose + rng.normal(size=800)
    forest = small(n_trees=4, baseline=0.0, doses=[-3, 0, 3]).fit(x, y, treatment=dose)
    flags = forest.supported(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]), [-3.0, 0.0, 3.0])
    assert flags.tolist() == [[False, False, True], [True, False, False], [False, True, False]]


def test_a_dose_that_hardly_anyone_could_have_had_is_called_out():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 2))
    dose = np.where(x[:, 0] > 1.8, 10.0, 0.0) + rng.normal(size=800)
    y = dose + rng.normal(size=800)
    with pytest.warns(OverlapWarning, match="Fewer than 10% of the units could have had"):
        small(n_trees=4, baseline=0.0).fit(x, y, treatment=dose)


def test_a_baseline_without_rows_is_replaced_and_said():
    x, dose, y = draw()
    with pytest.warns(BaselineWarning, match="the dose 0 lies outside"):
        forest = small(n_trees=4).fit(x, y, treatment=dose + 5)
    assert forest.baseline_ >= 5
    given = small(n_trees=4, baseline=7.0).fit(x, y, treatment=dose + 5)
    assert given.baseline_ == 7.0
    assert 7.0 in given.doses_


def test_levels_are_answered_as_levels():
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(600, 2)), rng.choice([0.0, 5.0, 10.0], size=600)
    y = x[:, 0] + np.where(dose == 5, 3.0, 0.0) * (1 + x[:, 1]) + rng.normal(size=600)
    forest = GeneralizedCausalForest(n_trees=40, random_state=0, n_jobs=1)
    forest.fit(x, y, treatment=dose)
    assert forest.doses_.tolist() == [0, 5, 10]
    # Means of 200 rows each: standard error about sqrt(2) 2 / sqrt(200) = .2.
    assert forest.average_effect(5.0).value == pytest.approx(3.0, abs=0.6)
    assert forest.average_effect(10.0).value == pytest.approx(0.0, abs=0.6)


def test_levels_have_no_elasticity():
    x, dose, y = draw()
    forest = small(n_trees=4).fit(x, y, treatment=np.floor(dose))
    with pytest.raises(
        ValueError, match=r"must be a quantity .* levels \[0\.0, 1\.0, 2\.0, 3\.0\]"
    ):
        forest.elasticity(x, 2.0)
    assert forest.partial_effect(x, 1.0, 2.0).shape == (400,)


def test_too_few_trees_are_called_out_once():
    x, dose, y = draw()
    with pytest.warns(UserWarning, match="are in every tree") as caught:
        small(n_trees=40).fit(x, y, treatment=dose)  # .7^10 of 400 rows: 11
    assert [str(warning.message)[:16] for warning in caught] == ["About 11 of 400 "]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("correction", ["orthogonal", "stabilized"])
def test_levels_and_units_of_columns_and_outcomes_make_no_difference(correction):
    x, dose, y = draw()
    unit, level = np.array([2.0**10, 1.0, 2.0**-10]), np.array([4096.0, -64.0, 0.0])
    kept = GeneralizedCausalForest(40, correction=correction, random_state=0, n_jobs=1)
    effect = kept.fit(x, y, treatment=dose).effect(x, 3.0, 1.0)
    moved = clone(kept).fit(x * unit + level, 2**10 * y + 2**20, treatment=dose)
    said = moved.effect(x * unit + level, 3.0, 1.0) / 2**10
    np.testing.assert_allclose(said, effect, atol=1e-3)


def test_rare_levels_are_called_out():
    x, _, y = draw()
    dose = np.where(np.arange(400) % 40 == 0, 2.0, np.arange(400) % 2)
    with pytest.warns(UserWarning, match=r"level\(s\) 2 of the treatment have fewer than 20 rows"):
        small(n_trees=4).fit(x, y, treatment=dose)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"treatment": np.ones(400)}, "must vary: a constant dose has no effect to learn. Got 1"),
        ({"treatment": np.full(400, np.nan)}, "'treatment' parameter must hold finite numbers"),
        ({"y": np.full(400, np.inf)}, "'y' parameter must hold finite numbers"),
        ({"treatment": None}, "set_config"),
        ({"treatment": np.ones(3)}, "one row per row of X"),
        ({"X": np.zeros((400, 0))}, "1 to .* features"),
        ({"groups": np.ones(3)}, "'groups' parameter"),
        ({"sample_weight": -np.ones(400)}, "must not be negative"),
        ({"groups": np.arange(400) % 3}, "must have at least 4 groups for 4 folds. Got 3"),
    ],
)
def test_bad_data_is_refused_by_name(change, message):
    x, dose, y = draw()
    given = {"X": x, "y": y, "treatment": dose, **change}
    with pytest.raises(ValueError, match=message):
        small().fit(given.pop("X"), given.pop("y"), **given)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_trees": 0}, "'n_trees' parameter"),
        ({"correction": "magic"}, "'correction' parameter"),
        ({"density": "magic"}, "'density' parameter"),
        ({"baseline": 99.0}, "'baseline' parameter must lie in the support"),
        ({"doses": [0.0, 99.0]}, "'doses' parameter must lie in the support"),
        ({"controls": ["height"]}, "'controls' parameter must hold features of X"),
        ({"controls": [0], "effect_features": [0]}, "must share no feature with 'controls'"),
        ({"controls": [0, 1, 2]}, "must leave a feature to split on"),
        ({"n_folds": 1}, "'n_folds' parameter"),
        ({"sample_fraction": 1.0}, "'sample_fraction' parameter"),
        ({"mtry": 4}, r"at most the number of features that trees split on \(3\). Got 4"),
        ({"doses": []}, "'doses' parameter .* at least one dose"),
        ({"density_features": []}, "'density_features' parameter must name at least one feature"),
        ({"effect_features": []}, "'effect_features' parameter must name at least one feature"),
        ({"density": np.ones(3)}, "'density' parameter must have one value per row"),
        (
            {"density": "entropy", "correction": "kernel"},
            "which divides by a density. Got 'entropy'",
        ),
        ({"kernel": "exact"}, "only for a dose of few levels. Got a dose with 400 distinct values"),
    ],
)
def test_bad_parameters_are_refused_by_name(parameters, message):
    x, dose, y = draw()
    with pytest.raises(ValueError, match=message):
        small(**parameters).fit(x, y, treatment=dose)


def test_a_level_that_one_fold_holds_alone_is_refused():
    x, _, y = draw()
    dose = np.arange(400) % 2.0
    dose[7] = 2.0
    forest = small()
    with (
        pytest.warns(UserWarning, match="fewer than 20 rows"),
        pytest.raises(ValueError, match=r"Got level 2 in 1 row\(s\), all in fold"),
    ):
        forest.fit(x, y, treatment=dose)


def test_a_question_beyond_the_data_is_refused(fitted):
    x, _, _ = draw(5)
    with pytest.raises(ValueError, match=r"must lie in the support of the dose, \[0.*Got 9"):
        fitted.dose_response(x, [1.0, 9.0])
    with pytest.raises(ValueError, match=r"must have 3 features, as in fit: X has 2 features"):
        fitted.effect(x[:, :2], 1.0)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        small().effect(x, 1.0)


def test_a_distilled_forest_says_what_it_costs(fitted, capsys):
    compact = fitted.distill(n_trees=50)
    assert f"differ by {compact.error:.4g}" in capsys.readouterr().out
    assert 0 < compact.error < 0.7 * compact.spread
    x, _, _ = draw(300, seed=4)
    gap = compact.effect(x, 3.0, 1.0) - fitted.effect(x, 3.0, 1.0)
    assert np.sqrt(np.mean(gap**2)) < 2 * compact.error
    assert compact.dose_response(x) == pytest.approx(compact.dose_response(x, compact.doses))
    assert set(fitted.doses_) <= set(compact.doses)


def test_a_distilled_forest_finds_its_features_by_name():
    x, dose, y = draw()
    table = pd.DataFrame(x, columns=NAMES)
    compact = small(n_trees=4).fit(table, y, treatment=dose).distill(n_trees=10, verbose=False)
    assert np.array_equal(compact.dose_response(table[NAMES[::-1]]), compact.dose_response(table))


def test_it_works_in_pipelines_and_searches(capsys):
    x, dose, y = draw()
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), small(n_trees=4))
        pipeline.fit(x, y, treatment=dose)
        assert pipeline[-1].n_features_in_ == 3
        search = GridSearchCV(
            small(n_trees=4, baseline=2.0), {"correction__n_rounds": [1, 2]}, cv=2
        )
        search.fit(x, y, treatment=dose)
        assert -2 < search.best_score_ < 0  # minus the R-risk
    with pytest.raises((ValueError, TypeError), match=r"set_config|enable_metadata_routing"):
        GridSearchCV(small(), {"correction__n_rounds": [1]}, cv=2, error_score="raise").fit(x, y)


def test_a_search_survives_doses_beyond_those_of_a_fold():
    x, _, y = draw()
    dose = np.random.default_rng(1).lognormal(size=400)
    with warnings.catch_warnings(), sklearn.config_context(enable_metadata_routing=True):
        warnings.simplefilter("ignore")  # of the far doses
        search = GridSearchCV(small(n_trees=4, baseline=1.0), {"correction__n_rounds": [1]}, cv=4)
        search.fit(x, y + dose, treatment=dose)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_fitted_forest_can_be_pickled(fitted):
    x, _, _ = draw(5)
    fitted.average_effect(2.0)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.dose_response(x), fitted.dose_response(x))


def test_an_effect_at_the_most_frequent_level_is_found_as_well():
    # The outcome model knows nothing of the step; trees must see it at either level.
    rng = np.random.default_rng(0)
    x, errors = rng.uniform(-1, 1, size=(1000, 2)), []
    for acting in (0.0, 1.0):
        dose = (rng.random(1000) < 0.45).astype(float)
        y = 3 * (np.abs(x[:, 0]) > 0.5) * (dose == acting) + 0.5 * rng.normal(size=1000)
        forest = small(outcome_model=LinearRegression(), n_trees=100).fit(x, y, treatment=dose)
        exact = np.where(acting, 3.0, -3.0) * (np.abs(x[:, 0]) > 0.5)
        errors.append(np.sqrt(np.mean((forest.effect(x, 1.0, 0.0) - exact) ** 2)))
    assert max(errors) < 0.8  # 1.5 for an average effect
    assert max(errors) < 1.5 * min(errors)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_support_does_not_depend_on_the_unit_of_the_dose(unit):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    dose = np.where(rng.random(600) < 0.3, 0.0, rng.uniform(1, 10, size=600))
    y = x[:, 0] + dose + rng.normal(size=600)
    forest = small(n_trees=4).fit(x, y, treatment=unit * dose)
    assert forest.supported(x[:50], unit * np.array([0.0, 3.0, 5.0, 8.0])).all()


@pytest.mark.parametrize("correction", ["orthogonal", "stabilized", "kernel"])
def test_effects_do_not_depend_on_the_unit_of_a_dose_with_a_mass(correction):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    dose = np.where(rng.random(500) < 0.3, 0.0, rng.uniform(1, 10, size=500))
    y = 10 + x[:, 0] + dose * (1 + 0.5 * x[:, 1]) + rng.normal(size=500)
    effects = []
    for unit in (1.0, 2.0**-10):  # powers of two round alike
        forest = small(correction=correction, n_trees=8, density="location_scale")
        forest.fit(x, y, treatment=unit * dose)
        effects.append(forest.effect(x, 8.0 * unit, 0.0))
    assert effects[0] == pytest.approx(effects[1], rel=0.05, abs=0.2)


def test_support_is_not_claimed_far_outside(fitted):
    with pytest.raises(ValueError, match=r"must lie in the support of the dose.*Got 1000"):
        fitted.supported(np.zeros((1, 3)), [2.0, 1000.0])


def test_swapped_halves_grow_on_their_own_outcomes_only():
    x, dose, y = draw()
    y = y + 5 * np.sin(3 * x[:, 1]) * dose  # something to grow on
    forest = small(honesty="swap").fit(x, y, treatment=dose)
    half = forest._fitted.rows.grows
    changed = small(honesty="swap").fit(x, np.where(half, y, 1.01 * y), treatment=dose)
    rounds = [f.model_.parts[0].correction.rounds for f in (forest, changed)]
    assert len(rounds[0]) == len(rounds[1]) == 1
    grown = [{own.forest.plan.seed: own.forest for own in each[0].forests} for each in rounds]
    assert grown[0].keys() & grown[1].keys()  # forests with a share in both
    for seed in grown[0].keys() & grown[1].keys():
        first, second = grown[0][seed], grown[1][seed]
        assert np.array_equal(first.nodes["feature"], second.nodes["feature"])
        assert not np.array_equal(first.leaf_sums, second.leaf_sums)


def test_elasticity_at_the_edge_is_finite(fitted):
    low = fitted.model_.support.low
    assert np.isfinite(fitted.elasticity(np.zeros((1, 3)), max(low - 0.05, low * 0.5))).all()


def test_a_distilled_forest_answers_for_the_whole_support(fitted):
    compact = fitted.distill(n_trees=5, verbose=False)
    within = fitted.model_.support
    ends = compact.dose_response(np.zeros((1, 3)), [within.low, within.high])
    assert np.isfinite(ends).all()


def test_a_grid_of_the_users_gets_the_baseline_and_only_levels():
    x, dose, y = draw()
    forest = small(n_trees=4, doses=[1.0, 3.0], baseline=2.0).fit(x, y, treatment=dose)
    assert forest.doses_.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"some of the levels \[0.0, 1.0, 2.0\]"):
        small(doses=[0.5]).fit(x, y, treatment=np.arange(400) % 3)


def test_verbose_prints_where_the_time_went(capsys):
    x, dose, y = draw()
    small(n_trees=4, verbose=True).fit(x, y, treatment=dose)
    printed = capsys.readouterr().out
    for phase in ("nuisances", "curves", "growth", "leaves"):
        assert phase in printed


def test_rows_of_a_group_share_a_fold():
    x, dose, y = draw()
    groups = np.repeat(np.arange(100), 4)
    forest = small(n_trees=4).fit(x, y, treatment=dose, groups=groups)
    folds = forest._fitted.parts[0].outcome.folds.reshape(100, 4)
    assert (folds == folds[:, :1]).all()


def test_repeated_cross_fitting_averages_the_folds():
    x, dose, y = draw()
    once = small(n_trees=4).fit(x, y, treatment=dose)
    thrice = small(n_trees=4, n_repeats=3).fit(x, y, treatment=dose)
    assert len(thrice._fitted.parts[0].outcome.repeats) == 3
    assert not np.array_equal(
        once._fitted.parts[0].outcome.observed, thrice._fitted.parts[0].outcome.observed
    )
