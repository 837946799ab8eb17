"""Plug point: a member of the outcome stack, in this file and one line of the table."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from doseforest import ForestFileError, GeneralizedCausalForest, load_forest
from doseforest.doses.dose_values import Doses
from doseforest.nuisance.outcome import OUTCOME_MEMBERS, OutcomeMember
from doseforest.nuisance.outcome.outcome_models import Stack
from doseforest.nuisance.outcome.outcome_stack import member_fit
from doseforest.nuisance.outcome.stored_outcome_models import (
    read_outcome_model,
    store_outcome_model,
)
from doseforest.spark.members import check_members


def columns_of(X, dose):
    filled = np.nan_to_num(X)
    return np.hstack([np.ones((len(X), 1)), filled, dose, filled * dose[:, :1]])


class Plane:
    """A recipe: least squares on covariates, dose and their products."""

    def fit(self, X, dose, y, *, weights=None, binary=False, seed=0, n_threads=1):
        root = np.ones(len(y)) if weights is None else np.sqrt(weights)
        columns = columns_of(X, Doses.of(dose).table) * root[:, None]
        return FittedPlane(np.linalg.lstsq(columns, y * root, rcond=None)[0])


class FittedPlane:
    """What it fits."""

    def __init__(self, coefficients):
        self.coefficients = coefficients

    def curves(self, X, doses):
        table = np.broadcast_to(np.atleast_2d(doses), (len(X), doses.shape[-1]))
        return np.stack(
            [columns_of(X, Doses.of(own).table) @ self.coefficients for own in table.T], axis=1
        )

    def to_arrays(self):
        return {"shift": 0.0}, {"coefficients": self.coefficients}

    @classmethod
    def from_arrays(cls, values, arrays, n_features):
        if len(arrays["coefficients"]) not in (2 + 2 * n_features, 3 + 2 * n_features):
            raise ValueError("the coefficients do not fit the covariates")
        return cls(arrays["coefficients"] + values["shift"])


@pytest.fixture(name="line")
def _line(monkeypatch):
    monkeypatch.setitem(OUTCOME_MEMBERS, "plane", OutcomeMember(Plane(), "plane", FittedPlane))


def draw(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x, dose = rng.normal(size=(n, 3)), rng.uniform(0, 4, size=n)
    return x, dose, 10 + x[:, 0] + dose * (1 + x[:, 1]) + 0.5 * rng.normal(size=n)


def fitted(outcome_model, n=300, **parameters):
    x, dose, y = draw(n)
    settings = {"n_trees": 40, "correction": "none", "baseline": 1.0, "random_state": 0}
    forest = GeneralizedCausalForest(
        outcome_model=outcome_model, n_jobs=1, **{**settings, **parameters}
    )
    return forest.fit(x, y, treatment=dose)


def answers(forest):
    x, _, _ = draw(50, seed=1)
    return np.stack([forest.dose_response(x, [1.0, 2.5])[:, 1], forest.effect(x, 3.0)])


# --- it joins the stack --------------------------------------------------------------------------


def test_an_object_beside_a_regressor_is_weighed_and_wins_where_it_is_right():
    forest = fitted([Plane(), LinearRegression()])
    assert set(forest.outcome_weights_) == {"Plane", "LinearRegression"}
    assert forest.outcome_weights_["Plane"] > 0.9  # the truth has products
    x, _, _ = draw(50, seed=1)
    np.testing.assert_allclose(forest.effect(x, 3.0, 1.0), 2 * (1 + x[:, 1]), atol=0.3)


@pytest.mark.usefixtures("line")
def test_a_line_of_the_table_gives_it_a_name_beside_the_others():
    named = fitted(["core", "plane"])
    assert list(named.outcome_weights_) == ["core", "plane"]
    by_hand = fitted({"core": "core", "plane": Plane()})
    np.testing.assert_array_equal(answers(named), answers(by_hand))


def test_the_default_members_and_one_more():
    members = member_fit(["stack", Plane()])
    assert list(members.recipes) == [*member_fit("stack").recipes, "Plane"]


def test_a_line_may_make_it_one_of_the_default_members(monkeypatch):
    line = OutcomeMember(Plane(), "plane", FittedPlane, among="default")
    monkeypatch.setitem(OUTCOME_MEMBERS, "plane", line)
    assert list(member_fit("stack").recipes)[-1] == "plane"


def test_objects_of_one_class_are_numbered():
    given = [Plane(), LinearRegression(), Plane()]
    assert list(member_fit(given).recipes) == ["Plane", "LinearRegression", "Plane 2"]


def test_weights_of_rows_reach_it():
    x, dose, y = draw()
    weights = np.where(np.arange(len(y)) < 200, 1.0, 0.0)
    weighted = member_fit(Plane())(x, dose, y, weights=weights)["model"]
    alone = member_fit(Plane())(x[:200], dose[:200], y[:200])["model"]
    np.testing.assert_allclose(weighted.predict(x, dose), alone.predict(x, dose))


def test_its_answers_for_a_binary_outcome_stay_probabilities():
    x, dose, y = draw()
    forest = GeneralizedCausalForest(
        outcome_model=[Plane()], correction="none", density="none", random_state=0
    )
    forest.fit(x, (y > 12).astype(float), treatment=dose)
    curves = forest.dose_response(3 * x)
    assert curves.min() == 0.0
    assert curves.max() == 1.0


def test_a_correction_grows_on_it():
    forest = fitted([Plane(), "core"], n_trees=40, correction="orthogonal", n=200)
    assert len(forest.rounds_) == 2


# --- a file holds it -----------------------------------------------------------------------------


@pytest.mark.usefixtures("line")
@pytest.mark.parametrize("outcome_model", ["plane", {"a plane": Plane(), "core": "core"}])
def test_a_forest_with_it_answers_the_same_after_saving(tmp_path, outcome_model):
    forest = fitted(outcome_model)
    forest.save(tmp_path / "model.dose")
    np.testing.assert_array_equal(answers(load_forest(tmp_path / "model.dose")), answers(forest))


@pytest.mark.usefixtures("line")
def test_categories_and_several_components_are_stored_with_it(tmp_path):
    x, dose, y = draw()
    x[:, 2] = np.arange(len(x)) % 4
    both = np.column_stack([dose, x[:, 0] > 0])
    forest = GeneralizedCausalForest(
        outcome_model=Plane(),
        correction="none",
        density="none",
        baseline=(0.0, 0.0),
        categorical_features=[2],
    )
    forest.fit(x, y, treatment=both).save(tmp_path / "model.dose")
    again = load_forest(tmp_path / "model.dose")
    np.testing.assert_array_equal(again.effect(x, (2.0, 1.0)), forest.effect(x, (2.0, 1.0)))


@pytest.mark.usefixtures("line")
def test_parts_that_do_not_fit_are_a_damaged_file(tmp_path, monkeypatch):
    monkeypatch.setattr(FittedPlane, "to_arrays", lambda self: ({}, {"coefficients": np.ones(2)}))
    fitted(Plane()).save(tmp_path / "model.dose")
    with pytest.raises(ForestFileError, match="do not fit the covariates"):
        load_forest(tmp_path / "model.dose")


@pytest.mark.usefixtures("line")
def test_a_reader_without_the_line_says_what_it_lacks(tmp_path):
    fitted(Plane()).save(tmp_path / "model.dose")
    code = f"from doseforest import load_forest; load_forest({str(tmp_path / 'model.dose')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "unknown kind 'plane'" in done.stderr
    assert "import the module that adds it to OUTCOME_MEMBERS" in done.stderr


def test_without_a_line_saving_names_the_member_and_the_cure(tmp_path):
    forest = fitted({"mine": Plane(), "core": "core"})
    with pytest.raises(TypeError, match=r"member 'mine' of the outcome model.*OUTCOME_MEMBERS"):
        forest.save(tmp_path / "model.dose")
    assert not list(tmp_path.iterdir())
    small = forest.distill(n_trees=5, verbose=False)
    small.save(tmp_path / "small.dose")
    np.testing.assert_array_equal(answers(load_forest(tmp_path / "small.dose")), answers(small))


def test_a_member_without_a_share_needs_no_line():
    x, dose, y = draw()
    members = member_fit({"core": "core", "mine": Plane()})(x, dose, y)
    stack = Stack(members, {"core": 1.0, "mine": 0.0})
    again = read_outcome_model(*store_outcome_model(stack))
    np.testing.assert_array_equal(again.predict(x, dose), stack.predict(x, dose))


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome_model", "told"),
    [
        (["plain"], "'plain'"),
        ([], r"a member at least. Got \[\]"),
        ([3], "Got 3 instead"),
        ({"a": object}, "objects with 'fit'"),
    ],
)
def test_what_is_no_member_is_refused(outcome_model, told):
    with pytest.raises(ValueError, match=f"'outcome_model' parameter.*{told}"):
        fitted(outcome_model)


def test_curves_of_another_shape_are_refused():
    class Short(Plane):
        def fit(self, *rows, **settings):
            plane = super().fit(*rows, **settings)
            plane.curves = lambda X, doses: np.zeros((len(X), 5))
            return plane

    with pytest.raises(ValueError, match=r"curves of shape \(75, 1\). Got \(75, 5\) from.*'mine'"):
        fitted({"mine": Short()})


def test_a_cluster_refuses_it_and_says_what_it_takes():
    with pytest.raises(TypeError, match=r"'outcomeMembers' .* regressors of trees.*Got Plane"):
        check_members([Plane()])


def test_every_line_of_the_table_leads_somewhere():
    for name, line in OUTCOME_MEMBERS.items():
        assert hasattr(line.made(), "fit"), name
