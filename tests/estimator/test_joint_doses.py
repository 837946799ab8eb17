"""Doses of several components, from their bases to the forest and its file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression

from bench.designs import JOINT_DESIGNS
from doseforest import GeneralizedCausalForest, load_forest
from doseforest.base.container import ForestFileError
from doseforest.doses.bases.arms import has_arms
from doseforest.doses.bases.dose_basis import Arms, Tensor, basis_from_json, read_basis
from doseforest.doses.boxes import DoseBox
from doseforest.doses.curve_interpolation import joint_interpolated
from doseforest.doses.dose_nodes import representative_doses
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import BaselineWarning, DoseRange
from doseforest.doses.smoothing.boundary import local_linear_weights
from doseforest.doses.smoothing.product_kernels import product_kernel
from doseforest.nuisance.outcome.boosting import LINEAR_TREES, fit_boosting
from doseforest.nuisance.outcome.spline_core import fit_spline_core
from doseforest.nuisance.treatment import LocationScale
from doseforest.nuisance.treatment.chained import Chained

RNG = np.random.default_rng(7)
SQUARE = RNG.random((600, 2))


def quick_forest(**parameters):
    defaults = {"n_trees": 80, "outcome_model": LinearRegression(), "random_state": 0}
    return GeneralizedCausalForest(**{**defaults, **parameters})


@pytest.fixture(scope="module")
def discounts():
    return JOINT_DESIGNS["two_discounts"].draw(n=400, seed=300)


@pytest.fixture(scope="module")
def fitted(discounts):
    forest = quick_forest(baseline=[0.5, 0.5])
    return forest.fit(discounts.X, discounts.y, treatment=discounts.treatment)


def test_tensor_functions_of_independent_uniform_doses_are_nearly_orthonormal():
    basis = Tensor().fit(Doses.of_table(SQUARE).values)
    values = basis.evaluate(Doses.of_table(SQUARE).values)
    gram = values.T @ values / len(values)
    # Each part is orthonormal on the sample; products of independent parts up to sampling noise,
    # whose largest entries have standard deviations of about 3 / sqrt(600).
    assert np.abs(gram - np.eye(len(gram))).max() < 0.6
    assert (np.diff(basis.orders) >= 0).all()
    assert basis.n_functions == 1 + 6 + 6 + 6


def test_products_of_levels_that_no_row_combines_are_left_out():
    cells = Doses.of_table(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]] * 20)).values
    assert Tensor().fit(cells).n_functions == 3
    full = Doses.of_table(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]] * 20)).values
    assert Tensor().fit(full).n_functions == 4


def test_an_arm_whose_dose_does_not_vary_has_an_indicator_alone():
    arm = np.repeat([0.0, 1.0, 2.0], 60)
    dose = np.concatenate([np.zeros(60), np.linspace(5, 30, 60), np.linspace(1, 2, 60)])
    basis = Arms().fit(Doses.of_table(np.column_stack([arm, dose])).values)
    values = basis.evaluate(Doses.of_table(np.column_stack([arm, dose])).values)
    assert basis.n_functions == 1 + 2 + 6 + 6
    assert not values[arm == 0, 1:].any()
    assert np.array_equal(values[:, 1], arm == 1)


def test_a_rare_level_does_not_make_arms():
    levels = np.append(np.arange(240) % 4, [7.0, 7.0, 7.0])
    doses = np.append(RNG.random(240), [0.1, 0.2, 0.3])
    assert not has_arms(Doses.of_table(np.column_stack([levels, doses])).values)
    arms = np.column_stack([np.arange(240) % 2, RNG.random(240) * (np.arange(240) % 2)])
    assert has_arms(Doses.of_table(arms).values)


@pytest.mark.parametrize("recipe", [Tensor(), Arms()])
def test_bases_come_back_from_plain_values(recipe):
    arm = np.repeat([0.0, 1.0], 60)
    doses = Doses.of_table(np.column_stack([arm, np.where(arm == 0, 0.0, np.arange(120.0))])).values
    basis = recipe.fit(doses)
    again = basis_from_json(basis.to_json())
    assert np.array_equal(again.evaluate(doses), basis.evaluate(doses))
    assert read_basis(basis.to_json()) == basis


@pytest.mark.parametrize(
    "spoil",
    [
        lambda plain: plain.update(products=[[0, 0], [9, 0]]),
        lambda plain: plain.update(products=[[1, 0]]),
        lambda plain: plain.update(products=[[0, 0], [1]]),
        lambda plain: plain.update(parts=plain["parts"][:1]),
        lambda plain: plain.update(parts=[dict(plain), dict(plain)]),
    ],
)
def test_a_forged_tensor_basis_is_refused(spoil):
    plain = Tensor().fit(Doses.of_table(SQUARE).values).to_json()
    spoil(plain := dict(plain))
    with pytest.raises((ForestFileError, AttributeError)):  # a file's reader takes both for damage
        read_basis(plain)


def test_nodes_stand_for_the_joint_distribution():
    correlated = np.column_stack([SQUARE[:, 0], SQUARE[:, 0] + 0.1 * SQUARE[:, 1]])
    nodes, shares = representative_doses(Doses.of_table(correlated).values)
    table = Doses.of(nodes).table
    mean = shares @ table
    spread = (table - mean).T @ (shares[:, None] * (table - mean))
    # Eleven blocks lose the variance within them, about 1 / 11^2 of the whole.
    assert np.allclose(mean, correlated.mean(axis=0), atol=0.01)
    assert np.allclose(spread, np.cov(correlated.T), rtol=0.1)


def test_local_planes_equal_weighted_least_squares():
    dose, weights = Doses.of_table(SQUARE).values, RNG.uniform(0.5, 2.0, 600)
    outcome = RNG.normal(size=600)
    point = np.array([0.02, 0.6])
    smooth = local_linear_weights(
        dose, Doses.of_table(point[None]).values, 1.5, "biweight", weights
    )
    made = product_kernel(dose, "biweight")
    u = (SQUARE - point) / (1.5 * made.widths)
    kernel = made.kernels[0].value(u[:, 0]) * made.kernels[1].value(u[:, 1]) * weights
    design = np.column_stack([np.ones(600), u]) * np.sqrt(kernel)[:, None]
    plane = np.linalg.lstsq(design, outcome * np.sqrt(kernel), rcond=None)[0]
    assert np.isclose((smooth[:, 0] * outcome).mean(), plane[0], rtol=1e-4)


def test_a_component_of_levels_is_matched_exactly():
    dose = Doses.of_table(np.column_stack([SQUARE[:, 0], SQUARE[:, 1] > 0.5])).values
    smooth = local_linear_weights(
        dose, Doses.of_table(np.array([[0.5, 1.0]])).values, 1.0, "epanechnikov"
    )
    assert not smooth[SQUARE[:, 1] <= 0.5].any()


def test_the_spline_core_finds_a_product_of_two_doses():
    X = RNG.normal(size=(600, 2))
    y = X[:, 0] * SQUARE[:, 0] * SQUARE[:, 1] + SQUARE[:, 1] ** 2
    core = fit_spline_core(X, Doses.of_table(SQUARE).values, y)
    corner = Doses.of_table(np.array([[1.0, 1.0], [0.2, 0.9]])).values
    curves = core.curves(np.array([[1.5, 0.0]]), corner)
    assert np.allclose(curves, [[2.5, 1.5 * 0.18 + 0.81]], atol=0.05)  # no noise: lasso bias alone


def test_boosted_trees_answer_joint_doses_as_they_would_row_by_row():
    X = RNG.normal(size=(600, 3))
    y = X[:, 0] * SQUARE[:, 0] + SQUARE[:, 1]
    trees = fit_boosting(X, Doses.of_table(SQUARE).values, y, LINEAR_TREES)
    grid = Doses.product([np.linspace(0, 1, 4), np.linspace(0, 1, 3)]).values
    curves = trees.curves(X[:20], grid)
    own = trees.curves(X[:20], np.tile(grid, (20, 1)))
    assert np.array_equal(curves, own)
    assert np.array_equal(curves[:, 5], trees.predict(X[:20], np.repeat(grid[5:6], 20)))
    # Squared error of noiseless outcomes: what 400 shrunken trees leave.
    assert np.mean((trees.predict(X, Doses.of_table(SQUARE).values) - y) ** 2) < 0.01 * y.var()


def test_a_chained_density_is_the_product_of_its_normals():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 1))
    first = x[:, 0] + rng.normal(size=4000)
    dose = Doses.of_table(np.column_stack([first, 0.5 * first + rng.normal(size=4000)])).values
    density = Chained(LocationScale()).fit(x, dose)
    asked = np.array([[0.0, 0.0], [1.0, 1.0]])
    exact = np.exp(-(asked[:, 0] ** 2) / 2 - (asked[:, 1] - asked[:, 0] / 2) ** 2 / 2) / (2 * np.pi)
    # A kernel density of 4,000 rows is within some per cent of a normal one, twice.
    assert np.allclose(
        density.density(np.zeros((1, 1)), Doses.of_table(asked).values), exact, rtol=0.15
    )


def test_interpolation_is_exact_for_what_is_linear_in_each_component():
    grid = Doses.product([np.array([0.0, 1.0, 4.0]), np.array([0.0, 2.0])]).values
    table = Doses.of(grid).table
    curves = (table[:, 0] * (1 + table[:, 1]))[None]
    asked = np.array([[[0.5, 1.0], [3.0, 0.5], [9.0, 9.0]]])
    expected = [[0.5 * 2, 3 * 1.5, 4 * 3]]  # constant beyond the grid
    assert np.allclose(joint_interpolated(grid, curves, Doses.of_table(asked).values), expected)


def test_arms_are_interpolated_apart():
    grid = Doses.of_table(np.array([[0.0, 0.0], [1.0, 5.0], [1.0, 15.0]])).values
    asked = Doses.of_table(np.array([[[0.0, 0.0], [1.0, 10.0]]])).values
    assert np.allclose(joint_interpolated(grid, np.array([[7.0, 1.0, 2.0]]), asked), [[7.0, 1.5]])


def test_a_quantity_beside_levels_that_no_row_combines_is_interpolated():
    cells = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    axis = np.linspace(0, 1, 5)
    grid = np.sort(Doses.of_table(np.array([[t, *cell] for t in axis for cell in cells])).values)
    table = Doses.of(grid).table
    curves = (table[:, 0] * (1 + table[:, 1]) + 10 * table[:, 2])[None]
    asked = Doses.of_table(np.array([[[0.4321, 0.0, 1.0], [0.1, 1.0, 0.0]]])).values
    assert np.allclose(joint_interpolated(grid, curves, asked), [[10.4321, 0.2]])
    with pytest.raises(
        ValueError, match=r"levels seen in fit, \[0.0, 1.0\], in component 1. Got 0.5"
    ):
        joint_interpolated(grid, curves, Doses.of_table(np.array([[[0.4, 0.5, 0.0]]])).values)


def test_levels_without_some_combination_are_served_as_fitted():
    rng = np.random.default_rng(2)
    cells = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])[rng.integers(0, 3, 300)]
    X, dose = rng.normal(size=(300, 2)), np.column_stack([rng.random(300), cells])
    y = X[:, 0] + dose @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=300)
    forest = quick_forest(baseline=[0.5, 0.0, 0.0], correction="kernel").fit(X, y, treatment=dose)
    asked = [[0.4321, 0.0, 1.0]]
    small = forest.distill(n_trees=20, verbose=False)
    assert np.allclose(small.dose_response(X, asked), forest.dose_response(X, asked), atol=1.0)
    residual = y - forest._fitted.parts[0].observed_out_of_bag()
    assert residual.std() < 0.5 * y.std()  # kernel bias, no garbage


def test_a_forest_answers_for_two_doses(discounts, fitted):
    assert fitted.doses_.shape[1] == 2
    assert np.array_equal(fitted.baseline_, [0.5, 0.5])
    corners = [[0.2, 0.2], [0.8, 0.8]]
    curves = fitted.dose_response(discounts.X, corners)
    own = fitted.dose_response(discounts.X, np.tile(corners, (400, 1, 1)))
    assert np.allclose(curves, own, rtol=1e-12)  # sums of a grid and of single doses round apart
    effect = fitted.effect(discounts.X, [0.8, 0.8], [0.2, 0.2])
    assert np.allclose(effect, curves[:, 1] - curves[:, 0], rtol=0, atol=1e-12)
    slope = fitted.partial_effect(discounts.X, [0.2, 0.4], [0.7, 0.4])
    assert np.allclose(slope, fitted.effect(discounts.X, [0.7, 0.4], [0.2, 0.4]) / 0.5)
    # Of a linear model of both discounts nothing is left but the average: the forest must add.
    exact = discounts.effect([[0.8, 0.8]], baseline=[0.2, 0.2])[:, 0]
    assert np.corrcoef(effect, exact)[0, 1] > 0.4


def test_the_interaction_of_two_doses_is_found_by_the_forest_alone(discounts, fitted):
    four = fitted.dose_response(discounts.X, [[0.2, 0.2], [0.2, 0.8], [0.8, 0.2], [0.8, 0.8]])
    joint = four[:, 3] - four[:, 2] - four[:, 1] + four[:, 0]
    exact = 6.0 * discounts.X[:, 3] * 0.36
    # 400 rows with noise as large as the interaction itself: a clear sign, not a close fit.
    assert np.corrcoef(joint, exact)[0, 1] > 0.4


def test_elasticities_name_their_component(discounts, fitted):
    with pytest.raises(ValueError, match="'component' parameter must be an int from 0 to 1"):
        fitted.elasticity(discounts.X, [0.5, 0.5])
    shifted = quick_forest(correction="none", baseline=[0.5, 0.5]).fit(
        discounts.X, discounts.y + 30, treatment=discounts.treatment
    )
    at = np.array([0.5, 0.4])
    found = shifted.elasticity(discounts.X, at, component=1)
    slope = shifted.partial_effect(discounts.X, [0.5, 0.3], [0.5, 0.5])
    level = shifted.dose_response(discounts.X, at)[:, 0]
    assert np.allclose(found, 0.4 * slope / level)  # the model is linear in the dose


def test_averages_of_two_doses_are_doubly_robust_and_have_errors(discounts, fitted):
    corners = np.array([[0.2, 0.2], [0.8, 0.8]])
    average = fitted.average_dose_response(corners)
    assert average.doses.shape == (2, 2)
    exact = discounts.average(corners)
    assert (np.abs(average.values - exact) < 4 * average.standard_errors).all()
    along = fitted.average_dose_response([[0.2, 0.5], [0.5, 0.5], [0.8, 0.5]])
    lifted = replace(along, values=along.values + 10)  # elasticities are of positive outcomes
    assert np.sign(lifted.elasticity().value) == np.sign(along.values[2] - along.values[0])
    with pytest.raises(ValueError, match="of several components one may change"):
        average.elasticity()
    effect = fitted.average_effect(corners[1], corners[0])
    assert np.isclose(effect.value, average.values[1] - average.values[0])


def test_support_is_judged_jointly():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    first = rng.random(400)
    dose = np.column_stack([first, first + 0.05 * rng.normal(size=400)])
    forest = quick_forest(correction="none", baseline=[0.5, 0.5], doses=[[0.5, 0.5]])
    forest.fit(X, first, treatment=dose)
    near, far = forest.supported(X[:5], [[0.5, 0.5], [0.1, 0.9]]).T
    assert near.all()
    assert not far.any()


@pytest.mark.parametrize("correction", ["orthogonal", "stabilized", "kernel", "none"])
@pytest.mark.parametrize("design", ["two_discounts", "arms"])
def test_every_correction_keeps_joint_doses_through_its_file(correction, design, tmp_path):
    data = JOINT_DESIGNS[design].draw(n=300, seed=301)
    forest = GeneralizedCausalForest(
        n_trees=80, correction=correction, random_state=0, baseline=data.baseline
    )
    forest.fit(data.X[:, :4], data.y, treatment=data.treatment)
    forest.save(tmp_path / "forest.dose")
    again = load_forest(tmp_path / "forest.dose")
    assert np.array_equal(again.dose_response(data.X[:, :4]), forest.dose_response(data.X[:, :4]))
    assert np.array_equal(
        again.effect(data.X[:, :4], data.doses[3]), forest.effect(data.X[:, :4], data.doses[3])
    )
    small = forest.distill(n_trees=20, verbose=False)
    small.save(tmp_path / "small.dose")
    served = load_forest(tmp_path / "small.dose")
    assert np.array_equal(
        served.effect(data.X[:, :4], data.doses[3]), small.effect(data.X[:, :4], data.doses[3])
    )
    # The grid's doses are answered as they are; between them a little is lost.
    assert small.error < 0.7 * small.spread


def test_arms_have_doses_of_their_own():
    data = JOINT_DESIGNS["arms"].draw(n=800, seed=302)
    forest = quick_forest().fit(data.X, data.y, treatment=data.treatment)
    arms, counts = np.unique(forest.doses_[:, 0], return_counts=True)
    assert arms.tolist() == [0.0, 1.0, 2.0]
    assert counts[0] == 1
    effects = forest.effect(data.X, [1.0, 25.0], [0.0, 0.0])
    exact = data.effect([[1.0, 25.0]], baseline=[0.0, 0.0])[:, 0]
    # Correct for a third of 800 rows in the arm, with noise of about the size of the effects.
    assert np.corrcoef(effects, exact)[0, 1] > 0.5
    with pytest.raises(ValueError, match=r"levels seen in fit, \[0.0, 1.0, 2.0\]"):
        forest.effect(data.X, [1.5, 20.0])


def test_a_jump_beside_a_point_mass_is_recovered():
    data = JOINT_DESIGNS["none_or_some"].draw(n=1000, seed=303)
    forest = quick_forest(n_trees=100).fit(data.X, data.y, treatment=data.treatment)
    assert forest.baseline_ == 0.0
    assert forest.supported(data.X, [0.0]).mean() > 0.95
    effects = forest.effect(data.X, 6.0)
    # The jump is 1 or 2 (plus .6 max(x3, 0), .24 on average); the linear outcome model alone
    # gives 6 / 30 of the effect of the largest discount.
    high, low = effects[data.X[:, 1] > 0].mean(), effects[data.X[:, 1] <= 0].mean()
    assert abs((high + low) / 2 - 1.74) < 0.35  # three standard errors of a difference of means
    assert high - low > 0.3


def test_frames_of_doses_are_taken_by_column(discounts):
    columns = {"price": discounts.treatment[:, 0], "coupon": discounts.treatment[:, 1]}
    answers = [
        quick_forest(correction="none", baseline=[0.5, 0.5])
        .fit(discounts.X, discounts.y, treatment=frame)
        .effect(discounts.X, [0.8, 0.8])
        for frame in (pd.DataFrame(columns), pl.DataFrame(columns), discounts.treatment)
    ]
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])


def test_threads_change_nothing_of_joint_doses(discounts, fitted):
    other = quick_forest(baseline=[0.5, 0.5], n_jobs=1)
    other.fit(discounts.X, discounts.y, treatment=discounts.treatment)
    assert np.array_equal(other.dose_response(discounts.X), fitted.dose_response(discounts.X))


def test_a_baseline_without_rows_near_it_is_replaced_and_said():
    data = JOINT_DESIGNS["two_discounts"].draw(n=400, seed=304)
    with pytest.warns(BaselineWarning, match="the dose 0 of every component has fewer"):
        quick_forest(correction="none").fit(data.X, data.y, treatment=data.treatment)


def test_a_box_holds_doses_with_a_margin():
    box = DoseBox((DoseRange(0.0, 1.0), DoseRange(0.0, 10.0)))
    asked = Doses.of_table(np.array([[1.04, 10.4], [1.06, 5.0]])).values
    assert box.contains(asked, slack=0.05).tolist() == [True, False]
    assert box.clip(asked).tolist() == [(1.0, 10.0), (1.0, 5.0)]


BAD_FITS = {
    "four components": ({}, np.zeros((60, 4)), "must have 1 to 3 columns. Got 4"),
    "constant component": (
        {},
        np.column_stack([np.arange(60.0), np.ones(60)]),
        "must vary: .* Got 1 in every row of column 1",
    ),
    "missing": ({}, np.full((60, 2), np.nan), "'treatment' parameter must hold finite numbers"),
    "baseline of one component": ({"baseline": 0.5}, None, "one dose of 2 components. Got 0.5"),
    "baseline outside": ({"baseline": [0.5, 9.0]}, None, "'baseline' parameter must lie in the"),
    "doses of one component": (
        {"doses": [0.1, 0.2, 0.3], "baseline": [0.5, 0.5]},
        None,
        r"doses of 2 components: shape .* Got shape \(3,\)",
    ),
    "doses outside": (
        {"doses": [[0.1, 7.0]], "baseline": [0.5, 0.5]},
        None,
        r"must lie in the support of the dose, \[.*\] x \[.*\], .* Got \(0.1, 7\)",
    ),
    "baseline between arms": (
        {"baseline": [0.5, 3.0]},
        np.column_stack([np.arange(60) % 2, np.arange(60) * (np.arange(60) % 2)]),
        r"'baseline' parameter must hold levels of component 0, \[0.0, 1.0\]. Got 0.5",
    ),
    "doses between arms": (
        {"doses": [[0.5, 3.0]], "baseline": [0.0, 0.0]},
        np.column_stack([np.arange(60) % 2, np.arange(60) * (np.arange(60) % 2)]),
        "'doses' parameter must hold levels of component 0",
    ),
    "exact kernel": (
        {"kernel": "exact", "baseline": [0.5, 0.5]},
        None,
        "may be 'exact' only for a dose of few levels",
    ),
    "known density": (
        {"density": np.ones(60), "baseline": [0.5, 0.5]},
        None,
        "must be the name of a density or of weights for doses of several components",
    ),
    "arms of three": (
        {"basis": "arms", "baseline": [0.5] * 3},
        RNG.random((60, 3)),
        "must have two components, the arm and its dose. Got 3",
    ),
}


@pytest.mark.parametrize("name", BAD_FITS)
def test_bad_joint_doses_are_refused_with_the_rule(name):
    parameters, treatment, message = BAD_FITS[name]
    treatment = SQUARE[:60] if treatment is None else treatment
    X, y = RNG.normal(size=(60, 2)), RNG.normal(size=60)
    with pytest.raises(ValueError, match=message):
        quick_forest(**parameters).fit(X, y, treatment=treatment)


@pytest.mark.parametrize("basis", ["tensor", "arms"])
def test_joint_bases_need_joint_doses(basis):
    X, y = RNG.normal(size=(60, 2)), RNG.normal(size=60)
    with pytest.raises(ValueError, match=r"must have two .*components.* Got 1 instead"):
        quick_forest(basis=basis, baseline=0.5).fit(X, y, treatment=SQUARE[:60, 0])


BAD_QUESTIONS = {
    "one number": (lambda f, X: f.effect(X, 0.5), "one dose of 2 components, or one per unit"),
    "three numbers": (lambda f, X: f.dose_response(X, [[1.0, 2.0, 3.0]]), "doses of 2 components"),
    "not finite": (lambda f, X: f.dose_response(X, [[np.inf, 0.5]]), "must hold finite numbers"),
    "outside": (lambda f, X: f.effect(X, [0.5, 3.0]), "must lie in the support of the dose"),
    "two change": (
        lambda f, X: f.partial_effect(X, [0.2, 0.2], [0.5, 0.5]),
        "differ from 'first' in one component",
    ),
    "none changes": (lambda f, X: f.partial_effect(X, [0.2, 0.2], [0.2, 0.2]), "for both"),
    "component": (lambda f, X: f.elasticity(X, [0.5, 0.5], component=2), "an int from 0 to 1"),
    "average of many": (lambda f, X: f.average_effect([[0.5, 0.5]]), "one dose of 2 components"),
}


@pytest.mark.parametrize("name", BAD_QUESTIONS)
def test_bad_questions_about_joint_doses_are_refused(name, discounts, fitted):
    ask, message = BAD_QUESTIONS[name]
    with pytest.raises(ValueError, match=message):
        ask(fitted, discounts.X)


def test_joint_doses_are_judged_and_framed(discounts, fitted):
    held_out = JOINT_DESIGNS["two_discounts"].draw(n=300, seed=305)
    flat = quick_forest(correction="none", baseline=[0.5, 0.5])
    flat.fit(discounts.X, np.roll(discounts.y, 1), treatment=discounts.treatment)  # no relation
    given = {"treatment": held_out.treatment}
    assert fitted.score(held_out.X, held_out.y, **given) > flat.score(
        held_out.X, held_out.y, **given
    )
    frame = fitted.model_.set_output(transform="pandas").dose_response(
        discounts.X, [[0.25, 0.5], [0.5, 0.5]]
    )
    assert list(frame.columns) == ["(0.25, 0.5)", "(0.5, 0.5)"]
    framed = quick_forest(correction="none", baseline=[0.5, 0.5]).set_output(transform="pandas")
    framed.fit(discounts.X, discounts.y, treatment=discounts.treatment)
    assert list(framed.supported(discounts.X[:5], [0.25, 0.5]).columns) == ["(0.25, 0.5)"]
