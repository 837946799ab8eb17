"""Tests of heterogeneity: their size without it, their power with it, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from causal_tables import small
from doseforest.inference.heterogeneity.calibration import HeterogeneityTest, calibrate
from doseforest.inference.heterogeneity.targeting import ranked_effects
from doseforest.inference.robust_regression import robust_least_squares


def draw(n=500, seed=300, slope=1.0):
    """A random dose whose effect per unit is 1 + slope for half of the units, else 1 - slope."""
    rng = np.random.default_rng(seed)
    x, dose = rng.normal(size=(n, 2)), rng.uniform(0, 4, size=n)
    own = 1 + slope * np.sign(x[:, 1])
    return x, dose, x[:, 0] + own * dose + rng.normal(size=n)


def fit(**design):
    x, dose, y = draw(**design)
    return small(density="none").fit(x, y, treatment=dose)


@pytest.fixture(scope="module")
def differing():
    return fit()


@pytest.fixture(scope="module")
def alike():
    return fit(slope=0.0)


def test_robust_errors_are_those_of_the_jackknife():
    rng = np.random.default_rng(0)
    design, weights = rng.normal(size=(60, 2)), rng.uniform(0.5, 2.0, size=60)
    target = design @ [1.0, -2.0] + design[:, 0] * rng.normal(size=60)
    found = robust_least_squares(design, target, weights)
    left_out = []
    for row in range(60):
        kept = np.arange(60) != row
        scaled = design[kept] * weights[kept, None]
        left_out.append(np.linalg.solve(scaled.T @ design[kept], scaled.T @ target[kept]))
    moves = np.array(left_out) - found.values
    # HC3 is the sum of squared changes when a row is left out, exactly.
    np.testing.assert_allclose(found.covariance, moves.T @ moves, rtol=1e-10)


def test_repeated_rows_in_clusters_say_no_more_than_once():
    rng = np.random.default_rng(0)
    design, target = rng.normal(size=(200, 2)), rng.normal(size=200)
    once = robust_least_squares(design, target).standard_errors
    twice = robust_least_squares(
        np.repeat(design, 2, axis=0), np.repeat(target, 2), clusters=np.repeat(np.arange(200), 2)
    ).standard_errors
    # The leverage of a row is halved when it is there twice: one per cent of 200 rows.
    np.testing.assert_allclose(twice, once, rtol=0.03)


@pytest.mark.parametrize("grouped", [False, True])
def test_what_one_row_or_group_decides_alone_has_no_error_to_speak_of(grouped):
    rng = np.random.default_rng(0)
    label, age = np.zeros(60), rng.normal(size=60)
    label[: 3 if grouped else 1] = 1.0
    groups = np.arange(60) // 3 if grouped else None
    design, target = np.column_stack([np.ones(60), label, age]), rng.normal(size=60)
    fit = robust_least_squares(design, target, clusters=groups)
    np.testing.assert_array_equal(np.isinf(fit.standard_errors), [False, True, False])
    if not grouped:  # nothing else depends on that row
        rest = robust_least_squares(design[1:, [0, 2]], target[1:])
        np.testing.assert_allclose(fit.standard_errors[[0, 2]], rest.standard_errors)


def test_predictions_that_say_nothing_are_found_as_often_as_promised():
    rng = np.random.default_rng(0)
    n_found, n_draws = 0, 400
    for _ in range(n_draws):
        dose, difference = rng.normal(size=(2, 300))
        target = 2 * dose + rng.normal(size=300) * (1 + np.abs(dose))
        found = calibrate(target, 2 * dose, difference * dose)
        n_found += found.heterogeneity_p_value <= 0.05
    # 5 % of 400 draws has a standard error of 1.1 %.
    assert 0.02 <= n_found / n_draws <= 0.085


def test_cross_fitted_predictions_of_nothing_are_found_no_more_often_than_promised():
    rng = np.random.default_rng(0)
    found, folds = 0, np.arange(200) % 4
    for _ in range(400):
        x, dose = rng.normal(size=(200, 3)), rng.normal(size=200)
        y = dose + rng.normal(size=200)
        slopes = np.empty(200)
        for fold in range(4):
            seen = folds != fold
            design = np.column_stack([dose, x * dose[:, None]])
            fit = np.linalg.lstsq(design[seen], y[seen], rcond=None)[0]
            slopes[~seen] = fit[0] + x[~seen] @ fit[1:]
        mean = slopes.mean()
        tested = calibrate(y, mean * dose, (slopes - mean) * dose)
        found += tested.heterogeneity_p_value <= 0.05
    # Rows have seen each other: theory says a bit below 5 %, which 400 draws tell to 1.1 %.
    assert found / 400 <= 0.075


def test_calibration_finds_the_slope_and_its_error():
    rng = np.random.default_rng(0)
    slopes, errors = [], []
    for _ in range(300):
        difference = rng.normal(size=200)
        scores = 3 + 0.5 * difference + rng.normal(size=200)
        found = calibrate(scores, np.full(200, 1.5), difference)
        slopes.append(found.values)
        errors.append(found.standard_errors)
    # Twice the average that was predicted, half of the differences: exact but for 300 draws.
    np.testing.assert_allclose(np.mean(slopes, axis=0), [2.0, 0.5], atol=0.02)
    # The spread of 300 draws is known to four per cent.
    np.testing.assert_allclose(np.mean(errors, axis=0), np.std(slopes, axis=0), rtol=0.15)


def test_predictions_that_all_agree_do_not_reject():
    found = calibrate(np.arange(50.0), np.ones(50), np.zeros(50))
    assert found.p_values.tolist() == [pytest.approx(0.0, abs=1e-10), 1.0]


def test_forests_find_differences_that_are_there(differing):
    found = differing.tests.calibration()
    assert found.heterogeneity_p_value < 1e-6
    # A right forest has ones; three standard errors.
    assert (np.abs(found.values - 1) < 3 * found.standard_errors).all()
    assert "differences between units" in str(found)
    tested = differing.tests.heterogeneity()
    assert tested.p_value == found.heterogeneity_p_value
    assert str(tested).startswith("Effects differ between units")


def test_forests_find_no_differences_where_there_are_none(alike):
    found = alike.tests.heterogeneity()
    assert found.p_value > 0.001  # below by chance once in a thousand draws
    text = str(HeterogeneityTest(0.3, 0.4, 500))
    assert text.startswith("Effects may be the same for every unit: outcomes follow the predicted")


def test_new_rows_can_judge(differing, alike):
    x, dose, y = draw(seed=301)
    found = differing.tests.calibration(x, y, dose)
    assert found.heterogeneity_p_value < 1e-6
    assert (np.abs(found.values - 1) < 3 * found.standard_errors).all()
    assert found.n_rows == 500
    # The forest of units that are all alike is wrong about these: it exaggerates nothing.
    assert alike.tests.calibration(x, y, dose).heterogeneity_p_value > 1e-6


def test_single_effects_can_be_judged(differing):
    found = differing.tests.calibration(dose=3.0, baseline=1.0)
    assert found.heterogeneity_p_value < 0.01
    assert (np.abs(found.values - 1) < 3.5 * found.standard_errors).all()
    assert "the effect of dose 3 against 1" in str(found)
    # Every row has a say about curves, only those nearby about a dose.
    assert found.standard_errors[1] > differing.tests.calibration().standard_errors[1]


def test_rows_of_weight_zero_are_as_good_as_absent(differing):
    x, dose, y = draw(n=300, seed=302)
    weights = np.append(np.ones(250), np.zeros(50))
    ours = differing.tests.calibration(x, y, dose, sample_weight=weights)
    fewer = differing.tests.calibration(x[:250], y[:250], dose[:250])
    np.testing.assert_allclose(ours.values, fewer.values)
    np.testing.assert_allclose(ours.standard_errors, fewer.standard_errors)
    priority = np.arange(300.0)
    of_all = differing.tests.rate(
        3.0, 1.0, priority=priority, X=x, y=y, treatment=dose, sample_weight=weights
    )
    of_some = differing.tests.rate(
        3.0, 1.0, priority=priority[:250], X=x[:250], y=y[:250], treatment=dose[:250]
    )
    assert of_all.value == pytest.approx(of_some.value)


def test_rates_of_a_perfect_ranking_are_integrals_in_closed_form():
    effect = np.linspace(0, 1, 100_001)[::-1]
    # The best share u has a mean effect of 1 - u / 2, all have 1/2: TOC = (1 - u) / 2.
    found = ranked_effects(effect, effect, n_bootstrap=20)
    np.testing.assert_allclose(found.toc.values, (1 - found.shares) / 2, atol=1e-4)
    assert found.value == pytest.approx(1 / 4, abs=1e-4)
    qini = ranked_effects(effect, effect, weighting="qini", n_bootstrap=20)
    assert qini.value == pytest.approx(1 / 12, abs=1e-4)


def test_ties_are_shared_whatever_the_order_of_rows():
    rng = np.random.default_rng(0)
    scores, priority = rng.normal(size=400), rng.integers(0, 3, size=400).astype(float)
    order = rng.permutation(400)
    first = ranked_effects(scores, priority)
    again = ranked_effects(scores[order], priority[order])
    assert again.value == pytest.approx(first.value, rel=1e-9)
    np.testing.assert_allclose(again.toc.values, first.toc.values, atol=1e-12)


def test_whole_weights_are_rows_repeated_so_often():
    rng = np.random.default_rng(0)
    scores, priority, weights = rng.normal(size=300), rng.normal(size=300), rng.integers(1, 4, 300)
    ours = ranked_effects(scores, priority, weights=weights.astype(float))
    repeated = ranked_effects(np.repeat(scores, weights), np.repeat(priority, weights))
    np.testing.assert_allclose(ours.toc.values, repeated.toc.values, atol=1e-12)
    # A repeated row is met in steps: the area differs by a step of the first few ranks.
    assert ours.value == pytest.approx(repeated.value, abs=0.02)


@pytest.mark.parametrize("weighting", ["autoc", "qini"])
def test_half_samples_tell_the_error_and_the_size_of_rates(weighting):
    rng = np.random.default_rng(0)
    values, errors, found = [], [], 0
    for seed in range(200):
        priority, noise = rng.normal(size=(2, 250))
        own = ranked_effects(noise, priority, weighting=weighting, n_bootstrap=60, seed=seed)
        values.append(own.value)
        errors.append(own.standard_error)
        found += own.p_value <= 0.05
    # The spread of 200 draws is known to five per cent, 5 % of them to 1.5 %.
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)
    assert 0.01 <= found / 200 <= 0.095


def test_clusters_are_drawn_as_a_whole():
    rng = np.random.default_rng(0)
    scores, priority = np.repeat(rng.normal(size=(2, 200)), 4, axis=1)
    apart = ranked_effects(scores, priority)
    together = ranked_effects(scores, priority, clusters=np.repeat(np.arange(200), 4))
    # Four copies of a row say no more than one: errors are twice those of independent rows.
    assert together.standard_error == pytest.approx(2 * apart.standard_error, rel=0.2)


def test_half_samples_need_groups_to_draw_from():
    with pytest.raises(ValueError, match=r"'groups' .* at least 10 groups .* Got 2 instead"):
        ranked_effects(np.arange(9.0), np.arange(9.0), clusters=np.arange(9) % 2)


def test_forests_rank_units_by_their_effects(differing):
    x, dose, y = draw(seed=301)
    found = differing.tests.rate(3.0, 1.0, X=x, y=y, treatment=dose)
    # Half of the units gain 4 over two doses, the others 0: the TOC is 2 at one half and falls to 0
    # in proportion to 1 / u - 1, an AUTOC of 2 log 2 in all.
    assert abs(found.value - 2 * np.log(2)) < 3 * found.standard_error
    assert found.p_value < 0.001
    assert differing.tests.rate(3.0, 1.0).p_value < 0.001
    wrong = differing.tests.rate(3.0, 1.0, priority=-x[:, 1], X=x, y=y, treatment=dose)
    assert wrong.value < 0
    assert str(wrong).startswith("RATE (autoc) -")


def test_rates_can_be_drawn(differing):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = differing.tests.rate(3.0, 1.0, n_bootstrap=20).plot()
    assert ax.get_xlabel().startswith("share of units")
    matplotlib.pyplot.close("all")


def test_columns_of_new_frames_are_found_by_name():
    x, dose, y = draw(n=200)
    frame = pd.DataFrame(x, columns=["a", "b"])
    forest = small(density="none", correction="none").fit(frame, y, treatment=dose)
    ours = forest.tests.calibration(frame[["b", "a"]], y, dose)
    straight = forest.tests.calibration(frame, y, dose)
    np.testing.assert_array_equal(ours.values, straight.values)


def test_bad_arguments_of_tests_are_refused(differing):
    x, dose, y = draw(n=100, seed=301)
    with pytest.raises(ValueError, match=r"'y' parameter must be given for new rows"):
        differing.tests.calibration(x)
    with pytest.raises(ValueError, match=r"'X' parameter must be given for new rows"):
        differing.tests.heterogeneity(groups=np.arange(100))
    with pytest.raises(ValueError, match=r"'baseline' .* must come with a 'dose'. Got 1.0 alone"):
        differing.tests.calibration(baseline=1.0)
    with pytest.raises(ValueError, match=r"'dose' parameter must lie in the support"):
        differing.tests.calibration(dose=9.0)
    with pytest.raises(ValueError, match=r"'dose' parameter must differ from the baseline. Got 2"):
        differing.tests.rate(2.0, 2.0)
    with pytest.raises(ValueError, match=r"'dose' parameter must be one dose"):
        differing.tests.rate([2.0, 3.0])
    with pytest.raises(ValueError, match=r"'weighting' .* one of autoc, qini. Got 'gini' instead"):
        differing.tests.rate(3.0, weighting="gini")
    with pytest.raises(ValueError, match=r"'n_bootstrap' .* at least 20. Got 3 instead"):
        differing.tests.rate(3.0, n_bootstrap=3)
    with pytest.raises(ValueError, match=r"'random_state' .* at least 0"):
        differing.tests.rate(3.0, random_state=-1)
    with pytest.raises(ValueError, match=r"'priority' parameter .*500"):
        differing.tests.rate(3.0, priority=np.arange(3))
    with pytest.raises(ValueError, match="priority"):
        differing.tests.rate(3.0, priority=np.full(500, np.nan))
    with pytest.raises(ValueError, match="2 features"):
        differing.tests.calibration(x[:, :1], y, dose)


def test_units_that_do_not_differ_are_found_alike_where_trees_follow_the_outcome():
    """What functions of the dose cannot follow of a curve must not look like an effect."""
    trees = HistGradientBoostingRegressor(max_iter=60, max_leaf_nodes=8)
    rejected = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(1000, 3))
        dose = 5 + 1.5 * x[:, 0] + 1.5 * rng.normal(size=1000)
        y = np.sin(dose) + 0.05 * dose**2 + 2 * x[:, 0] + x[:, 1] ** 2 + rng.normal(size=1000)
        old, new = slice(0, 600), slice(600, None)
        forest = small(outcome_model=trees, correction="none", density="none")
        forest.fit(x[old], y[old], treatment=dose[old])
        rejected += forest.tests.heterogeneity(x[new], y[new], dose[new]).p_value < 0.05
    # At 5 % more than 2 of 12 would be a chance of 2 %; residuals of the curves as they are, in
    # place of those of their shapes, had 8 of 20.
    assert rejected <= 2
