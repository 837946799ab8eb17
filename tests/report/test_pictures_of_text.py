"""Pictures of units whose table has text, categories and gaps."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from doseforest import GeneralizedCausalForest


def frame(rng, n=200):
    table = pd.DataFrame(
        {"city": rng.choice(["Rome", "Oslo", "Lima"], n), "age": rng.normal(size=n)}
    )
    table["plan"] = pd.Categorical(rng.choice(["a", "b"], n))
    table.loc[:5, "city"] = None
    return table


def fitted(two, **parameters):
    rng = np.random.default_rng(0)
    X, dose = frame(rng), rng.uniform(1, 5, (200, 2) if two else 200)
    y = dose.reshape(200, -1)[:, 0] * (1 + (X["city"] == "Rome")) + rng.normal(size=200)
    settings = {"outcome_model": ["core"], "n_trees": 40, "density": "none", "random_state": 0}
    return GeneralizedCausalForest(**settings, n_jobs=1, **parameters).fit(X, y, treatment=dose)


@pytest.fixture(scope="module", name="forest")
def _forest():
    return fitted(two=False, baseline=2.0, inference="bags")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_lines_are_the_curves_of_the_units(forest):
    X = frame(np.random.default_rng(1), 12)
    ax = forest.plot.dose_response(X, doses=[2.0, 3.0, 4.0], color_by="city")
    expected = forest.dose_response(X, [2.0, 3.0, 4.0])
    (lines,) = (own for own in ax.collections if hasattr(own, "get_segments"))
    drawn = np.array([segment[:, 1] for segment in lines.get_segments()])
    np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(expected[:, 0]))


def test_every_picture_of_units_takes_the_frame(forest):
    X = frame(np.random.default_rng(1), 12)
    loaded = forest.model_
    for drawn in (
        forest.plot.effects(X, 4.0),
        forest.plot.effects(X, 4.0, feature="age"),
        forest.plot.effects(X, 4.0, feature="city"),
        forest.plot.dose_response(X, quantiles=(0.1, 0.9)),
        forest.plot.effect_bands(X, units=[0, 3]),
        loaded.plot.dose_response(X),
    ):
        assert drawn is not None


def test_a_surface_takes_the_frame():
    forest = fitted(two=True, baseline=[2.0, 2.0])
    X = frame(np.random.default_rng(1), 12)
    assert forest.plot.surface(X) is not None
    assert forest.plot.surface(X, unit=3) is not None
