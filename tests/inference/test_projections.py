"""Best linear projections: coefficients, robust errors, and what they may be asked for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from doseforest import GeneralizedCausalForest
from doseforest.inference.averages.projections import project


@pytest.fixture(scope="module")
def rows():
    """Outcomes whose slope by the dose is 1 + x0, and twice as steep in the north."""
    rng = np.random.default_rng(5)
    n = 400
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "size": rng.normal(size=n),
            "place": rng.choice(["south", "north", "west"], size=n, p=[0.3, 0.5, 0.2]),
        }
    )
    dose = 2 + 0.5 * frame["age"] + rng.normal(size=n)
    slope = 1 + frame["age"] + 2 * (frame["place"] == "north")
    return frame, dose, slope * dose + rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted(rows):
    frame, dose, y = rows
    forest = GeneralizedCausalForest(
        correction="none",
        outcome_model=LinearRegression(),
        density="gaussian",
        baseline=1.0,
        n_jobs=1,
        random_state=0,
    )
    return forest.fit(frame, y, treatment=dose)


def regression(n=40, seed=0):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(n, 2))
    return columns @ [1.0, -2.0] + rng.normal(size=n) * (1 + columns[:, 0] ** 2), columns


def test_coefficients_are_least_squares_and_errors_the_jackknife():
    scores, columns = regression()
    found = project(scores, columns, ("a", "b"))
    line = LinearRegression().fit(columns, scores)
    np.testing.assert_allclose(found.values, [line.intercept_, *line.coef_])
    spread = np.zeros((3, 3))
    for row in range(len(scores)):
        kept = np.arange(len(scores)) != row
        own = LinearRegression().fit(columns[kept], scores[kept])
        moved = np.array([own.intercept_, *own.coef_]) - found.values
        spread += np.outer(moved, moved)
    np.testing.assert_allclose(found.covariance, spread)  # HC3, exactly
    np.testing.assert_allclose(found.standard_errors**2, np.diag(spread))


def test_rows_of_a_group_count_as_one():
    scores, columns = regression()
    twice = np.repeat(np.arange(40), 2)
    alone = project(scores, columns, ("a", "b"), clusters=np.arange(40))
    doubled = project(scores[twice], columns[twice], ("a", "b"), clusters=twice)
    np.testing.assert_allclose(doubled.values, alone.values)
    np.testing.assert_allclose(doubled.standard_errors, alone.standard_errors)
    apart = project(scores[twice], columns[twice], ("a", "b"))
    assert (apart.standard_errors < 0.85 * doubled.standard_errors).all()


def test_whole_weights_are_rows_repeated():
    scores, columns = regression()
    weights = np.resize([1.0, 2.0], 40)
    repeated = np.repeat(np.arange(40), weights.astype(int))
    found = project(scores, columns, ("a", "b"), weights=weights, clusters=np.arange(40))
    again = project(scores[repeated], columns[repeated], ("a", "b"), clusters=repeated)
    np.testing.assert_allclose(found.values, again.values)
    np.testing.assert_allclose(found.standard_errors, again.standard_errors)


def test_columns_that_say_nothing_new_are_told():
    scores, columns = regression()
    with pytest.raises(ValueError, match="'features' parameter must have columns of which none"):
        project(scores, np.column_stack([columns, columns[:, 0]]), ("a", "b", "c"))
    with pytest.raises(ValueError, match="Got 'flat'"):
        project(scores, np.column_stack([columns[:, 0], np.full(40, 3.0)]), ("a", "flat"))


def test_a_table_has_names_and_agrees_with_its_numbers():
    scores, columns = regression(400)
    found = project(scores, columns, ("a", "b"))
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines] == ["coefficient", "intercept", "a", "b"]
    low, high = found.interval(0.9)
    np.testing.assert_allclose(
        high - low, 2 * 1.648710 * found.standard_errors, rtol=1e-5
    )  # Student's, 397 degrees
    np.testing.assert_allclose(found.t_values, found.values / found.standard_errors)
    assert found.p_values[2] < 1e-4


# The slope moves by 1 with age; with a line for an outcome model only residuals know. Effects of
# 2 against 1 are noisier than slopes; standard errors of about .3 and .1 were measured.
@pytest.mark.parametrize(
    ("options", "noise"),
    [({"dose": 3.0, "of": "partial_effect"}, 0.6), ({"of": "derivative"}, 0.2)],
)
def test_projections_find_what_moves_the_slope(fitted, options, noise):
    found = fitted.average.best_linear_projection(["age", "place"], **options)
    assert found.names == ("intercept", "age", "place=south", "place=west")
    exact = np.array([3.0, 1.0, -2.0, -2.0])  # north comes first
    assert (np.abs(found.values - exact) < 4 * found.standard_errors).all()
    assert (found.standard_errors[1:2] < noise).all()


def test_effects_are_partial_effects_times_the_step(fitted):
    effect = fitted.average.best_linear_projection([0], dose=3.0, baseline=1.0)
    slope = fitted.average.best_linear_projection([0], dose=3.0, baseline=1.0, of="partial_effect")
    np.testing.assert_allclose(effect.values, 2 * slope.values)
    np.testing.assert_allclose(effect.standard_errors, 2 * slope.standard_errors)


def test_columns_may_be_named_numbered_or_given(fitted, rows):
    frame, _, _ = rows
    named = fitted.average.best_linear_projection(["age", "size"], dose=3.0)
    placed = fitted.average.best_linear_projection([1, 0], dose=3.0)
    framed = fitted.average.best_linear_projection(frame[["age", "size"]], dose=3.0)
    given = fitted.average.best_linear_projection(frame[["age", "size"]].to_numpy(), dose=3.0)
    for found in (placed, framed, given):
        np.testing.assert_allclose(found.values, named.values)
    assert named.names == placed.names == framed.names == ("intercept", "age", "size")
    assert given.names == ("intercept", "x0", "x1")
    assert len(fitted.average.best_linear_projection(dose=3.0).names) == 5  # all covariates


def test_an_intercept_alone_is_the_average(fitted, rows):
    sign = np.resize([-1.0, 1.0], 400)[:, None]
    found = fitted.average.best_linear_projection(sign, of="derivative")
    average = fitted.average.derivative()
    assert found.values[0] == pytest.approx(average.value)
    # The average also counts what pairs of units add, a few percent here.
    assert 0.9 < found.standard_errors[0] / average.standard_error <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("features", "options", "message"),
    [
        (None, {}, "'dose' parameter must be given"),
        (None, {"dose": 2.0, "of": "derivative"}, "'dose' parameter must be left out"),
        (None, {"dose": 2.0, "of": "slope"}, "'of' parameter must be one of effect"),
        (None, {"dose": 99.0}, "'dose' parameter must lie in the support"),
        (["age"], {"dose": 1.0, "baseline": 1.0, "of": "partial_effect"}, "must differ"),
        (["height"], {"dose": 2.0}, "'features' parameter must hold features of X"),
        ([], {"dose": 2.0}, "'features' parameter must name at least one"),
        (np.zeros((3, 1)), {"dose": 2.0}, "'features' parameter must have one row per row of fit"),
        (np.full((400, 1), np.nan), {"dose": 2.0}, "without missing values"),
        (np.zeros((400, 1)), {"dose": 2.0}, "none is constant"),
    ],
)
def test_what_cannot_be_projected_is_told(fitted, features, options, message):
    with pytest.raises(ValueError, match=message):
        fitted.average.best_linear_projection(features, **options)
