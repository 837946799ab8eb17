"""Plug points: a kernel over doses and a distance of curves, each one object and one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.special import expit

from doseforest import CurveForest, GeneralizedCausalForest, load_forest
from doseforest.corrections import Paper
from doseforest.doses.smoothing.kernels import KERNELS
from doseforest.engine import CURVE_DISTANCES


@dataclass(frozen=True)
class Logistic:
    """A kernel: the logistic density."""

    name: ClassVar[str] = "logistic"
    support: ClassVar[float] = np.inf
    second_moment: ClassVar[float] = np.pi**2 / 3
    roughness: ClassVar[float] = 1 / 6
    is_density: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True

    def value(self, u):
        return expit(u) * expit(-u)

    def derivative(self, u):
        return self.value(u) * (1 - 2 * expit(u))

    def mass(self, low, high):
        return expit(high) - expit(low)


def first_only(left, right, quadrature):
    """A distance: how far the curves are apart at the first dose."""
    return np.abs(left - right)[:, 0]


def draw(n=240, seed=0):
    rng = np.random.default_rng(seed)
    x, dose = rng.normal(size=(n, 2)), rng.uniform(0, 4, size=n)
    return x, dose, 10 + x[:, 0] + dose * (1 + 0.5 * x[:, 1]) + 0.5 * rng.normal(size=n)


def fitted(**parameters):
    x, dose, y = draw()
    settings = {"n_trees": 40, "outcome_model": "core", "correction": "paper"}
    settings |= {"baseline": 1.0, "random_state": 0, "honesty": "forest", "n_jobs": 1}
    return GeneralizedCausalForest(**{**settings, **parameters}).fit(x, y, treatment=dose)


def effects(forest):
    return forest.effect(draw(30, seed=1)[0], 3.0)


@pytest.mark.parametrize(
    ("parameter", "table", "line", "settings"),
    [
        ("kernel", KERNELS, Logistic(), lambda own: {"kernel": own}),
        ("distance", CURVE_DISTANCES, first_only, lambda own: {"correction": Paper(distance=own)}),
    ],
)
def test_a_forest_takes_it_by_name_and_as_an_object_and_a_file_holds_the_forest(
    monkeypatch, tmp_path, parameter, table, line, settings
):
    with pytest.raises(ValueError, match=f"'{parameter}' parameter.*'toy'"):
        fitted(**settings("toy"))
    monkeypatch.setitem(table, "toy", line)
    named = fitted(**settings("toy"))
    assert (effects(named) == effects(fitted(**settings(line)))).all()
    assert (effects(named) != effects(fitted())).any()
    named.save(tmp_path / "model.dose")
    np.testing.assert_array_equal(effects(load_forest(tmp_path / "model.dose")), effects(named))


def test_a_forest_of_curves_splits_by_a_distance_of_the_table(monkeypatch, tmp_path):
    monkeypatch.setitem(CURVE_DISTANCES, "toy", first_only)
    x = np.arange(80.0)[:, None]
    curves = np.column_stack([x[:, 0] > 50, 9 * (x[:, 0] > 20)]).astype(float)
    settings = {"n_trees": 1, "honesty": "none", "min_node_size": 30, "random_state": 0}
    forest = CurveForest(distance="toy", **settings).fit(x, curves)
    np.testing.assert_array_equal(
        forest.predict(x), CurveForest(distance=first_only, **settings).fit(x, curves).predict(x)
    )
    forest.save(tmp_path / "forest.dose")
    np.testing.assert_array_equal(
        load_forest(tmp_path / "forest.dose").predict(x), forest.predict(x)
    )


@pytest.mark.parametrize("parameter", ["kernel", "distance"])
def test_a_cluster_has_no_parameter_for_it(parameter):
    params = pytest.importorskip("doseforest.spark.params", exc_type=ImportError)
    assert parameter not in {**params.TRAINING, **params.INPUTS}
