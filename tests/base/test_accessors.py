"""Accessors: groups of methods of a fitted forest that are written on higher floors."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from doseforest import EffectForest, GeneralizedCausalForest
from doseforest.base.accessors import Accessor
from doseforest.base.late import late

ON_ESTIMATORS = ("average", "intervals", "plot", "shifts", "tests")
ON_EFFECT_FORESTS = ("intervals", "plot", "shifts")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X, dose = rng.normal(size=(200, 2)), rng.uniform(0, 4, 200)
    forest = GeneralizedCausalForest(
        correction="none",
        outcome_model=LinearRegression(),
        density="none",
        baseline=1.0,
        random_state=0,
        n_jobs=1,
    )
    return forest.fit(X, X[:, 0] + 2 * dose + rng.normal(size=200), treatment=dose)


@pytest.mark.parametrize("name", ON_ESTIMATORS)
def test_before_fit_an_accessor_says_that_it_needs_a_fit(name):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(GeneralizedCausalForest(), name)


@pytest.mark.parametrize(
    ("kind", "names"),
    [(GeneralizedCausalForest, ON_ESTIMATORS), (EffectForest, ON_EFFECT_FORESTS)],
)
def test_editors_see_accessors_and_what_they_do(kind, names):
    assert set(names) <= set(dir(kind))
    for name in names:
        assert getattr(kind, name).__doc__.split("``")[1] == f"forest.{name}"


def test_a_method_does_not_repeat_the_name_of_its_accessor():
    for name in ON_ESTIMATORS:
        words = {name, name.removesuffix("s")}
        methods = [own for own in dir(getattr(GeneralizedCausalForest, name)) if own[0] != "_"]
        repeated = [own for own in methods if words & set(own.split("_"))]
        assert not [own for own in repeated if own != "average_dose_response" or name != "plot"]


def test_forests_with_and_without_their_rows_have_the_accessors_that_make_sense(fitted):
    doses = np.full(5, 1.0)
    X = np.zeros((5, 2))
    for forest in (fitted, fitted.model_):
        np.testing.assert_allclose(forest.shifts.effects(X, doses, 1.0), forest.effect(X, 2.0, 1.0))
    assert not hasattr(fitted.model_, "average")
    assert not hasattr(fitted.model_.shifts, "forest")


def test_an_accessor_cannot_be_replaced(fitted):
    with pytest.raises(AttributeError, match=r"PopulationAverages and cannot be set\. Got 3"):
        fitted.average = 3


def test_accessors_answer_after_pickling_and_are_no_parameters(fitted):
    value = fitted.average.effect(2.0, 1.0).value  # prepares the averages, which travel along
    again = pickle.loads(pickle.dumps(fitted))
    assert again.average.effect(2.0, 1.0).value == value
    assert not set(ON_ESTIMATORS) & set(fitted.get_params())
    with pytest.raises(NotFittedError):
        clone(fitted).average  # noqa: B018


def test_kept_methods_answer_as_their_accessors(fitted):
    assert fitted.average_effect(2.0, 1.0) == fitted.average.effect(2.0, 1.0)
    curve, other = (
        fitted.average_dose_response([1.0, 2.0]),
        fitted.average.dose_response([1.0, 2.0]),
    )
    np.testing.assert_array_equal(curve.values, other.values)


def test_a_second_fit_forgets_the_averages_of_the_first(fitted):
    forest = clone(fitted)
    X, dose = fitted._fitted.rows.X, fitted._fitted.rows.dose.values
    first = forest.fit(X, 2 * dose, treatment=dose).average.effect(2.0, 1.0).value
    second = forest.fit(X, 5 * dose, treatment=dose).average.effect(2.0, 1.0).value
    assert (round(first, 6), round(second, 6)) == (2.0, 5.0)


def test_importing_the_estimator_loads_no_floor_above_it():
    code = (
        "import sys; from doseforest import GeneralizedCausalForest; "
        "floors = ('inference', 'report', 'evaluation', 'files', 'spark', 'policy'); "
        "print([m for m in sys.modules if m.startswith('doseforest.') "
        "and m.split('.')[1] in floors])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"


def test_every_accessor_names_a_class_that_is_there():
    for kind in (GeneralizedCausalForest, EffectForest):
        places = [
            own.place
            for base in kind.__mro__
            for own in vars(base).values()
            if isinstance(own, Accessor)
        ]
        assert places
        for place in places:
            assert isinstance(late(place), type)
