"""Joint doses, categories, weights, known assignments and paper mode, each with the others."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from doseforest import GeneralizedCausalForest, load_forest
from doseforest.evaluation import effect_importance
from doseforest.nuisance.treatment import Strata

N = 240
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"a": RNG.normal(size=N), "b": RNG.normal(size=N), "c": RNG.choice(list("xyz"), N)}
)
PAIRS = RNG.uniform(size=(N, 2))
DOSE = 4 * PAIRS[:, 0]
Y = TABLE["a"] + 3 * PAIRS[:, 0] * (TABLE["c"] == "x") + PAIRS[:, 1] + 0.3 * RNG.normal(size=N)
WEIGHTS = np.where(np.arange(N) < 20, 0.0, 1.0)
HALVES = np.where(np.arange(N) % 2, "u", "v")

pytestmark = pytest.mark.filterwarnings(
    "ignore::doseforest.doses.grids.BaselineWarning",
    "ignore::doseforest.estimator.unit_support.OverlapWarning",
    "ignore:About .* rows are in every tree",
)


def fit(treatment, X=TABLE, y=Y, paper=False, sample_weight=None, groups=None, **parameters):
    make = GeneralizedCausalForest.paper if paper else GeneralizedCausalForest
    defaults = {"n_trees": 40, "outcome_model": LinearRegression(), "random_state": 0}
    forest = make(**{**defaults, **parameters})
    return forest.fit(X, y, treatment=treatment, sample_weight=sample_weight, groups=groups)


def test_joint_doses_and_categories_go_through_a_file(tmp_path):
    forest = fit(PAIRS, outcome_model="stack")
    forest.save(tmp_path / "forest.dose")
    again = load_forest(tmp_path / "forest.dose")
    assert np.array_equal(again.effect(TABLE, [0.8, 0.8]), forest.effect(TABLE, [0.8, 0.8]))
    small = forest.distill(n_trees=5, verbose=False)
    small.save(tmp_path / "small.dose")
    served = load_forest(tmp_path / "small.dose")
    assert np.array_equal(served.effect(TABLE, [0.8, 0.8]), small.effect(TABLE, [0.8, 0.8]))


@pytest.mark.parametrize("correction", ["none", "orthogonal", "stabilized", "kernel"])
def test_three_components_are_answered_by_every_correction(correction):
    doses = np.column_stack([PAIRS, RNG.uniform(size=N)])
    forest = fit(doses, correction=correction)
    effects = forest.effect(TABLE, [0.8, 0.8, 0.2], [0.2, 0.8, 0.2])
    slope = forest.partial_effect(TABLE, [0.2, 0.8, 0.2], [0.8, 0.8, 0.2])
    assert np.allclose(effects, 0.6 * slope)
    assert np.isfinite(forest.average_effect([0.8, 0.8, 0.2]).value)


def test_rows_of_weight_zero_are_absent_from_joint_doses_too():
    kept = WEIGHTS > 0
    weighted = fit(PAIRS, sample_weight=WEIGHTS, groups=np.arange(N))
    alone = fit(PAIRS[kept], X=TABLE[kept], y=Y[kept], groups=np.arange(N)[kept])
    assert np.array_equal(weighted.dose_response(TABLE), alone.dose_response(TABLE))


@pytest.mark.parametrize(
    "density",
    [
        Strata(HALVES),
        lambda X, doses: np.full(doses.shape, 0.25),
        np.where(np.arange(N) < 120, 0.25, np.nan),
        Strata(np.where(np.arange(N) < 120, "u", None)),
    ],
    ids=["strata", "function", "partly known", "partly strata"],
)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "some of weight 0"])
def test_known_assignments_stand_beside_categories_and_weights(density, weights):
    forest = fit(DOSE, density=density, sample_weight=weights)
    # Effects of 3 / 4 a unit of dose for a third of the rows, over 2 units: .5, plus noise of
    # standard deviation about .06.
    assert abs(forest.average_effect(3.0, 1.0).value - 0.5) < 0.25


def test_swapped_halves_know_joint_doses_and_known_densities():
    assert np.isfinite(fit(PAIRS, honesty="swap").effect(TABLE, [0.8, 0.8])).all()
    known = fit(DOSE, honesty="swap", density=lambda X, doses: np.full(doses.shape, 0.25))
    assert known.treatment_means_ == "known"


@pytest.mark.parametrize("density", ["location_scale", Strata(HALVES)], ids=["fitted", "strata"])
def test_paper_mode_takes_categories_and_weights(density):
    forest = fit(DOSE, paper=True, n_trees=20, density=density, sample_weight=WEIGHTS)
    assert np.isfinite(forest.effect(TABLE, 3.0)).all()


def test_paper_mode_is_for_one_component():
    with pytest.raises(ValueError, match=r"must have one component for correction='paper'. Got 2"):
        fit(PAIRS, paper=True)


def test_binary_outcomes_of_joint_doses_stay_probabilities():
    forest = fit(PAIRS, y=(Y.mean() < Y).astype(int))
    curves = forest.dose_response(TABLE)
    assert curves.min() >= 0
    assert curves.max() <= 1


def test_joint_forests_are_copied_and_cloned():
    forest = fit(PAIRS, correction="none")
    answers = forest.effect(TABLE, [0.8, 0.8])
    for twin in (copy.deepcopy(forest), pickle.loads(pickle.dumps(forest))):
        assert np.array_equal(twin.effect(TABLE, [0.8, 0.8]), answers)
    again = clone(forest).fit(TABLE, Y, treatment=PAIRS)
    assert np.array_equal(again.effect(TABLE, [0.8, 0.8]), answers)


def test_effects_on_tables_with_text_are_scored():
    forest = fit(DOSE)
    flat = fit(DOSE, y=np.roll(Y, 1), correction="none")
    assert forest.score(TABLE, Y, treatment=DOSE) > flat.score(TABLE, Y, treatment=DOSE)


def test_a_missing_stratum_is_missing_however_it_is_written():
    kinds = ["u"] * 120
    known = {
        mark: fit(
            DOSE, density=Strata(kinds + [mark] * 120), sample_weight=WEIGHTS
        ).treatment_means_
        for mark in (None, float("nan"))
    }
    assert set(known.values()) == {"partly known"}


def test_importance_sees_categories_as_a_fit_does():
    table = TABLE.assign(c=TABLE["c"].where(np.arange(N) % 10 > 0))  # some are missing
    forest = fit(DOSE, X=table, treatment_model=LinearRegression())
    importance = effect_importance(forest, "permutation", n_repeats=1)
    assert np.isfinite(importance.values).all()
