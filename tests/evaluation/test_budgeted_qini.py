"""Gain against spend by a model's doses: brute force, intervals, uplift in parts, scores."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from bench.designs import DESIGNS
from doseforest.evaluation import (
    DoseScores,
    budgeted_qini,
    compare_qini,
    qini_curve,
    qini_table,
    randomised_scores,
    robust_scores,
)
from doseforest.evaluation.qini.spend_paths import area_derivatives
from doseforest.policy import optimize_doses

DOSES = np.array([0.0, 1.0, 2.0])
COST = np.array([0.0, 1.0, 2.5])


def market(rng, n):
    """Effects a sqrt(t), a uniform; outcomes of a random dose; predictions of a with noise."""
    a = rng.uniform(size=n)
    place = rng.integers(0, 3, n)
    y = a * np.sqrt(DOSES[place]) + 0.3 * a + 0.3 * rng.normal(size=n)
    return a, DOSES[place], y


def test_the_path_is_that_of_the_optimiser_and_its_gain_that_of_the_scores():
    rng = np.random.default_rng(0)
    a, dose, y = market(rng, 80)
    value = np.outer(a, np.sqrt(DOSES)) + 0.2 * rng.normal(size=(80, 3))
    cost = COST * rng.uniform(0.5, 2.0, (80, 1))
    found = budgeted_qini(y, dose, value, cost, doses=DOSES)
    scores = randomised_scores(y, dose, DOSES).values
    for place in (5, 20, len(found.path.spends) - 1):
        # At a vertex the budget is spent exactly, and the best plan is the path's.
        spent = float(found.path.spends[place])
        plan = optimize_doses(value, cost, budget=spent * 80)
        own = scores[np.arange(80), plan.dose_index] - scores[:, 0]
        assert np.isclose(found.at(spent), own.mean())
        assert np.isclose(plan.cost, spent * 80)


def test_the_score_is_the_mean_gap_to_the_best_mixture_without_a_model():
    rng = np.random.default_rng(1)
    a, dose, y = market(rng, 300)
    value = np.outer(a, np.sqrt(DOSES))
    found = budgeted_qini(y, dose, value, COST, doses=DOSES, budget=1.8)
    budgets = np.linspace(0.0, 1.8, 40_001)
    means = [y[dose == own].mean() for own in DOSES]
    gain = np.array(means) - means[0]
    share = np.minimum(budgets / 1.0, 1.0)
    best = np.where(
        budgets <= 1, share * gain[1], gain[1] + (budgets - 1) / 1.5 * (gain[2] - gain[1])
    )
    mixed = np.maximum(best, np.minimum(budgets / 2.5, 1) * gain[2])  # the hull of two doses
    assert np.allclose(found.untargeted(budgets), mixed)
    gap = np.trapezoid(found.at(budgets) - mixed, budgets) / 1.8
    assert np.isclose(found.score, gap, atol=1e-6)


def test_derivatives_of_an_area_are_those_of_small_changes():
    rng = np.random.default_rng(2)
    spends, gains = np.append(0.0, np.cumsum(rng.uniform(0.1, 1, 6))), rng.normal(size=7)
    for budget in (spends[-1] + 1.0, 0.4 * spends[-1], spends[3]):
        area, by_gain, by_spend = area_derivatives(spends, gains, budget)
        grid = np.linspace(0, budget, 200_001)
        assert np.isclose(area, np.trapezoid(np.interp(grid, spends, gains), grid), atol=1e-6)
        for place in range(1, 7):
            step = 1e-6 * (np.arange(7) == place)
            up = area_derivatives(spends, gains + step, budget)[0]
            assert np.isclose((up - area) / 1e-6, by_gain[place], atol=1e-5)
            if spends[place] != budget:
                later = area_derivatives(spends + step, gains, budget)[0]
                assert np.isclose((later - area) / 1e-6, by_spend[place], atol=1e-5)


def test_intervals_of_budgeted_scores_cover():
    def one(rng, n):
        a, dose, y = market(rng, n)
        predicted = np.clip(a + 0.3 * rng.normal(size=n), 0, None)
        value, cost = (
            np.outer(predicted, np.sqrt(DOSES)),
            COST * np.where(a > 0.3, 1.0, 0.6)[:, None],
        )
        return budgeted_qini(y, dose, value, cost, doses=DOSES, budget=1.2), a

    # The truth, by the exact outcomes of many units in the place of scores.
    rng = np.random.default_rng(99)
    a = rng.uniform(size=400_000)
    predicted = np.clip(a + 0.3 * rng.normal(size=len(a)), 0, None)
    exact = DoseScores(DOSES, np.outer(a, np.sqrt(DOSES)))
    truth = budgeted_qini(
        None,
        None,
        np.outer(predicted, np.sqrt(DOSES)),
        COST * np.where(a > 0.3, 1.0, 0.6)[:, None],
        doses=DOSES,
        budget=1.2,
        scores=exact,
    )
    found = [one(np.random.default_rng(seed), 500)[0] for seed in range(400)]
    errors = np.array([own.score for own in found]) - truth.score
    scales = np.array([own.standard_error for own in found])
    assert 0.92 < np.mean(np.abs(errors) < 1.96 * scales) < 0.98  # two deviations: 2.2 points
    assert 0.9 < scales.mean() / errors.std() < 1.1
    # And the gain at a spend.
    spends, low, high = found[0].band()
    exact_gain = truth.at(spends[9])
    ends = [(own.band()[1][9], own.band()[2][9]) for own in found]
    assert 0.92 < np.mean([one <= exact_gain <= other for one, other in ends]) < 0.985
    assert (low < high).all()


def test_models_are_compared_in_pairs():
    rng = np.random.default_rng(3)
    a, dose, y = market(rng, 3000)
    good, blind = (
        budgeted_qini(y, dose, np.outer(own, np.sqrt(DOSES)), COST, doses=DOSES)
        for own in (a, rng.uniform(size=3000))
    )
    gap = compare_qini(good, blind)
    assert gap.value == good.score - blind.score
    assert gap.p_value < 1e-4
    # Differences that are not there are worse than none: some step on to a second dose early.
    assert blind.score < -3 * blind.standard_error
    other = budgeted_qini(y, dose, np.outer(a, DOSES), COST, doses=DOSES, budget=1.0)
    with pytest.raises(ValueError, match="'second' parameter must be a curve on the same rows"):
        compare_qini(good, other)


def test_a_model_without_differences_gains_nothing_beyond_no_model():
    rng = np.random.default_rng(4)
    _, dose, y = market(rng, 2000)
    means = np.tile([y[dose == own].mean() for own in DOSES], (2000, 1))
    found = budgeted_qini(y, dose, means, COST, doses=DOSES)
    assert abs(found.score) < 1e-10  # all units step together, as without a model
    assert found.p_value > 0.99


def test_a_model_that_wants_no_dose_at_all_gains_nothing_at_any_budget():
    rng = np.random.default_rng(5)
    _, dose, y = market(rng, 200)
    found = budgeted_qini(y, dose, np.tile(-DOSES, (200, 1)), COST, doses=DOSES)
    assert np.array_equal(found.at([0.0, 1.0, 2.0]), np.zeros(3))
    assert found.score < 0


BAD = {
    "costs below the baseline's": ({"cost": [1.0, 0.5, 2.0]}, "'cost' parameter must be least"),
    "no costs at all": ({"cost": [0.0, 0.0, 0.0]}, "'cost' parameter must be above 0"),
    "another number of doses": ({"doses": [0.0, 1.0]}, "'value' parameter must have a row per"),
    "a dose that nobody had": ({"doses": [0.0, 1.0, 9.0]}, "'doses' parameter must hold doses"),
    "a budget of 0": ({"budget": 0}, "'budget' parameter must be a finite float above 0"),
    "NaN values": ({"value": np.full((30, 3), np.nan)}, "'value' parameter"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    options, message = BAD[case]
    _, dose, y = market(np.random.default_rng(6), 30)
    usual = {"value": np.tile(DOSES, (30, 1)), "cost": COST, "doses": DOSES}
    with pytest.raises(ValueError, match=message):
        budgeted_qini(y, dose, **{**usual, **options})


def test_scores_of_an_experiment_average_to_the_means_of_arms():
    _, dose, y = market(np.random.default_rng(7), 500)
    scores = randomised_scores(y, dose, DOSES)
    assert np.allclose(scores.values.mean(axis=0), [y[dose == own].mean() for own in DOSES])
    known = randomised_scores(y, dose, DOSES, propensity=dict.fromkeys(DOSES, 1 / 3))
    assert np.allclose(known.values[dose == 1, 1].mean(), y[dose == 1].mean())
    with pytest.raises(ValueError, match="'dose' parameter must be one of the doses that have"):
        scores.contrast(7.0)
    with pytest.raises(ValueError, match="'doses' parameter must have shape"):
        randomised_scores(y, dose, [[0.0, 1.0]])


def test_robust_scores_undo_confounding():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(1500, 2))
    dose = (rng.random(1500) < 1 / (1 + np.exp(-1.5 * X[:, 0]))).astype(float)
    y = X[:, 1] * dose + 2 * X[:, 0] + rng.normal(size=1500)
    scores = robust_scores(X, y, dose, [0, 1], outcome_model=LinearRegression())
    effect = scores.contrast(1, 0)
    naive = y[dose == 1].mean() - y[dose == 0].mean()
    assert naive > 1
    assert abs(effect.mean()) < 4 * effect.std() / np.sqrt(1500) < 0.6
    curve = qini_curve(None, None, X[:, 1], dose=1, scores=effect)
    exact = 1 / (2 * np.sqrt(np.pi))
    assert abs(curve.score - exact) < 4 * curve.standard_error < 0.25


def test_robust_scores_know_continuous_doses_and_refuse_others():
    data = DESIGNS["linear"].draw(n=300, seed=1)
    scores = robust_scores(
        data.X, data.y, data.treatment, [1.0, 2.0], outcome_model=LinearRegression()
    )
    assert scores.values.shape == (300, 2)
    with pytest.raises(ValueError, match="'doses' parameter must"):
        robust_scores(data.X, data.y, data.treatment, [99.0], outcome_model=LinearRegression())


def test_effects_in_tenths_are_differences_of_means():
    rng = np.random.default_rng(9)
    x, dose = rng.normal(size=2000), rng.integers(0, 2, 2000).astype(float)
    y = x * dose + rng.normal(size=2000)
    table = qini_curve(y, dose, x, dose=1).uplift()
    cuts = np.argsort(np.argsort(-x)) // 200
    for part in range(10):
        own = cuts == part
        treated, control = y[own & (dose == 1)], y[own & (dose == 0)]
        assert np.isclose(table.values[part], treated.mean() - control.mean())
        usual = np.sqrt(treated.var() / len(treated) + control.var() / len(control))
        assert np.isclose(table.standard_errors[part], usual, rtol=0.01)
        assert np.isclose(table.predicted[part], x[own].mean())
    assert table.rows.tolist() == [200] * 10
    assert len(str(table).splitlines()) == 11


def test_equal_predictions_share_a_part():
    rng = np.random.default_rng(10)
    dose, y = rng.integers(0, 2, 300).astype(float), rng.normal(size=300)
    predicted = np.repeat([1.0, 2.0, 2.0], 100)
    table = qini_curve(y, dose, predicted, dose=1).uplift()
    assert table.rows.tolist() == [200, 100]
    assert table.predicted.tolist() == [2.0, 1.0]
    by_scores = qini_curve(None, None, predicted, dose=1, scores=y).uplift()
    assert np.isclose(by_scores.values[1], y[:100].mean())
    with pytest.raises(ValueError, match="'n_parts' parameter must be an int"):
        qini_curve(y, dose, predicted, dose=1).uplift(0)


def test_the_rate_of_a_curve_sees_its_ranking():
    rng = np.random.default_rng(11)
    x, dose = rng.normal(size=2000), rng.integers(0, 2, 2000).astype(float)
    y = x * dose + rng.normal(size=2000)
    good, bad = (qini_curve(y, dose, own, dose=1).rate() for own in (x, -x))
    assert good.p_value < 1e-4 < 0.5 < bad.p_value
    assert np.isclose(good.toc.values[-1], 0.0)


class TwoDiscounts:
    """Effects x t1 + t2 of doses (t1, t2)."""

    def dose_response(self, X, doses):
        return X[:, :1] * np.asarray(doses)[:, 0] + np.asarray(doses)[:, 1]


def test_tables_and_budgets_take_doses_of_several_components():
    rng = np.random.default_rng(12)
    X, doses = rng.normal(size=(2000, 1)), rng.integers(0, 2, (2000, 2)).astype(float)
    y = X[:, 0] * doses[:, 0] + doses[:, 1] + rng.normal(size=2000)
    grid = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    table = qini_table({"right": TwoDiscounts()}, X, y, doses, baseline=(0.0, 0.0))
    assert np.array_equal(table.doses, grid[1:])
    assert table.scores[0, 0] == 0  # the second discount does the same for everyone
    scores = randomised_scores(y, doses, grid)
    by_scores = qini_table({"right": TwoDiscounts()}, X, y, doses, baseline=(0, 0), scores=scores)
    error = by_scores.mean("right").standard_error
    assert abs(by_scores.scores.mean() - table.scores.mean()) < 2 * error
    value = TwoDiscounts().dose_response(X, grid)
    found = budgeted_qini(y, doses, value, [0.0, 1.0, 1.0, 2.0], doses=grid)
    assert found.score > 3 * found.standard_error


def test_scores_are_used_by_their_doses_and_not_by_their_places():
    a, dose, y = market(np.random.default_rng(11), 300)
    value = np.outer(a, np.sqrt(DOSES))
    plain = budgeted_qini(y, dose, value, COST, doses=DOSES)
    turned = randomised_scores(y, dose, DOSES[::-1])
    found = budgeted_qini(None, None, value, COST, doses=DOSES, scores=turned)
    assert found.score == plain.score
    more = budgeted_qini(None, None, value[:, [0, 2]], COST[:2], doses=[0.0, 2.0], scores=turned)
    assert more.no_model.gains[-1] > 0
    with pytest.raises(ValueError, match="'doses' parameter must be one of the doses that have"):
        budgeted_qini(None, None, value, COST, doses=[0.0, 1.0, 3.0], scores=turned)


def test_bands_cover_the_gain_within_a_large_tie():
    # All units step together: half of the budget gains half of the average effect of 1.
    gains, errors = np.empty((2, 300))
    for seed in range(300):
        rng = np.random.default_rng(seed)
        dose = rng.integers(0, 2, 400).astype(float)
        y = dose + rng.normal(size=400)
        found = budgeted_qini(y, dose, np.tile([0.0, 1.0], (400, 1)), [0.0, 1.0], doses=[0.0, 1.0])
        spends, low, high = found.band()
        assert spends[9] == 0.5
        gains[seed], errors[seed] = found.at(0.5), (high[9] - low[9]) / (2 * 1.96)
    assert 0.9 < errors.mean() / gains.std() < 1.1  # two deviations of the latter: 8 %
    covered = np.mean(np.abs(gains - 0.5) < 1.96 * errors)
    assert 0.92 < covered < 0.98  # two deviations: 2.5 points


def test_chances_of_levels_are_at_most_one():
    _, dose, y = market(np.random.default_rng(12), 60)
    for propensity in (np.full(60, 1.5), {0: 0.5, 1: 20.0, 2: 0.3}):
        with pytest.raises(ValueError, match=r"'propensity' parameter .* above 0 and at most 1"):
            randomised_scores(y, dose, DOSES, propensity=propensity)
        with pytest.raises(ValueError, match=r"'propensity' parameter .* above 0 and at most 1"):
            qini_curve(y, dose, y, dose=1, propensity=propensity)
    spread = np.linspace(0.0, 0.5, 60)  # a density of 2 everywhere
    assert qini_curve(y, spread, y, dose=0.4, propensity=np.full(60, 2.0)).n_treated > 0


def test_rows_without_weight_have_no_score():
    a, dose, y = market(np.random.default_rng(13), 240)
    weights = np.where(np.arange(240) % 4 == 0, 0.0, 1.0)
    scores = robust_scores(
        a[:, None], y, dose, DOSES, outcome_model=LinearRegression(), sample_weight=weights
    )
    assert np.array_equal(np.isnan(scores.values).any(axis=1), weights == 0)
    own = scores.contrast(1.0)
    curve = qini_curve(None, None, a, dose=1, scores=own, sample_weight=weights)
    kept = weights > 0
    assert curve.score == qini_curve(None, None, a[kept], dose=1, scores=own[kept]).score
    with pytest.raises(ValueError, match="'scores' parameter must be finite"):
        budgeted_qini(None, None, np.outer(a, np.sqrt(DOSES)), COST, doses=DOSES, scores=scores)
