"""Importance of features for effects: gain in the correction, shuffles of the whole curve."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from doseforest import GeneralizedCausalForest
from doseforest.engine.look_inside.split_importance import feature_importance
from doseforest.estimator.out_of_bag import changed_curves
from doseforest.estimator.trained_parts import out_of_bag
from doseforest.evaluation import effect_importance, effect_losses

LEVEL, MODIFIER, NOISE = 0, 1, 2


def draw(n=500, seed=0):
    """The first feature moves the level alone and drives the dose, the second the effect."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    dose = np.clip(2 + 0.5 * x[:, LEVEL] + rng.normal(size=n), 0, 4)
    y = 5 + 2 * x[:, LEVEL] + dose * (1 + x[:, MODIFIER]) + 0.5 * rng.normal(size=n)
    return x, dose, y


def forest(**parameters):
    settings = {"outcome_model": LinearRegression(), "n_trees": 40, "baseline": 2.0}
    return GeneralizedCausalForest(**{**settings, "random_state": 0, "n_jobs": 1, **parameters})


def fit(n=500, **parameters):
    x, dose, y = draw(n)
    return forest(**parameters).fit(x, y, treatment=dose)


def quadratic():
    return make_pipeline(PolynomialFeatures(2), LinearRegression())


@pytest.fixture(scope="module")
def corrected():
    """Least squares without products: the forests have to find the modifier."""
    return fit()


@pytest.fixture(scope="module")
def products():
    """The outcome model knows of the modifier, so that forests have nothing to do."""
    return fit(outcome_model=quadratic())


def test_gain_is_the_mean_over_forests_by_their_shares(corrected):
    rounds = corrected.model_.parts[0].correction.rounds
    total = np.zeros(3)
    for own in rounds:
        for member in own.forests:
            total += sum(member.shares) * feature_importance(member.forest).values
    importance = effect_importance(corrected)
    assert total.sum() > 0.5
    assert importance.values == pytest.approx(total / total.sum())
    assert importance.ranked()[0] == ("x[1]", importance.values[MODIFIER])
    assert importance.values[MODIFIER] > 0.6


def test_gain_goes_by_depth_as_in_a_single_forest(corrected):
    roots = effect_importance(corrected, max_depth=1)
    assert roots.values[MODIFIER] > effect_importance(corrected).values[MODIFIER]
    assert roots.values.sum() == pytest.approx(1.0)


def test_features_that_trees_may_not_split_on_gain_nothing():
    importance = effect_importance(fit(300, controls=[0, 2]))
    np.testing.assert_array_equal(importance.values, [0.0, 1.0, 0.0])


def test_without_a_correction_there_is_no_gain():
    np.testing.assert_array_equal(effect_importance(fit(300, correction="none")).values, 0.0)


@pytest.mark.parametrize(
    ("correction", "density"), [("stabilized", "none"), ("kernel", "gaussian")]
)
def test_every_correction_tells_its_forests(correction, density):
    importance = effect_importance(fit(300, correction=correction, density=density))
    assert importance.values.sum() == pytest.approx(1.0)
    assert importance.ranked()[0][0] == "x[1]"


def test_the_forest_without_its_rows_has_gains_but_cannot_shuffle(corrected):
    alone = corrected.model_
    assert effect_importance(alone).values == pytest.approx(effect_importance(corrected).values)
    with pytest.raises(ValueError, match="must be 'gain' for a forest without its training rows"):
        effect_importance(alone, "permutation")


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"honesty": "swap"},
        {"n_repeats": 2},
        {"correction": "none"},
        {"correction": "kernel", "density": "gaussian"},
        {"correction": "stabilized", "density": "none"},
    ],
)
def test_rows_as_they_are_get_their_out_of_bag_curves(parameters):
    fitted = fit(300, **parameters)
    doses = np.array([1.0, 2.0, 3.0])
    exact, _ = out_of_bag(fitted._fitted.parts, doses)
    found = changed_curves(fitted._fitted.parts, draw(300)[0], doses)
    # What is added for everyone alike leaves the row itself out there, and not here.
    assert found == pytest.approx(exact, abs=0.02 * exact.std())


def test_a_changed_row_is_not_answered_by_what_has_seen_it(corrected):
    x, _, _ = draw()
    doses = np.array([0.5, 3.5])
    before = changed_curves(corrected._fitted.parts, x, doses)
    changed = x.copy()
    changed[7, MODIFIER] += 2.0
    after = changed_curves(corrected._fitted.parts, changed, doses)
    others = np.arange(len(x)) != 7
    np.testing.assert_array_equal(after[others], before[others])
    assert np.ptp(after[7] - before[7]) > 1.0  # its effect has changed: 3 doses by 2, shrunk


@pytest.mark.parametrize("name", ["corrected", "products"])
def test_shuffling_ranks_the_modifier_first_and_noise_at_nothing(name, request):
    fitted = request.getfixturevalue(name)
    found = effect_importance(fitted, "permutation", n_repeats=3)
    assert found.ranked()[0][0] == "x[1]"
    # Var(dose | x) is about .9 and shuffling doubles the modifier's variance of 1.
    assert 0.9 < found.values[MODIFIER] < 2.4
    assert found.values[MODIFIER] > 6 * found.standard_errors[MODIFIER]
    for feature in (LEVEL, NOISE):
        assert abs(found.values[feature]) < 0.03 * found.values[MODIFIER]


def test_the_risk_without_a_shuffle_is_about_the_noise(products):
    found = effect_importance(products, "permutation", n_repeats=1)
    assert found.risk == pytest.approx(0.25, rel=0.2)  # 500 squares of sd .5: 6 % each way
    assert np.isnan(found.repeat_standard_errors).all()
    assert found.n_repeats == 1


def test_shuffles_are_drawn_by_the_seed():
    shuffled = fit(200, outcome_model=quadratic(), correction="none")
    first, same = (effect_importance(shuffled, "permutation", n_repeats=2) for _ in range(2))
    np.testing.assert_array_equal(first.values, same.values)
    other = effect_importance(shuffled, "permutation", n_repeats=2, random_state=1)
    assert (first.values != other.values).all()
    assert (first.repeat_standard_errors >= 0).all()


def test_names_travel_with_the_values():
    pandas = pytest.importorskip("pandas")
    x, dose, y = draw(200)
    table = pandas.DataFrame(x, columns=["level", "modifier", "noise"])
    fitted = forest(correction="none").fit(table, y, treatment=dose)
    assert effect_importance(fitted, "permutation", n_repeats=1).names == tuple(table.columns)
    assert effect_importance(fitted).names == tuple(table.columns)


@settings(max_examples=30, derandomize=True, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(2, 60))
def test_the_risk_does_not_see_the_level(seed, n):
    rng = np.random.default_rng(seed)
    curve, mean, y, y_mean, level, other = rng.normal(size=(6, n))
    losses = effect_losses(curve, mean, y, y_mean)
    moved = effect_losses(curve + level, mean + level, y + other, y_mean + other)
    assert moved == pytest.approx(losses)
    assert losses == pytest.approx(((y - curve) - (y_mean - mean)) ** 2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "shap"}, r"'method' parameter must be one of .* Got 'shap'"),
        ({"method": "permutation", "n_repeats": 0}, "'n_repeats' parameter must be an int"),
        ({"method": "permutation", "n_repeats": 1.5}, "'n_repeats' parameter .* Got 1.5"),
        ({"method": "permutation", "random_state": -1}, "'random_state' parameter must be an int"),
        ({"decay": -1.0}, "'decay' parameter"),
        ({"max_depth": -1}, "'max_depth' parameter"),
    ],
)
def test_errors_name_parameter_rule_and_value(corrected, parameters, message):
    with pytest.raises(ValueError, match=message):
        effect_importance(corrected, **parameters)


def test_a_risk_of_arrays_that_do_not_match_is_refused():
    with pytest.raises(ValueError, match=r"'curve_mean_given_x' parameter .* Got shape \(2,\)"):
        effect_losses(np.zeros(3), np.zeros(2), np.zeros(3), np.zeros(3))


def test_before_fit_there_is_nothing_to_rank():
    for method in ("gain", "permutation"):
        with pytest.raises(NotFittedError):
            effect_importance(forest(), method)
