"""Split statistics besides mean curves, against brute force over all cuts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doseforest import CurveForest
from doseforest.base.dtypes import LEAF
from doseforest.doses.smoothing.boundary import normalised_kernel
from doseforest.doses.smoothing.kernel_channels import kernel_channels
from doseforest.doses.smoothing.kernel_weights import scaled_kernel
from doseforest.engine import (
    RatioCurve,
    RidgeMoments,
    SplitByMeans,
    SplitByMeanSlopes,
    SplitByRatios,
    SplitByRatioSlopes,
    SplitByScores,
)
from doseforest.engine.splits.distances import CURVE_DISTANCES, trapezoid_weights
from doseforest.engine.splits.mean_splits import curve_slopes
from doseforest.estimator.corrections.moments import moment_channels
from forests import assert_same_bits, single_tree, wavy_data

# Channels are rounded to a grid of 2^-24 of the largest, and ratios divide by sums of them.
TOLERANCE = 1e-4


def levels_and_weights(seed, n, *, missing, weighted):
    """Features of six levels with gaps, row weights, and the generator."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 6, size=(n, 2)).astype(float)
    x[rng.random(x.shape) < missing] = np.nan
    weights = rng.choice([0.25, 0.5, 1.0, 3.0], size=n) if weighted else np.ones(n)
    return rng, x, weights * n / weights.sum()


def cuts_of(x, min_rows):
    """Marks of the rows on the left, for every feature, cut and side of the missing values."""
    for column in x.T:
        missing = np.isnan(column)
        for cut in np.unique(column[~missing]):
            for missing_left in (False, True):
                left = np.where(missing, missing_left, column <= cut)
                if min(left.sum(), (~left).sum()) >= min_rows:
                    yield left


def best_gain(x, weights, min_rows, distance, quadrature, curves_of):
    """Largest n1 n2 / nP * D over all cuts, with the children's curves by a function of marks."""
    best = 0.0
    for left in cuts_of(x, min_rows):
        n1, n2 = weights[left].sum(), weights[~left].sum()
        if min(n1, n2) > 0:
            value = float(distance(*curves_of(left), quadrature))
            best = max(best, n1 * n2 / (n1 + n2) * value)
    return best


@settings(max_examples=80, derandomize=True, deadline=None)
@given(
    name=st.sampled_from(sorted(CURVE_DISTANCES)),
    slopes=st.booleans(),
    seed=st.integers(0, 2**31),
    n=st.integers(2, 60),
    k=st.integers(2, 9),
    min_leaf=st.integers(1, 4),
    missing=st.sampled_from([0.0, 0.3]),
    weighted=st.booleans(),
    share=st.sampled_from([0.001, 0.4]),
)
def test_splits_by_ratios_equal_brute_force(
    name, slopes, seed, n, k, min_leaf, missing, weighted, share
):
    rng, x, weights = levels_and_weights(seed, n, missing=missing, weighted=weighted)
    denominator = rng.integers(0, 16, size=(n, k)) * (rng.random((n, k)) < 0.5) / 16
    numerator = denominator * rng.integers(-64, 64, size=(n, 1)) / 8
    doses = np.cumsum(rng.choice([0.5, 1.0, 2.0], size=k))
    if slopes:
        recipe, quadrature = SplitByRatioSlopes(derivative=False, least_share=share), np.diff(doses)
    else:
        recipe, quadrature = SplitByRatios(share), trapezoid_weights(doses)
    forest = single_tree(statistic=recipe, distance=name, min_node_size=min_leaf, max_depth=1)
    y = np.hstack([numerator, denominator])
    forest.fit(x, y, doses=doses, sample_weight=weights, leaf_channels=y)

    weighted_numerator, weighted_denominator = (
        weights[:, None] * part for part in (numerator, denominator)
    )
    least = share * weighted_denominator.mean(axis=0)

    def curves_of(left):
        masses = [weights[side].sum() for side in (left, ~left)]
        sums = [
            (weighted_numerator[side].sum(axis=0), weighted_denominator[side].sum(axis=0))
            for side in (left, ~left)
        ]
        # A hair of slack: which side of the least share a tie falls on is a matter of rounding.
        counted = np.ones(k, bool)
        for (_, below), mass in zip(sums, masses, strict=True):
            counted &= below > least * mass * (1 + 1e-6)
        curves = [np.where(counted, n / np.where(counted, d, 1), 0.0) for n, d in sums]
        if slopes:
            both = counted[1:] & counted[:-1]
            curves = [np.where(both, np.diff(curve) / np.diff(doses), 0.0) for curve in curves]
        return curves

    expected = best_gain(
        x, weights, min_leaf, CURVE_DISTANCES[name].function, quadrature, curves_of
    )
    # Values reach 8, and squares of their differences 256.
    scale = 256 * n if CURVE_DISTANCES[name].squared else 16 * n
    gained = forest.forest_.gains[0]
    assert gained == pytest.approx(expected, rel=TOLERANCE, abs=1e-6 * scale)


@pytest.mark.parametrize("kernel", ["gaussian", "biweight", "triweight"])
@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
@pytest.mark.parametrize("weighted", [False, True])
def test_splits_by_slopes_equal_a_numerical_derivative_of_kernel_regressions(
    kernel, distance, weighted
):
    rng, x, weights = levels_and_weights(7, 300, missing=0.1, weighted=weighted)
    dose = rng.uniform(0, 4, size=300)
    y = np.nan_to_num(x[:, 0]) * np.sin(dose) + rng.normal(size=300)
    grid, width = np.linspace(0.5, 3.5, 6), 0.8
    columns = kernel_channels(dose, y, grid, width, kernel, derivative=True)
    forest = single_tree(
        statistic=SplitByRatioSlopes(), distance=distance, min_node_size=20, max_depth=1
    )
    forest.fit(x, columns, doses=grid, sample_weight=weights)

    def regression(rows, points):
        own = scaled_kernel(dose[rows], points, width, kernel).astype(float)
        own *= weights[rows, None]
        return (own * y[rows, None]).sum(axis=0) / own.sum(axis=0)

    def curves_of(left):
        step = 1e-2  # kernel weights have seven digits: errors 1e-5 by rounding, 1e-4 by bending
        return [
            (regression(rows, grid + step) - regression(rows, grid - step)) / (2 * step)
            for rows in (np.flatnonzero(left), np.flatnonzero(~left))
        ]

    expected = best_gain(
        x, weights, 20, CURVE_DISTANCES[distance].function, trapezoid_weights(grid), curves_of
    )
    assert expected > 0
    assert forest.forest_.gains[0] == pytest.approx(expected, rel=3e-3)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    name=st.sampled_from(sorted(CURVE_DISTANCES)),
    seed=st.integers(0, 2**31),
    n=st.integers(8, 60),
    k=st.integers(1, 5),
    missing=st.sampled_from([0.0, 0.3]),
    weighted=st.booleans(),
    on_doses=st.booleans(),
)
def test_splits_by_scores_equal_relabelled_rows(name, seed, n, k, missing, weighted, on_doses):
    rng, x, weights = levels_and_weights(seed, n, missing=missing, weighted=weighted)
    functions = rng.integers(-16, 16, size=(n, k)) / 4
    residual = rng.integers(-64, 64, size=n) / 8
    penalty = rng.choice([0.01, 0.5], size=k)
    at_doses = rng.integers(-8, 8, size=(7, k)) / 4 if on_doses else None
    quadrature = rng.choice([0.5, 1.0, 2.0], size=7 if on_doses else k)
    recipe = SplitByScores(tuple(penalty), at_doses)
    forest = single_tree(statistic=recipe, distance=name, min_node_size=2, max_depth=1)
    forest.fit(
        x, moment_channels(functions, residual), quadrature=quadrature, sample_weight=weights
    )

    moments = (functions * weights[:, None]).T @ functions / weights.sum() + np.diag(penalty)
    mean = (functions * weights[:, None]).T @ residual / weights.sum()
    beta = np.linalg.solve(moments, mean)
    scores = np.linalg.solve(moments, (functions * (residual - functions @ beta)[:, None]).T).T
    relabelled = scores if at_doses is None else scores @ at_doses.T

    def curves_of(left):
        return [
            np.average(relabelled[side], axis=0, weights=weights[side]) for side in (left, ~left)
        ]

    expected = best_gain(x, weights, 2, CURVE_DISTANCES[name].function, quadrature, curves_of)
    size = np.abs(relabelled).max()
    size = n * k * (size**2 if CURVE_DISTANCES[name].squared else size)
    assert forest.forest_.gains[0] == pytest.approx(expected, rel=TOLERANCE, abs=1e-7 * size)


def recipes_and_columns(n=400, k=6):
    """Every recipe with columns it can read, of rows whose response depends on x."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, 5))
    dose = rng.uniform(0, 1, size=n)
    y = np.nan_to_num(x[:, 0]) * dose + (x[:, 1] > 0) * dose**2 + rng.normal(size=n) / 3
    x[rng.random(x.shape) < 0.1] = np.nan
    grid = np.linspace(0.1, 0.9, k)
    curves = y[:, None] * grid + rng.normal(size=(n, k))
    smooth = kernel_channels(dose, y, grid, 0.3, "biweight", derivative=True)
    powers = np.column_stack([dose - 0.5, dose**2 - 1 / 3])
    moments = moment_channels(powers, y - y.mean())
    on_grid = np.column_stack([grid, grid**2])
    return (
        x,
        grid,
        {
            "means": (SplitByMeans(), curves),
            "mean slopes": (SplitByMeanSlopes(), curves),
            "ratios": (SplitByRatios(), smooth[:, : 2 * k]),
            "slopes in closed form": (SplitByRatioSlopes(), smooth),
            "slopes by differences": (SplitByRatioSlopes(derivative=False), smooth[:, : 2 * k]),
            "scores": (SplitByScores((0.01, 0.01), on_grid), moments),
        },
    )


X, GRID, RECIPES = recipes_and_columns()


@pytest.mark.parametrize("name", ["l1", "l2", "linf_squared"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_numpy_search_grows_the_trees_of_the_compiled_one(name, weighted, recipe):
    statistic, columns = RECIPES[recipe]
    weights = np.random.default_rng(1).uniform(0.5, 2, size=len(X)) if weighted else None

    def grown(distance):
        forest = CurveForest(
            4, statistic=statistic, distance=distance, min_node_size=8, mtry=3, random_state=5
        )
        return forest.fit(X, columns, doses=GRID, sample_weight=weights).forest_

    compiled, twin = grown(name), grown(CURVE_DISTANCES[name].function)
    assert len(compiled.nodes) > 20
    np.testing.assert_array_equal(compiled.nodes, twin.nodes)
    np.testing.assert_allclose(compiled.gains, twin.gains, rtol=1e-7)


def test_slopes_of_mean_curves_are_a_map_of_the_curves():
    x, y, doses = wavy_data(n=800)
    by_slopes = CurveForest(5, statistic=SplitByMeanSlopes(), random_state=0)
    by_slopes.fit(x, y, doses=doses)
    mapped = CurveForest(5, random_state=0)
    mapped.fit(x, curve_slopes(y, doses), quadrature=np.diff(doses), leaf_channels=y)
    assert_same_bits(by_slopes.forest_, mapped.forest_)
    assert by_slopes.predict(x[:2]).shape == (2, len(doses))


def test_the_default_statistic_is_that_of_means():
    x, y, doses = wavy_data(n=500)
    plain = CurveForest(3, random_state=0).fit(x, y, doses=doses).forest_
    named = CurveForest(3, statistic=SplitByMeans(), random_state=0).fit(x, y, doses=doses).forest_
    assert_same_bits(plain, named)


def test_a_level_of_the_outcome_hides_no_split_by_ratios():
    rng = np.random.default_rng(2)
    x, dose = rng.normal(size=(600, 3)), rng.uniform(0, 1, size=600)
    kernel = scaled_kernel(dose, [0.2, 0.5, 0.8], 0.3, "epanechnikov").astype(float)
    for level in (0.0, 1e6):
        outcome = level + 0.25 * (x[:, :1] > 0.5)
        y = np.hstack([kernel * outcome, kernel])
        forest = single_tree(statistic=SplitByRatios(), min_node_size=5).fit(x, y).forest_
        assert forest.nodes["feature"][0] == 0
        assert len(forest.nodes) == 3  # the step is all there is to find


@pytest.mark.parametrize("recipe", ["ratios", "slopes in closed form", "slopes by differences"])
@pytest.mark.parametrize("outcome", [0.0, 0.1, -1234.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_equal_outcomes_are_never_split(recipe, outcome, weighted):
    rng = np.random.default_rng(5)
    x, dose = rng.normal(size=(997, 4)), rng.uniform(0, 1, size=997)
    columns = kernel_channels(
        dose, np.full(997, outcome), GRID, 0.1, "gaussian", derivative=recipe.endswith("form")
    )
    weights = rng.uniform(0.1, 2, size=997) if weighted else None
    forest = single_tree(statistic=RECIPES[recipe][0], min_node_size=5)
    forest.fit(x, columns, doses=GRID, sample_weight=weights)
    assert len(forest.forest_.nodes) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_residuals_that_the_functions_explain_are_never_split(weighted):
    rng = np.random.default_rng(6)
    x, functions = rng.normal(size=(997, 4)), rng.normal(size=(997, 2))
    columns = moment_channels(functions, functions @ [0.7, -1.3])
    weights = rng.uniform(0.1, 2, size=997) if weighted else None
    forest = single_tree(statistic=SplitByScores((0.0, 0.0)), min_node_size=20)
    assert len(forest.fit(x, columns, sample_weight=weights).forest_.nodes) == 1


def test_a_dose_without_rows_contributes_nothing():
    x = np.repeat([0.0, 1.0, 2.0, 3.0], 50)[:, None]
    dose, y = np.tile([0.0, 1.0], 100), np.where(x[:, 0] > 1, 2.0, 0.0)
    doses = np.array([0.0, 1.0, 7.0])  # nobody has the last
    columns = kernel_channels(dose, y, doses, 1.0, "exact")
    forest = single_tree(statistic=SplitByRatios(), leaf_curve=RatioCurve(), max_depth=1)
    forest.fit(x, columns, quadrature=np.ones(3))
    assert forest.forest_.gains[0] == pytest.approx(100 * 100 / 200 * (2.0**2 + 2.0**2))
    np.testing.assert_allclose(forest.predict([[0.0], [3.0]]), [[0, 0, 0], [2, 2, 0]])


def test_scores_with_the_dose_as_function_give_a_linear_causal_forest():
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, size=(4000, 4))
    slope = np.where(x[:, 0] > 0, 3.0, 1.0)
    dose = rng.normal(size=4000)
    residual = slope * dose + rng.normal(size=4000) / 2
    forest = CurveForest(
        60,
        statistic=SplitByScores((0.0,)),
        leaf_curve=RidgeMoments((0.0,)),
        min_node_size=50,
        random_state=0,
    ).fit(x, moment_channels(dose[:, None], residual))
    coefficients = forest.predict(x)[:, 0]
    # Away from the step a leaf of 50 rows has a standard error of .5 / sqrt 50 = .07, and trees
    # average many of them: a rms of .05 to .1; without the step it would be 1.
    away = np.abs(x[:, 0]) > 0.1
    assert np.sqrt(np.mean((coefficients - slope)[away] ** 2)) < 0.15


def test_slopes_find_what_levels_hide():
    rng = np.random.default_rng(9)
    x, dose = rng.uniform(-1, 1, size=(3000, 3)), rng.uniform(0, 1, size=3000)
    y = 5 * (x[:, 0] > 0) + 2 * (x[:, 1] > 0) * dose  # a level by x0, a slope by x1
    grid = np.linspace(0.1, 0.9, 9)
    columns = kernel_channels(dose, y, grid, 0.3, "gaussian", derivative=True)
    first = {}
    for name, recipe, own in (
        ("levels", SplitByRatios(), columns[:, :18]),
        ("slopes", SplitByRatioSlopes(), columns),
        ("differences", SplitByRatioSlopes(derivative=False), columns[:, :18]),
    ):
        forest = single_tree(statistic=recipe, max_depth=1).fit(x, own, doses=grid).forest_
        assert not forest.nodes["flags"][0] & LEAF
        first[name] = int(forest.nodes["feature"][0])
    assert first == {"levels": 0, "slopes": 1, "differences": 1}


def fitted(recipe, columns, **parameters):
    rows = np.zeros((4, 1))
    return CurveForest(2, statistic=recipe).fit(rows, np.zeros((4, columns)), **parameters)


@pytest.mark.parametrize(
    ("message", "attempt"),
    [
        ("2 columns per dose for SplitByRatios. Got 3", lambda: fitted(SplitByRatios(), 3)),
        ("4 columns per dose", lambda: fitted(SplitByRatioSlopes(), 6)),
        ("5 columns, the packed moments of 2", lambda: fitted(SplitByScores((0, 0)), 4)),
        ("must be two or more doses", lambda: fitted(SplitByMeanSlopes(), 3)),
        (
            "'quadrature' parameter must be None",
            lambda: fitted(SplitByMeanSlopes(), 2, doses=[0, 1], quadrature=[1, 1]),
        ),
        ("'least_share' parameter of SplitByRatios", lambda: SplitByRatios(1.0)),
        ("'least_share' parameter of SplitByRatioSlopes", lambda: SplitByRatioSlopes(True, -1)),
        ("'penalty' parameter of SplitByScores must be 1 to 16", lambda: SplitByScores((0,) * 17)),
        ("floats in [0, inf)", lambda: SplitByScores((-1.0,))),
        ("'functions' parameter of SplitByScores", lambda: SplitByScores((0.0,), [[1.0, 2.0]])),
        ("'functions' parameter of SplitByScores", lambda: SplitByScores((0.0,), [[np.nan]])),
    ],
)
def test_errors_name_parameter_rule_and_value(message, attempt):
    with pytest.raises(ValueError, match=re.escape(message)):
        attempt()


def test_negative_denominators_are_refused():
    with pytest.raises(ValueError, match=r"not negative .* Got -1.0 in row 1, dose 0"):
        CurveForest(2, statistic=SplitByRatios()).fit([[0.0], [1.0]], [[1.0, 1.0], [1.0, -1.0]])


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_mixture_of_densities_adds_its_smaller_spread_to_splits_by_slopes(by_name, weighted):
    rng, x, weights = levels_and_weights(0, 80, missing=0.0, weighted=weighted)
    dose, y, doses = rng.uniform(0, 1, 80), rng.normal(size=80), np.linspace(0, 1, 5)
    columns = kernel_channels(dose, y, doses, 0.5, "gaussian", derivative=True)
    moments = np.column_stack([rng.uniform(0, 1, 80), rng.uniform(2, 4, 80)])
    zeta = 50.0  # both parts of the gain count
    forest = single_tree(
        statistic=SplitByRatioSlopes(),
        distance="l2" if by_name else CURVE_DISTANCES["l2"].function,
        zeta=zeta,
        positivity="mixture",
        min_node_size=5,
        max_depth=1,
    )
    forest.fit(x, columns, doses=doses, spread=moments, sample_weight=weights)

    def slope(side):
        ky, k, dky, dk = np.split(weights[side] @ columns[side].astype(float), 4)
        return dky / k - ky * dk / k**2

    def sigma(side):
        first, second = np.average(moments[side], axis=0, weights=weights[side])
        return second - first**2

    def gain(left):
        n1, n2 = weights[left].sum(), weights[~left].sum()
        gap = (slope(left) - slope(~left)) ** 2 @ trapezoid_weights(doses)
        return n1 * n2 / (n1 + n2) * gap + zeta * min(sigma(left), sigma(~left))

    expected = max(gain(left) for left in cuts_of(x, 5))
    assert forest.forest_.gains[0] == pytest.approx(expected, rel=TOLERANCE)


@pytest.mark.parametrize("recipe", ["ratios", "slopes in closed form", "scores"])
def test_the_conditional_positivity_term_belongs_to_means(recipe):
    statistic, columns = RECIPES[recipe]
    forest = CurveForest(2, statistic=statistic, zeta=1.0)
    with pytest.raises(ValueError, match="'zeta' parameter of CurveForest must be 0"):
        forest.fit(X, columns, doses=GRID, spread=np.ones(len(X)))


def test_a_recipe_is_an_instance():
    with pytest.raises(TypeError, match=r"must be an instance\. Got the class SplitByMeans"):
        CurveForest(2, statistic=SplitByMeans).fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="'statistic' parameter of CurveForest"):
        CurveForest(2, statistic="ratio").fit(X, np.ones(len(X)))


@pytest.mark.parametrize("kernel", ["epanechnikov", "gaussian", "exact"])
def test_leaves_of_kernel_channels_are_kernel_regressions_of_the_leaf(kernel):
    rng = np.random.default_rng(10)
    x, dose = rng.integers(0, 2, size=(400, 1)).astype(float), rng.integers(0, 5, size=400) / 4
    y, grid = rng.normal(size=400) + 3 * x[:, 0], np.linspace(0, 1, 5)
    channels = kernel_channels(dose, y, grid, 0.3, kernel)
    forest = single_tree(leaf_curve=RatioCurve()).fit(x, y, leaf_channels=channels)
    for level in (0.0, 1.0):
        rows = x[:, 0] == level
        own = scaled_kernel(dose[rows], grid, 0.3, kernel).astype(float)
        expected = own.T @ y[rows] / own.sum(axis=0)
        np.testing.assert_allclose(forest.predict([[level]])[0], expected, rtol=1e-4, atol=1e-5)


def test_kernel_channels_are_normalised_as_the_paper_does():
    rng = np.random.default_rng(11)
    dose, y, grid = rng.uniform(0, 2, size=50), rng.normal(size=50), np.array([0.5, 1.0, 1.5])
    normalised = kernel_channels(dose, y, grid, 0.4, "biweight", derivative=True, normalise=True)
    expected = normalised_kernel(dose, grid, 0.4, "biweight")
    np.testing.assert_allclose(normalised[:, 3:6], expected, rtol=1e-6)
    plain = kernel_channels(dose, y, grid, 0.4, "biweight", derivative=True)
    mass = plain[:, 3:6] / np.where(expected > 0, expected, 1)
    reached = expected > 0
    slopes = normalised[:, 9:] * mass
    np.testing.assert_allclose(slopes[reached], plain[:, 9:][reached], rtol=1e-5, atol=1e-6)


def test_kernels_without_a_derivative_are_refused_one():
    with pytest.raises(ValueError, match="must be a kernel with a derivative"):
        kernel_channels([0.0, 1.0], [1.0, 2.0], [0.5], 1.0, "epanechnikov", derivative=True)
