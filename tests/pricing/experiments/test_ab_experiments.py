"""A/B tests: who is in which arm, and intervals against regressions computed by hand."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from scipy.stats import chisquare, ttest_ind
from scipy.stats import t as student

from bench.studies import ab_coverage
from bench.studies.request import Request
from bench.studies.study_workers import Clock
from doseforest.policy import ConstantPolicy, DosePolicy, unit_table
from doseforest.pricing.experiments import (
    Increment,
    assign_arms,
    check_sample_ratio,
    compare_arms,
    hash_positions,
    run_ab_test,
)
from doseforest.pricing.experiments.arm_means import arm_means
from doseforest.pricing.experiments.market_trial import TRIALS
from doseforest.pricing.market import Marketplace
from doseforest.pricing.market.market_draws import seed_of

CELLS = np.arange(3, 5760, 24)  # 240 cells


def made_up(n_units: int = 400, seed: int = 0, most_rows: int = 5):
    """Rows of units with a level of their own, one covariate, and an effect that varies with it."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, most_rows + 1, n_units)
    unit = np.repeat(np.arange(n_units), counts)
    before = rng.normal(5.0, 2.0, n_units)
    treated = rng.random(n_units) < 0.4
    level = before + treated * (1 + 0.3 * (before - 5.0)) + rng.normal(0, 0.5, n_units)
    outcome = level[unit] + rng.normal(0, 1.0, len(unit))
    arms = np.where(treated, "new", "old")
    return outcome, arms[unit], unit, before[unit]


SHARES = {"old": 0.6, "new": 0.4}


# Arms by hash.


def test_the_hash_is_the_one_that_is_documented():
    digest = hashlib.sha256(b"salt:zone 7").digest()
    expected = int.from_bytes(digest[:8], "big") / 2.0**64
    assert hash_positions(["zone 7"], "salt")[0] == expected


def test_arms_have_their_shares_and_other_salts_mix_them_anew():
    labels = np.arange(20_000)
    shares = {"a": 0.2, "b": 0.5, "c": 0.3}
    arms = assign_arms(labels, "one", shares)
    for arm, share in shares.items():
        # 4 standard deviations of a binomial share.
        assert abs((arms == arm).mean() - share) < 4 * np.sqrt(share * (1 - share) / 20_000)
    again = assign_arms(labels, "two", shares)
    both = (arms == "b") & (again == "b")
    assert abs(both.mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 20_000)  # independent


def test_a_label_stays_in_its_arm_whatever_is_assigned_with_it():
    labels = np.array([f"cell {k}" for k in range(500)])
    whole = assign_arms(labels, "salt")
    order = np.random.default_rng(0).permutation(500)
    np.testing.assert_array_equal(assign_arms(labels[order], "salt"), whole[order])
    np.testing.assert_array_equal(assign_arms(np.tile(labels[:3], 2), "salt")[3:], whole[:3])
    assert assign_arms(labels[7:8], "salt")[0] == whole[7]


def test_numbers_and_their_texts_are_one_label_in_every_kind_of_array():
    numbers = np.arange(50)
    expected = assign_arms(numbers, "s")
    texts = [str(k) for k in range(50)]
    mixed = np.array([*texts[:25], *range(25, 50)], dtype=object)
    for labels in (texts, numbers.astype(np.uint8), mixed, numbers.tolist(), np.array(texts)):
        np.testing.assert_array_equal(assign_arms(labels, "s"), expected)
    assert assign_arms([], "s").shape == (0,)


def test_an_arm_that_grows_keeps_those_it_had():
    labels = np.arange(1000)
    small = assign_arms(labels, "s", {"new": 0.1, "old": 0.9}) == "new"
    large = assign_arms(labels, "s", {"new": 0.5, "old": 0.5}) == "new"
    assert (large[small]).all()


@pytest.mark.parametrize(
    ("labels", "salt", "shares", "message"),
    [
        ([1.5], "s", None, "'labels' parameter must hold text or integers. Got 1.5"),
        ([True], "s", None, "'labels' parameter must hold text or integers"),
        (np.array([True]), "s", None, "'labels' parameter must hold text or integers"),
        (["a", None], "s", None, "'labels' parameter must not have missing labels.*row 1"),
        ([[1, 2]], "s", None, r"'labels' parameter must have shape \(n,\)"),
        ([1], "", None, "'salt' parameter must be text, not empty"),
        ([1], 5, None, "'salt' parameter must be text, not empty. Got 5"),
        ([1], "s", {"a": 1.0}, "'shares' parameter must map at least two arms"),
        ([1], "s", {"a": 0.5, "b": 0.6}, "'shares' parameter must .* add up to 1"),
        ([1], "s", {"a": 1.5, "b": -0.5}, r"'shares' parameter must .* in \(0, 1\)"),
        ([1], "s", [0.5, 0.5], "'shares' parameter must map"),
    ],
)
def test_bad_assignments_are_refused(labels, salt, shares, message):
    with pytest.raises(ValueError, match=message):
        assign_arms(labels, salt, shares)


# Sample ratios.


def test_the_sample_ratio_is_a_chi_square_test():
    check = check_sample_ratio({"b": 480, "a": 200, "c": 320}, {"a": 0.2, "b": 0.5, "c": 0.3})
    expected = chisquare([200, 480, 320], [200, 500, 300])
    assert check.statistic == pytest.approx(expected.statistic)
    assert check.p_value == pytest.approx(expected.pvalue)
    assert check.holds
    assert "as planned" in str(check)


def test_lost_units_are_noticed():
    check = check_sample_ratio({"a": 50_000, "b": 51_200})
    assert not check.holds
    assert "NOT as planned" in str(check)
    outcome, arms = np.arange(1000.0), np.repeat(["old", "new"], [700, 300])
    with pytest.warns(UserWarning, match="do not have the shares of units that were planned"):
        compare_arms(outcome, arms, control="old")


@pytest.mark.parametrize(
    ("counts", "shares", "message"),
    [
        ({"a": 1, "b": 2}, {"a": 0.5, "c": 0.5}, "'counts' parameter must have units"),
        ({"a": 0, "b": 0}, None, "'counts' parameter must have units"),
        ({"a": -1, "b": 2}, None, "numbers of units of at least 0. Got -1"),
        ({"a": 1.5, "b": 2}, None, "numbers of units of at least 0. Got 1.5"),
        ({"a": 5}, None, "'shares' parameter must map at least two arms"),
    ],
)
def test_bad_counts_are_refused(counts, shares, message):
    with pytest.raises(ValueError, match=message):
        check_sample_ratio(counts, shares)


# Increments and their intervals.


def test_without_units_and_covariates_it_is_the_two_sample_comparison():
    outcome, arms, _, _ = made_up(most_rows=1)
    result = compare_arms(outcome, arms, control="old", shares=SHARES)
    new, old = outcome[arms == "new"], outcome[arms == "old"]
    assert result.increment.absolute == pytest.approx(new.mean() - old.mean())
    error = np.sqrt(new.var(ddof=1) / len(new) + old.var(ddof=1) / len(old))
    assert result.increment.standard_error == pytest.approx(error)
    welch = ttest_ind(new, old, equal_var=False)
    assert result.p_value == pytest.approx(welch.pvalue)
    low, high = result.interval(0.9)
    assert (high - low) / 2 == pytest.approx(student.ppf(0.95, welch.df) * error)


def test_with_units_it_is_the_regression_with_clustered_errors():
    outcome, arms, unit, _ = made_up()
    result = compare_arms(outcome, arms, control="old", units=unit, shares=SHARES)
    treated = (arms == "new").astype(float)
    design = np.stack([np.ones(len(outcome)), treated], axis=1)
    bread = np.linalg.inv(design.T @ design)
    slopes = bread @ design.T @ outcome
    residual = outcome - design @ slopes
    meat = np.zeros((2, 2))
    for own in np.unique(unit):
        rows = unit == own
        score = design[rows].T @ residual[rows]
        in_arm = len(np.unique(unit[treated == treated[rows][0]]))
        meat += np.outer(score, score) * in_arm / (in_arm - 1)  # as each arm's variance
    variance = (bread @ meat @ bread)[1, 1]
    assert result.increment.absolute == pytest.approx(slopes[1])
    assert result.increment.standard_error == pytest.approx(np.sqrt(variance))
    naive = compare_arms(outcome, arms, control="old", shares=SHARES)
    assert result.increment.standard_error > 1.3 * naive.increment.standard_error


def test_adjusted_increments_are_those_of_the_regression_with_interactions():
    outcome, arms, _, before = made_up(most_rows=1)
    result = compare_arms(outcome, arms, control="old", covariates=before, shares=SHARES)
    treated, x = (arms == "new").astype(float), before - before.mean()
    design = np.stack([np.ones(len(x)), treated, x, treated * x], axis=1)
    bread = np.linalg.inv(design.T @ design)
    slopes = bread @ design.T @ outcome
    residual = outcome - design @ slopes
    # HC3 within each arm, with the usual n / (n - 1) for its mean.
    counts = np.where(treated == 1, treated.sum(), (1 - treated).sum())
    leverage = (design @ bread * design).sum(axis=1) - 1 / counts
    scaled = residual * np.sqrt(counts / (counts - 1)) / (1 - leverage)
    # A covariate's mean over all units is one of a draw, too: its influence joins the scores.
    influence = design * scaled[:, None] @ bread[:, 1] + slopes[3] * x / len(x)
    assert result.increment.absolute == pytest.approx(slopes[1])
    assert result.increment.standard_error == pytest.approx(np.sqrt((influence**2).sum()))
    assert result.variance_reduction > 0.5
    assert result.n_covariates == 1


def test_cuped_has_the_one_slope_of_both_arms():
    outcome, arms, _, before = made_up(most_rows=1)
    options = {"control": "old", "covariates": before, "shares": SHARES}
    result = compare_arms(outcome, arms, adjustment="cuped", **options)
    treated = (arms == "new").astype(float)
    design = np.stack([np.ones(len(before)), treated, before], axis=1)
    slopes = np.linalg.lstsq(design, outcome)[0]
    assert result.increment.absolute == pytest.approx(slopes[1])
    adjusted = outcome - slopes[2] * (before - before.mean())
    plain = compare_arms(adjusted, arms, control="old", shares=SHARES)
    # The slope is an estimate: its leverage makes a difference of about 1 / n.
    assert result.increment.standard_error == pytest.approx(
        plain.increment.standard_error, rel=0.01
    )
    none = compare_arms(outcome, arms, adjustment="none", **options)
    assert none.increment == none.unadjusted == result.unadjusted
    assert none.n_covariates == 0


def test_ratios_have_the_delta_methods_errors():
    rng = np.random.default_rng(1)
    n = 600
    views = rng.poisson(20, n) + 1.0
    treated = rng.random(n) < 0.5
    orders = rng.binomial(views.astype(int), np.where(treated, 0.35, 0.3)).astype(float)
    arms = np.where(treated, "new", "old")
    result = compare_arms(orders, arms, control="old", denominator=views)
    ratios, variances = {}, {}
    for arm in ("old", "new"):
        own = arms == arm
        ratios[arm] = orders[own].sum() / views[own].sum()
        lines = (orders[own] - ratios[arm] * views[own]) / views[own].mean()
        variances[arm] = lines.var(ddof=1) / own.sum()
    assert result.increment.control == pytest.approx(ratios["old"])
    assert result.increment.treatment == pytest.approx(ratios["new"])
    error = np.sqrt(variances["old"] + variances["new"])
    assert result.increment.standard_error == pytest.approx(error)
    ratio = ratios["new"] / ratios["old"]
    relative = np.sqrt(variances["new"] + ratio**2 * variances["old"]) / ratios["old"]
    assert result.increment.relative == pytest.approx(ratio - 1)
    assert result.increment.relative_error == pytest.approx(relative)
    low, high = result.relative_interval()
    parts = np.array(list(variances.values()))
    counts = np.array([(arms == arm).sum() for arm in variances])
    freedom = parts.sum() ** 2 / (parts**2 / (counts - 1)).sum()
    assert (high - low) / 2 == pytest.approx(student.ppf(0.975, freedom) * relative)


def test_a_mean_over_rows_is_the_ratio_of_sums_to_numbers_of_rows():
    outcome, arms, unit, _ = made_up()
    by_rows = compare_arms(outcome, arms, control="old", units=unit, shares=SHARES)
    _, first = np.unique(unit, return_index=True)
    sums, counts = np.bincount(unit, outcome), np.bincount(unit)
    by_units = compare_arms(sums, arms[first], control="old", denominator=counts, shares=SHARES)
    assert by_rows.increment.absolute == pytest.approx(by_units.increment.absolute)
    assert by_rows.increment.standard_error == pytest.approx(by_units.increment.standard_error)
    assert by_rows.n_rows == (int((arms == "old").sum()), int((arms == "new").sum()))


def test_neither_order_of_rows_nor_names_of_units_nor_units_of_covariates_matter():
    outcome, arms, unit, before = made_up()
    options = {"control": "old", "shares": SHARES}
    first = compare_arms(outcome, arms, units=unit, covariates=before, **options)
    order = np.random.default_rng(5).permutation(len(outcome))
    names = np.array([f"cell {k}" for k in unit], dtype=object)
    moved = np.stack([1000 * before + 7, np.ones(len(before)), before], axis=1)  # and useless ones
    again = compare_arms(
        outcome[order], arms[order], units=names[order], covariates=moved[order], **options
    )
    for name in ("control", "treatment", "standard_error", "relative_error"):
        own, other = getattr(first.increment, name), getattr(again.increment, name)
        assert other == pytest.approx(own, rel=1e-6)


def test_swapped_arms_turn_the_increment_around():
    outcome, arms, unit, before = made_up()
    options = {"units": unit, "covariates": before, "shares": SHARES}
    one = compare_arms(outcome, arms, control="old", **options).increment
    other = compare_arms(outcome, arms, control="new", **options).increment
    assert one.absolute == pytest.approx(-other.absolute)
    assert one.standard_error == pytest.approx(other.standard_error)
    assert 1 + one.relative == pytest.approx(1 / (1 + other.relative))


def test_the_covariance_of_adjusted_means_is_that_of_repeated_draws():
    rng = np.random.default_rng(2)
    values, variances = [], []
    for _ in range(600):
        x = rng.exponential(1.0, 200)
        treated = rng.random(200) < 0.3
        y = 1 + 2 * x + treated * (1 + x) + rng.normal(0, 1, 200) * (1 + treated)
        means = arm_means(y[:, None], treated, x[:, None], "lin")
        values.append(means.values.ravel())
        variances.append(means.covariance)
    found, expected = np.mean(variances, axis=0), np.cov(np.array(values).T)
    # Variances of 600 draws have a relative error of sqrt(2/600) = 6 %; three of them.
    np.testing.assert_allclose(found, expected, rtol=0.18)


def test_spending_is_told_by_arm_and_in_words():
    outcome, arms, unit, _ = made_up()
    cost = np.where(arms == "new", 2.0, 1.0)
    result = compare_arms(outcome, arms, control="old", units=unit, cost=cost, shares=SHARES)
    assert result.total_spend == ((arms == "old").sum(), 2.0 * (arms == "new").sum())
    per_unit = result.total_spend[0] / result.n_units[0]
    assert result.spend.control == pytest.approx(per_unit)
    assert "new spent more" in str(result)
    same = compare_arms(
        outcome, arms, control="old", units=unit, cost=np.ones(len(arms)), shares=SHARES
    )
    assert "the same budget" in str(same)
    free = compare_arms(outcome, arms, control="old", units=unit, shares=SHARES)
    assert free.spend is None
    assert "spend" not in str(free)


def test_nothing_to_divide_by_leaves_the_absolute_increment():
    outcome = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 3.0])
    result = compare_arms(outcome, ["old"] * 3 + ["new"] * 3, control="old")
    assert result.increment.absolute == 2.0
    assert np.isnan(result.increment.relative)
    assert "%" not in str(result).splitlines()[3]
    certain = Increment(1.0, 1.0, 0.0, 0.0)
    assert certain.p_value == 1.0
    assert Increment(1.0, 2.0, 0.0, 0.0).p_value == 0.0


def test_results_are_plain_values_for_files():
    outcome, arms, unit, before = made_up()
    options = {"control": "old", "units": unit, "covariates": before, "shares": SHARES}
    result = compare_arms(outcome, arms, cost=np.ones(len(arms)), **options)
    told = json.loads(json.dumps(result.as_dict(0.9), allow_nan=False))
    assert told["increment"]["interval"] == list(result.interval(0.9))
    assert told["increment"]["relative_interval"] == list(result.relative_interval(0.9))
    assert told["spend"]["control"] == result.spend.control
    assert told["n_units"] == list(result.n_units)
    assert told["sample_ratio_holds"] is True
    nothing = compare_arms(np.array([0.0, 0.0, 1.0, 2.0]), ["a", "a", "b", "b"], control="a")
    told = json.loads(json.dumps(nothing.as_dict(), allow_nan=False))
    assert told["increment"]["relative"] is None
    assert told["spend"] is None


def test_results_are_drawn():
    pytest.importorskip("matplotlib")
    outcome, arms, unit, before = made_up()
    result = compare_arms(
        outcome,
        arms,
        control="old",
        units=unit,
        covariates=before,
        cost=np.ones(len(arms)),
        shares=SHARES,
        metric="orders",
    )
    ax = result.plot()
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert shown == ["orders", "without covariates", "spend"]
    low, high = result.relative_interval()
    np.testing.assert_allclose(ax.lines[1].get_xdata(), [low, high])
    assert ax.get_title(loc="left") == "new against old"


def test_without_covariates_few_units_have_welchs_interval_and_p_value():
    rng = np.random.default_rng(3)
    old, new = rng.normal(0, 1, 4), rng.normal(1, 3, 7)
    result = compare_arms(np.append(old, new), ["old"] * 4 + ["new"] * 7, control="old")
    welch = ttest_ind(new, old, equal_var=False)
    assert result.increment.freedom == pytest.approx(welch.df)
    assert result.p_value == pytest.approx(welch.pvalue)
    ends = welch.confidence_interval(0.9)
    assert result.interval(0.9) == pytest.approx((ends.low, ends.high))


@pytest.mark.parametrize(("n_units", "n_covariates"), [(2, 0), (4, 0), (8, 1)])
def test_few_units_are_covered_as_often_as_many(n_units, n_covariates):
    rng = np.random.default_rng(n_units)
    arms = np.repeat(["control", "treatment"], n_units)
    covered = 0
    for _ in range(600):
        before = rng.normal(size=(2 * n_units, n_covariates))
        outcome = 5 + before.sum(axis=1) + rng.normal(size=2 * n_units)
        low, high = compare_arms(outcome, arms, covariates=before).interval()
        covered += low <= 0 <= high
    # Of 600 draws at 95 % the standard error is .9 %, and two are allowed; normal
    # quantiles had 83 % of 2 and 89 % of 4 units.
    assert covered / 600 > 0.95 - 2 * 0.009


def test_rounding_is_no_increment():
    arms = np.repeat(["control", "treatment"], [33, 66])
    with pytest.warns(UserWarning, match="shares of units"):
        result = compare_arms(np.full(99, 0.1), arms)
    assert result.increment.absolute == 0.0
    assert result.p_value == 1.0
    assert result.interval() == (0.0, 0.0)


@pytest.mark.parametrize("labels", [(0, 1), (False, True), (5.0, 2.0)])
def test_arms_may_be_numbers_and_booleans(labels):
    outcome = np.array([1.0, 2.0, 4.0, 9.0])
    result = compare_arms(outcome, np.repeat(labels, 2), control=labels[0])
    assert result.increment.absolute == 5.0
    assert (result.control, result.treatment) == tuple(map(str, labels))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outcome": np.ones((5, 2))}, r"'outcome' parameter must have shape \(n_rows,\)"),
        ({"outcome": [1.0, np.nan] * 4}, "'outcome' parameter must hold finite.*nan in row 1"),
        ({"arms": ["a"] * 8}, "'arms' parameter must name two arms. Got"),
        ({"arms": ["a", "b", "c", "a"] * 2}, "'arms' parameter must name two arms"),
        ({"arms": ["a", None] * 4}, "'arms' parameter must not have missing labels.*row 1"),
        ({"arms": ["a", "b"]}, r"'arms' parameter must have shape \(8,\)"),
        ({"control": "c"}, r"'control' parameter must be one of the arms \['a', 'b'\]. Got 'c'"),
        ({"units": [0] * 8}, "'units' parameter must have each unit in one arm alone. Got unit 0"),
        ({"units": [0, 1] * 4}, "'units' parameter must have at least 2 units in each arm"),
        ({"denominator": np.zeros(8)}, "'denominator' parameter must have a positive sum"),
        ({"denominator": np.ones(7)}, r"'denominator' parameter must have shape \(8,\)"),
        ({"covariates": np.ones(7)}, "'covariates' parameter must have 8 rows"),
        ({"covariates": np.full(8, np.inf)}, "'covariates' parameter must hold finite"),
        ({"covariates": np.eye(8)}, "'units' parameter must have at least 10 units"),
        ({"cost": ["x"] * 8}, "'cost' parameter must hold real numbers"),
        ({"adjustment": "best"}, "'adjustment' parameter must be one of 'lin', 'cuped', 'none'"),
    ],
)
def test_bad_comparisons_are_refused(change, message):
    given = {"outcome": np.arange(8.0), "arms": ["a", "b"] * 4, "control": "a"} | change
    with pytest.raises((ValueError, TypeError), match=message):
        compare_arms(given.pop("outcome"), given.pop("arms"), **given)


# Trials in the marketplace.


def test_a_trial_finds_the_increment_that_the_simulator_knows():
    market = Marketplace("nonlinear")
    test = run_ab_test(market, {"none": 0.0, "flat": 0.18}, days=2, cells=CELLS, salt="s", seed=4)
    assert list(test.results) == list(test.truths)
    for name, result in test.results.items():
        truth = test.truths[name].absolute
        # Four standard errors: five metrics of one seed.
        assert abs(result.increment.absolute - truth) < 4 * result.increment.standard_error
        assert truth > 0
    assert test.orders.variance_reduction > 0.5
    assert test.orders.spend.absolute > 0
    assert "truth" in str(test)
    arms = assign_arms(CELLS, "s", {"none": 0.5, "flat": 0.5})
    np.testing.assert_array_equal(test.arms, arms)


def test_the_truth_of_a_trial_is_the_mean_of_what_all_cells_would_bring():
    market = Marketplace("mixed")
    test = run_ab_test(
        market, {"a": 0.06, "b": 0.24}, days=2, days_before=1, cells=CELLS[:60], seed=4
    )
    traffic = market.draw_traffic(days=[1, 2], cells=CELLS[:60], seed=seed_of(4, TRIALS))
    for discount, found in (
        (0.06, test.true_increment.control),
        (0.24, test.true_increment.treatment),
    ):
        orders = [market.draw_results(traffic, discount, seed=s).orders.sum() for s in range(40)]
        error = np.std(orders) / np.sqrt(len(orders)) / traffic.n_visits
        assert abs(np.mean(orders) / traffic.n_visits - found) < 4 * error


def test_a_policy_is_not_tried_on_the_views_of_an_experiment_with_the_same_seed():
    seen = []

    def watch(X):
        seen.append(X)
        return np.zeros(len(X))

    market = Marketplace("mixed")
    run_ab_test(market, {"a": watch, "b": 0.1}, days=1, days_before=0, cells=CELLS, seed=3)
    own = market.draw_traffic(days=[0], cells=CELLS, seed=3).X
    common = {row.tobytes() for row in np.ascontiguousarray(seen[0])}
    assert not any(row.tobytes() in common for row in np.ascontiguousarray(own))


def test_trials_take_objects_that_decide_two_discounts_and_no_days_before():
    class ByDistance:
        def decide(self, X):
            return np.stack([0.01 * np.minimum(X[:, 0], 30), np.zeros(len(X))], axis=1)

    test = run_ab_test(
        Marketplace("mixed", n_options=2),
        {"flat": [0.1, 0.1], "by distance": ByDistance()},
        days=1,
        days_before=0,
        cells=CELLS,
        shares={"flat": 0.3, "by distance": 0.7},
    )
    assert test.orders.n_covariates == 0
    assert test.orders.n_units[1] > test.orders.n_units[0]
    pytest.importorskip("matplotlib")
    assert len(test.plot().get_yticks()) == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policies": {"a": 0.0}}, "'policies' parameter must map two names"),
        ({"policies": [0.0, 0.1]}, "'policies' parameter must map two names"),
        ({"policies": {"a": 0.0, "b": 0.9}}, "'policy' parameter must give discounts"),
        ({"days": 0}, "'days' parameter must be an int of at least 1. Got 0"),
        ({"days_before": -1}, "'days_before' parameter must be an int of at least 0. Got -1"),
        (
            {"shares": {"a": 0.5, "c": 0.5}},
            "'shares' parameter must have the names of the policies",
        ),
        ({"cells": [1.5, 2.0]}, "'cells' parameter must be different ints"),
    ],
)
def test_bad_trials_are_refused(change, message):
    given = {"policies": {"a": 0.0, "b": 0.1}, "days": 1, "cells": CELLS[:20]} | change
    with pytest.raises(ValueError, match=message):
        run_ab_test(Marketplace(), **given)


def test_names_of_policies_in_a_trial_may_be_numbers():
    test = run_ab_test(Marketplace(), {0: 0.0, 1: 0.1}, days=1, days_before=0, cells=CELLS)
    assert (test.orders.control, test.orders.treatment) == ("0", "1")


def test_policies_of_the_library_run_in_trials():
    market = Marketplace("mixed")
    X = market.draw_traffic(days=1, cells=CELLS[:20]).X
    doses = np.array([0.0, 0.1])
    far = X[:, 0] > np.median(X[:, 0])
    policy = DosePolicy(unit_table(X, np.where(far, 1.0, -1.0)[:, None] * doses, doses))
    traffic = market.draw_traffic(days=1, cells=CELLS[20:40])
    plan = market.plan(policy, traffic)
    assert set(plan.ravel()) == {0.0, 0.1}
    np.testing.assert_array_equal(plan[:, 0], policy.decide(traffic.X).dose)
    policies = {"flat": ConstantPolicy(0.1), "far": policy}
    test = run_ab_test(market, policies, days=1, days_before=0, cells=CELLS)
    by_hand = run_ab_test(
        market,
        {"flat": 0.1, "far": lambda X: policy.decide(X).dose},
        days=1,
        days_before=0,
        cells=CELLS,
    )
    assert test.orders.increment == by_hand.orders.increment


# The study.


def test_the_study_tells_false_alarms_and_coverage(monkeypatch):
    monkeypatch.setattr(ab_coverage, "CITY_SEEDS", range(9000, 9001))
    monkeypatch.setattr(ab_coverage, "N_CELLS", 40)
    report = ab_coverage.run(Request(simulations=3, processes=1), Clock())
    n_rows = len(ab_coverage.ROWS)
    assert len(report.records) == 3 * 3 * n_rows
    assert len(report.verdicts) == 3 * n_rows
    for record in report.records:
        if record["design"] == "A/A":
            assert record["city_error"] == record["test_error"]  # there is no increment
        assert record["standard_error"] > 0
    assert "false alarm" in str(report.verdicts[0])


def test_shares_of_draws_are_those_counted_by_hand():
    errors = (0.0, 1.0, -1.0, 3.0)
    records = [{"e": e, "standard_error": 1.0, "reach": 2.5} for e in errors]
    found = ab_coverage.shares_of(records, "e")
    assert found.covered == 0.75
    assert found.chance == pytest.approx(np.sqrt(0.75 * 0.25 / 4))
    assert found.bias == pytest.approx(0.75)
    assert found.ratio == pytest.approx(1 / np.std(errors))


def test_policies_of_the_same_budget_cost_the_same():
    market = Marketplace(ab_coverage.REGIME)
    traffic = market.draw_traffic(days=[2, 3], cells=np.arange(0, 5760, 2), seed=77)
    flat, by_income = ab_coverage.PAIRS[ab_coverage.BUDGET].values()
    costs = [market.expected(traffic, policy).cost.sum() for policy in (flat, by_income)]
    assert costs[1] / costs[0] == pytest.approx(1.0, abs=0.02)  # other traffic than it was set on
