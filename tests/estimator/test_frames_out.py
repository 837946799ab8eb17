"""Frames out: answers line up with the rows that were asked about."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from doseforest import GeneralizedCausalForest, load_forest
from doseforest.baselines import ConstantCurve
from doseforest.doses.dose_values import Doses
from doseforest.estimator.answer_frames import as_frame, dose_names
from doseforest.evaluation import effect_risk

DOSES = [0.5, 1.0, 2.25]


def draw(n=200):
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(n, 2)), rng.uniform(0, 3, size=n)
    frame = pd.DataFrame(x, columns=["age", "spend"], index=[f"unit {k}" for k in range(n)])
    return frame, 20 + x[:, 0] + dose * (1 + x[:, 1]), dose


@pytest.fixture(scope="module")
def fitted():
    frame, y, dose = draw()
    forest = GeneralizedCausalForest(
        correction="none", outcome_model=LinearRegression(), baseline=1.0, random_state=0
    )
    return forest.fit(frame, y, treatment=dose)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    frame, y, dose = draw(60)
    path = tmp_path_factory.mktemp("stored") / "forest.dose"
    forest = GeneralizedCausalForest(correction="none", baseline=1.0, random_state=0)
    forest.fit(frame, y, treatment=dose).save(path)  # a foreign outcome model has no file
    return path


@pytest.fixture
def framed(fitted):
    def set_to(transform):
        forest = pickle.loads(pickle.dumps(fitted))
        return forest.set_output(transform=transform)

    return set_to


SERIES = {
    "effect": lambda forest, X: forest.effect(X, 2.0),
    "partial_effect": lambda forest, X: forest.partial_effect(X, 0.5, 2.0),
    "elasticity": lambda forest, X: forest.elasticity(X, 2.0),
}


def test_arrays_come_out_by_default_whatever_goes_in(fitted):
    frame, _, _ = draw()
    for table in (frame, frame.to_numpy(), pl.from_pandas(frame)):
        assert type(fitted.dose_response(table, DOSES)) is np.ndarray
        assert type(fitted.effect(table, 2.0)) is np.ndarray


def test_curves_become_a_pandas_frame_with_the_index_of_the_rows(fitted, framed):
    frame = draw()[0].iloc[[7, 3, 100]]
    curves = framed("pandas").dose_response(frame, DOSES)
    assert isinstance(curves, pd.DataFrame)
    assert list(curves.columns) == ["0.5", "1", "2.25"]
    assert list(curves.index) == ["unit 7", "unit 3", "unit 100"]
    assert np.array_equal(curves.to_numpy(), fitted.dose_response(frame, DOSES))
    joined = frame.join(curves)
    assert not joined.isna().to_numpy().any()


def test_curves_become_a_polars_frame(fitted, framed):
    frame = pl.from_pandas(draw()[0])
    curves = framed("polars").dose_response(frame, DOSES)
    assert isinstance(curves, pl.DataFrame)
    assert curves.columns == ["0.5", "1", "2.25"]
    assert np.array_equal(curves.to_numpy(), fitted.dose_response(frame, DOSES))


@pytest.mark.parametrize("name", SERIES)
def test_effects_become_named_series(fitted, framed, name):
    frame, _, _ = draw()
    series = SERIES[name](framed("pandas"), frame)
    assert isinstance(series, pd.Series)
    assert series.name == name
    assert series.index.equals(frame.index)
    assert np.array_equal(series.to_numpy(), SERIES[name](fitted, frame))
    series = SERIES[name](framed("polars"), frame)
    assert isinstance(series, pl.Series)
    assert series.name == name
    assert np.array_equal(series.to_numpy(), SERIES[name](fitted, frame))


def test_supported_doses_become_a_frame_of_booleans(fitted, framed):
    frame, _, _ = draw()
    supported = framed("pandas").supported(frame, DOSES)
    assert set(supported.dtypes) == {np.dtype(bool)}
    assert np.array_equal(supported.to_numpy(), fitted.supported(frame, DOSES))
    assert list(framed("pandas").supported(frame).columns) == dose_names(Doses.of(fitted.doses_))


def test_doses_of_the_grid_name_the_columns_and_own_doses_number_them(fitted, framed):
    frame = draw()[0].iloc[:2]
    forest = framed("pandas")
    grid = forest.dose_response(frame).columns
    assert np.allclose(grid.astype(float), fitted.doses_, rtol=1e-5)
    own = forest.dose_response(frame, [[0.5, 1.0], [2.0, 0.5]])
    assert list(own.columns) == ["dose_0", "dose_1"]
    assert list(forest.dose_response(frame, 2.0).columns) == ["2"]


def test_rows_without_an_index_are_counted(framed):
    x = draw()[0].to_numpy()
    assert framed("pandas").effect(x, 2.0).index.equals(pd.RangeIndex(200))
    assert framed("pandas").effect(pl.from_pandas(draw()[0]), 2.0).index.equals(pd.RangeIndex(200))


def test_an_index_of_several_levels_is_kept(framed):
    frame, _, _ = draw()
    frame.index = pd.MultiIndex.from_arrays([np.arange(200) // 2, np.arange(200) % 2])
    assert framed("pandas").effect(frame, 2.0).index.equals(frame.index)


def test_close_doses_keep_apart():
    assert dose_names(Doses.of([1.0, 1.0 + 1e-9])) == ["1.0", "1.000000001"]
    with pytest.raises(ValueError, match=r"'doses' parameter must not repeat a dose.*Got 1.0 more"):
        as_frame(np.zeros((1, 2)), [1.0, 1.0], np.zeros((1, 1)), "pandas")


def test_clones_keep_the_output_and_default_takes_it_back(fitted):
    forest = clone(fitted).set_output(transform="pandas")
    assert clone(forest)._output == "pandas"
    assert forest.set_output() is forest
    assert forest._output == "pandas"
    assert forest.set_output(transform="default")._output == "default"
    assert "output" not in forest.get_params()


def test_a_pipeline_of_frames_leaves_the_forest_alone(fitted):
    frame, y, dose = draw()
    pipeline = make_pipeline(StandardScaler(), clone(fitted)).set_output(transform="pandas")
    pipeline.fit(frame, y, generalizedcausalforest__treatment=dose)
    assert list(pipeline[-1].feature_names_in_) == ["age", "spend"]
    assert type(pipeline[-1].effect(pipeline[:-1].transform(frame), 2.0)) is np.ndarray


@pytest.mark.parametrize("transform", ["numpy", 3, "Pandas"])
def test_other_outputs_are_refused(fitted, transform):
    message = r"'transform' parameter of set_output must be one of default, pandas, polars or None"
    with pytest.raises(ValueError, match=message):
        clone(fitted).set_output(transform=transform)


def test_a_missing_package_says_its_cure(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"needs polars. Install it with: pip install polars"):
        clone(fitted).set_output(transform="polars")


def test_what_needs_numbers_works_on_frames(fitted, framed):
    frame, y, dose = draw()
    forest = framed("polars")
    assert forest.score(frame, y, treatment=dose) == -effect_risk(fitted, frame, y, dose).value
    constant = ConstantCurve(forest).fit(frame.to_numpy(), y, treatment=dose)
    assert constant.dose_response(frame, DOSES).shape == (200, 3)


def test_a_loaded_forest_answers_in_frames_and_stays_as_it_is(stored):
    frame, _, _ = draw()
    loaded = load_forest(stored)
    effects = loaded.set_output(transform="pandas").effect(frame, 2.0)
    assert effects.index.equals(frame.index)
    assert np.array_equal(effects.to_numpy(), loaded.effect(frame, 2.0))
    assert loaded.set_output() is loaded
    assert loaded.output == "default"


def test_a_distilled_forest_answers_in_frames(fitted):
    frame, _, _ = draw()
    compact = fitted.distill(n_trees=4, verbose=False)
    framed = compact.set_output(transform="pandas")
    assert np.array_equal(framed.dose_response(frame), compact.dose_response(frame))
    assert list(framed.dose_response(frame, DOSES).columns) == ["0.5", "1", "2.25"]
    assert framed.effect(frame, 2.0).name == "effect"
    assert framed.partial_effect(frame, 0.5, 2.0).name == "partial_effect"


def test_frames_come_out_without_what_fitted_the_forest(stored):
    code = (
        "import sys, pandas as pd\n"
        "sys.modules.update(sklearn=None, lightgbm=None)\n"
        "from doseforest import load_forest\n"
        f"forest = load_forest({str(stored)!r}).set_output(transform='pandas')\n"
        "frame = pd.DataFrame({'age': [0.0], 'spend': [1.0]}, index=['me'])\n"
        "print(forest.effect(frame, 2.0).index[0])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout == "me\n", run.stderr
