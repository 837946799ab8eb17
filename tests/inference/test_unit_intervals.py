"""Intervals of units' effects: the algebra of bags, what covers, and whom they serve."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from causal_tables import Slopes, Table
from doseforest import ForestFileError, GeneralizedCausalForest, load_forest
from doseforest.base.container import read_container, write_container
from doseforest.base.intervals import simultaneous_quantile
from doseforest.doses.bases.splines import Spline
from doseforest.estimator.bags import growing_bags
from doseforest.estimator.bags.bag_contrasts import (
    band_quantiles,
    contrast_roots,
    contrast_variance,
)
from doseforest.estimator.bags.noise_share import NoiseShare, bags_without
from doseforest.estimator.bags.unit_bags import CurveNoise, UnitBags, bag_variance
from doseforest.estimator.corrections.moments import moment_channels


def draw(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x, dose = rng.normal(size=(n, 3)), rng.uniform(0, 4, size=n)
    return x, dose, x[:, 0] + 10 + dose * (1 + 0.5 * x[:, 1]) + 0.5 * rng.normal(size=n)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """Forests of 200 trees: what is tested here does not need more."""
    monkeypatch.setattr(growing_bags, "N_BAGS", 40)
    monkeypatch.setattr(growing_bags, "BAG_SIZE", 5)


def small(**parameters):
    settings = {
        "n_trees": 12,
        "correction": "none",
        "outcome_model": Slopes(),
        "treatment_model": LinearRegression(),
        "baseline": 1.0,
        "inference": "bags",
        "random_state": 0,
        "n_jobs": 1,
    }
    return GeneralizedCausalForest(**{**settings, **parameters})


@cache
def fitted(n=300, seed=0):
    x, dose, y = draw(n, seed)
    return small().fit(x, y, treatment=dose)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A forest of what files can hold, and the file of it."""
    x, dose, y = draw(120)
    path = tmp_path_factory.mktemp("intervals") / "forest.dose"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing_bags, "N_BAGS", 30)  # enough for a share that units have in common
        patch.setattr(growing_bags, "BAG_SIZE", 3)
        forest = small(outcome_model="stack").fit(x, y, treatment=dose)
    forest.save(path)
    return forest, path


def moments_of(rng, n_units=3, n_trees=12, n_rows=30, k=2):
    """Packed moments of random rows in every tree, and the unpacked ones."""
    functions = rng.normal(size=(n_units, n_trees, n_rows, k))
    residual = functions @ np.arange(1.0, k + 1) + rng.normal(size=functions.shape[:3])
    rows = moment_channels(functions.reshape(-1, k), residual.ravel())
    packed = rows.reshape(n_units, n_trees, n_rows, -1).mean(axis=2)
    gram = np.einsum("utrk,utrl->utkl", functions, functions) / n_rows
    cross = np.einsum("utrk,utr->utk", functions, residual) / n_rows
    return packed, gram, cross


def test_coefficients_and_mean_squares_are_those_of_an_analysis_of_variance_by_hand():
    packed, gram, cross = moments_of(np.random.default_rng(0))
    beta, between, within, unknown = bag_variance(packed, 4, np.ones(2))
    assert not unknown.any()
    for unit in range(len(packed)):
        mean = gram[unit].mean(axis=0)
        own = np.linalg.solve(mean, cross[unit].mean(axis=0))
        np.testing.assert_allclose(beta[unit], own)
        moves = [
            np.linalg.solve(mean, b - A @ own) for A, b in zip(gram[unit], cross[unit], strict=True)
        ]
        bags = [moves[3 * bag : 3 * bag + 3] for bag in range(4)]
        means = [np.mean(bag, axis=0) for bag in bags]
        by_hand = sum(np.outer(value, value) for value in means) / 3
        np.testing.assert_allclose(between[unit], by_hand)
        apart = [value - mean for bag, mean in zip(bags, means, strict=True) for value in bag]
        by_hand = sum(np.outer(value, value) for value in apart) / (4 * 3 * 2)
        np.testing.assert_allclose(within[unit], by_hand)


def test_the_variance_is_that_of_bags_without_the_noise_of_their_trees():
    # Bags differ with variance 1, trees with variance 9: of means of 5 trees, 1 + 9 / 5 is seen.
    rng = np.random.default_rng(1)
    bags = rng.normal(size=(4000, 30, 1)) + 3 * rng.normal(size=(4000, 30, 5))
    moments = np.stack([np.ones((4000, 150)), bags.reshape(4000, 150)], axis=2)
    _, between, within, _ = bag_variance(moments, 30, np.ones(1))
    variance = between - within
    # One mean square has a standard error of 2.8 sqrt(2 / 29) = .74; of 4,000, .012.
    assert variance.mean() == pytest.approx(1.0, abs=0.05)
    assert between.mean() == pytest.approx(2.8, abs=0.05)


def test_degrees_of_freedom_are_those_that_the_variance_has():
    rng = np.random.default_rng(2)
    bags = rng.normal(size=(5000, 100, 1)) + rng.normal(size=(5000, 100, 5))
    moments = np.stack([np.ones((5000, 500)), bags.reshape(5000, 500)], axis=2)
    beta, between, within, unknown = bag_variance(moments, 100, np.ones(1))
    noise = CurveNoise(beta, between, within, unknown, 100, 5)
    variance, degrees = contrast_variance(noise, np.ones((5000, 1, 1)))
    # A mean square of d degrees of freedom has the relative variance 2 / d.
    seen = 2 * variance.mean() ** 2 / variance.var()
    assert np.median(degrees) == pytest.approx(seen, rel=0.1)


def test_a_direction_that_no_row_tells_of_is_not_known():
    packed, *_ = moments_of(np.random.default_rng(3))
    blind = packed.copy()
    blind[..., [1, 2, 4]] = 0.0  # the second function is 0 in all rows
    parts = bag_variance(blind, 4, np.ones(2))
    noise = CurveNoise(*parts, 4, 3)
    asked = np.tile(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]), (3, 1, 1))
    variance, _ = contrast_variance(noise, asked)
    assert np.isfinite(variance[:, [0, 3]]).all()
    assert np.isinf(variance[:, [1, 2]]).all()


def test_roots_of_contrasts_have_their_covariance():
    # With next to no noise of trees, nothing is held above a floor.
    packed, *_ = moments_of(np.random.default_rng(4), n_trees=400)
    beta, between, _, unknown = bag_variance(packed, 80, np.ones(2))
    noise = CurveNoise(beta, between, np.zeros_like(between), unknown, 80, 5)
    contrasts = np.random.default_rng(5).normal(size=(3, 4, 2))
    roots = contrast_roots(noise, contrasts)
    variance, _ = contrast_variance(noise, contrasts)
    np.testing.assert_allclose((roots**2).sum(axis=2) * (1 + 1 / 80), variance)
    np.testing.assert_allclose(
        roots @ roots.transpose(0, 2, 1), contrasts @ between @ contrasts.transpose(0, 2, 1)
    )


def test_roots_follow_the_share_that_units_have_in_common():
    packed, *_ = moments_of(np.random.default_rng(4), n_trees=400)
    parts = bag_variance(packed, 80, np.ones(2))
    # The own share has no weight where others vary by nothing: the covariance is the common part
    # of what differs between bags.
    noise = CurveNoise(*parts, 80, 5, NoiseShare(0.3, 0.0))
    contrasts = np.random.default_rng(5).normal(size=(3, 4, 2))
    roots = contrast_roots(noise, contrasts)
    np.testing.assert_allclose(
        roots @ roots.transpose(0, 2, 1), 0.3 * contrasts @ parts[1] @ contrasts.transpose(0, 2, 1)
    )
    variance, _ = contrast_variance(noise, contrasts)
    np.testing.assert_allclose((roots**2).sum(axis=2) * (0.3 + 1 / 80) / 0.3, variance)


def test_noise_in_some_bags_is_that_of_their_trees(stored):
    bags, units = stored[0].model_.bags, draw(120)[0][:5]
    chosen = np.argsort(np.random.default_rng(0).random((5, bags.n_bags)), axis=1)[:, :7]
    found = bags.noise_in(units, chosen, n_threads=1)
    moments = bags._tree_moments(units, 1)
    for unit, own in enumerate(chosen):
        trees = (own[:, None] * bags.bag_size + np.arange(bags.bag_size)).ravel()
        beta, between, within, _ = bag_variance(moments[[unit]][:, trees], 7, bags.spread)
        np.testing.assert_array_equal(found.coefficients[unit], beta[0])
        np.testing.assert_array_equal(found.between[unit], between[0])
        np.testing.assert_array_equal(found.within[unit], within[0])
    assert found.n_bags == 7


def test_common_shares_are_of_bags_that_have_left_the_row_out(monkeypatch):
    x, dose, y = draw(120)
    seen = []
    measured = UnitBags.noise_in

    def watched(self, splits, bags, n_threads):
        seen.append((self.forest.plan, splits, bags))
        return measured(self, splits, bags, n_threads)

    monkeypatch.setattr(UnitBags, "noise_in", watched)
    monkeypatch.setattr(growing_bags, "N_BAGS", 30)
    small().fit(x, y, treatment=dose)
    ((plan, splits, bags),) = seen
    rows = [int(np.flatnonzero((x == own).all(axis=1))[0]) for own in splits]
    assert bags.shape == (len(rows), 12)
    without = bags_without(plan, np.array(rows), 30)
    assert np.take_along_axis(without, bags, axis=1).all()


def test_bands_of_well_known_errors_are_those_of_averages():
    roots = np.random.default_rng(6).normal(size=(1, 5, 3))
    found = band_quantiles(roots, np.array([np.inf]), 0.95)
    # 2,000 draws against 20,000: the 95 % quantile is off by about .03.
    assert found[0] == pytest.approx(simultaneous_quantile(roots[0] @ roots[0].T), abs=0.1)
    assert band_quantiles(roots, np.array([5.0]), 0.95)[0] > found[0] + 0.3


def test_intervals_cover_and_are_no_wider_than_that_takes():
    units, errors, scales, inside = draw(100, seed=999)[0], [], [], []
    truth = 2 * (1 + 0.5 * units[:, 1])
    for seed in range(10):
        x, dose, y = draw(250, seed=seed)
        found = small().fit(x, y, treatment=dose).intervals.effect(units, 3.0, 1.0)
        low, high = found.interval()
        errors.append(found.values - truth)
        scales.append(found.standard_errors)
        inside.append((low <= truth) & (truth <= high))
    # Errors of neighbours go together: ten draws of a hundred units are worth about 200
    # independent ones, with a standard error of 1.5 points; and t-quantiles are a little generous.
    assert 0.90 <= np.mean(inside) <= 0.995
    # A deviation of ten draws has a relative error of 24 %, of all units together about 8 %; what
    # so few rows leave of the outcome model's own noise is not in the standard errors.
    ratio = np.mean(scales) / np.std(errors, axis=0, ddof=1).mean()
    assert 0.75 <= ratio <= 1.25


def test_answers_do_not_depend_on_intervals_nor_intervals_on_threads():
    x, dose, y = draw()
    plain = small(inference=None, correction="orthogonal").fit(x, y, treatment=dose)
    one = small(correction="orthogonal").fit(x, y, treatment=dose)
    two = small(correction="orthogonal", n_jobs=2).fit(x, y, treatment=dose)
    np.testing.assert_array_equal(plain.dose_response(x), one.dose_response(x))
    for ends in zip(one.effect_interval(x, 3.0), two.effect_interval(x, 3.0), strict=True):
        np.testing.assert_array_equal(*ends)


def test_blocks_of_units_do_not_change_intervals(monkeypatch):
    forest, x = fitted(), draw()[0]
    whole = forest.effect_interval(x, 3.0)
    monkeypatch.setattr("doseforest.estimator.bags.unit_bags.VALUES_AT_ONCE", 1)
    np.testing.assert_array_equal(whole[0][:20], forest.effect_interval(x[:20], 3.0)[0])


def test_doses_may_be_one_or_one_for_each_unit_or_a_grid_or_rows_of_their_own():
    forest, x = fitted(), draw()[0][:6]
    own = np.linspace(1.5, 3.5, 6)
    alone = forest.intervals.effect(x, own)
    rows = forest.intervals.effect(x, doses=own[:, None])
    grid = forest.intervals.effect(x, doses=own)
    assert alone.values.shape == (6,)
    np.testing.assert_allclose(alone.values, rows.values[:, 0])
    np.testing.assert_allclose(alone.values, np.diag(grid.values))
    np.testing.assert_allclose(alone.standard_errors, np.diag(grid.standard_errors))
    assert forest.intervals.effect(x).values.shape == (6, len(forest.doses_))
    back = forest.intervals.effect(x, 1.0, own)
    np.testing.assert_allclose(back.values, -alone.values)


def test_the_effect_of_the_baseline_is_nothing_for_sure():
    low, high = fitted().effect_interval(draw()[0][:5], doses=[1.0, 3.0], band=True)
    assert not low[:, 0].any()
    assert not high[:, 0].any()
    assert (low[:, 1] < high[:, 1]).all()


def test_beyond_the_doses_that_functions_tell_apart_nothing_is_known():
    # Functions of the dose are flat beyond its outermost hundredths, whatever the model says there.
    low = draw(300)[1].min()
    error = fitted().intervals.effect(draw(9)[0], doses=[low, 2.0], baseline=low + 1e-3)
    assert np.isposinf(error.standard_errors[:, 0]).all()
    assert np.isfinite(error.standard_errors[:, 1]).all()


def test_curves_are_the_mean_of_the_models_that_residuals_are_of():
    forest, units = fitted(), draw(9)[0]
    doses = np.tile([1.0, 2.0], (9, 1))
    folds = forest._fitted.parts[0].outcome.repeats[0].models
    mean = np.mean([model.curves(units, doses) for model in folds], axis=0)
    np.testing.assert_allclose(forest.model_.bags.outcome_curves(units, doses, 1), mean)


def test_bands_are_wider_than_intervals_and_both_grow_with_coverage():
    forest, x = fitted(), draw()[0][:20]
    asked = {"doses": [0.5, 2.0, 3.0, 3.9]}
    widths = [
        np.subtract(*forest.effect_interval(x, **asked, coverage=coverage, band=band)[::-1])
        for coverage, band in [(0.8, False), (0.95, False), (0.95, True)]
    ]
    assert (widths[0] < widths[1]).all()
    assert (widths[1] <= widths[2]).all()
    assert widths[2].mean() > 1.1 * widths[1].mean()


def test_partial_effects_and_elasticities_are_effects_in_other_units():
    forest, x = fitted(), draw()[0][:8]
    effect = forest.intervals.effect(x, 3.0, 1.0)
    slope = forest.intervals.partial_effect(x, 3.0, 1.0)
    np.testing.assert_allclose(slope.values, effect.values / 2)
    np.testing.assert_allclose(slope.standard_errors, effect.standard_errors / 2)
    low, high = forest.intervals.partial_effect(x, 1.0, 3.0).interval()
    np.testing.assert_allclose([low, high], np.array(effect.interval()) / 2)
    reach = 0.025 * (forest.support_.high - forest.support_.low)
    near = forest.intervals.partial_effect(x, 2.0 - reach, 2.0 + reach)
    elastic = forest.intervals.elasticity(x, 2.0)
    factor = 2.0 / forest.dose_response(x, [2.0])[:, 0]
    np.testing.assert_allclose(elastic.values, near.values * factor)
    np.testing.assert_allclose(elastic.interval()[0], near.interval()[0] * factor)
    np.testing.assert_allclose(
        forest.intervals.elasticity(x, 2.0).interval()[0], elastic.interval()[0]
    )


def test_the_best_dose_is_an_end_where_outcomes_surely_rise_or_fall():
    x = np.zeros((2, 3))
    x[:, 1] = 1.0, -1.9  # slopes 1.5 and about 0
    forest, grid = fitted(), [0.5, 2.0, 3.5]
    low, high = forest.intervals.optimal_dose(x, grid).interval()
    assert (low[0], high[0]) == (3.5, 3.5)
    assert low[1] < high[1]
    low, high = forest.intervals.optimal_dose(x, grid, minimize=True).interval()
    assert (low[0], high[0]) == (0.5, 0.5)
    found = forest.intervals.optimal_dose(x, grid)
    assert found.plausible.shape == (2, 3)
    assert found.values[0] == 3.5
    assert found.plausible[1, grid.index(found.values[1])]


def test_files_keep_intervals_bit_for_bit(stored):
    (forest, path), x = stored, draw(120)[0]
    loaded = load_forest(path)
    assert loaded.bags.share == forest.model_.bags.share != NoiseShare.unknown()
    for band in (False, True):
        asked = {"doses": [0.5, 2.0], "band": band}
        for ends in zip(
            forest.effect_interval(x, **asked), loaded.effect_interval(x, **asked), strict=True
        ):
            np.testing.assert_array_equal(*ends)
    assert loaded.set_output(transform="pandas").effect_interval(x, 2.0)[0].name == "effect"


def test_files_from_before_common_shares_go_by_the_units_own(stored, tmp_path):
    container = read_container(stored[1])
    metadata = json.loads(json.dumps(container.metadata))
    del metadata["bags"]["share"]
    write_container(tmp_path / "older.dose", metadata, dict(container.arrays))
    assert load_forest(tmp_path / "older.dose").bags.share == NoiseShare.unknown()


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (lambda meta, arrays: meta["forest"]["plan"].update(bag_size=1), "not in bags"),
        (lambda meta, arrays: meta["forest"]["plan"].update(bag_size=7), "not in bags"),
        (lambda meta, arrays: arrays.pop("bags/spread"), "lacks the array"),
        (lambda meta, arrays: arrays["bags/spread"].__imul__(-1.0), "no proper spread"),
        (lambda meta, arrays: meta["basis"].update(masses=[1.0]), "does not fit"),
        (lambda meta, arrays: arrays["bags/forest/leaf_sums"].fill(np.nan), "non-finite"),
        (lambda meta, arrays: meta["share"].update(mean=1.5), "mean out of range"),
        (lambda meta, arrays: meta["share"].update(variance=-1.0), "variance out of range"),
        (lambda meta, arrays: meta["outcomes"].clear(), "no outcome models of folds"),
        (lambda meta, arrays: meta["outcomes"][0].update(n_features=2), "of other features"),
    ],
)
def test_forged_files_are_refused(stored, tmp_path, forge, message):
    path = tmp_path / "forest.dose"
    container = read_container(stored[1])
    arrays = {name: np.array(own) for name, own in container.arrays.items()}
    metadata = json.loads(json.dumps(container.metadata))
    forge(metadata["bags"], arrays)
    write_container(path, metadata, arrays)
    with pytest.raises(ForestFileError, match=message):
        load_forest(path)


@pytest.mark.parametrize(
    ("rows", "parameters"),
    [
        ({"sample_weight": np.linspace(0.5, 1.5, 300)}, {}),
        ({"groups": np.arange(300) // 3}, {}),
        ({}, {"density": lambda x, doses: np.full(np.broadcast(x[:, :1], doses).shape, 0.25)}),
        ({}, {"correction": "stabilized", "n_trees": 12, "density": "none"}),
        ({}, {"effect_features": [1]}),
    ],
)
def test_weights_groups_assignments_and_roles_are_served(rows, parameters):
    x, dose, y = draw()
    low, high = small(**parameters).fit(x, y, treatment=dose, **rows).effect_interval(x, 3.0)
    truth = 2 + x[:, 1]
    # One draw: units' errors go together, so a miss of three in ten is within its luck.
    assert np.mean((low <= truth) & (truth <= high)) > 0.7
    assert (high - low).max() < 5


def test_a_group_is_in_a_bag_as_a_whole():
    # Every row ten times: with groups the copies tell nothing new, without them they seem to.
    x, dose, y = (np.repeat(own, 5, axis=0) for own in draw(150))
    together = small().fit(x, y, treatment=dose, groups=np.repeat(np.arange(150), 5))
    alone = small().fit(x, y, treatment=dose)
    wide, narrow = (f.intervals.effect(x[::5], 3.0).standard_errors for f in (together, alone))
    # Five copies of a row are worth one: errors should differ by about the root of five.
    assert 1.5 < np.median(wide) / np.median(narrow) < 4


def test_categories_and_gaps_are_served():
    table = Table(300)
    forest = small(baseline=2.0, treatment_model=None).fit(
        table.frame, table.y, treatment=table.dose
    )
    low, high = forest.effect_interval(table.frame, 3.0)
    own = 1 + table.slope[table.code]
    seen = ~table.gap
    assert np.mean((low <= own)[seen] & (own <= high)[seen]) > 0.7


def test_levels_are_served_and_those_that_nobody_near_could_have_are_less_well_known():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    arm = np.where(x[:, 0] > 0, rng.integers(0, 3, 400), rng.integers(0, 2, 400))  # no 2 below 0
    y = arm * (1.0 + (x[:, 1] > 0)) + 0.3 * rng.normal(size=400)
    # Means of a line would leave a residual of the arm even where it cannot be had.
    forest = small(treatment_model=None, baseline=0.0).fit(x, y, treatment=arm)
    units = np.array([[1.0, 1.0], [-2.0, 1.0]])
    low, high = forest.effect_interval(units, doses=[1.0, 2.0])
    assert ((low <= 2.0) & (high >= 2.0))[:, 0].all()
    width = high - low
    # What is said below 0 is borrowed from above, where trees do not split.
    assert width[1, 1] > 1.5 * width[0, 1]


def test_doses_of_two_components_are_served():
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(400, 2)), rng.uniform(0, 2, size=(400, 2))
    y = dose[:, 0] + 0.5 * dose[:, 1] + x[:, 0] + 0.3 * rng.normal(size=400)
    forest = small(outcome_model=LinearRegression(), baseline=[0.5, 1.0]).fit(x, y, treatment=dose)
    low, high = forest.effect_interval(x, [1.5, 1.0], [0.5, 1.0])
    assert np.mean((low <= 1.0) & (high >= 1.0)) > 0.8
    assert forest.intervals.optimal_dose(x[:3], [[0.5, 1.0], [1.5, 1.0]]).plausible.shape == (3, 2)
    with pytest.raises(ValueError, match="one component"):
        forest.intervals.optimal_dose(x[:3]).interval()


def test_effects_on_chances_stay_between_minus_one_and_one():
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(200, 2)), rng.uniform(0, 1, 200)
    y = (rng.random(200) < 0.02 + 0.96 * dose).astype(float)
    forest = small(baseline=0.0, outcome_model=LinearRegression()).fit(x, y, treatment=dose)
    low, high = forest.effect_interval(x, 0.99, 0.01, coverage=0.999)
    assert high.max() == 1.0
    assert low.min() >= -1.0


def test_answers_are_frames_where_frames_are_asked_for():
    x = pd.DataFrame(draw()[0][:4], index=list("abcd"))
    forest = small().set_output(transform="pandas")
    units, dose, y = draw()
    forest.fit(units, y, treatment=dose)
    low, high = forest.effect_interval(x.to_numpy(), doses=[2.0, 3.0])
    assert list(low.columns) == ["2", "3"]
    assert (low["3"] < high["3"]).all()
    assert forest.intervals.effect(x.to_numpy(), 2.0).standard_errors.name == "effect"
    assert (
        forest.intervals.optimal_dose(x.to_numpy(), [1.0, 3.0]).interval()[0].name == "optimal_dose"
    )


def test_a_forest_without_intervals_says_what_to_do():
    x, dose, y = draw(100)
    forest = small(inference=None).fit(x, y, treatment=dose)
    for ask in (
        lambda own: own.effect_interval(x, 3.0),
        lambda own: own.intervals.partial_effect(x, 1.0, 2.0).interval(),
        lambda own: own.intervals.elasticity(x, 2.0).interval(),
        lambda own: own.intervals.optimal_dose(x).interval(),
    ):
        with pytest.raises(ValueError, match="fit the forest anew with inference='bags'"):
            ask(forest)
    with pytest.raises(ValueError, match="distilled forest has none"):
        fitted().distill(n_trees=5, verbose=False).effect_interval(x, 3.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dose": 9.0}, "'dose' parameter must lie in the support"),
        ({"dose": 2.0, "baseline": 9.0}, "'baseline' parameter must lie in the support"),
        ({"dose": [1.0, 2.0]}, "'dose' parameter must be a number or one number per unit"),
        ({"dose": 2.0, "doses": [1.0]}, "'doses' parameter must be None where 'dose' is given"),
        ({"doses": [[1.0], [2.0]]}, "'doses' parameter must be a grid"),
        ({"doses": [np.nan]}, "'doses' parameter must hold finite numbers"),
        ({"dose": 2.0, "coverage": 95}, "'coverage' parameter must be a float in"),
        ({"dose": 2.0, "coverage": None}, "'coverage' parameter must be a float in"),
        ({"dose": 2.0, "band": "yes"}, "'band' parameter must be True or False"),
    ],
)
def test_bad_questions_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        fitted().effect_interval(draw()[0][:5], **arguments)


def test_bad_questions_about_slopes_and_best_doses_are_refused():
    forest, x = fitted(), draw()[0][:5]
    with pytest.raises(ValueError, match="'second' parameter must differ from 'first'"):
        forest.intervals.partial_effect(x, 2.0, 2.0).interval()
    with pytest.raises(ValueError, match="'first' parameter must lie in the support"):
        forest.intervals.partial_effect(x, -5.0, 2.0).interval()
    with pytest.raises(ValueError, match="'component' parameter must be an int"):
        forest.intervals.elasticity(x, 2.0, component=1).interval()
    with pytest.raises(ValueError, match="'doses' parameter must be one grid for all units"):
        forest.intervals.optimal_dose(x, [[1.0, 2.0]] * 5).interval()
    with pytest.raises(ValueError, match="'minimize' parameter must be True or False"):
        forest.intervals.optimal_dose(x, minimize="no").interval()
    with pytest.raises(ValueError, match="'coverage' parameter must be a float in"):
        forest.intervals.optimal_dose(x, coverage=0).interval()
    with pytest.raises(ValueError, match="'doses' parameter must hold a dose or more"):
        forest.intervals.optimal_dose(x, [])
    with pytest.raises(ValueError, match="'X' parameter must have at least 1 row"):
        forest.effect_interval(x[:0], doses=[1.0, 2.0])


@pytest.mark.parametrize(
    ("parameters", "rows", "message"),
    [
        ({"inference": "bootstrap"}, {}, "'inference' parameter"),
        ({"inference": True}, {}, "'inference' parameter"),
        ({"honesty": "swap"}, {}, "'inference' parameter must be None with"),
        ({"basis": Spline(60)}, {}, "'basis' parameter must have at most 40 functions"),
        ({}, {"groups": np.arange(100) % 10}, "at least 20 groups for inference='bags'"),
    ],
)
def test_forests_that_cannot_have_intervals_say_why(parameters, rows, message):
    x, dose, y = draw(100)
    with pytest.raises(ValueError, match=message):
        small(**parameters).fit(x, y, treatment=dose, **rows)
    with pytest.raises(ValueError, match="Got correction='paper' instead"):
        GeneralizedCausalForest.paper(inference="bags", baseline=1.0).fit(x, y, treatment=dose)


def test_bands_are_drawn_around_the_debiased_effects_of_few_units():
    pytest.importorskip("matplotlib").use("Agg")
    forest, x = fitted(), draw()[0]
    ax = forest.plot.effect_bands(x, [3, 5], doses=[0.5, 2.0, 3.5])
    lines = [line for line in ax.get_lines() if line.get_label().startswith("unit")]
    assert [line.get_label() for line in lines] == ["unit 3", "unit 5"]
    drawn = lines[0].get_xydata()
    exact = forest.intervals.effect(x[[3]], doses=drawn[:, 0]).values[0]
    np.testing.assert_allclose(drawn[:, 1], exact)
    for units in ([0] * 7, [-1], [300], "all"):
        with pytest.raises(ValueError, match="'units' parameter must hold"):
            forest.plot.effect_bands(x, units)
