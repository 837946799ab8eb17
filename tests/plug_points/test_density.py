"""Plug point: a density of the dose, in this file, as an object and as one line of the table."""

from __future__ import annotations

import numpy as np
import pytest

from doseforest import GeneralizedCausalForest, load_forest
from doseforest.nuisance.treatment import DENSITIES


class Uniform:
    """A recipe: every dose between the ends alike, whoever the unit is."""

    def fit(self, X, dose, *, support=None, weights=None, seed=0, n_threads=1):
        low, high = (dose.min(), dose.max()) if support is None else (support.low, support.high)
        return FittedUniform(low, high)


class FittedUniform:
    """What it fits."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def density(self, X, doses):
        inside = (doses >= self.low) & (doses <= self.high)
        return np.broadcast_to(inside / (self.high - self.low), (len(X), doses.shape[-1]))


def draw(n=240, seed=0):
    rng = np.random.default_rng(seed)
    x, dose = rng.normal(size=(n, 2)), rng.uniform(0, 4, size=n)
    return x, dose, 10 + x[:, 0] + dose * (1 + 0.5 * x[:, 1]) + 0.5 * rng.normal(size=n)


def fitted(density, **parameters):
    x, dose, y = draw()
    settings = {"n_trees": 40, "outcome_model": "core", "baseline": 1.0, "random_state": 0}
    forest = GeneralizedCausalForest(density=density, n_jobs=1, **{**settings, **parameters})
    return forest.fit(x, y, treatment=dose)


def test_averages_are_weighed_by_an_object():
    forest = fitted(Uniform(), correction="none")
    assert forest.average.treatment_weights.name == "Uniform"
    np.testing.assert_allclose(forest.average.treatment_weights.r, 1.0)  # the dose is uniform
    effect = forest.average_effect(3.0, 1.0)
    assert effect.value == pytest.approx(2.0, abs=4 * effect.standard_error)


def test_a_line_of_the_table_gives_it_a_name(monkeypatch):
    with pytest.raises(ValueError, match=r"'density' parameter.*'uniform'"):
        fitted("uniform")
    monkeypatch.setitem(DENSITIES, "uniform", Uniform)
    named, given = (fitted(density, correction="none") for density in ("uniform", Uniform()))
    assert named.average.treatment_weights.name == "uniform"
    assert named.average_effect(3.0, 1.0).value == given.average_effect(3.0, 1.0).value


@pytest.mark.parametrize("correction", ["stabilized", "kernel", "paper"])
def test_kernel_corrections_divide_by_it_and_a_file_holds_the_forest(correction, tmp_path):
    paper = {"honesty": "forest"} if correction == "paper" else {}
    forest = fitted(Uniform(), correction=correction, **paper)
    forest.save(tmp_path / "model.dose")
    x, _, _ = draw(30, seed=1)
    again = load_forest(tmp_path / "model.dose")
    np.testing.assert_array_equal(again.effect(x, 3.0), forest.effect(x, 3.0))


def test_categories_reach_it_as_numbers():
    x, dose, y = draw()
    x[:, 1] = np.arange(len(x)) % 3
    seen = []

    class Watching(Uniform):
        def fit(self, X, *rows, **settings):
            seen.append(X.shape[1])
            return super().fit(X, *rows, **settings)

    forest = GeneralizedCausalForest(
        correction="none",
        outcome_model="core",
        density=Watching(),
        baseline=1.0,
        categorical_features=[1],
    )
    assert forest.fit(x, y, treatment=dose).average.treatment_weights.name == "Watching"
    assert seen
    assert min(seen) > 2  # indicators and learned numbers


def test_several_components_are_one_after_the_other():
    x, dose, y = draw()
    both = np.column_stack([dose, np.flip(dose)])
    forest = GeneralizedCausalForest(
        correction="none", outcome_model="core", density=Uniform(), baseline=(1.0, 1.0)
    )
    np.testing.assert_allclose(forest.fit(x, y, treatment=both).average.treatment_weights.r, 1.0)


def test_a_cluster_has_no_parameter_for_it():
    params = pytest.importorskip("doseforest.spark.params", exc_type=ImportError)
    assert "density" not in {**params.TRAINING, **params.INPUTS}
