"""Treatments: functions of the dose that are orthonormal on the sample, and grids of doses."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from doseforest.doses.bases.dose_basis import (
    BASES,
    FittedBasis,
    Indicators,
    Legendre,
    Spline,
    UserFunctions,
    basis_from_json,
    stored_bases,
)
from doseforest.doses.bases.polynomials import orthonormal_recurrence, polynomials
from doseforest.doses.bases.splines import cubic_spline, second_derivatives
from doseforest.doses.default_doses import baseline_candidates
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import (
    BaselineDose,
    BaselineWarning,
    DoseRange,
    check_doses,
    choose_baseline,
    default_grid,
    dose_sample,
    interior,
    point_masses,
    support,
)
from doseforest.engine.splits.distances import trapezoid_weights

RANDOM = np.random.default_rng(0)
DOSES = {
    "uniform": RANDOM.uniform(0, 10, 500),
    "normal": RANDOM.normal(size=1000),
    "skewed": RANDOM.lognormal(size=1000),
    "few rows": RANDOM.normal(size=25),
    "rounded": RANDOM.normal(size=500).round(1),
    "two clusters": np.append(RANDOM.uniform(0, 1, 300), RANDOM.uniform(9, 10, 200)),
    "mostly zero": np.append(np.zeros(800), RANDOM.uniform(0, 3, 200)),
}
SMOOTH = {
    "legendre": Legendre(),
    "whole range": Legendre(10, tail=0.0),
    "uniform knots": Spline(),
    "quantile knots": Spline(8, knots="quantile", tail=0.02),
}
each_dose = pytest.mark.parametrize("dose", DOSES.values(), ids=DOSES.keys())
each_smooth = pytest.mark.parametrize("recipe", SMOOTH.values(), ids=SMOOTH.keys())


def clipped(dose: NDArray[Any], basis: Any) -> NDArray[np.float64]:
    return np.clip(dose, basis.low, basis.high)


def sample_products(
    basis: FittedBasis, dose: NDArray[Any], weights: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    values = basis.evaluate(dose)
    shares = np.ones(len(dose)) if weights is None else weights
    return values.T @ (values * shares[:, None]) / shares.sum()


def weights_of(dose: NDArray[Any]) -> NDArray[np.float64]:
    weights = np.random.default_rng(1).exponential(size=len(dose))
    weights[::7] = 0
    return weights


def with_mass(n_rows: int = 400, share: float = 0.12) -> NDArray[np.float64]:
    dose = np.random.default_rng(2).uniform(0, 8, n_rows)
    dose[: round(share * n_rows)] = 0.0
    return dose


# --- orthonormal functions ----------------------------------------------------------------------


@each_dose
@each_smooth
def test_functions_are_orthonormal_on_the_clipped_sample(recipe: Any, dose: NDArray[Any]):
    basis = recipe.fit(dose)
    products = sample_products(basis, clipped(dose, basis))
    np.testing.assert_allclose(products, np.eye(basis.n_functions), atol=1e-10)
    assert (basis.evaluate(dose)[:, 0] == 1.0).all()


@each_dose
@each_smooth
def test_functions_are_orthonormal_under_the_weights(recipe: Any, dose: NDArray[Any]):
    weights = weights_of(dose)
    basis = recipe.fit(dose, weights)
    products = sample_products(basis, clipped(dose, basis), weights)
    np.testing.assert_allclose(products, np.eye(basis.n_functions), atol=1e-10)


@each_smooth
def test_uneven_doses_and_weights_leave_the_functions_orthonormal(recipe: Any):
    random = np.random.default_rng(8)
    for n_rows in (10, 40, 300):
        for dose in (random.standard_cauchy(n_rows), random.beta(0.1, 0.1, n_rows)):
            weights = random.exponential(size=n_rows) ** 3
            basis = recipe.fit(dose, weights)
            products = sample_products(basis, clipped(dose, basis), weights)
            np.testing.assert_allclose(products, np.eye(basis.n_functions), atol=1e-9)
            assert basis.n_functions <= len(np.unique(dose))


@each_smooth
def test_integer_weights_are_repeated_rows(recipe: Any):
    dose = DOSES["rounded"]
    times = np.random.default_rng(3).integers(0, 4, len(dose))
    weighted, repeated = recipe.fit(dose, times), recipe.fit(np.repeat(dose, times))
    np.testing.assert_allclose(weighted.evaluate(dose), repeated.evaluate(dose), atol=1e-9)


@each_smooth
def test_a_scale_of_the_weights_does_not_matter(recipe: Any):
    dose, weights = DOSES["skewed"], weights_of(DOSES["skewed"])
    first, second = recipe.fit(dose, weights), recipe.fit(dose, 1e6 * weights)
    np.testing.assert_allclose(first.evaluate(dose), second.evaluate(dose), atol=1e-9)


@each_smooth
def test_the_order_of_rows_changes_no_bit(recipe: Any):
    dose, weights = DOSES["rounded"], weights_of(DOSES["rounded"])
    order = np.random.default_rng(4).permutation(len(dose))
    assert recipe.fit(dose, weights) == recipe.fit(dose[order], weights[order])
    assert recipe.fit(dose) == recipe.fit(dose[::-1])


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (0.01, 5.0), (2.0, -300.0)])
@each_smooth
def test_units_of_the_dose_do_not_matter(recipe: Any, scale: float, shift: float):
    dose = DOSES["skewed"]
    asked = np.linspace(-1, 30, 50)
    there = recipe.fit(dose).evaluate(asked)
    elsewhere = recipe.fit(scale * dose + shift).evaluate(scale * asked + shift)
    np.testing.assert_allclose(elsewhere, there, rtol=1e-9, atol=1e-9)


@each_dose
@each_smooth
def test_derivatives_agree_with_finite_differences(recipe: Any, dose: NDArray[Any]):
    basis = recipe.fit(dose)
    width = basis.high - basis.low
    # Off the ends by more than the step; the cubics' third derivative bounds the error.
    asked = basis.low + width * np.array([-0.3, 0.013, 0.2, 0.517, 0.83, 0.991, 1.4])
    step = 1e-5 * width
    differences = (basis.evaluate(asked + step) - basis.evaluate(asked - step)) / (2 * step)
    size = np.abs(basis.derivative(basis.low + width * np.linspace(0, 1, 200))).max(axis=0) + 1
    np.testing.assert_array_less(np.abs(basis.derivative(asked) - differences) / size, 1e-4)


@each_smooth
def test_functions_of_no_doses_and_of_one_dose_have_their_shape(recipe: Any):
    basis = recipe.fit(DOSES["uniform"])
    for function in (basis.evaluate, basis.derivative):
        assert function([]).shape == (0, basis.n_functions)
        assert function(3.0).shape == (1, basis.n_functions)


# --- polynomials --------------------------------------------------------------------------------


@each_dose
def test_a_smaller_basis_is_the_start_of_a_larger_one_bit_for_bit(dose: NDArray[Any]):
    large = Legendre(7).fit(dose).evaluate(dose)
    for n_functions in range(1, 8):
        small = Legendre(n_functions).fit(dose).evaluate(dose)
        assert small.tobytes() == large[:, :n_functions].tobytes()


def test_polynomials_of_a_uniform_dose_are_legendres():
    basis = Legendre(6, tail=0.0).fit(np.linspace(-1, 1, 200_001))
    asked = np.linspace(-1, 1, 9)
    ours = basis.evaluate(asked)
    theirs = np.polynomial.legendre.legvander(asked, 5) * np.sqrt(2 * np.arange(6) + 1)
    # The sample weighs the two ends twice as a trapezoid rule does: an error of order 1 / n.
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


@each_dose
def test_polynomials_are_gram_schmidt_on_legendres(dose: NDArray[Any]):
    basis = Legendre().fit(dose)
    positions = 2 * (clipped(dose, basis) - basis.low) / (basis.high - basis.low) - 1
    raw = np.polynomial.legendre.legvander(positions, basis.n_functions - 1)
    orthonormal, triangle = np.linalg.qr(raw / np.sqrt(len(dose)))
    expected = orthonormal * np.sign(np.diag(triangle)) * np.sqrt(len(dose))
    np.testing.assert_allclose(basis.evaluate(dose), expected, atol=1e-8)


def test_polynomials_are_constant_beyond_the_central_range():
    dose = np.arange(1.0, 1001.0)
    basis = Legendre(tail=0.01).fit(dose)
    assert (basis.low, basis.high) == (10.0, 990.0)
    values = basis.evaluate([-50.0, 10.0, 990.0, 2000.0])
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[2], values[3])
    assert (values[3] > 0).all()
    assert not basis.derivative([9.0, 991.0]).any()


def test_a_dose_of_few_values_has_no_more_polynomials_than_values():
    dose = np.repeat([0.0, 1.0, 2.0, 5.0], [10, 30, 20, 40])
    basis = Legendre(7).fit(dose)
    assert basis.n_functions == 4
    np.testing.assert_allclose(sample_products(basis, dose), np.eye(4), atol=1e-10)
    assert Legendre(7).fit(np.full(5, 3.0)).n_functions == 1
    assert not Legendre(7).fit(np.full(5, 3.0)).derivative([3.0]).any()


def test_a_degree_that_the_sample_cannot_tell_from_lower_ones_is_left_out():
    dose = np.repeat([0.0, 1e-9, 1.0, 1.0 + 1e-9], 25)
    assert Legendre(7, tail=0.0).fit(dose).n_functions == 2


def test_a_dose_of_nearly_one_value_uses_its_whole_range():
    dose = np.append(np.zeros(995), [1.0, 2.0, 3.0, 4.0, 5.0])
    basis = Legendre(3).fit(dose)
    assert (basis.low, basis.high, basis.n_functions) == (0.0, 5.0, 3)


def test_the_recurrence_reproduces_any_polynomial():
    positions = np.linspace(-1, 1, 50)
    recurrence = orthonormal_recurrence(positions, np.full(50, 0.02), 4)
    values, slopes = polynomials(positions, recurrence)
    cubic = 1 - 2 * positions + 3 * positions**3
    coefficients = values.T @ cubic / 50
    np.testing.assert_allclose(values @ coefficients, cubic, atol=1e-12)
    np.testing.assert_allclose(slopes @ coefficients, -2 + 9 * positions**2, atol=1e-11)


# --- point masses -------------------------------------------------------------------------------


def test_a_mass_has_an_indicator_and_leaves_the_polynomials():
    dose = with_mass()
    basis = BASES["point_masses"]().fit(dose)
    plain = Legendre().fit(dose[dose > 0])
    assert basis.masses == (0.0,)
    assert basis.n_functions == plain.n_functions + 1
    values = basis.evaluate(dose)
    np.testing.assert_array_equal(values[:, 1], dose == 0)
    beside = plain.evaluate(dose[dose > 0])[:, 1:]
    np.testing.assert_allclose(values[dose > 0, 2:], beside, atol=1e-10)
    assert not values[dose == 0, 2:].any()


def test_polynomials_beside_a_mass_are_uncorrelated_with_it():
    dose, weights = with_mass(), weights_of(with_mass())
    basis = Legendre(masses=(0.0,)).fit(dose, weights)
    inside = np.where(dose == 0, 0.0, clipped(dose, basis))
    products = sample_products(basis, inside, weights)
    rest = weights[dose > 0].sum() / weights.sum()
    np.testing.assert_allclose(products[2:, :2], 0, atol=1e-10)
    np.testing.assert_allclose(products[2:, 2:], rest * np.eye(6), atol=1e-10)


def test_the_derivative_at_a_mass_is_the_one_beside_it():
    basis = Legendre(masses=(4.0,)).fit(np.append(with_mass(share=0), np.full(100, 4.0)))
    at, beside = basis.derivative([4.0, np.nextafter(4.0, 5.0)])
    np.testing.assert_allclose(at, beside, atol=1e-12)
    assert not at[:2].any()


def test_without_masses_the_search_for_them_changes_nothing():
    assert Legendre(masses="auto").fit(DOSES["normal"]) == Legendre().fit(DOSES["normal"])


def test_masses_stand_out_of_a_continuous_dose():
    dose = with_mass(1000)
    np.testing.assert_array_equal(point_masses(dose), [0.0])
    two = np.concatenate([dose, np.full(100, 8.0), np.full(100, 3.0)])
    np.testing.assert_array_equal(point_masses(two), [0.0, 3.0, 8.0])
    assert len(point_masses(dose, threshold=0.2)) == 0
    np.testing.assert_array_equal(
        point_masses(dose, threshold=0.2, weights=np.where(dose == 0, 5.0, 1.0)), [0.0]
    )


def test_adjacent_masses_are_both_found():
    dose = np.concatenate([np.zeros(200), np.ones(200), np.linspace(2, 9, 600)])
    np.testing.assert_array_equal(point_masses(dose), [0.0, 1.0])


def test_a_rounded_dose_has_no_masses_though_its_mode_is_heavy():
    dose = np.random.default_rng(5).normal(40, 7, 5000).round()
    assert np.mean(dose == 40) > 0.05
    assert len(np.unique(dose)) > 40
    assert len(point_masses(dose)) == 0


def test_levels_are_not_masses():
    assert len(point_masses(np.repeat(np.arange(10.0), 50))) == 0


# --- splines ------------------------------------------------------------------------------------


@pytest.mark.parametrize("knots", ["uniform", "quantile"])
def test_splines_reproduce_cubics_and_extend_them_by_lines(knots: Any):
    dose = DOSES["uniform"]
    basis = Spline(9, knots=knots).fit(dose)
    cubic = np.polynomial.Polynomial([1.0, -2.0, 0.5, 0.3])
    coefficients = np.linalg.lstsq(basis.evaluate(dose), cubic(dose))[0]
    asked = np.linspace(basis.low, basis.high, 77)
    np.testing.assert_allclose(basis.evaluate(asked) @ coefficients, cubic(asked), atol=1e-8)
    slope = cubic.deriv()
    for end, beyond in ((basis.low, basis.low - 7), (basis.high, basis.high + 4)):
        line = cubic(end) + slope(end) * (beyond - end)
        np.testing.assert_allclose(basis.evaluate(beyond) @ coefficients, line, atol=1e-7)
        np.testing.assert_allclose(basis.derivative(beyond) @ coefficients, slope(end), atol=1e-7)


def test_the_first_spline_is_the_standardised_dose():
    dose = DOSES["normal"]
    line = Spline().fit(dose).evaluate(np.append(dose, [-9.0, 9.0]))[:, 1]
    expected = (np.append(dose, [-9.0, 9.0]) - dose.mean()) / dose.std()
    np.testing.assert_allclose(line, expected, atol=1e-10)


@each_dose
@pytest.mark.parametrize("knots", ["uniform", "quantile"])
def test_roughness_ascends_and_is_the_integral_of_squared_second_derivatives(
    knots: Any, dose: NDArray[Any]
):
    basis = Spline(12, knots=knots).fit(dose)
    roughness = basis.roughness
    assert roughness.shape == (basis.n_functions,)
    assert (roughness[:2] == 0).all()
    assert (np.diff(roughness[1:]) > 0).all()

    # Second derivatives of a cubic are lines between knots: Simpson's rule is exact for products.
    places = np.array(basis.knots)
    spline = cubic_spline(places, np.array(basis.coefficients)).derivative(2)
    middle, half = (places[1:] + places[:-1]) / 2, np.diff(places)[:, None, None] / 2
    ends = [middle + sign * np.diff(places) / 2 * (1 - 1e-9) for sign in (-1, 1)]
    low, centre, high = (
        spline(x)[:, :, None] * spline(x)[:, None, :] for x in (ends[0], middle, ends[1])
    )
    integrals = (half / 3 * (low + 4 * centre + high)).sum(axis=0)
    sizes = np.sqrt(np.maximum(roughness[1:], 1.0))
    scaled = integrals / np.outer(sizes, sizes)
    expected = np.diag(roughness[1:] / sizes**2)
    np.testing.assert_allclose(scaled, expected, atol=1e-6)


def test_roughness_of_a_uniform_dose_is_that_of_the_free_beam():
    basis = Spline(18).fit(np.linspace(0, 10, 5001))
    # Fourth powers of the roots of cos x cosh x = 1; splines and sample are a little coarser.
    np.testing.assert_allclose(basis.roughness[2:5], [500.56, 3803.5, 14617.6], rtol=0.01)


def test_second_derivatives_integrate_to_that_of_a_known_curve():
    knots = np.array([0.0, 0.3, 1.0])
    splines = cubic_spline(knots)
    greville = np.linspace(0, 1, 50)
    coefficients = np.linalg.lstsq(splines(greville), greville**3)[0]
    # (6 u)^2 integrates to 12 over [0, 1].
    np.testing.assert_allclose(np.sum((second_derivatives(knots) @ coefficients) ** 2), 12.0)


def test_a_dose_of_few_values_has_no_more_splines_than_values():
    dose = np.repeat([0.0, 1.0, 2.0, 5.0], 25)
    basis = Spline(18).fit(dose)
    assert basis.n_functions == 4
    np.testing.assert_allclose(sample_products(basis, dose), np.eye(4), atol=1e-10)
    assert Spline(18).fit([0.0, 3.0, 0.0]).n_functions == 2
    assert Spline(18).fit([0.0, 1e-9, 1.0]).n_functions == 2


def test_splines_through_few_values_are_the_smoothest():
    values = np.array([0.0, 1.0, 3.0, 4.0, 6.0])
    basis = Spline(7).fit(values)
    assert basis.n_functions == 5
    targets = np.array([0.0, 1.0, -1.0, 2.0, 0.0])
    weights = np.linalg.solve(basis.evaluate(values), targets)
    ours = weights @ (basis.roughness * weights)
    # Least roughness over the whole spline space with the same values, from its KKT equations.
    knots = np.linspace(0, 1, 7)
    design, bends = cubic_spline(knots)(values / 6), second_derivatives(knots)
    bends = bends.T @ bends
    system = np.block([[bends, design.T], [design, np.zeros((5, 5))]])
    best = np.linalg.solve(system, np.append(np.zeros(len(bends)), targets))[: len(bends)]
    np.testing.assert_allclose(ours, best @ bends @ best, rtol=1e-8)


def test_quantile_knots_that_nearly_coincide_are_one():
    piled = Spline(10, knots="quantile").fit(np.linspace(0, 1, 500) ** 30)
    assert np.diff(piled.knots).min() > 0.9e-5
    basis = Spline(10, knots="quantile").fit(DOSES["mostly zero"])
    assert len(basis.knots) < 10
    assert (np.diff(basis.knots) > 0).all()
    assert (basis.knots[0], basis.knots[-1]) == (0.0, 1.0)


# --- indicators ---------------------------------------------------------------------------------


def test_each_level_has_one_function_and_the_most_frequent_the_constant():
    dose = np.array([5.0, 0.0, 10.0, 5.0, 0.0, 5.0])
    basis = Indicators().fit(dose)
    assert (basis.levels, basis.reference) == ((0.0, 5.0, 10.0), 5.0)
    values = basis.evaluate([0.0, 5.0, 10.0])
    np.testing.assert_array_equal(values, [[1, 1, 0], [1, 0, 0], [1, 0, 1]])
    assert Indicators().fit(dose, [1, 9, 1, 1, 1, 1]).reference == 0.0
    assert Indicators().fit([1.0, 0.0]).reference == 0.0


def test_an_unknown_level_is_named():
    basis = Indicators().fit([0, 1, 2])
    with pytest.raises(ValueError, match=r"levels seen in fit, \[0.0, 1.0, 2.0\]. Got 1.5 instead"):
        basis.evaluate([0, 1.5])


def test_indicators_have_no_derivative_and_no_more_than_a_hundred_levels():
    with pytest.raises(TypeError, match="Compare two levels instead"):
        Indicators().fit([0, 1]).derivative([0])
    with pytest.raises(ValueError, match=r"at most 100 distinct values. Got 500 instead"):
        Indicators().fit(DOSES["uniform"])


# --- the user's functions -----------------------------------------------------------------------


def test_a_list_of_functions_and_a_function_of_a_matrix_are_the_same():
    many = UserFunctions([np.sin, np.cos], derivatives=[np.cos, lambda t: -np.sin(t)])
    one = UserFunctions(lambda t: np.column_stack([np.sin(t), np.cos(t)]))
    dose = DOSES["uniform"]
    basis = many.fit(dose)
    assert basis.n_functions == one.fit(dose).n_functions == 3
    np.testing.assert_array_equal(basis.evaluate(dose), one.fit(dose).evaluate(dose))
    np.testing.assert_array_equal(basis.evaluate(dose)[:, 0], 1.0)
    np.testing.assert_array_equal(basis.derivative([0.5]), [[0.0, np.cos(0.5), -np.sin(0.5)]])
    assert basis.evaluate([]).shape == (0, 3)


def test_what_the_users_functions_cannot_do_is_said():
    basis = UserFunctions([np.sin]).fit([0.0, 1.0])
    with pytest.raises(TypeError, match="Give 'derivatives' to UserFunctions"):
        basis.derivative([0.0])
    with pytest.raises(TypeError, match=r"cannot be stored: .* Use one of \['arms', 'ind"):
        basis.to_json()


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ([], r"shape \(3, k\) for 3 doses. Got shape \(0,\)"),
        (np.sin, r"shape \(3, k\) for 3 doses. Got shape \(3,\)"),
        ([lambda t: t, lambda t: t[1:]], "'functions' parameter must have rows of equal length"),
        ([lambda t: t, np.ones_like], "the constant is added to them. Got 1.0 throughout from"),
        ([lambda t: np.where(t > 1, np.nan, t)], r"finite values. Got \[nan\] at dose 2.0"),
        ([lambda t: t.astype(str)], "'functions' parameter must hold real numbers"),
    ],
)
def test_functions_that_do_not_fit_are_refused(functions: Any, message: str):
    with pytest.raises((ValueError, TypeError), match=message):
        UserFunctions(functions).fit([0.0, 1.0, 2.0])


def test_functions_that_change_their_number_are_refused():
    basis = UserFunctions(lambda t: np.ones((len(t), len(t))) * t[:, None]).fit([1.0, 2.0])
    with pytest.raises(ValueError, match=r"shape \(3, 2\) for 3 doses. Got shape \(3, 3\)"):
        basis.evaluate([0.0, 1.0, 2.0])


# --- files --------------------------------------------------------------------------------------

RECIPES = {**SMOOTH, "masses": Legendre(masses="auto"), "indicators": Indicators()}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
def test_a_stored_basis_is_the_same_bit_for_bit(recipe: Any):
    dose = np.arange(7.0) / 3 if isinstance(recipe, Indicators) else with_mass()
    basis = recipe.fit(dose)
    read = basis_from_json(json.loads(json.dumps(basis.to_json(), allow_nan=False)))
    assert read == basis
    assert type(read) is type(basis)
    assert read.evaluate(dose).tobytes() == basis.evaluate(dose).tobytes()


def test_a_fitted_basis_cannot_be_changed():
    for recipe in RECIPES.values():
        basis = recipe.fit(np.arange(30.0))
        assert hash(basis) == hash(recipe.fit(np.arange(30.0)))
        with pytest.raises(FrozenInstanceError):
            setattr(basis, fields(basis)[0].name, 3.0)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"must be one of \['arms', 'ind.*Got 'wavelet' instead"):
        basis_from_json({"kind": "wavelet"})
    with pytest.raises(ValueError, match="Got None instead"):
        basis_from_json({})


@pytest.mark.parametrize("name", BASES)
def test_every_basis_of_the_table_works_without_arguments(name: str):
    dose = np.arange(50.0)
    if name in ("tensor", "arms"):
        dose = Doses.of_table(np.column_stack([dose % 2, dose])).values
    basis = BASES[name]().fit(dose)
    assert basis.evaluate(dose).shape == (50, basis.n_functions)
    assert basis.to_json()["kind"] in stored_bases()


# --- grids, ranges and doses --------------------------------------------------------------------


def test_the_grid_has_twenty_doses_between_the_outer_percents():
    grid = default_grid(np.arange(1.0, 1001.0))
    np.testing.assert_allclose(grid, np.linspace(10, 990, 20))
    assert len(default_grid(DOSES["normal"], n_points=7)) == 7


def test_few_levels_are_their_own_grid():
    dose = np.repeat([3.0, 0.0, 1.5], 10)
    np.testing.assert_array_equal(default_grid(dose), [0.0, 1.5, 3.0])
    np.testing.assert_array_equal(default_grid(np.arange(20), n_points=5), np.arange(20))
    assert len(default_grid(np.arange(21), n_points=5)) == 5


def test_the_baseline_is_in_the_grid_once():
    dose = np.arange(1.0, 1001.0)
    assert len(default_grid(dose, baseline=0.0)) == 21
    np.testing.assert_array_equal(default_grid(dose, baseline=0.0)[:2], [0.0, 10.0])
    assert len(default_grid(dose, baseline=10.0 + 1e-9)) == 20
    assert 3.25 in default_grid(dose, baseline=3.25)
    np.testing.assert_array_equal(default_grid([4.0, 4.0], baseline=4.0), [4.0])


def test_the_grid_ascends_and_integrates():
    grid = default_grid(DOSES["skewed"], baseline=1.0)
    assert (np.diff(grid) > 0).all()
    np.testing.assert_allclose(trapezoid_weights(grid).sum(), np.ptp(grid))


def test_weights_move_the_grid_as_repeated_rows_do():
    dose = DOSES["rounded"]
    times = np.random.default_rng(6).integers(0, 3, len(dose))
    np.testing.assert_array_equal(
        default_grid(dose, weights=times), default_grid(np.repeat(dose, times))
    )


def test_quantiles_do_not_slip_by_a_row_through_rounding():
    for n_rows in (100, 700, 1000, 12_300):
        dose = np.arange(1.0, n_rows + 1)
        for weights in (None, np.full(n_rows, 0.1), np.full(n_rows, 3.0)):
            assert interior(dose, weights) == DoseRange(n_rows / 20, n_rows * 19 / 20)


def test_support_and_interior_are_ranges_of_doses():
    dose = np.arange(101.0)
    assert support(dose) == DoseRange(0.0, 100.0)
    assert support(dose, weights=dose < 50) == DoseRange(0.0, 49.0)
    inside = interior(dose).contains(np.array([4.0, 5.0, 95.0, 96.0]))
    np.testing.assert_array_equal(inside, [False, True, True, False])
    assert interior([2.0, 2.0]) == DoseRange(2.0, 2.0)


def test_doses_next_to_the_observed_ones_are_supported_and_others_named():
    observed = DoseRange(0.01, 9.98)
    np.testing.assert_array_equal(check_doses([0, 5, 10], observed), [0.0, 5.0, 10.0])
    with pytest.raises(
        ValueError,
        match=r"'dose' parameter must lie in the support of the dose, \[0.01, 9.98\].*Got 11 inst",
    ):
        check_doses([5.0, 11.0, 12.0], observed, "dose")
    with pytest.raises(ValueError, match=r"'baseline' parameter must lie in the support"):
        default_grid(np.arange(50.0), baseline=-10.0)


# --- baselines ----------------------------------------------------------------------------------


def window_counts(dose: NDArray[Any], asked: NDArray[Any], width: float = 0.5) -> NDArray[Any]:
    return (np.abs(dose[:, None] - asked) <= width).sum(axis=0)


def among_candidates(
    dose: NDArray[Any], effective_sample: Callable[[NDArray[Any]], NDArray[Any]]
) -> BaselineDose:
    candidates = baseline_candidates(Doses.of(dose))
    return choose_baseline(candidates, effective_sample(candidates.values))


def test_the_baseline_is_zero_where_it_has_fifty_rows():
    dose = np.random.default_rng(7).uniform(0, 10, 2000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        baseline = among_candidates(dose, partial(window_counts, dose))
    assert (baseline.dose.plain, baseline.warning) == (0.0, None)
    assert baseline.effective_sample >= 50


def test_otherwise_the_baseline_is_the_lowest_dose_with_fifty_rows():
    dose = np.append(np.linspace(0, 4, 30), np.linspace(4, 10, 1000))
    counts = partial(window_counts, dose)
    with pytest.warns(BaselineWarning, match=r"the dose 0 has 4: .* give 'baseline'") as record:
        baseline = among_candidates(dose, counts)
    assert str(record[0].message) == baseline.warning
    candidates = np.linspace(0, 10, 101)
    assert baseline.dose == candidates[counts(candidates) >= 50][0]
    assert baseline.effective_sample == counts(np.array([baseline.dose.plain]))[0]


def test_zero_outside_the_support_is_never_the_baseline():
    dose = np.linspace(5, 10, 1000)
    with pytest.warns(BaselineWarning, match="the dose 0 lies outside the observed doses: 5, "):
        baseline = among_candidates(dose, lambda asked: np.full(len(asked), 1e6))
    assert baseline.dose == 5.0


def test_without_any_dose_of_fifty_rows_the_baseline_is_the_best_one():
    with pytest.warns(BaselineWarning, match="2, which has the most, though not enough either"):
        baseline = choose_baseline([0, 1, 2, 3], [1.0, 7.0, 20.0, 3.0])
    assert (baseline.dose.plain, baseline.effective_sample) == (2.0, 20.0)


def test_candidates_may_come_in_any_order_with_their_sizes():
    zero = choose_baseline([2.0, 0.0], [10.0, 50.0])
    assert (zero.dose.plain, zero.effective_sample, zero.warning) == (0.0, 50.0, None)
    with pytest.warns(BaselineWarning, match="the dose 0 has 12: 1, which is the lowest"):
        assert choose_baseline([2.0, 1.0, 0.0], [60.0, 20.0, 12.0], minimum=20).dose == 1.0


def test_an_effective_sample_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"one size per dose. Got 2 for 3 doses instead"):
        choose_baseline([0, 1, 2], [50.0, 50.0])


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Legendre(0), "'n_functions' parameter must be an int of at least 1. Got 0 inst"),
        (lambda: Legendre(2.5), "'n_functions' parameter must be an int of at least 1. Got 2.5"),
        (lambda: Legendre(True), "'n_functions' parameter must be an int .* Got True"),
        (lambda: Legendre(masses="yes"), "'masses' .* must be doses or 'auto'. Got 'yes'"),
        (lambda: Legendre(masses=(7.0,)).fit([0, 1]), "must hold observed doses. Got 7, which"),
        (lambda: Legendre(masses=(0, 1)).fit([0, 1]), r"Indicators. Got \[0.0, 1.0\], which are"),
        (lambda: Legendre(tail=0.5).fit([0, 1]), r"'tail' parameter .* in \[0, 0.5\). Got 0.5"),
        (lambda: Spline(1), "'n_knots' parameter must be an int of at least 2. Got 1 instead"),
        (lambda: Spline(knots="even"), "'knots' .* must be 'uniform' or 'quantile'. Got 'even'"),
        (lambda: Spline().fit([2, 2]), "must have two distinct values. Got only 2 instead"),
        (lambda: default_grid([0, 1], n_points=1), "'n_points' parameter .* least 2. Got 1"),
        (lambda: point_masses([0, 1], 0.0), r"'threshold' parameter .* \(0, 1\]. Got 0.0"),
        (lambda: dose_sample([0, np.nan]), "'dose' parameter must hold finite .* Got nan in row 1"),
        (lambda: dose_sample([[0, 1]]), r"'dose' parameter must be one-dim.* Got shape \(1, 2\)"),
        (lambda: dose_sample([]), "'dose' parameter must hold at least one dose"),
        (lambda: dose_sample([0, 1], [1, -1]), "none negative, .* Got 2 weights from -1.0 to 1.0"),
        (lambda: dose_sample([0, 1], [0, 0]), "one of them positive. Got 2 weights from 0.0"),
        (lambda: dose_sample([0, 1], [1]), "one number per dose, .* Got 1 weights"),
        (lambda: dose_sample(["a"]), "'dose' parameter must hold real numbers"),
        (lambda: Legendre().fit([0, 1]).evaluate([np.inf]), "'doses' .* finite .* Got inf in row"),
    ],
)
def test_errors_name_parameter_rule_and_value(call: Any, message: str):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
