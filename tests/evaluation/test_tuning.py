"""Tuning: the right setting is found, chance is no merit, idle parameters are refused."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LinearRegression

from doseforest import GeneralizedCausalForest, tune
from doseforest.corrections import Stabilized
from doseforest.doses.curve_effects import CurveEffects, dose_table
from doseforest.evaluation.tuned_parameters import PARAMETERS, checked_params
from doseforest.evaluation.tuning import _result
from doseforest.nuisance.treatment.known_densities import Strata


class Line(CurveEffects, BaseEstimator):
    """Curves with a slope that no data changes."""

    fits = []

    def __init__(self, slope=0.0, wiggle=0.0, density="auto"):
        self.slope = slope
        self.wiggle = wiggle
        self.density = density

    def fit(self, X, y, treatment, sample_weight=None, groups=None):
        if self.slope == 99:
            raise ValueError("too steep")
        Line.fits.append((X, y, treatment, sample_weight, groups, self.density))
        return self

    def dose_response(self, X, doses=None):
        table = dose_table(doses, len(X)).values
        return self.slope * table + self.wiggle * np.sin(50 * table)


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X, dose = rng.normal(size=(n, 3)), rng.uniform(0, 4, n)
    return X, X[:, 0] + 2 * dose + rng.normal(size=n), dose


def test_the_setting_nearest_to_the_truth_is_chosen():
    X, y, dose = rows()
    found = tune(Line(), X, y, treatment=dose, params={"slope": [1.0, 2.0, 3.0]}, n_folds=2)
    assert found.chosen == found.best == {"slope": 2.0}
    assert found.beats_default
    assert found.forest.slope == 2.0
    assert len(found.trials) == 4
    assert found.trials[0].params == {}
    assert found.trials[0].difference.value == 0
    assert [line["risk"] for line in found.table] == sorted(t.risk for t in found.trials)
    # Slopes that are off by s cost s^2 Var(T) = s^2 4/3; a yardstick of boosting is rough.
    differences = {t.params.get("slope"): t.difference.value for t in found.trials}
    assert differences[2.0] == pytest.approx(-4 * 4 / 3, rel=0.2)
    assert "Chosen: slope=2.0." in str(found)


def test_settings_without_merit_do_not_beat_the_forest_as_it_is():
    X, y, dose = rows()
    wiggles = np.linspace(1e-3, 5e-3, 12).tolist()
    found = tune(Line(slope=2.0), X, y, treatment=dose, params={"wiggle": wiggles}, n_folds=2)
    assert not found.beats_default
    assert found.chosen == {}
    assert found.forest.wiggle == 0.0
    assert "No candidate beats the forest as given beyond noise." in str(found)


def test_a_sure_gain_is_not_hidden_by_a_larger_one_that_may_be_noise():
    def risk(value, gap, error):
        return SimpleNamespace(
            value=value, minus=lambda other: SimpleNamespace(value=gap, standard_error=error)
        )

    risks = [risk(1.0, 0.0, 0.0), risk(0.95, -0.05, 0.001), risk(0.94, -0.06, 0.14)]
    settings = [{"max_bins": 7}, {"max_bins": 9}]
    found = _result(GeneralizedCausalForest(), settings, risks, np.ones(3))
    assert found.beats_default
    assert found.chosen == {"max_bins": 7}
    assert found.forest.max_bins == 7
    assert found.best == {"max_bins": 9}


def test_of_many_combinations_some_are_drawn_the_same_for_a_seed():
    X, y, dose = rows(60)
    grid = {"slope": [0.0, 1.0, 2.0, 3.0], "wiggle": [0.0, 0.1, 0.2]}
    given = {"treatment": dose, "params": grid, "n_trials": 5, "n_folds": 2}
    first, again = (tune(Line(), X, y, **given) for _ in range(2))
    other = tune(Line(), X, y, random_state=1, **given)
    assert [t.params for t in first.trials] == [t.params for t in again.trials]
    assert [t.risk for t in first.trials] == [t.risk for t in again.trials]
    assert [t.params for t in first.trials] != [t.params for t in other.trials]
    assert {"slope": 0.0, "wiggle": 0.0} not in [t.params for t in first.trials]  # as it is
    assert len(first.trials) == 6


def test_rows_of_a_group_are_never_fitted_and_judged():
    X, y, dose = rows(80)
    X[:, 0] = np.arange(80)
    groups, strata = np.arange(80) // 4, np.arange(80) % 2
    Line.fits.clear()
    tune(
        Line(density=Strata(strata)),
        X,
        y,
        treatment=dose,
        params={"slope": [1.0]},
        n_folds=4,
        groups=groups,
        sample_weight=np.linspace(1, 2, 80),
    )
    assert len(Line.fits) == 8
    for table, outcome, treatment, weight, own, density in Line.fits:
        places = table[:, 0].astype(int)
        np.testing.assert_array_equal(outcome, y[places])
        np.testing.assert_array_equal(treatment, dose[places])
        np.testing.assert_array_equal(own, groups[places])
        np.testing.assert_array_equal(density.labels, strata[places])
        np.testing.assert_allclose(weight, np.linspace(1, 2, 80)[places])
        held = np.setdiff1d(np.arange(80), places)
        assert not set(groups[held]) & set(own)


def test_a_forest_with_a_hopeless_bandwidth_is_mended():
    rng = np.random.default_rng(0)
    X, dose = rng.normal(size=(300, 2)), rng.uniform(0, 4, 300)
    y = X[:, 0] + 4 * np.sin(dose) + 0.3 * rng.normal(size=300)
    forest = GeneralizedCausalForest(
        n_trees=20,
        outcome_model=LinearRegression(),  # which knows no waves
        density="none",
        correction=Stabilized(bandwidth=8.0, leaf_sizes=20),  # and neither does this
        baseline=2.0,
        random_state=0,
    )
    found = tune(
        forest, X, y, treatment=dose, params={"correction__bandwidth": [0.5, 8.0]}, n_folds=2
    )
    assert found.chosen == {"correction__bandwidth": 0.5}
    assert found.forest.correction.bandwidth == 0.5
    assert forest.correction.bandwidth == 8.0


@pytest.mark.parametrize(
    ("parameters", "idle"),
    [
        ({"correction": "orthogonal"}, "average_bandwidth"),
        ({"correction": "orthogonal"}, "density"),
        ({"correction": "stabilized"}, "basis"),
        ({"correction": "none"}, "mtry"),
        ({"correction": "orthogonal", "honesty": "swap"}, "honesty_fraction"),
        ({"correction": "orthogonal", "honesty": "swap"}, "correction__n_rounds"),
        ({"correction": "orthogonal"}, "verbose"),
    ],
)
def test_parameters_that_do_nothing_are_refused(parameters, idle):
    forest = GeneralizedCausalForest(**parameters)
    with pytest.raises(ValueError, match=f"Got '{idle}', which does nothing"):
        checked_params(forest, {idle: [1, 2]}, np.arange(40.0))


@pytest.mark.parametrize("correction", ["orthogonal", "stabilized", "kernel", "paper"])
def test_what_is_tried_by_default_acts_in_the_mode_and_can_be_set(correction):
    forest = GeneralizedCausalForest(correction=correction)
    if correction == "paper":
        forest = GeneralizedCausalForest.paper()
    tried = checked_params(forest, None, np.linspace(0, 1, 100))
    assert ("correction__bandwidth" in tried) == (correction != "orthogonal")
    assert ("correction__zeta" in tried) == (correction == "paper")
    for name, values in tried.items():
        assert correction in PARAMETERS[name].corrections
        for value in values:
            clone(forest).set_params(**{name: value})._validate_params()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"params": {"depth": [1]}}, "'params' parameter must name parameters of the forest"),
        ({"params": {"slope": 1.0}}, "'params' parameter must have a list of values for 'slope'"),
        ({"params": {"slope": []}}, "'params' parameter must have a list of values for 'slope'"),
        ({"params": {"slope": [0.0]}}, "must have a setting that the forest does not have"),
        ({"params": {"slope": [99]}}, "settings that can be fitted. Got {'slope': 99}"),
        ({"params": []}, "'params' parameter must be a mapping"),
        ({"params": None}, "'params' parameter must be given where nothing is tuned by default"),
        ({"n_trials": 0}, "'n_trials' parameter must be"),
        ({"n_folds": 1}, "'n_folds' parameter must be"),
        ({"n_folds": 30}, "'n_folds' parameter must leave 4 rows or groups .* at most 12 of 50"),
        ({"random_state": -1}, "'random_state' parameter must be"),
        ({"forest": 3}, "'forest' parameter must be an estimator"),
        ({"progress": "x"}, "'progress' parameter must be None, True or False. Got 'x'"),
        ({"treatment": None}, "'treatment' parameter of tune must be given"),
        ({"treatment": np.ones(40)}, r"'treatment' parameter must have a row .*\(50\). Got 40"),
        ({"X": np.ones((40, 2))}, r"'X' parameter must have a row .*\(50\). Got 40"),
    ],
)
def test_bad_input_is_named(changed, message):
    X, y, dose = rows(50)
    given = {"forest": Line(), "params": {"slope": [1.0]}, "n_folds": 2}
    given |= {"X": X, "y": y, "treatment": dose, **changed}
    with pytest.raises((TypeError, ValueError), match=message):
        tune(**given)


def test_a_tuned_density_is_that_of_the_setting():
    X, y, dose = rows(60)
    X[:, 0] = np.arange(60)
    other = np.linspace(1.0, 2.0, 60)
    Line.fits.clear()
    settings = {"density": [other, "auto"]}
    tune(Line(density=np.ones(60)), X, y, treatment=dose, params=settings, n_folds=2)
    given, tuned, auto = (Line.fits[place] for place in range(3))
    np.testing.assert_array_equal(given[5], np.ones(30))
    np.testing.assert_array_equal(tuned[5], other[tuned[0][:, 0].astype(int)])
    assert auto[5] == "auto"


def test_folds_need_groups_for_the_folds_of_the_yardstick():
    X, y, dose = rows(90)
    given = {"treatment": dose, "params": {"slope": [1.0]}, "groups": np.arange(90) % 9}
    with pytest.raises(ValueError, match=r"'n_folds' parameter must leave 4 .* at most 2 of 9"):
        tune(Line(), X, y, n_folds=3, **given)
    assert len(tune(Line(), X, y, n_folds=2, **given).trials) == 2
