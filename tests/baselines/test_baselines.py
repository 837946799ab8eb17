"""Baselines: their curves are the regressor's predictions, and the effect API follows from them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

from bench.designs import DESIGNS
from doseforest import GeneralizedCausalForest
from doseforest.baselines import (
    AverageCurve,
    ConstantCurve,
    EconMLForest,
    KennedyCurve,
    LinearCausalForest,
    OutcomeRegressor,
    ZeroEffect,
    boosting,
    random_forest,
    xgboost_trees,
)
from doseforest.data.feature_table import as_table
from doseforest.doses.curve_effects import dose_table, unit_doses
from doseforest.evaluation import effect_errors
from doseforest.nuisance.outcome import block_predictions


@pytest.fixture(autouse=True)
def _one_thread():
    """On a busy machine the threads of histogram boosting wait for each other for minutes."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module", name="data")
def _data():
    return DESIGNS["confounded"].draw(n=300, seed=0)


@pytest.mark.parametrize(
    ("model", "twin"),
    [
        (
            random_forest(n_trees=15, random_state=3),
            RandomForestRegressor(15, min_samples_leaf=5, random_state=3),
        ),
        (
            boosting(n_trees=15),
            HistGradientBoostingRegressor(
                max_iter=15, learning_rate=0.05, max_leaf_nodes=8, early_stopping=False
            ),
        ),
    ],
    ids=["forest", "boosting"],
)
def test_a_curve_is_the_prediction_with_the_dose_as_last_column(model, twin, data):
    model.fit(data.X, data.y, treatment=data.treatment)
    twin.fit(np.column_stack([data.X, data.treatment]), data.y)
    for dose in (0.0, 3.3, 10.0):
        expected = twin.predict(np.column_stack([data.X, np.full(300, dose)]))
        np.testing.assert_allclose(model.dose_response(data.X, dose)[:, 0], expected)


def test_xgboost_has_the_dose_as_its_last_column(data):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost_trees(n_trees=15, random_state=3)
    model.fit(data.X, data.y, treatment=data.treatment)
    twin = xgboost.XGBRegressor(
        n_estimators=15, learning_rate=0.05, max_depth=4, subsample=0.8, random_state=3, n_jobs=1
    ).fit(np.column_stack([data.X, data.treatment]), data.y)
    expected = twin.predict(np.column_stack([data.X, np.full(300, 3.3)]))
    np.testing.assert_allclose(model.dose_response(data.X, 3.3)[:, 0], expected)


def test_text_in_a_table_does_not_matter_to_curves_without_heterogeneity():
    table = pd.DataFrame({"shop": ["north", "south"], "size": [1.0, 2.0]})
    model = ZeroEffect().fit(table, [1.0, 3.0], treatment=[0.0, 1.0])
    np.testing.assert_array_equal(model.dose_response(table, 5.0), [[2.0], [2.0]])


def test_the_default_regressor_is_the_random_forest():
    defaults = random_forest().regressor.get_params()
    assert defaults["min_samples_leaf"] == 5
    assert defaults["n_jobs"] == 1
    X = np.arange(20.0)[:, None]
    model = OutcomeRegressor().fit(X, X[:, 0], treatment=X[:, 0])
    assert model.regressor_.get_params() == defaults


def test_a_line_is_found_exactly():
    data = DESIGNS["linear"].draw(n=200, seed=0)
    exact = data.mean(data.treatment[:, None])[:, 0]
    model = OutcomeRegressor(LinearRegression()).fit(data.X, exact, treatment=data.treatment)
    errors = effect_errors(model, data)
    assert max(errors.rms, errors.mae, errors.adrf_rms, errors.adrf_sup) < 1e-10


@pytest.mark.parametrize(("rows", "values"), [(1, 10**6), (7, 10**6), (10**6, 1), (10**6, 60)])
def test_blocks_do_not_change_predictions(monkeypatch, data, rows, values):
    model = boosting(n_trees=10).fit(data.X, data.y, treatment=data.treatment)
    whole = model.dose_response(data.X[:11], [1.0, 2.0, 3.0])
    sizes = []
    predict = model.regressor_.predict
    monkeypatch.setattr(model.regressor_, "predict", lambda Z: sizes.append(len(Z)) or predict(Z))
    monkeypatch.setattr(block_predictions, "BLOCK_ROWS", rows)
    monkeypatch.setattr(block_predictions, "BLOCK_VALUES", values)
    np.testing.assert_array_equal(model.dose_response(data.X[:11], [1.0, 2.0, 3.0]), whole)
    assert sum(sizes) == 33
    assert max(sizes) <= max(1, min(rows, values // 21))


def test_a_regressor_that_was_handed_in_is_left_unfitted(data):
    regressor = LinearRegression()
    OutcomeRegressor(regressor).fit(data.X, data.y, treatment=data.treatment)
    assert not hasattr(regressor, "coef_")


@pytest.mark.parametrize("make", [boosting, xgboost_trees])
def test_missing_features_are_welcome_where_the_regressor_takes_them(data, make):
    if make is xgboost_trees:
        pytest.importorskip("xgboost")
    X = data.X.copy()
    X[::7, 3] = np.nan
    model = make(n_trees=10).fit(X, data.y, treatment=data.treatment)
    assert np.isfinite(model.effect(X, 5.0, 1.0)).all()


def test_zero_effect_is_flat_at_the_mean_outcome(data):
    model = ZeroEffect().fit(data.X, data.y, treatment=data.treatment)
    np.testing.assert_array_equal(model.effect(data.X, 7.0), np.zeros(300))
    np.testing.assert_array_equal(model.dose_response(data.X, [1.0, 2.0]), data.y.mean())


def test_a_constant_curve_is_the_average_of_the_model_s_curves(data):
    inner = boosting(n_trees=20)
    model = ConstantCurve(inner).fit(data.X, data.y, treatment=data.treatment)
    fitted = inner.fit(data.X, data.y, treatment=data.treatment)
    grid = [5.0, 1.0, 5.0]
    average = fitted.dose_response(data.X, grid).mean(axis=0)
    np.testing.assert_allclose(model.dose_response(data.X[:4], grid), np.tile(average, (4, 1)))


def test_a_constant_curve_averages_over_few_units_spread_over_the_rows(data):
    model = ConstantCurve(boosting(n_trees=5), max_units=4)
    model.fit(data.X, data.y, treatment=data.treatment)
    np.testing.assert_array_equal(model.units_, data.X[[0, 99, 199, 299]])


def test_the_given_average_is_asked_once_for_each_distinct_dose():
    asked = []

    def average(doses):
        asked.append(doses)
        return doses**2

    model = AverageCurve(average)
    curves = model.dose_response(np.zeros((3, 1)), [[2.0, 1.0], [1.0, 1.0], [3.0, 2.0]])
    np.testing.assert_array_equal(curves, [[4.0, 1.0], [1.0, 1.0], [9.0, 4.0]])
    np.testing.assert_array_equal(asked, [[1.0, 2.0, 3.0]])


def outcome_model_alone():
    return GeneralizedCausalForest(correction="none", baseline=5.0, random_state=0, verbose=False)


class ForestCurves(BaseEstimator):
    """A fitted forest in the clothes of a regressor on [X, T]."""

    def __init__(self, forest=None):
        self.forest = forest

    def __sklearn_clone__(self):
        return self

    def fit(self, X, y):
        return self

    def predict(self, Z):
        return self.forest.dose_response(Z[:, :-1], Z[:, -1:])[:, 0]


def test_elasticities_are_the_forest_s(data):
    forest = outcome_model_alone()
    forest.fit(data.X, data.y + 100.0, treatment=data.treatment)
    twin = OutcomeRegressor(ForestCurves(forest)).fit(data.X, data.y, treatment=data.treatment)
    doses = np.linspace(data.treatment.min(), data.treatment.max(), 30)
    found = twin.elasticity(data.X[:30], doses)
    expected = forest.elasticity(data.X[:30], doses)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert np.abs(found).max() > 0


def two_discounts(n=120):
    """Two doses, and a plane: y = 10 + 2 t1 + 3 t2."""
    rng = np.random.default_rng(0)
    doses = rng.uniform(1.0, 2.0, (n, 2))
    return rng.normal(size=(n, 2)), doses, 10.0 + doses @ [2.0, 3.0]


@pytest.mark.parametrize(
    ("model", "slope"),
    [
        (OutcomeRegressor(LinearRegression()), 2.0),
        (ConstantCurve(OutcomeRegressor(LinearRegression())), 2.0),
        (AverageCurve(lambda doses: 10.0 + doses @ [2.0, 3.0]), 2.0),
        (ZeroEffect(), 0.0),
    ],
    ids=["regressor", "constant", "average", "zero"],
)
def test_doses_of_several_components_are_kept_from_fit(model, slope):
    X, doses, y = two_discounts()
    model.fit(X, y, treatment=doses)
    assert model.n_components == 2
    units, ends = X[:4], ([2.0, 1.5], [1.0, 1.5])
    np.testing.assert_allclose(model.effect(units, *ends), np.full(4, slope))
    np.testing.assert_allclose(model.partial_effect(units, ends[1], ends[0]), np.full(4, slope))
    curves = model.dose_response(units, [ends[0], ends[1], ends[0]])
    np.testing.assert_allclose(curves[:, 0] - curves[:, 1], np.full(4, slope))
    np.testing.assert_array_equal(curves[:, 0], curves[:, 2])
    own = model.dose_response(units, np.tile(ends, (4, 1, 1)))
    np.testing.assert_allclose(own, curves[:, :2])
    at_middle = 1.5 * slope / model.dose_response(units, [1.5, 1.5])[:, 0]
    found = model.elasticity(units, [1.5, 1.5], component=0)
    np.testing.assert_allclose(found, at_middle, atol=1e-12)
    with pytest.raises(ValueError, match=r"'component' .* from 0 to 1, .* Got None "):
        model.elasticity(units, [1.5, 1.5])


def test_an_elasticity_without_a_range_of_doses_is_refused():
    X = np.zeros((3, 1))
    with pytest.raises(ValueError, match=r"'treatment' .* must be given .* Got None "):
        AverageCurve(np.exp).elasticity(X, 1.0)
    flat = ZeroEffect().fit(X, [1.0, 2.0, 3.0], treatment=np.full(3, 5.0))
    with pytest.raises(ValueError, match=r"'treatment' .* different doses .* Got only 5 "):
        flat.elasticity(X, 5.0)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_constant_curve_hands_its_model_the_table_as_it_comes(data, frame):
    columns = {"size": data.X[:, 0], "shop": np.where(data.X[:, 1] > 0, "north", "south")}
    table, grid = frame(columns), [2.0, 5.0]
    forest = outcome_model_alone()
    model = ConstantCurve(forest, max_units=4).fit(table, data.y, treatment=data.treatment)
    assert isinstance(model.units_, frame)
    few = frame({name: column[[0, 99, 199, 299]] for name, column in columns.items()})
    curves = model.model_.dose_response(few, grid)
    np.testing.assert_allclose(model.dose_response(table, grid)[7], curves.mean(axis=0))
    assert model.elasticity(table[["shop", "size"]], 5.0).shape == (300,)


def test_a_constant_curve_takes_lists_and_blocks(data):
    by_array = ConstantCurve(boosting(n_trees=5), max_units=7)
    by_array.fit(data.X, data.y, treatment=data.treatment)
    for table in (data.X.tolist(), as_table(data.X)):
        model = ConstantCurve(boosting(n_trees=5), max_units=7)
        model.fit(table, data.y, treatment=data.treatment)
        expected = by_array.dose_response(data.X[:2], [2.0, 5.0])
        np.testing.assert_array_equal(model.dose_response(data.X[:2], [2.0, 5.0]), expected)


def test_without_a_seed_every_fit_draws_one(data):
    lines = {"outcome_model": LinearRegression(), "treatment_model": LinearRegression()}
    model = KennedyCurve(random_state=None, n_folds=2, **lines)
    folds = [
        model.fit(data.X, data.y, treatment=data.treatment).outcome_model_.models.folds
        for _ in range(2)
    ]
    assert (folds[0] != folds[1]).any()


def test_random_forests_have_their_known_errors_on_the_published_designs():
    # Known over 10 simulations, leaves of 50: 4.86 / 3.59, 4.60 / 3.40 and 4.00 / 2.86; the curves
    # were chosen by these figures, among others. These four draws give 5.04 / 3.84, 4.86 / 3.63
    # and 4.38 / 3.06: off by up to 9.5 % of the rms and 7 % of the mae, whose errors by the draw
    # are 6 % or so. With the first two designs swapped the mae is off by 13 %, and the order wrong.
    known = {"polynomial": (4.86, 3.59), "sinusoidal": (4.60, 3.40), "exponential": (4.00, 2.86)}
    found = []
    for name in known:
        errors = []
        for seed in range(4):
            data = DESIGNS[name].draw(n=1000, seed=seed)
            model = random_forest(n_trees=40, min_samples_leaf=50)
            model.fit(data.X, data.y, treatment=data.treatment)
            own = effect_errors(model, data, X=data.draw_units(500, seed=100 + seed))
            errors.append((own.rms, own.mae))
        found.append(np.mean(errors, axis=0))
    rms, mae = np.transpose(found)
    expected_rms, expected_mae = np.transpose(list(known.values()))
    np.testing.assert_allclose(rms, expected_rms, rtol=0.12)
    np.testing.assert_allclose(mae, expected_mae, rtol=0.10)
    assert (np.diff(rms) < 0).all()
    assert (np.diff(mae) < 0).all()


def test_doses_are_a_grid_or_a_row_for_each_unit():
    assert dose_table(3, 2).values.tolist() == [[3.0], [3.0]]
    assert dose_table([1, 2], 2).values.tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert dose_table([[1], [2]], 2).values.tolist() == [[1.0], [2.0]]
    assert unit_doses([1, 2], 2).values.tolist() == [1.0, 2.0]
    assert dose_table([1.0], 0).shape == (0, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X: m.dose_response(X[:, :3], 1.0), r"'X' .* 20 features.* Got 3"),
        (lambda m, X: m.dose_response(X, np.zeros((2, 2))), r"'doses' .* \(5\). Got shape \(2, 2"),
        (lambda m, X: m.dose_response(X, [np.inf]), r"'doses' .* finite .* Got inf"),
        (lambda m, X: m.effect(X, [1.0, 2.0]), r"'dose' .* \(5\). Got shape \(2,\)"),
        (lambda m, X: m.effect(X, 1.0, [1.0, 2.0]), r"'baseline' .* Got shape \(2,\)"),
        (lambda m, X: m.partial_effect(X, 2.0, 2.0), r"'second' .* differ .* Got 2 for both"),
        (lambda m, X: m.fit(X, [1.0], treatment=np.zeros(5)), r"'y' .* Got shape \(1,\)"),
        (lambda m, X: m.fit(X, np.zeros(5), treatment=[np.nan] * 5), r"'treatment' .* Got nan"),
        (lambda m, X: AverageCurve(lambda d: 1.0).effect(X, 1.0), r"'average' .* Got shape \(\)"),
        (
            lambda m, X: ConstantCurve(m, max_units=0).fit(X, X[:, 0], treatment=X[:, 1]),
            r"'max_units' .* Got 0",
        ),
        (
            lambda m, X: ConstantCurve(m, max_units=2.5).fit(X, X[:, 0], treatment=X[:, 1]),
            r"'max_units' .* an int of at least 1\. Got 2\.5",
        ),
        (
            lambda m, X: ConstantCurve(m, max_units="a").fit(X, X[:, 0], treatment=X[:, 1]),
            r"'max_units' .* an int of at least 1\. Got 'a'",
        ),
        (
            lambda m, X: KennedyCurve(random_state="x").fit(X, X[:, 0], treatment=X[:, 1]),
            r"'random_state' .* an int of at least 0\. Got 'x'",
        ),
        (
            lambda m, X: KennedyCurve(random_state=-1).fit(X, X[:, 0], treatment=X[:, 1]),
            r"'random_state' .* an int of at least 0\. Got -1",
        ),
        (
            lambda m, X: LinearCausalForest(random_state="x").fit(X, X[:, 0], treatment=X[:, 1]),
            r"'random_state' .* an int of at least 0\. Got 'x'",
        ),
        (
            lambda m, X: m.fit(X, X[:, 0], treatment=np.column_stack([X[:, 1], np.ones(5)])),
            r"'treatment' .* different doses in every column\. Got only 1 in column 1",
        ),
    ],
)
def test_errors_name_parameter_rule_and_value(call, message, data):
    model = OutcomeRegressor(LinearRegression()).fit(data.X, data.y, treatment=data.treatment)
    with pytest.raises(ValueError, match=message):
        call(model, data.X[:5])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_folds": 1}, r"'n_folds' .* at least 2 .* rows \(300\)\. Got 1 "),
        ({"n_folds": "2"}, r"'n_folds' .* at least 2 .* Got '2' "),
        ({}, r"'X' .* missing values: fill them .* Got NaN in row 4, column 'x3' "),
    ],
)
def test_econml_s_forest_refuses_what_econml_does_not_take(data, parameters, message):
    pytest.importorskip("econml")
    lines = {"outcome_model": LinearRegression(), "treatment_model": LinearRegression()}
    model = EconMLForest(**({"n_trees": 10, "n_folds": 2} | lines | parameters))
    table = pd.DataFrame(data.X, columns=[f"x{j}" for j in range(20)])
    spoilt = table.copy()
    spoilt.loc[4, "x3"] = np.nan
    with pytest.raises(ValueError, match=message):
        model.fit(spoilt if not parameters else table, data.y, treatment=data.treatment)
    if not parameters:
        model.fit(table, data.y, treatment=data.treatment)  # ten trees: not a multiple of 4
        with pytest.raises(ValueError, match=message):
            model.effect(spoilt, 5.0)


@pytest.mark.parametrize("model", [random_forest(), ConstantCurve(boosting()), ZeroEffect()])
def test_an_unfitted_model_says_so(model):
    with pytest.raises(NotFittedError):
        model.dose_response(np.zeros((2, 20)), 1.0)
