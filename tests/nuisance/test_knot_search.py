"""The search for hinges and steps, against regressions that are solved one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from doseforest.nuisance.outcome.covariate_terms import fit_covariate_terms
from doseforest.nuisance.outcome.knot_search import (
    MAX_FOUND,
    MIN_SHARE,
    N_BINS,
    KnotSearch,
    knot_edges,
    sums_above,
    sums_by_bin,
)
from doseforest.nuisance.outcome.spline_core import fit_spline_core


def search_knots(x, functions, residual, weights, folds, n_folds, searched):
    search = KnotSearch(n_folds)
    for feature in searched:
        edges = knot_edges(x[:, feature])
        rows = x[:, feature], residual[None], weights, folds, n_folds, edges
        search.add(feature, edges, [sums_above(sums_by_bin(f, *rows), 0) for f in functions.T])
    return search.found()


def sample(n=600, n_features=3, n_folds=3, seed=0):
    rng = np.random.default_rng(seed)
    x, dose = rng.normal(size=(n, n_features)), rng.uniform(-1, 1, size=n)
    functions = np.column_stack([np.ones(n), dose, dose**2])
    residual = (x[:, 0] > 0.3) * dose + np.maximum(x[:, 1] + 0.4, 0) + 0.3 * rng.normal(size=n)
    return x, functions, residual, rng.uniform(0.5, 2, size=n), rng.integers(0, n_folds, size=n)


def products(kind, column, knot):
    return {"step": (column > knot) * 1.0, "hinge": np.maximum(column - knot, 0.0)}[kind]


def explained(kind, column, knot, function, residual, weights):
    """What a product explains after lines, by two regressions."""
    root = np.sqrt(weights)
    lines = np.column_stack([function, column * function])
    errors = []
    for columns in (lines, np.column_stack([lines, products(kind, column, knot) * function])):
        scaled = columns * root[:, None]
        fit = np.linalg.lstsq(scaled, residual * root, rcond=None)[0]
        errors.append(float(((residual * root - scaled @ fit) ** 2).sum()))
    return errors[0] - errors[1]


@pytest.mark.parametrize("kind", ["step", "hinge"])
@pytest.mark.parametrize("left_out", [0, 2])
def test_knots_are_the_best_of_all_regressions(kind, left_out):
    x, functions, residual, weights, folds = sample()
    knots = search_knots(x, functions, residual, weights, folds, 3, np.arange(3))[kind]
    own = knots.found[left_out]
    kept = folds != left_out
    expected = set()
    for feature in range(3):
        column = x[:, feature]
        edges = np.quantile(column, np.arange(1, N_BINS) / N_BINS)
        above = (weights[kept, None] * (column[kept, None] > edges)).sum(axis=0)
        share = above / weights[kept].sum()
        usual = edges[(share >= MIN_SHARE) & (share <= 1 - MIN_SHARE)]
        for function in functions.T:
            rows = (column[kept], function[kept], residual[kept], weights[kept])
            gains = [explained(kind, rows[0], knot, *rows[1:]) for knot in usual]
            expected.add((feature, float(usual[int(np.argmax(gains))])))
    found = set(zip(knots.feature[own].tolist(), knots.knot[own].tolist(), strict=True))
    assert found == expected


def test_what_a_fold_says_of_terms_is_said_without_its_help():
    x, functions, residual, _, folds = sample()
    weights = np.ones(len(x))
    # On a coarse grid sums are exact, and equal gains stay equal.
    x, functions, residual = np.round(16 * x) / 16, np.round(4 * functions) / 4, np.round(residual)
    other = np.where(folds == 1, 10 - residual, residual)
    before = search_knots(x, functions, residual, weights, folds, 3, np.arange(3))
    after = search_knots(x, functions, other, weights, folds, 3, np.arange(3))
    for kind in ("hinge", "step"):
        for search in (0, 1, 2):
            knots = [own[kind].knot[own[kind].found[search]] for own in (before, after)]
            same = len(knots[0]) == len(knots[1]) and np.array_equal(*knots)
            assert same == (search == 1)


def test_a_covariate_without_spread_has_no_knots():
    x, functions, residual, weights, folds = sample()
    x[:, 0] = 1.0
    for knots in search_knots(x, functions, residual, weights, folds, 3, np.arange(1)).values():
        assert knots.feature.shape == knots.knot.shape == (0,)
        assert knots.found.shape == (3, 0)


def test_only_the_best_knots_of_very_many_covariates_are_kept():
    x, functions, residual, weights, folds = sample(n=200, n_features=60)
    knots = search_knots(x, functions, residual, weights, folds, 3, np.arange(60))
    for kind in ("hinge", "step"):
        assert knots[kind].found.sum(axis=1).max() <= MAX_FOUND
    assert 0 in knots["step"].feature
    assert 1 in knots["hinge"].feature


def test_terms_take_knots_and_lose_those_of_no_use():
    x, functions, residual, weights, folds = sample()
    knots = search_knots(x, functions, residual, weights, folds, 3, np.arange(3))
    base = fit_covariate_terms(x)
    terms = base.with_knots(knots["hinge"], knots["step"])
    n_before_steps = len(base.power_low) + len(base.hinge_knot) + len(knots["hinge"].knot)
    assert terms.n_terms == base.n_terms + len(knots["hinge"].knot) + len(knots["step"].knot)
    kept = np.zeros(terms.n_terms, bool)
    kept[[0, 1, 2, terms.n_linear + n_before_steps - 1, terms.n_terms - 1]] = True
    fewer = terms.only(kept)
    assert_array_equal(fewer.evaluate(x), terms.evaluate(x)[:, kept])
    last = products(
        "step", terms.standardised(x)[:, knots["step"].feature[-1]], terms.step_knot[-1]
    )
    assert_array_equal(fewer.evaluate(x)[:, -1], last)


@pytest.mark.parametrize("place", [-0.6, 0.13, 0.45])
def test_the_core_finds_a_jump_wherever_it_is(place):
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(2000, 5)), rng.uniform(0, 10, size=2000)

    def effect(x):
        return 3.0 * (x[:, 1] > place)

    y = effect(x) * (dose - 5) + x[:, 0] + rng.normal(size=2000)
    core = fit_spline_core(x, dose, y)
    fresh = rng.normal(size=(4000, 5))
    slopes = core.curves(fresh, np.array([3.0, 7.0])) @ [-0.25, 0.25]
    # A jump between two of 255 quantiles leaves some 0.2 % of the units on the wrong side: 0.13.
    assert np.sqrt(np.mean((slopes - effect(fresh)) ** 2)) < 0.3
    # The nearest quintile is off by at least 4 % of the units: 0.6.
    used = core.terms.step_knot[core.terms.step_feature == 1] * core.terms.scale[1]
    assert np.abs(used + core.terms.mean[1] - place).min() < 0.05


@pytest.mark.parametrize("bend", [np.square, lambda x: x**3 / 3])
def test_the_core_finds_what_bends_everywhere(bend):
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(1000, 20)), rng.uniform(0, 10, size=1000)
    y = bend(x[:, 1]) * (dose - 5) + x[:, 0] + rng.normal(size=1000)
    fresh = rng.normal(size=(4000, 20))
    errors = []
    for powers in (True, False):
        core = fit_spline_core(x, dose, y, powers=powers)
        slopes = core.curves(fresh, np.array([3.0, 7.0])) @ [-0.25, 0.25]
        errors.append(np.sqrt(np.mean((slopes - bend(fresh[:, 1])) ** 2)))
    # Seven known terms would have .03 from 1,000 outcomes with a noise of 1.
    assert errors[0] < 0.1
    assert errors[1] > 0.2


def test_thresholds_of_a_binary_outcome_are_found_on_the_scale_of_its_link():
    rng = np.random.default_rng(1)
    x, dose = rng.normal(size=(4000, 5)), rng.uniform(0, 1, size=4000)

    def chance(x, dose):
        return 1 / (1 + np.exp(1 - x[:, 0] - 4 * (x[:, 1] > 0.4) * dose))

    y = (rng.random(4000) < chance(x, dose)).astype(float)
    core = fit_spline_core(x, dose, y, binary=True)
    grid = np.array([0.1, 0.9])
    truth = np.column_stack([chance(x, np.full(4000, t)) for t in grid])
    # Outcomes of a spread of 0.45 around a curve of some ten terms, 4,000 of them: 0.03.
    assert np.sqrt(np.mean((core.curves(x, grid) - truth) ** 2)) < 0.06
    assert truth.std() > 0.2


@pytest.mark.parametrize("share", [0.001, 0.02, 0.98])
def test_rare_outcomes_are_as_frequent_as_they_were(share):
    rng = np.random.default_rng(2)
    x, dose = rng.normal(size=(10_000, 2)), rng.uniform(0, 1, size=10_000)
    y = (rng.random(10_000) < share).astype(float)
    predicted = fit_spline_core(x, dose, y, binary=True).predict(x, dose)
    assert predicted.mean() == pytest.approx(y.mean(), rel=1e-6)


def test_outcomes_that_are_all_the_same_are_answered():
    rng = np.random.default_rng(2)
    x, dose = rng.normal(size=(60, 2)), rng.uniform(0, 1, size=60)
    for value in (0.0, 1.0):
        predicted = fit_spline_core(x, dose, np.full(60, value), binary=True).predict(x, dose)
        assert_allclose(predicted, value, atol=1e-3)


def test_rows_without_weight_leave_a_fold_without_knots():
    rng = np.random.default_rng(2)
    x, dose = rng.normal(size=(60, 2)), rng.uniform(0, 1, size=60)
    folds = np.arange(60) % 4
    functions, weights = np.ones((60, 1)), (folds == 0).astype(float)
    knots = search_knots(x, functions, x[:, 0] ** 2, weights, folds, 4, np.arange(2))
    assert not knots["step"].found[0].any()
    assert knots["step"].found[1].any()
    core = fit_spline_core(x, dose, x[:, 0] + dose, weights=weights)
    assert np.isfinite(core.predict(x, dose)).all()


def test_a_table_without_covariates_has_a_curve():
    dose = np.linspace(0, 1, 50)
    core = fit_spline_core(np.empty((50, 0)), dose, dose**2)
    assert_allclose(core.predict(np.empty((50, 0)), dose), dose**2, atol=1e-3)
