"""Questions at the edge of what can be answered: a sound answer, or an error that says why not."""

from __future__ import annotations

from operator import attrgetter

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from causal_tables import small
from doseforest import GeneralizedCausalForest
from doseforest.baselines import LinearCausalForest
from doseforest.estimator.averages.average_curves import AverageDoseResponse
from doseforest.inference.averages.projections import project
from doseforest.inference.heterogeneity.calibration import calibrate
from doseforest.inference.robust_regression import robust_least_squares
from doseforest.inference.shapes.shape_projection import project as nearest
from doseforest.inference.shapes.shape_test import measured_violations, shape_test
from doseforest.inference.shapes.shapes import shape_constraints


def draw(n=200, seed=0):
    rng = np.random.default_rng(seed)
    x, dose = rng.normal(size=(n, 2)), rng.uniform(0, 4, size=n)
    return x, dose, x[:, 0] + dose * (1 + x[:, 1]) + rng.normal(size=n)


@pytest.fixture(scope="module")
def forest():
    x, dose, y = draw()
    return small(correction="none", density="none").fit(x, y, treatment=dose)


@pytest.fixture(scope="module")
def as_printed():
    x, dose, y = draw()
    settings = {"n_trees": 3, "outcome_model": LinearRegression(), "random_state": 0, "n_jobs": 1}
    return GeneralizedCausalForest.paper(**settings, baseline=1.0).fit(x, y, treatment=dose)


@pytest.mark.parametrize(
    ("name", "arguments", "new_rows"),
    [
        ("tests.heterogeneity", {}, True),
        ("tests.calibration", {}, True),
        ("tests.calibration", {"dose": 3.0}, True),
        ("tests.rate", {"dose": 3.0}, True),
        ("average.derivative", {}, False),
        ("average.shift_effect", {"delta": 0.5}, False),
        ("shifts.forest", {"delta": 0.5}, False),
        ("shifts.derivative_forest", {}, False),
        ("tests.sensitivity", {}, False),
        ("average.best_linear_projection", {"dose": 3.0}, False),
        ("average.best_linear_projection", {"of": "derivative"}, False),
    ],
)
def test_paper_mode_has_no_outcomes_out_of_bag_to_judge_by(as_printed, name, arguments, new_rows):
    instead = "give new rows X, y, treatment" if new_rows else "fit with another correction"
    rule = f"needs outcomes out of bag, which correction='paper' does not have; {instead}"
    with pytest.raises(ValueError, match=rule):
        attrgetter(name)(as_printed)(**arguments)


def test_new_rows_judge_paper_mode_and_its_averages_are_answered(as_printed):
    x, dose, y = draw(seed=1)
    assert np.isfinite(as_printed.tests.calibration(x, y, dose).values).all()
    assert np.isfinite(as_printed.average_dose_response().values).all()
    assert np.isfinite(as_printed.average_effect(3.0).value)


def test_differences_of_rounding_size_have_nothing_to_say():
    rng = np.random.default_rng(0)
    average = rng.normal(size=200)
    noise = 1e-17 * rng.normal(size=200)
    found = calibrate(average + rng.normal(size=200), average, noise)
    assert found.values[1] == found.standard_errors[1] == 0.0
    assert found.heterogeneity_p_value == 1.0
    assert found.p_values[0] < 1e-6


def test_forests_without_differences_find_none_by_no_standard_errors():
    x, dose, y = draw()
    plain = small(correction="none", density="none", outcome_model=LinearRegression())
    found = plain.fit(x, y, treatment=dose).tests.heterogeneity(*_in_order(draw(seed=1)))
    assert (found.statistic, found.p_value) == (0.0, 1.0)


def _in_order(drawn):
    x, dose, y = drawn
    return x, y, dose


def test_columns_may_vary_little_around_a_large_mean():
    rng = np.random.default_rng(0)
    second = rng.integers(0, 86_400, size=300).astype(float)
    scores = 2 + 1e-5 * second + rng.normal(size=300)
    plain = project(scores, second[:, None], ("time",))
    start = 1.7e9
    stamped = project(scores, (start + second)[:, None], ("time",))
    # Sums of numbers of 1e9 keep seven digits or so of what varies.
    np.testing.assert_allclose(stamped.values[1], plain.values[1], rtol=1e-6)
    np.testing.assert_allclose(stamped.standard_errors[1], plain.standard_errors[1], rtol=1e-6)
    moved = np.array([[1.0, -start], [0.0, 1.0]])
    np.testing.assert_allclose(stamped.values, moved @ plain.values, rtol=1e-6)
    np.testing.assert_allclose(stamped.covariance, moved @ plain.covariance @ moved.T, rtol=1e-6)


def test_clusters_add_up_residuals_of_rows_whatever_is_regressed():
    rng = np.random.default_rng(0)
    column, clusters = rng.normal(size=60), np.repeat(np.arange(20), 3)
    scores, weights = column + rng.normal(size=60), rng.uniform(0.5, 2, size=60)
    design = np.column_stack([np.ones(60), column])
    bread = np.linalg.inv(design.T @ (design * weights[:, None]))
    left = weights * (scores - design @ bread @ design.T @ (weights * scores))
    sums = np.add.reduceat(design * left[:, None], np.arange(0, 60, 3))
    exact = 20 / 19 * bread @ sums.T @ sums @ bread
    common = {"weights": weights, "clusters": clusters}
    np.testing.assert_allclose(robust_least_squares(design, scores, **common).covariance, exact)
    np.testing.assert_allclose(project(scores, column[:, None], ("a",), **common).covariance, exact)


def test_one_cluster_has_no_standard_errors():
    column = np.arange(9.0)
    with pytest.raises(ValueError, match=r"'groups' parameter must have at least two .* Got 1"):
        project(column**2, column[:, None], ("a",), clusters=np.zeros(9, int))


def test_a_known_density_is_not_told_the_common_cause_that_was_added():
    x, dose, y = draw()
    seen = []

    def even(X, doses):
        seen.append(X.shape[1])
        return np.full(np.shape(doses), 0.25) + 0 * (X @ np.ones(2))[:, None]

    known = small(correction="none", density=even).fit(x, y, treatment=dose)
    settings = {"n_repeats": 2, "low": 1.0, "high": 3.0}
    known.tests.refute(x, y, dose, kind="random_common_cause", **settings)
    assert set(seen) == {2}


def test_new_rows_need_as_many_groups_as_folds(forest):
    x, dose, y = draw(seed=1)
    rule = r"'groups' parameter must have at least as many groups as .* folds \(4\). Got 3 instead"
    with pytest.raises(ValueError, match=rule):
        forest.tests.calibration(x, y, dose, groups=np.arange(200) % 3)


def test_categories_of_one_label_are_named():
    x, dose, y = draw()
    frame = pd.DataFrame({"a": x[:, 0], "place": pd.Categorical(["here"] * 200)})
    found = small(correction="none", density="none").fit(x, y, treatment=dose)
    for columns in (["place"], ["a", "place"]):
        with pytest.raises(ValueError, match=r"at least two labels. Got one label in 'place'"):
            found.average.best_linear_projection(frame[columns], dose=3.0)


def test_a_constant_outcome_is_refused_by_name():
    x, dose, _ = draw()
    plain = small(correction="none", density="none", outcome_model=LinearRegression())
    flat = plain.fit(x, np.full(200, 5.0), treatment=dose)
    with pytest.raises(ValueError, match=r"'y' parameter of fit must vary for sens.* Got 5 in all"):
        flat.tests.sensitivity()
    with pytest.raises(ValueError, match="'y' parameter of fit must vary for projections"):
        flat.average.best_linear_projection(dose=3.0)


def test_scores_that_are_all_alike_have_finite_t_values():
    found = project(np.zeros(9), np.arange(9.0)[:, None], ("a",))
    assert found.t_values.tolist() == [0.0, 0.0]
    assert found.p_values.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("spread", "exact"),
    [
        ([0.0, 0.0, 0.0], [0.0, 1.5, 1.5]),  # alike
        ([1.0, 0.0, 1.0], [0.0, 2.0, 2.0]),  # what has no noise stays
        ([0.0, 0.0, 1.0], [0.0, 2.0, 2.0]),
        ([1.0, 0.0, 0.0], [0.0, 1.5, 1.5]),
    ],
)
def test_shapes_of_averages_without_noise_are_finite(spread, exact):
    constraints = shape_constraints("increasing", np.arange(3.0))
    found = nearest(np.array([[0.0, 2.0, 1.0]]), constraints, np.array(spread))
    np.testing.assert_allclose(found[0], exact, atol=1e-6)


def test_covariances_that_leave_a_constraint_no_variance_are_refused():
    constraints = shape_constraints("increasing", np.arange(3.0))
    with pytest.raises(ValueError, match=r"'spread' parameter .* Got 2 of 2 without any instead"):
        nearest(np.array([[0.0, 2.0, 1.0]]), constraints, np.zeros((3, 3)))


def test_the_dose_at_fault_is_named(forest):
    for question in (forest.average_effect, forest.tests.rate):
        with pytest.raises(ValueError, match=r"'baseline' parameter must lie .* Got -50"):
            question(3.0, baseline=-50.0)
        with pytest.raises(ValueError, match=r"'dose' parameter must lie .* Got 50"):
            question(50.0, baseline=1.0)
    with pytest.raises(ValueError, match=r"'low' parameter must lie .* Got -50"):
        forest.average.partial_effect(-50.0, 2.0)
    with pytest.raises(ValueError, match=r"'low' parameter must be one dose"):
        forest.average.partial_effect([1.0, 2.0], 2.0)
    with pytest.raises(ValueError, match=r"'baseline' parameter must lie"):
        forest.average.best_linear_projection(dose=3.0, baseline=-50.0)


def test_shares_that_are_no_numbers_are_refused(forest):
    x, dose, y = draw()
    with pytest.raises(ValueError, match=r"'share' parameter must be a float in \(0, 1\). Got 'a'"):
        forest.tests.refute(x, y, dose, share="a")


def test_linear_causal_forests_draw_a_seed_where_none_is_given():
    x, dose, y = draw()
    for model in (None, LinearRegression()):
        lines = LinearCausalForest(20, random_state=None, outcome_model=model)
        assert np.isfinite(lines.fit(x, y, treatment=dose).slopes(x)).all()
        assert lines.random_state is None
    with pytest.raises(ValueError, match=r"'random_state' parameter must be an int .* Got 'a'"):
        LinearCausalForest(20, random_state="a").fit(x, y, treatment=dose)


def test_violations_of_curvature_are_the_chords_of_all_triples():
    doses = np.array([0.0, 1.0, 3.0, 4.0])
    found = measured_violations(("increasing", "convex"), doses, np.eye(4))
    assert found.places[:6] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert found.places[6:] == [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    above = np.array([0.0, 1.0, 1.0, 1.0])  # concave: the middle lies above the chord
    assert (found.sizes(above[None])[0, 6:8] > 0).all()
    np.testing.assert_allclose(found.sizes(doses[None])[0, 6:], 0.0, atol=1e-12)


def test_curvatures_are_not_tested_at_many_doses():
    doses = np.arange(61.0)
    average = AverageDoseResponse(doses, np.ones(61), np.eye(61), doses)
    for shape in ("concave", ("increasing", "convex")):
        with pytest.raises(ValueError, match=r"'doses' parameter must hold at most 60 .* Got 61"):
            shape_test(average, shape)
    assert shape_test(average, "increasing", n_draws=100).statistic < 0


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda own: own.tests.rate(dose=3.0, weighting=[1]),
            "'weighting' parameter must be one of",
        ),
        (lambda own: own.tests.shape([["concave"]]), "'shape' parameter must be one of"),
        (
            lambda own: own.tests.refute(*draw(), kind=[1]),
            "'kind' parameter must be one of placebo",
        ),
        (
            lambda own: own.tests.refute(*draw(), params=3),
            "'params' parameter must be a mapping.*Got 3",
        ),
        (
            lambda own: own.average.best_linear_projection(of="derivative", baseline=2),
            "'baseline' parameter must be left out for a derivative. Got 2",
        ),
        (
            lambda own: own.tests.sensitivity(1.0, 3.0).bounds("a", 0.1),
            r"'outcome_strength' parameter must be a float in \[0, 1\)\. Got 'a'",
        ),
        (
            lambda own: own.tests.sensitivity(1.0, 3.0).bounds(0.1, 0.1, coverage="a"),
            r"'coverage' parameter must be a float in \(0, 1\)\. Got 'a'",
        ),
    ],
)
def test_arguments_of_another_kind_are_named(forest, ask, message):
    with pytest.raises(ValueError, match=message):
        ask(forest)
