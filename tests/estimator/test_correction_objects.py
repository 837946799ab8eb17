"""Corrections as objects: defaults by name, checked fields, searches, and one of a user's own."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from doseforest import GeneralizedCausalForest, load_forest
from doseforest.corrections import (
    CORRECTIONS,
    CorrectionRecipe,
    Orthogonal,
    Paper,
    PublishedKernel,
    Stabilized,
)
from doseforest.estimator.corrections.fitted_correction import FittedCorrection
from doseforest.estimator.corrections.stored_corrections import (
    STORED_CORRECTIONS,
    StoredCorrection,
)


def rows(n=160):
    rng = np.random.default_rng(0)
    X, dose = rng.normal(size=(n, 2)), rng.uniform(0, 4, n)
    return X, dose, X[:, 0] + dose * (2 + X[:, 1]) + rng.normal(size=n)


def small(**parameters):
    settings = {"n_trees": 8, "outcome_model": LinearRegression(), "density": "gaussian"}
    settings |= {"baseline": 2.0, "random_state": 0, "n_jobs": 1}
    return GeneralizedCausalForest(**{**settings, **parameters})


def fitted(**parameters):
    X, dose, y = rows()
    return small(**parameters).fit(X, y, treatment=dose)


@pytest.mark.parametrize("name", ["orthogonal", "stabilized", "kernel", "none"])
def test_a_name_stands_for_the_object_with_its_defaults(name):
    X = rows()[0]
    named, given = (fitted(correction=own).effect(X, 3.0) for own in (name, CORRECTIONS[name]))
    np.testing.assert_array_equal(named, given)


def test_fields_of_a_correction_change_what_it_does():
    forest = fitted(correction=Orthogonal(n_rounds=1, leaf_sizes=(40, 10)))
    assert len(forest.rounds_) == 1
    assert forest._fitted.plan.growth.n_trees == 4  # two sizes share eight trees
    kernel = fitted(correction=PublishedKernel(bandwidth=0.7))
    assert kernel.rounds_[0]["bandwidth"] == 0.7


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Orthogonal(n_rounds=0), r"'n_rounds' parameter of Orthogonal .* Got 0 instead"),
        (lambda: Orthogonal(leaf_sizes=(5, 0)), r"'leaf_sizes' .* ints of at least 1. Got \(5, 0"),
        (lambda: Orthogonal(leaf_sizes=[]), r"'leaf_sizes' .* Got \[\] instead"),
        (lambda: Stabilized(bandwidth=-1.0), r"'bandwidth' parameter of Stabilized .* Got -1.0"),
        (lambda: Stabilized(distance="l3"), r"'distance' parameter of Stabilized .* Got 'l3'"),
        (lambda: PublishedKernel(leaf_size=0), r"'leaf_size' parameter of PublishedKernel .* 0"),
        (lambda: Paper(zeta=-1), r"'zeta' parameter of Paper .* Got -1 instead"),
        (lambda: fitted(correction=Orthogonal), "'correction' parameter must be one of orthogonal"),
    ],
)
def test_errors_name_field_rule_and_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_corrections_are_values():
    one = Orthogonal(leaf_sizes=[50, 5])
    assert one == Orthogonal(leaf_sizes=(5, 50))
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(FrozenInstanceError):
        one.n_rounds = 3


def test_searches_set_fields_of_the_correction():
    forest = GeneralizedCausalForest()
    assert forest.get_params()["correction__n_rounds"] == 2
    assert "correction__n_rounds" not in forest.get_params(deep=False)
    forest.set_params(correction__n_rounds=1, n_trees=8)
    assert forest.correction == Orthogonal(n_rounds=1)
    assert clone(forest).correction == Orthogonal(n_rounds=1)
    forest.set_params(correction="paper", correction__zeta=0.5)
    assert forest.correction == Paper(zeta=0.5)
    with pytest.raises(ValueError, match=r"must have the field that is set.* Got 'n_rounds'"):
        forest.set_params(correction__n_rounds=1)


def test_paper_mode_takes_fields_of_its_correction():
    forest = GeneralizedCausalForest.paper(criterion="pdrf", leaf_size=7, n_trees=3)
    assert forest.correction == Paper(
        criterion="pdrf", leaf_size=7, zeta=1.0, bandwidth="rule_of_thumb"
    )
    assert (forest.n_trees, forest.honesty) == (3, "forest")


# --- a correction of a user's own, in one place ---------------------------------------------------


@dataclass(frozen=True)
class Shifted:
    """Curves of the outcome model, raised by a constant."""

    by: float

    def curves(self, outcome, X, splits, doses, n_threads):
        return outcome.curves(X, doses, n_threads=n_threads) + self.by

    def observed(self, dose):
        return np.full(len(dose), self.by)

    def forest_shares(self):
        return []

    def with_forests(self, change):
        return self


@dataclass(frozen=True)
class Added:
    by: float

    def curves(self, doses):
        return np.full((1, len(doses)), self.by)

    def observed(self, dose):
        return np.full(len(dose), self.by)


@dataclass(frozen=True)
class MeanResidual(CorrectionRecipe):
    """Add a share of the mean residual to every curve."""

    share: float = 1.0

    name: ClassVar[str] = "mean residual"

    def n_forests(self, plan):
        return 0

    def fit(self, rows, outcome, plan):
        by = self.share * float(np.mean(rows.y - outcome.observed))
        return FittedCorrection(Shifted(by), Added(by), ({"by": by},))


class Flat(LinearRegression):
    """An outcome model that is wrong about the level."""

    def predict(self, X):
        return super().predict(X) - 3.0


def test_a_correction_of_a_users_own_is_fitted_and_cloned():
    X = rows()[0]
    forest = fitted(correction=MeanResidual(), outcome_model=Flat())
    alone = fitted(correction="none", outcome_model=Flat())
    np.testing.assert_allclose(forest.dose_response(X) - alone.dose_response(X), 3.0, atol=0.3)
    assert forest.rounds_[0]["by"] == pytest.approx(3.0, abs=0.3)
    assert "mean residual" in str(forest.summary())
    assert clone(forest).set_params(correction__share=0.5).correction == MeanResidual(0.5)
    assert np.isfinite(forest.average_effect(3.0).value)


def test_a_correction_of_a_users_own_is_saved_where_it_is_registered(tmp_path, monkeypatch):
    X = rows()[0]
    forest = fitted(correction=MeanResidual(), outcome_model="stack")
    path = tmp_path / "forest.dose"
    with pytest.raises(TypeError, match=r"correction must be one of .* to be stored.* Got Shifted"):
        forest.save(path)
    stored = StoredCorrection(
        Shifted,
        store=lambda correction, prefix: ({"by": correction.by}, {}),
        read=lambda values, arrays, prefix, n_features: Shifted(values["by"]),
        forests=lambda correction: [],
    )
    monkeypatch.setitem(STORED_CORRECTIONS, "mean residual", stored)
    forest.save(path)
    np.testing.assert_array_equal(load_forest(path).dose_response(X), forest.dose_response(X))


def test_an_object_without_the_members_is_refused_with_the_one_that_lacks():
    class Half:
        name = "half"

        def fit(self, rows, outcome, plan):
            return None

    with pytest.raises(ValueError, match=r"'correction' parameter .* without 'n_sizes' instead"):
        fitted(correction=Half())
