"""The linear causal forest: slopes of units by a local moment equation on centred rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_predict

from doseforest.baselines import LinearCausalForest
from doseforest.engine.grow_forest import grow_forest
from doseforest.engine.growth.binned_rows import bin_array


def two_groups(n, seed=0):
    """Slopes 1 and 3 by the sign of x0; x1 raises dose and outcome."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 4))
    dose = 2 * X[:, 1] + rng.normal(size=n)
    slope = np.where(X[:, 0] > 0, 3.0, 1.0)
    return X, dose, slope * dose + 4 * X[:, 1] + 0.5 * rng.normal(size=n), slope


@pytest.fixture(scope="module", name="rows")
def _rows():
    return two_groups(600)


@pytest.fixture(scope="module", name="model")
def _model(rows):
    X, dose, y, _ = rows
    return LinearCausalForest(n_trees=100).fit(X, y, treatment=dose)


def test_slopes_of_units_are_found_though_a_feature_moves_dose_and_outcome(model, rows):
    _, dose, y, _ = rows
    new, _, _, slope = two_groups(500, seed=1)
    naive = np.polyfit(dose, y, 1)[0]
    assert naive > 3.0  # without the features the average slope of 2 looks like this
    found = model.slopes(new)
    assert found.mean() == pytest.approx(2.0, abs=0.3)
    apart = np.abs(new[:, 0]) > 0.2  # trees blur the edge
    assert np.sqrt(np.mean((found - slope)[apart] ** 2)) < 0.4


def test_a_slope_solves_the_local_moment_equation(model, rows):
    X, units = rows[0], two_groups(12, seed=2)[0]
    alpha = model.forest_.forest_weights(units).toarray()
    np.testing.assert_allclose(alpha.sum(axis=1), 1.0, rtol=1e-5)
    assert alpha.shape == (12, len(X))
    e, u = model.residuals_.dose, model.residuals_.outcome
    for unit, weights in enumerate(alpha):
        centred = e - weights @ e
        slope = (weights * centred) @ u / ((weights * centred) @ e)
        # Channels are rounded to a grid of 22 bits.
        assert model.slopes(units)[unit] == pytest.approx(slope, rel=1e-4)


def test_one_leaf_is_one_line(rows):
    # A single tree that may not split: the line through the rows that fill its one leaf.
    X, dose, y, _ = rows
    model = LinearCausalForest(1, min_node_size=300, outcome_model=LinearRegression())
    model.set_params(treatment_model=LinearRegression()).fit(X, y, treatment=dose)
    weights = model.forest_.forest_weights(X[:1]).toarray()[0]
    fills = weights > 0
    np.testing.assert_allclose(weights[fills], 1 / fills.sum(), rtol=1e-6)
    assert 100 < fills.sum() < 200  # about half of the half that the tree sees
    line = np.polyfit(model.residuals_.dose[fills], model.residuals_.outcome[fills], 1)[0]
    np.testing.assert_allclose(model.slopes(X), line, rtol=1e-4)


def test_residuals_are_out_of_bag_by_default(model, rows):
    X, dose, y, _ = rows
    for residual, values, stage in (
        (model.residuals_.outcome, y, 1),
        (model.residuals_.dose, dose, 2),
    ):
        binned = bin_array(X, n_threads=1)
        grown = grow_forest(binned, values[:, None], model._growth(X.shape[1], stage))
        np.testing.assert_array_equal(residual, values - grown.predict_oob(binned.table)[:, 0])
        assert not np.allclose(residual, values - grown.forest.predict(X)[:, 0], atol=0.1)


def test_residuals_of_given_regressors_are_out_of_fold(rows):
    X, dose, y, _ = rows
    line = LinearRegression()
    model = LinearCausalForest(20, outcome_model=line, treatment_model=line, n_folds=3)
    model.fit(X, y, treatment=dose)
    folds = KFold(3, shuffle=True, random_state=0)
    np.testing.assert_allclose(
        model.residuals_.outcome, y - cross_val_predict(line, X, y, cv=folds)
    )
    np.testing.assert_allclose(
        model.residuals_.dose, dose - cross_val_predict(line, X, dose, cv=folds)
    )
    assert not hasattr(line, "coef_")


def test_curves_are_lines_that_average_to_the_mean_outcome(model, rows):
    X, dose, y, _ = rows
    curves = model.dose_response(X, [0.0, 1.0, 3.0])
    np.testing.assert_allclose(curves[:, 0], model.level_)
    np.testing.assert_allclose(curves[:, 1] - curves[:, 0], model.slopes(X))
    np.testing.assert_allclose(curves[:, 2] - curves[:, 0], 3 * model.slopes(X))
    assert model.dose_response(X, dose[:, None]).mean() == pytest.approx(y.mean())


def test_the_level_of_the_outcome_does_not_matter_to_slopes(model, rows):
    X, dose, y, _ = rows
    moved = LinearCausalForest(n_trees=100).fit(X, y + 64.0, treatment=dose)
    np.testing.assert_allclose(moved.slopes(X), model.slopes(X), atol=0.02)
    assert moved.level_ - model.level_ == pytest.approx(64.0, abs=0.02)


def test_missing_features_are_welcome(rows):
    X, dose, y, _ = rows
    X = X.copy()
    X[::5, 2] = np.nan
    model = LinearCausalForest(n_trees=40).fit(X, y, treatment=dose)
    assert np.isfinite(model.effect(X, 1.0)).all()


def test_few_features_are_all_tried_and_many_are_drawn():
    rng = np.random.default_rng(0)
    for n_features, expected in ((4, 4), (100, 30)):
        X, dose = rng.normal(size=(60, n_features)), rng.normal(size=60)
        model = LinearCausalForest(n_trees=40).fit(X, dose, treatment=dose)
        assert model.forest_.settings.mtry == expected


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_trees": 0}, r"'n_trees' .* Got 0 "),
        ({"min_node_size": 0}, r"'min_node_size' .* Got 0 "),
        ({"min_child_fraction": 0.6}, r"'min_child_fraction' .* Got 0\.6 "),
        ({"sample_fraction": 0.0}, r"'sample_fraction' .* Got 0\.0 "),
        ({"mtry": 9}, r"'mtry' .* Got 9 "),
        ({"n_folds": 1, "outcome_model": LinearRegression()}, r"'n_folds' .* Got 1 "),
        ({"n_folds": 31, "outcome_model": LinearRegression()}, r"'n_folds' .* Got 31 "),
    ],
)
def test_errors_name_parameter_rule_and_value(parameters, message):
    X, dose, y, _ = two_groups(30)
    with pytest.raises(ValueError, match=message):
        LinearCausalForest(**parameters).fit(X, y, treatment=dose)


def test_doses_must_differ():
    X, _, y, _ = two_groups(30)
    with pytest.raises(ValueError, match=r"'treatment' .* different doses\. Got only 1 "):
        LinearCausalForest().fit(X, y, treatment=np.ones(30))


def test_an_unfitted_model_says_so():
    with pytest.raises(NotFittedError):
        LinearCausalForest().dose_response(np.zeros((2, 4)), 1.0)
