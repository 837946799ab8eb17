"""Qini curves: hand-computed tables, brute force, ties, intervals, comparisons, bad input."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from doseforest.evaluation import RowEstimate, compare_qini, qini_curve
from doseforest.inference.heterogeneity.targeting import ranked_effects


def brute_force(y, treated, weights, predicted, kind):
    """Points of the curve by plain loops over thresholds: no sums are carried along."""
    points = [(0.0, 0.0)]
    for threshold in sorted(set(predicted), reverse=True):
        top = [i for i in range(len(y)) if predicted[i] >= threshold]
        t = [i for i in top if treated[i]]
        c = [i for i in top if not treated[i]]
        if not t or not c:
            continue
        n_t, n_c = sum(weights[i] for i in t), sum(weights[i] for i in c)
        r_t, r_c = sum(weights[i] * y[i] for i in t), sum(weights[i] * y[i] for i in c)
        share = (n_t + n_c) / sum(weights)
        if kind == "means":
            points.append((share, share * (r_t / n_t - r_c / n_c)))
        else:
            all_t = sum(weights[i] for i in range(len(y)) if treated[i])
            points.append((share, (r_t - r_c * n_t / n_c) / all_t))
    area = 0.0
    for (s0, g0), (s1, g1) in pairwise(points):
        area += (s1 - s0) * (g0 + g1) / 2
    return points, area - points[-1][1] / 2


def random_table(seed, n=60, levels=7):
    rng = np.random.default_rng(seed)
    treatment = rng.integers(0, 3, n).astype(float)  # a third dose is there to be left out
    treatment[:2] = 0.0, 2.0
    predicted = rng.integers(0, levels, n) / 3 - 1
    weights = rng.integers(1, 4, n).astype(float)
    return rng.normal(size=n), treatment, predicted, weights


def experiment(rng, n, spread=1.0):
    """Effects x, of which a noisy version is predicted; outcomes with noise."""
    x = spread * rng.normal(size=n)
    treatment = (rng.random(n) < 0.4).astype(float)
    y = 1.0 + x * treatment + 0.5 * x + rng.normal(size=n)
    return x, treatment, y


def test_a_table_by_hand():
    # Ranks: A (t, 1), B (c, 0) at 3; C (t, 0), D (t, 1), E (c, 1) at 2; F (c, 0) at 1.
    curve = qini_curve(
        [1, 0, 0, 1, 1, 0], [5, 0, 5, 5, 0, 0], [3, 3, 2, 2, 2, 1], dose=5, baseline=0
    )
    # After the second group: 2/3 of the treated, 1/2 of the controls, 5/6 of the units.
    assert np.allclose(curve.shares, [0, 2 / 6, 5 / 6, 1])
    assert np.allclose(curve.gain, [0, 2 / 6, 5 / 6 * (2 / 3 - 1 / 2), 2 / 3 - 1 / 3])
    # (1/3)(1/3)/2 + (1/2)(1/3 + 5/36)/2 + (1/6)(5/36 + 1/3)/2 - (1/3)/2
    assert np.isclose(curve.score, 1 / 18 + 17 / 144 + 17 / 432 - 1 / 6)
    assert (curve.n_treated, curve.n_control) == (3, 3)
    assert np.allclose(curve.random, curve.shares / 3)


def test_radcliffes_counts_by_hand():
    curve = qini_curve(
        [1, 0, 0, 1, 1, 0], [1, 0, 1, 1, 0, 0], [3, 3, 2, 2, 2, 1], dose=1, estimator="radcliffe"
    )
    # R_t - R_c N_t / N_c: 1 - 0, 2 - 1 x 3 / 2, 2 - 1 x 3 / 3; over three treated.
    assert np.allclose(3 * curve.gain, [0, 1, 0.5, 1])


@pytest.mark.parametrize("kind", ["means", "radcliffe"])
@pytest.mark.parametrize("seed", range(20))
def test_curves_and_scores_equal_brute_force_with_ties_and_weights(kind, seed):
    y, treatment, predicted, weights = random_table(seed)
    kept = treatment != 1
    points, score = brute_force(y[kept], treatment[kept] == 2, weights[kept], predicted[kept], kind)
    curve = qini_curve(y, treatment, predicted, dose=2.0, estimator=kind, sample_weight=weights)
    assert np.allclose(np.column_stack([curve.shares, curve.gain]), points, atol=1e-12)
    assert np.isclose(curve.score, score, atol=1e-12)


def test_with_scores_ties_are_the_mean_over_all_orders():
    scores = np.array([3.0, -1.0, 2.0, 0.5, 1.0])
    predicted = np.array([1.0, 1.0, 1.0, 0.0, 0.0])
    curve = qini_curve(None, None, predicted, dose=1, scores=scores)
    rng = np.random.default_rng(0)
    broken = [
        qini_curve(None, None, predicted + 1e-6 * rng.random(5), dose=1, scores=scores).score
        for _ in range(4000)
    ]
    # Scores of single orders deviate by about .2 from their mean.
    assert abs(np.mean(broken) - curve.score) < 4 * np.std(broken) / np.sqrt(4000)
    assert np.std(broken) > 0.05


def test_a_score_by_scores_is_their_covariance_with_the_ranks():
    rng = np.random.default_rng(1)
    scores, predicted = rng.normal(size=500), rng.integers(0, 40, 500).astype(float)
    below = (predicted[:, None] > predicted).mean(axis=1)
    middle = below + (predicted[:, None] == predicted).mean(axis=1) / 2
    curve = qini_curve(None, None, predicted, dose=1, scores=scores)
    assert np.isclose(curve.score, np.mean(scores * (middle - 0.5)))


def test_the_score_agrees_with_the_rate_with_qini_weights():
    rng = np.random.default_rng(2)
    predicted = rng.normal(size=4000)
    scores = predicted + rng.normal(size=4000)
    rate = ranked_effects(scores, predicted, weighting="qini", n_bootstrap=400)
    curve = qini_curve(None, None, predicted, dose=1, scores=scores)
    assert abs(rate.value - curve.score) < 1e-3  # a Riemann sum against trapezoids
    assert abs(rate.standard_error / curve.standard_error - 1) < 0.15  # half-samples' own noise


def test_constant_predictions_score_zero_without_doubt():
    _, treatment, y = experiment(np.random.default_rng(3), 200)
    curve = qini_curve(y, treatment, np.full(200, 3.3), dose=1)
    assert curve.score == 0
    assert curve.p_value == 1
    assert len(curve.shares) == 2


def test_reversed_predictions_score_the_opposite_by_scores():
    rng = np.random.default_rng(4)
    scores, predicted = rng.normal(size=100), rng.normal(size=100)
    up, down = (
        qini_curve(None, None, sign * predicted, dose=1, scores=scores).score for sign in (1, -1)
    )
    assert np.isclose(up, -down)


def test_only_the_order_of_predictions_counts():
    x, treatment, y = experiment(np.random.default_rng(5), 300)
    one, other = (qini_curve(y, treatment, own, dose=1) for own in (x, np.exp(x) - 7))
    assert np.array_equal(one.gain, other.gain)
    assert compare_qini(one, other).p_value == 1


def test_negative_effects_make_a_curve_that_falls():
    x, treatment, y = experiment(np.random.default_rng(6), 4000)
    curve = qini_curve(y - 2 * treatment, treatment, x, dose=1)
    assert curve.gain[-1] < -1
    assert curve.score > 0  # those who lose least come first
    assert np.isnan(curve.coefficient)


def test_auuc_is_the_score_and_half_of_the_average_effect():
    x, treatment, y = experiment(np.random.default_rng(7), 800)
    curve = qini_curve(y, treatment, x, dose=1)
    assert np.isclose(curve.auuc.value, np.trapezoid(curve.gain, curve.shares))
    assert np.isclose(curve.auuc.value, curve.score + curve.gain[-1] / 2)
    effect = curve.average_effect
    means = [y[treatment == arm] for arm in (1, 0)]
    assert np.isclose(effect.value, means[0].mean() - means[1].mean())
    usual = np.sqrt(sum(own.var() / len(own) for own in means))
    assert np.isclose(effect.standard_error, usual, rtol=1e-3)


def test_the_coefficient_of_a_perfect_ranking_is_one():
    # Half of the units order only if treated, the others never.
    x = np.tile([1.0, 0.0], 500)
    treatment = np.repeat([1.0, 0.0], 500)
    curve = qini_curve(x * treatment, treatment, x, dose=1)
    assert np.isclose(curve.coefficient, 1.0)


def test_known_chances_undo_an_uneven_assignment():
    rng = np.random.default_rng(8)
    x = rng.normal(size=40_000)
    chance = np.where(x > 0, 0.8, 0.3)
    treatment = (rng.random(len(x)) < chance).astype(float)
    y = x * treatment + 3 * (x > 0) + rng.normal(size=len(x))
    own = np.where(treatment == 1, chance, 1 - chance)
    right = qini_curve(y, treatment, x, dose=1, propensity=own)
    wrong = qini_curve(y, treatment, x, dose=1)
    exact = np.mean(x * (np.argsort(np.argsort(x)) / len(x) - 0.5))  # about 1 / (2 sqrt(pi))
    assert abs(right.score - exact) < 4 * right.standard_error < 0.05
    assert abs(wrong.gain[-1]) > 0.5  # the level of x > 0 is taken for an effect
    assert abs(right.gain[-1]) < 0.1


def test_chances_by_dose_may_be_a_dictionary():
    x, treatment, y = experiment(np.random.default_rng(9), 500)
    rows = np.where(treatment == 1, 0.4, 0.6)
    first = qini_curve(y, treatment, x, dose=1, propensity={0.0: 0.6, 1.0: 0.4})
    second = qini_curve(y, treatment, x, dose=1, propensity=rows)
    assert np.array_equal(first.gain, second.gain)


def test_kernel_weights_judge_a_continuous_dose():
    rng = np.random.default_rng(10)
    x, dose = rng.normal(size=30_000), rng.uniform(0, 10, 30_000)
    y = 0.2 * x * dose + rng.normal(size=len(x))
    curve = qini_curve(y, dose, x, dose=8.0, baseline=2.0)
    assert 0 < curve.bandwidth < 3
    exact = 0.2 * 6.0 / (2 * np.sqrt(np.pi))  # of 1.2 x, by its covariance with its ranks
    assert abs(curve.score - exact) < 4 * curve.standard_error < 0.1
    wider = qini_curve(y, dose, x, dose=8.0, baseline=2.0, bandwidth=2.5)
    assert wider.n_treated > curve.n_treated


def test_doses_of_several_components_match_in_all_of_them():
    rng = np.random.default_rng(11)
    doses = rng.integers(0, 2, (400, 2)).astype(float)
    x = rng.normal(size=400)
    y = x * doses[:, 0] + rng.normal(size=400)
    both = qini_curve(y, doses, x, dose=[1.0, 1.0], baseline=[0.0, 1.0])
    kept = doses[:, 1] == 1
    alone = qini_curve(y[kept], doses[kept, 0], x[kept], dose=1.0)
    assert np.isclose(both.score, alone.score)


def _coverage(draws, n, make):
    """Share of intervals that hold the true score, and mean error over deviation."""
    found = [make(np.random.default_rng(seed), n) for seed in range(draws)]
    errors = np.array([value - truth for value, _, truth in found])
    scales = np.array([scale for _, scale, _ in found])
    return np.mean(np.abs(errors) < 1.96 * scales), scales.mean() / errors.std()


@pytest.mark.parametrize("kind", ["means", "radcliffe", "scores", "ties"])
def test_intervals_of_scores_cover(kind):
    def draw(rng, n):
        x, treatment, y = experiment(rng, n)
        predicted = x + rng.normal(size=n)  # half of its variance is of the effect
        truth = 1 / np.sqrt(2) / (2 * np.sqrt(np.pi))
        options = {}
        if kind == "ties":
            # Signs: the effect of the upper half is sqrt(1 / 2) sqrt(2 / pi) = 1 / sqrt(pi).
            predicted, truth = np.sign(predicted), 1 / np.sqrt(np.pi) / 4
        if kind == "radcliffe":
            options["estimator"] = kind
        if kind == "scores":
            options["scores"] = (treatment / 0.4 - (1 - treatment) / 0.6) * (y - 1)
        curve = qini_curve(y, treatment, predicted, dose=1, **options)
        return curve.score, curve.standard_error, truth

    covered, ratio = _coverage(500, 400, draw)
    # Of 500 draws at 95 %: 1.95 points for two standard deviations.
    assert 0.925 < covered < 0.975
    assert 0.92 < ratio < 1.08


def test_intervals_by_groups_cover_where_rows_repeat():
    def draw(rng, n):
        x, treatment, y = experiment(rng, n // 4)
        predicted = x + rng.normal(size=n // 4)
        groups = np.repeat(np.arange(n // 4), 4)
        rows = (np.repeat(own, 4) for own in (y, treatment, predicted))
        curve = qini_curve(*rows, dose=1, groups=groups)
        return curve.score, curve.standard_error, 1 / np.sqrt(2) / (2 * np.sqrt(np.pi))

    covered, ratio = _coverage(300, 1200, draw)
    assert 0.92 < covered < 0.98  # of 300 draws: 2.5 points for two standard deviations
    assert 0.9 < ratio < 1.1


def test_bands_cover_the_gain_at_a_share():
    def draw(rng, n):
        x, treatment, y = experiment(rng, n)
        curve = qini_curve(y, treatment, x, dose=1)
        # Mean of x above its upper quartile, times 1/4: the normal density at .6745.
        return (
            curve.at(0.25),
            curve.standard_errors(0.25)[0],
            np.exp(-(0.67449**2) / 2) / np.sqrt(2 * np.pi),
        )

    covered, ratio = _coverage(400, 500, draw)
    assert 0.92 < covered < 0.98
    assert 0.9 < ratio < 1.1


def test_bands_cover_the_gain_within_a_large_tie():
    def draw(rng, n):
        x, treatment, y = experiment(rng, n)
        curve = qini_curve(y, treatment, np.sign(x), dose=1)
        # A quarter of the units are half of those with x > 0, whose mean effect is sqrt(2 / pi).
        return curve.at(0.25), curve.standard_errors(0.25)[0], np.sqrt(2 / np.pi) / 4

    covered, ratio = _coverage(400, 500, draw)
    assert 0.92 < covered < 0.98
    assert 0.9 < ratio < 1.1


def test_a_paired_comparison_keeps_its_size_under_the_null():
    rejected = []
    for seed in range(500):
        rng = np.random.default_rng(seed)
        x, treatment, y = experiment(rng, 400)
        first, second = (
            qini_curve(y, treatment, x + rng.normal(size=400), dose=1) for _ in range(2)
        )  # equally good, and different
        rejected.append(compare_qini(first, second).p_value < 0.05)
    assert 0.025 < np.mean(rejected) < 0.08  # 5 %, two standard deviations are 1.95 points


def test_a_paired_comparison_is_sharper_than_two_intervals():
    rng = np.random.default_rng(12)
    x, treatment, y = experiment(rng, 2000)
    good, worse = (
        qini_curve(y, treatment, x + s * rng.normal(size=2000), dose=1) for s in (0.1, 0.5)
    )
    gap = compare_qini(good, worse)
    assert gap.value == good.score - worse.score
    assert gap.standard_error < 0.6 * np.hypot(good.standard_error, worse.standard_error)


BAD = {
    "no such estimator": ({"estimator": "area"}, "'estimator' parameter must be one of"),
    "a dose that nobody had": ({"dose": 7}, "'dose' parameter must be a dose that rows"),
    "a baseline that nobody had": ({"baseline": -1}, "'baseline' parameter must be a dose"),
    "twice the same dose": ({"dose": 0}, "'dose' parameter must differ from the baseline"),
    "a dose of two components": ({"dose": [1, 0]}, "'dose' parameter must be a finite number"),
    "NaN predictions": ({"predicted_effect": [np.nan, 1, 2, 3]}, "'predicted_effect' parameter"),
    "a matrix of predictions": ({"predicted_effect": np.ones((4, 2))}, "one number per row"),
    "too few outcomes": ({"y": [1, 0]}, "'y' parameter must have one row"),
    "a chance of 0": ({"propensity": [0.5, 0.0, 0.5, 0.5]}, "'propensity' parameter must be the"),
    "chances of some doses": ({"propensity": {1: 0.5}}, "'propensity' parameter must be the"),
    "a bandwidth over half": ({"bandwidth": 0.7}, "'bandwidth' parameter must be at most half"),
    "a bandwidth below 0": ({"bandwidth": -1}, "'bandwidth' parameter must be a float"),
    "no weight in an arm": ({"sample_weight": [1, 0, 1, 0]}, "rows of positive weight had"),
    "negative weights": ({"sample_weight": [1, -1, 1, 1]}, "'sample_weight' parameter"),
    "groups of others": ({"groups": [1, 2]}, "'groups' parameter must have one entry"),
    "scores and chances": (
        {"scores": np.ones(4), "propensity": np.ones(4)},
        "'propensity' parameter must be None with scores",
    ),
    "too few scores": ({"scores": np.ones(3)}, "'scores' parameter must have one row"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    options, message = BAD[case]
    usual = {"y": [1, 0, 1, 0], "treatment": [1, 0, 1, 0], "predicted_effect": [4, 3, 2, 1]}
    with pytest.raises(ValueError, match=message):
        qini_curve(**{**usual, "dose": 1, **options})


def test_curves_of_other_rows_or_doses_are_not_compared():
    y, treatment, predicted, _ = random_table(0)
    one, other = (qini_curve(y, treatment, predicted, dose=dose) for dose in (1, 2))
    with pytest.raises(ValueError, match="'second' parameter must be a curve on the same rows"):
        compare_qini(one, other)
    with pytest.raises(ValueError, match="'other' parameter must be an estimate from the same"):
        one.estimate.minus(RowEstimate(0.0, np.zeros(3)))


def test_a_curve_tells_its_score_in_a_sentence():
    y, treatment, predicted, _ = random_table(1)
    text = str(qini_curve(y, treatment, predicted, dose=2))
    assert text.startswith("Qini score of 2 against 0: ")
    assert "rows at the dose" in text


@pytest.mark.parametrize("kind", ["means", "radcliffe"])
def test_rounding_of_equal_outcomes_is_no_finding(kind):
    rng = np.random.default_rng(15)
    treatment, predicted = rng.integers(0, 2, 3000), rng.normal(size=3000)
    curve = qini_curve(np.full(3000, 0.1), treatment, predicted, dose=1, estimator=kind)
    assert (curve.score, curve.standard_error, curve.p_value) == (0.0, 0.0, 1.0)
    assert curve.average_effect.p_value == 1.0
    curve = qini_curve(None, None, predicted, dose=1, scores=np.full(3000, 0.1))
    assert (curve.score, curve.p_value) == (0.0, 1.0)
    assert np.isclose(curve.gain[-1], 0.1)
    # Large outcomes with small differences are no rounding.
    y = predicted * treatment + rng.normal(size=3000)
    plain, far = (
        qini_curve(own, treatment, predicted, dose=1, estimator=kind) for own in (y, y + 1e9)
    )
    assert np.isclose(plain.score, far.score, atol=1e-6)
    assert np.isclose(plain.standard_error, far.standard_error, atol=1e-6)


def test_curves_of_as_many_other_rows_are_not_compared():
    rng = np.random.default_rng(16)
    x, treatment, y = experiment(rng, 400)
    first = qini_curve(y, treatment, x, dose=1)
    swapped = np.where(treatment == treatment[0], np.roll(y, 1), y)
    others = [
        qini_curve(swapped, treatment, x, dose=1),
        qini_curve(y, treatment, x, dose=1, groups=np.arange(400)),
        qini_curve(y, treatment, x, dose=1, sample_weight=rng.uniform(1, 2, 400)),
    ]
    for other in others:
        with pytest.raises(ValueError, match="'second' parameter must be a curve on the same rows"):
            compare_qini(first, other)
    assert compare_qini(first, qini_curve(y, treatment, -x, dose=1)).value > 0
