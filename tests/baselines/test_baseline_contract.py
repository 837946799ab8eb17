"""What holds for every baseline: one effect API, scikit-learn's manners, clear refusals."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

from bench.designs import DESIGNS
from doseforest.baselines import (
    AverageCurve,
    ConstantCurve,
    EconMLForest,
    KennedyCurve,
    LinearCausalForest,
    ZeroEffect,
    boosting,
    random_forest,
    xgboost_trees,
)

LINES = {"outcome_model": LinearRegression(), "treatment_model": LinearRegression()}
BASELINES = {
    "random_forest": lambda jobs: random_forest(n_trees=10, n_jobs=jobs),
    "boosting": lambda jobs: boosting(n_trees=20),
    "xgboost_trees": lambda jobs: xgboost_trees(n_trees=20, n_jobs=jobs),
    "EconMLForest": lambda jobs: EconMLForest(20, n_folds=2, n_jobs=jobs, **LINES),
    "EconMLForest.linear": lambda jobs: EconMLForest.linear(
        n_trees=20, n_folds=2, n_jobs=jobs, **LINES
    ),
    "KennedyCurve": lambda jobs: KennedyCurve(n_folds=2, n_jobs=jobs, **LINES),
    "LinearCausalForest": lambda jobs: LinearCausalForest(n_trees=40, n_jobs=jobs),
    "ZeroEffect": lambda jobs: ZeroEffect(),
    "AverageCurve": lambda jobs: AverageCurve(np.sin),
    "ConstantCurve": lambda jobs: ConstantCurve(boosting(n_trees=20), max_units=50),
}
PACKAGES = {"xgboost_trees": "xgboost", "EconMLForest": "econml", "EconMLForest.linear": "econml"}


@pytest.fixture(autouse=True)
def _one_thread():
    """On a busy machine the threads of histogram boosting wait for each other for minutes."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module", name="data")
def _data():
    return DESIGNS["confounded"].draw(n=300, seed=0)


@pytest.fixture(scope="module", params=BASELINES, name="make")
def _make(request):
    if request.param in PACKAGES:
        pytest.importorskip(PACKAGES[request.param])
    return BASELINES[request.param]


@pytest.fixture(scope="module", name="model")
def _model(make, data):
    with threadpool_limits(1):
        return make(1).fit(data.X, data.y, treatment=data.treatment)


def test_curves_have_a_row_for_each_unit_and_a_column_for_each_dose(model, data):
    curves = model.dose_response(data.X[:40], [1.0, 4.0, 9.0])
    assert curves.shape == (40, 3)
    assert curves.dtype == np.float64
    assert np.isfinite(curves).all()
    assert model.dose_response(data.X[:40], 4.0).shape == (40, 1)


def test_own_doses_are_points_of_the_curves(model, data):
    grid = np.array([1.0, 4.0, 9.0])
    curves = model.dose_response(data.X[:30], grid)
    place = np.arange(30) % 3
    own = model.dose_response(data.X[:30], grid[place][:, None])
    np.testing.assert_allclose(own[:, 0], curves[np.arange(30), place])


def test_effects_are_differences_of_curves(model, data):
    units = data.X[:20]
    curves = model.dose_response(units, [2.0, 5.0])
    difference = curves[:, 1] - curves[:, 0]
    np.testing.assert_allclose(model.effect(units, dose=5.0, baseline=2.0), difference)
    np.testing.assert_allclose(model.effect(units, np.full(20, 5.0), np.full(20, 2.0)), difference)
    np.testing.assert_allclose(model.partial_effect(units, 2.0, 5.0), difference / 3.0)
    np.testing.assert_allclose(model.partial_effect(units, 5.0, 2.0), difference / 3.0)
    against_zero = model.dose_response(units, [0.0, 5.0])
    np.testing.assert_allclose(model.effect(units, 5.0), against_zero[:, 1] - against_zero[:, 0])


def test_a_clone_fits_alike_whatever_the_threads(make, model, data):
    copy = clone(model)
    assert not hasattr(copy, "n_features_in_")
    expected = model.dose_response(data.X, [1.0, 5.0])
    again = copy.fit(data.X, data.y, treatment=data.treatment)
    np.testing.assert_array_equal(again.dose_response(data.X, [1.0, 5.0]), expected)
    threaded = make(2).fit(data.X, data.y, treatment=data.treatment)
    # Threads of scikit-learn and EconML add up trees as they come: the last digits may differ.
    curves = threaded.dose_response(data.X, [1.0, 5.0])
    np.testing.assert_allclose(curves, expected, rtol=1e-9)


def test_parameters_are_those_of_the_constructor(model):
    parameters = model.get_params(deep=False)
    again = type(model)(**parameters)
    assert again.get_params(deep=False) == parameters


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_give_what_arrays_give(make, model, data, frame):
    table = frame({f"x{j}": data.X[:, j] for j in range(20)})
    by_frame = make(1).fit(table, data.y, treatment=data.treatment)
    np.testing.assert_array_equal(by_frame.effect(table, 5.0, 1.0), model.effect(data.X, 5.0, 1.0))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_are_those_of_fit_by_name(make, data, frame):
    names = [f"x{j}" for j in range(20)]
    table = frame(dict(zip(names, data.X.T, strict=True)))
    fitted = make(1).fit(table, data.y, treatment=data.treatment)
    assert fitted.feature_names_in_.tolist() == names
    expected = fitted.dose_response(table, [1.0, 5.0])
    turned = frame({name: table[name] for name in [*names[::-1], "x0"]} | {"more": data.y})
    np.testing.assert_array_equal(fitted.dose_response(turned, [1.0, 5.0]), expected)
    np.testing.assert_array_equal(fitted.dose_response(data.X, [1.0, 5.0]), expected)
    renamed = frame({f"{name}!": table[name] for name in names})
    for ask in (
        lambda: fitted.dose_response(renamed, 1.0),
        lambda: fitted.effect(renamed, 5.0, 1.0),
        lambda: fitted.elasticity(renamed, 1.0),
    ):
        with pytest.raises(
            ValueError, match=r"feature names should match .* without \['x0', .*x0!"
        ):
            ask()
    missing = frame({name: table[name] for name in names[1:]})
    with pytest.raises(ValueError, match=r"Got a frame without \['x0'\] instead"):
        fitted.dose_response(missing, 1.0)


def test_columns_go_by_place_where_fit_knew_no_names(make, model, data):
    table = pd.DataFrame(data.X, columns=[f"x{j}" for j in range(20)])
    assert not hasattr(model, "feature_names_in_")
    expected = model.dose_response(data.X, 1.0)
    np.testing.assert_array_equal(model.dose_response(table, 1.0), expected)
    again = make(1).fit(table, data.y, treatment=data.treatment)
    again.fit(data.X, data.y, treatment=data.treatment)
    assert not hasattr(again, "feature_names_in_")


def test_elasticities_are_slopes_over_a_twentieth_of_the_doses(make, data):
    fitted = make(1).fit(data.X, data.y + 100.0, treatment=data.treatment)
    units, (low, high) = data.X[:3], (data.treatment.min(), data.treatment.max())
    step = (high - low) / 40
    edge = low + step / 2
    for dose, start, end in ((1.0, 1.0 - step, 1.0 + step), (edge, low, edge + step)):
        curves = fitted.dose_response(units, [start, dose, end])
        expected = dose * (curves[:, 2] - curves[:, 0]) / (end - start) / curves[:, 1]
        np.testing.assert_allclose(fitted.elasticity(units, dose), expected, atol=1e-12)
    own = fitted.elasticity(units, [1.0, edge, 1.0])
    np.testing.assert_allclose(own[1], fitted.elasticity(units, edge)[1], atol=1e-12)


def test_elasticities_need_positive_outcomes_and_observed_doses(make, data):
    fitted = make(1)
    if not isinstance(fitted, AverageCurve):
        with pytest.raises(NotFittedError):
            fitted.elasticity(data.X, 1.0)
    fitted.fit(data.X, data.y - 100.0, treatment=data.treatment)
    with pytest.raises(ValueError, match=r"'dose' .* positive expected outcome .* for unit 0 at"):
        fitted.elasticity(data.X, 4.0)
    with pytest.raises(ValueError, match=r"'dose' .* in the support of the dose.* Got 99 "):
        fitted.elasticity(data.X, 99.0)
    with pytest.raises(ValueError, match=r"'component' .* from 0 to 0, .* Got 1 "):
        fitted.elasticity(data.X, 1.0, component=1)


def test_features_must_be_those_of_fit(model, data):
    assert model.n_features_in_ == 20
    with pytest.raises(ValueError, match=r"'X' .* 20 features.* Got 3"):
        model.dose_response(data.X[:, :3], 1.0)
    with pytest.raises(ValueError, match=r"'X' .* 20 features.* Got 3"):
        model.effect(data.X[:, :3], 1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_outcomes_and_doses_must_be_finite(make, data, bad):
    spoilt = np.append(bad, np.arange(299.0))
    with pytest.raises(ValueError, match=rf"'y' .* finite .* Got {bad} in row 0"):
        make(1).fit(data.X, spoilt, treatment=data.treatment)
    with pytest.raises(ValueError, match=rf"'treatment' .* finite .* Got {bad} in row 0"):
        make(1).fit(data.X, data.y, treatment=spoilt)


def test_rows_must_match(make, data):
    with pytest.raises(ValueError, match=r"'y' .* \(300\)\. Got shape \(299,\)"):
        make(1).fit(data.X, data.y[1:], treatment=data.treatment)
    with pytest.raises(ValueError, match=r"'treatment' .* \(300\)\. Got shape \(299,\)"):
        make(1).fit(data.X, data.y, treatment=data.treatment[1:])


def test_doses_must_differ_where_curves_are_learned(make, data):
    model = make(1)
    if not isinstance(model, AverageCurve | ZeroEffect):
        with pytest.raises(ValueError, match=r"'treatment' .* different doses\. Got only 3 "):
            model.fit(data.X, data.y, treatment=np.full(300, 3.0))


@pytest.mark.parametrize(
    ("module", "fit"),
    [
        ("xgboost", lambda data: xgboost_trees()),
        ("econml.dml", lambda data: EconMLForest().fit(data.X, data.y, treatment=data.treatment)),
    ],
)
def test_without_the_package_the_error_says_what_to_install(monkeypatch, data, module, fit):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install 'doseforest\[baselines\]'"):
        fit(data)
