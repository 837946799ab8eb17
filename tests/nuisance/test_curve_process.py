"""The Gaussian process member: against scikit-learn's, differences of its loss, and itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from doseforest import GeneralizedCausalForest, load_forest
from doseforest.doses.dose_values import Doses
from doseforest.nuisance.outcome import process_fit
from doseforest.nuisance.outcome.curve_process import BLOCK_VALUES, CurveProcess
from doseforest.nuisance.outcome.outcome_stack import member_fit
from doseforest.nuisance.outcome.process_fit import MarginalLoss, ProcessRecipe, ProcessRows


def draw(n=200, p=3, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X, dose = rng.normal(size=(n, p)), rng.gamma(2.0, 1.0, n)
    return X, dose, np.sin(dose) * X[:, 0] + X[:, 1] ** 2 + noise * rng.normal(size=n)


def rows_of(n=30, p=3, d=1, seed=1):
    rng = np.random.default_rng(seed)
    return ProcessRows(
        rng.normal(size=(n, p)),
        rng.normal(size=(n, d)),
        rng.normal(size=n),
        rng.uniform(0.5, 2.0, n),
    )


@pytest.mark.parametrize("in_parts", [True, False])
@pytest.mark.parametrize("d", [1, 2])
def test_the_gradient_of_the_loss_is_that_of_differences(in_parts, d):
    loss = MarginalLoss(rows_of(d=d), in_parts)
    at = loss.centre[loss.free] + 0.2 * np.random.default_rng(0).normal(size=loss.free.sum())
    by_differences = approx_fprime(at, lambda logs: loss(logs)[0], 1e-6)
    np.testing.assert_allclose(loss(at)[1], by_differences, atol=2e-4)


def test_one_kernel_answers_as_scikit_learn_does_with_the_same_lengths():
    X, dose, y = draw(120)
    recipe = ProcessRecipe(rank_share=0.0, in_parts=False, robust=False)
    process = recipe.fit(X, dose, y)
    part, table = process.covariance, process.table
    rows = ProcessRows(
        table.covariates(X), table.warped(dose), (y - y.mean()) / y.std(), np.ones(len(y))
    )
    _, noise = process_fit.find_lengths(
        rows.of(np.random.default_rng(0).permutation(len(y))), False, recipe.n_steps
    )
    kernel = ConstantKernel(part.sizes[2]) * RBF(
        np.concatenate([part.joint_lengths, part.joint_dose_lengths])
    ) + WhiteKernel(noise + process_fit.JITTER)
    peer = GaussianProcessRegressor(kernel, optimizer=None)
    peer.fit(np.hstack([rows.points, rows.doses]), rows.values)
    new, at = np.random.default_rng(3).normal(size=(40, 3)), np.linspace(0.5, 3.0, 40)
    told = peer.predict(np.hstack([table.covariates(new), table.warped(at)]))
    np.testing.assert_allclose(process.predict(new, at), y.mean() + y.std() * told, rtol=1e-6)


def test_a_grid_and_doses_of_each_row_give_the_same_curves():
    X, dose, y = draw()
    process = ProcessRecipe().fit(X, dose, y)
    grid = np.array([0.5, 1.0, 4.0])
    np.testing.assert_allclose(
        process.curves(X[:20], grid), process.curves(X[:20], np.tile(grid, (20, 1))), rtol=1e-9
    )


def test_blocks_of_units_change_nothing_beyond_the_last_digits(monkeypatch):
    X, dose, y = draw()
    process = ProcessRecipe().fit(X, dose, y)
    whole = process.curves(X, np.array([1.0, 2.0]))
    monkeypatch.setattr("doseforest.nuisance.outcome.curve_process.BLOCK_VALUES", 7 * len(X))
    assert 7 * len(X) < BLOCK_VALUES
    np.testing.assert_allclose(process.curves(X, np.array([1.0, 2.0])), whole, atol=1e-10)


def test_curves_come_close_to_the_truth():
    X, dose, y = draw(500)
    process = ProcessRecipe().fit(X, dose, y)
    new, at = np.random.default_rng(5).normal(size=(300, 3)), np.full(300, 1.5)
    error = process.predict(new, at) - (np.sin(at) * new[:, 0] + new[:, 1] ** 2)
    assert np.sqrt((error**2).mean()) < 0.25  # of noise .3; the outcome's deviation is 1.6


def test_ranks_help_where_the_dose_is_skewed():
    rng = np.random.default_rng(2)
    X, dose = rng.normal(size=(500, 2)), np.exp(rng.normal(2.0, 1.5, 500))
    truth = np.log1p(dose) * (1 + (X[:, 0] > 0))
    y = truth + rng.normal(size=500)
    plain, warped = (
        np.sqrt(
            ((ProcessRecipe(rank_share=share).fit(X, dose, y).predict(X, dose) - truth) ** 2).mean()
        )
        for share in (0.0, 0.7)
    )
    assert warped < 0.9 * plain


def test_heavy_tails_cost_little_where_noise_may_have_them():
    errors = {False: 0.0, True: 0.0}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, dose = rng.normal(size=(400, 2)), rng.uniform(0, 4, 400)
        truth = np.sin(dose) * (1 + X[:, 0])
        y = truth + 0.3 * rng.standard_t(1.5, 400)  # no variance
        for robust in errors:
            process = ProcessRecipe(robust=robust).fit(X, dose, y)
            errors[robust] += np.sqrt(((process.predict(X, dose) - truth) ** 2).mean())
    assert errors[True] < 0.7 * errors[False]  # .44, .53 and .78 of it on the three seeds


def test_light_tails_cost_nothing_where_noise_may_be_heavy():
    X, dose, y = draw(400)
    new, at = np.random.default_rng(5).normal(size=(300, 3)), np.full(300, 1.5)
    truth = np.sin(at) * new[:, 0] + new[:, 1] ** 2
    plain, robust = (
        np.sqrt(((ProcessRecipe(robust=r).fit(X, dose, y).predict(new, at) - truth) ** 2).mean())
        for r in (False, True)
    )
    assert robust < 1.15 * plain


def test_skewed_noise_leaves_the_level_at_the_mean():
    rng = np.random.default_rng(3)
    X, dose = rng.normal(size=(400, 2)), rng.uniform(0, 3, 400)
    y = rng.exponential(1 + dose)
    process = ProcessRecipe().fit(X, dose, y)
    assert process.predict(X, dose).mean() == pytest.approx(y.mean(), rel=1e-6)


def test_rare_ones_are_no_outliers_of_the_core():
    rng = np.random.default_rng(4)
    X, dose = rng.normal(size=(500, 2)), rng.uniform(0, 1, 500)
    y = (rng.uniform(size=500) < 0.1).astype(float)
    (model,) = member_fit(["core, process"])(X, dose, y, binary=True).values()
    assert model.predict(X, dose).mean() == pytest.approx(y.mean(), abs=0.02)


def test_a_value_that_hardly_any_row_had_is_not_like_no_other_row():
    rng = np.random.default_rng(5)
    X, dose = rng.normal(size=(400, 2)), rng.uniform(0, 4, 400)
    X = np.column_stack([X, np.zeros(400), np.arange(400) < 2])  # constant, and two ones
    process = ProcessRecipe().fit(X, dose, 3 * dose)
    for column in (2, 3):
        unit = np.zeros((1, 4))
        unit[0, column] = 50.0
        np.testing.assert_allclose(process.curves(unit, np.array([1.0, 3.0]))[0], [3, 9], atol=1.5)


def test_rows_of_twice_the_weight_count_as_two():
    X, dose, y = draw(80)
    weights = np.where(np.arange(80) < 40, 2.0, 1.0)
    process = ProcessRecipe(rank_share=0.0).fit(X, dose, y, weights=weights)
    twice = np.concatenate([np.arange(40), np.arange(80)])
    rows = ProcessRows(
        process.table.covariates(X), process.table.warped(dose), y - process.mean, np.ones(80)
    )
    noise = 0.3
    alone = process_fit.solve(
        ProcessRows(rows.points, rows.doses, rows.values, 1.0 / weights), process.covariance, noise
    )
    doubled = process_fit.solve(rows.of(twice), process.covariance, noise)
    summed = np.zeros(80)
    np.add.at(summed, twice, doubled)
    np.testing.assert_allclose(alone, summed, atol=1e-3 * np.abs(alone).max())  # jitter differs


def test_rows_without_weight_are_not_seen():
    X, dose, y = draw(120)
    weights = np.where(np.arange(120) < 90, 1.0, 0.0)
    spoilt = np.where(weights > 0, y, 1e6)
    process = ProcessRecipe().fit(X, dose, spoilt, weights=weights)
    assert len(process.coefficients) == 90
    assert np.abs(process.predict(X, dose)).max() < 20


def test_gaps_constant_columns_and_many_columns_are_taken():
    X, dose, y = draw(150, p=60)
    X[::7, 0], X[:, 5] = np.nan, 3.0
    X[:, 6] = np.nan
    process = ProcessRecipe(most_columns=10).fit(X, dose, y)
    assert len(process.table.columns) == 10
    assert {0, 1} <= set(process.table.columns)
    assert np.isfinite(process.curves(X, np.array([1.0, 30.0]))).all()


def test_a_binary_outcome_is_answered_by_probabilities():
    X, dose, y = draw(200)
    process = ProcessRecipe().fit(X, dose, (y > 0).astype(float), binary=True)
    curves = process.curves(4 * X, np.array([0.0, 2.0, 9.0]))
    assert curves.min() >= 0.0
    assert curves.max() <= 1.0


def test_doses_of_two_components_are_taken():
    X, dose, y = draw(200)
    both = Doses.of_table(np.stack([dose, np.cos(dose)], axis=1)).values
    process = ProcessRecipe().fit(X, both, y)
    assert process.curves(X[:5], both[:4]).shape == (5, 4)


def test_the_same_seed_gives_the_same_process():
    X, dose, y = draw(150)
    first, second = (ProcessRecipe(most_rows=100).fit(X, dose, y, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.coefficients, second.coefficients)
    other = ProcessRecipe(most_rows=100).fit(X, dose, y, seed=4)
    assert not np.array_equal(first.points, other.points)


def test_rows_that_are_alike_do_not_break_it():
    X, dose, y = np.zeros((60, 2)), np.repeat([1.0, 2.0], 30), np.repeat([1.0, 3.0], 30)
    process = ProcessRecipe().fit(X, dose, y)
    np.testing.assert_allclose(process.curves(X[:1], np.array([1.0, 2.0])), [[1.0, 3.0]], atol=0.05)


def test_a_file_holds_it(tmp_path):
    X, dose, _ = draw(150)
    y = np.sin(dose + 2 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=150)
    forest = GeneralizedCausalForest(
        outcome_model=["core", "process"],
        correction="none",
        density="none",
        baseline=1.0,
        random_state=0,
    )
    forest.fit(X, y, treatment=dose).save(tmp_path / "forest.dose")
    assert forest.outcome_weights_["process"] > 0.5  # of no product of two functions
    again = load_forest(tmp_path / "forest.dose")
    np.testing.assert_array_equal(again.effect(X, 2.0), forest.effect(X, 2.0))


def test_units_far_away_get_the_mean_and_no_warning():
    X, dose, y = draw(60)
    process = ProcessRecipe().fit(X, dose, y)
    far = process.curves(np.full((2, 3), 1e300), np.array([1.0, 2.0]))
    assert np.isfinite(far).all()
    np.testing.assert_array_equal(far[0], far[1])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("lengths", lambda own: -own),
        ("columns", lambda own: own + 7),
        ("points", lambda own: own[:-1]),
        ("knots", lambda own: -own),
        ("coefficients", lambda own: own * np.nan),
        ("coefficients", lambda own: own + 1e200),
        ("sizes", lambda own: own[:2]),
        ("sizes", lambda own: own + 1e308),
        ("joint_lengths", lambda own: own * 1e-300),
        ("level", lambda own: own + 1e308),
        ("scale", lambda own: own * 1e-308),
    ],
)
def test_a_file_with_a_broken_process_is_refused(name, change):
    X, dose, y = draw(60)
    values, arrays = ProcessRecipe(n_steps=2).fit(X, dose, y).to_arrays()
    with pytest.raises(ValueError, match="outcome model"):
        CurveProcess.from_arrays(values, {**arrays, name: change(arrays[name])}, 3)
