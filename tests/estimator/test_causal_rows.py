"""Weights, groups and missing values through all of GeneralizedCausalForest."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

from causal_tables import Slopes, Table, small
from doseforest.engine.grow_forest import grow_forest
from doseforest.estimator.corrections import kernel_growth, orthogonal
from doseforest.nuisance.treatment.known_densities import Strata
from recipes import recipe

DATA = Table()
N = len(DATA.y)


def answers(forest, frame):
    """What a forest says of some units and of its population, with what is drawn by rows."""
    average = forest.average_dose_response()
    return [
        forest.dose_response(frame),
        forest.outcome_model_.dose_response(frame),
        forest.supported(frame).astype(float),
        average.values,
        average.standard_errors,
        forest.distill(n_trees=5, verbose=False).dose_response(frame),
    ]


# --- weights -------------------------------------------------------------------------------------

CASES = {
    "orthogonal": {"density": "binned"},
    "a stack": {"outcome_model": "stack", "n_folds": 2, "correction": "none", "density": "none"},
    "permutation": {"correction": "none", "density": "permutation"},
    "orthogonal, swapped": {"honesty": "swap", "density": "entropy"},
    "stabilized": {"correction": recipe("stabilized", leaves=(20,)), "density": "location_scale"},
    "kernel": {"correction": "kernel", "density": "gaussian"},
}


@pytest.mark.parametrize("case", CASES)
def test_rows_without_weight_are_as_good_as_absent(case):
    frame = DATA.frame
    weights = np.random.default_rng(1).uniform(0.5, 2, N)
    groups = np.arange(N) // 2
    weights[::5] = 0
    kept = weights > 0
    # Labels, numbers, doses and outcomes that would tear every fit apart.
    frame.loc[~kept, "city"] = [f"odd {row}" for row in range((~kept).sum())]
    frame.loc[~kept, "age"] = 1e9
    y, dose = np.where(kept, DATA.y, -1e9), np.where(kept, DATA.dose, 1e6)
    with_them, without = (
        small(**CASES[case]).fit(
            frame[rows], y[rows], treatment=dose[rows], sample_weight=weights[rows],
            groups=groups[rows],
        )
        for rows in (np.ones(N, bool), kept)
    )  # fmt: skip
    assert with_them.model_.categories == without.model_.categories
    for one, other in zip(*(answers(own, DATA.frame) for own in (with_them, without)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("density", ["values", "strata"])
def test_what_is_known_of_each_row_may_be_said_of_rows_without_weight_too(density):
    weights = np.where(np.arange(N) % 5, 1.0, 0.0)
    kept = weights > 0
    rng = np.random.default_rng(0)
    dose, values = rng.uniform(0, 4, N), rng.uniform(0.2, 0.3, N)
    labels = np.arange(N) % 2

    def fit(rows):
        own = values[rows] if density == "values" else Strata(labels[rows])
        forest = small(correction="none", density=own)
        forest.fit(DATA.x[rows], DATA.y[rows], treatment=dose[rows], sample_weight=weights[rows])
        return forest.average_dose_response().values

    np.testing.assert_array_equal(fit(np.ones(N, bool)), fit(kept))
    few = values[kept] if density == "values" else Strata(labels[kept])
    with pytest.raises(ValueError, match=r"one (value|label) per row \(300\)\. Got shape \(240,\)"):
        small(density=few).fit(DATA.x, DATA.y, treatment=dose, sample_weight=weights)


def repeated(counts):
    """Rows so often as their counts say, with the groups that keep copies together."""
    return np.repeat(np.arange(N), counts)


@pytest.fixture(scope="module", name="counted")
def _counted():
    """A fit with counts as weights, and one with rows so often, on the same grid."""
    counts = np.random.default_rng(2).integers(1, 4, N)
    rows = repeated(counts)
    settings = {"doses": [0.5, 1.0, 2.0, 3.0], "density": "none", "average_bandwidth": 1.0}
    settings |= {"treatment_model": Slopes(), "correction": recipe("orthogonal", n_rounds=1)}
    return [
        small(**settings).fit(X, y, treatment=dose, sample_weight=weights, groups=groups)
        for X, y, dose, weights, groups in (
            (DATA.x, DATA.y, DATA.dose, counts, np.arange(N)),
            (DATA.x[rows], DATA.y[rows], DATA.dose[rows], None, rows),
        )
    ]


def test_counts_as_weights_give_the_models_of_repeated_rows(counted):
    weighted, again = counted
    np.testing.assert_allclose(
        weighted.outcome_model_.dose_response(DATA.x),
        again.outcome_model_.dose_response(DATA.x),
        rtol=1e-9,
    )
    first = np.unique(again._fitted.rows.ids, return_index=True)[1]
    np.testing.assert_allclose(
        weighted._fitted.parts[0].outcome.observed,
        again._fitted.parts[0].outcome.observed[first],
        rtol=1e-9,
    )
    one, other = weighted.model_.support, again.model_.support
    assert (one.low, one.high) == (other.low, other.high)
    np.testing.assert_allclose(
        weighted._fitted.plan.basis.evaluate(DATA.dose),
        again._fitted.plan.basis.evaluate(DATA.dose),
    )


def test_counts_as_weights_give_nearly_the_forest_of_repeated_rows(counted):
    one, other = (own.effect(DATA.x, 3.0) for own in counted)
    # Leaves count rows, not weights, and quantiles move a little: another forest of the same rows.
    assert np.corrcoef(one, other)[0, 1] > 0.98
    assert np.abs(one - other).mean() < 0.1 * one.std()
    first, second = (own.average_dose_response() for own in counted)
    np.testing.assert_allclose(first.values, second.values, atol=0.1 * first.standard_errors.min())
    np.testing.assert_allclose(first.standard_errors, second.standard_errors, rtol=0.1)


def test_the_scale_of_weights_makes_no_difference():
    weights = np.random.default_rng(1).integers(1, 4, N)
    one, other = (
        small(correction=recipe("orthogonal", n_rounds=1)).fit(
            DATA.frame, DATA.y, treatment=DATA.dose, sample_weight=own
        )
        for own in (weights, 4.0 * weights)
    )
    np.testing.assert_array_equal(one.dose_response(DATA.frame), other.dose_response(DATA.frame))


# --- groups --------------------------------------------------------------------------------------

GROUPS = np.random.default_rng(3).integers(0, 60, N)


def memorising():
    """A regressor that answers with what it has seen, wherever it has seen a row."""
    return RandomForestRegressor(n_estimators=5, bootstrap=False, random_state=0)


def filled(frame):
    return frame.fillna({"age": 0.0, "income": 0.0})


@pytest.mark.parametrize("honesty", ["tree", "swap"])
def test_no_outcome_of_a_group_is_in_a_prediction_for_its_rows(honesty):
    """Whatever the outcome model and its encoder learn, of a group they learn it from others."""
    settings = {"outcome_model": memorising(), "correction": "none", "honesty": honesty}
    frame, group = filled(DATA.frame), GROUPS[0] == GROUPS
    changed = np.where(np.arange(N) == np.flatnonzero(group)[0], DATA.y + 50, DATA.y)
    before, after = (
        small(**settings).fit(frame, y, treatment=DATA.dose, groups=GROUPS)
        for y in (DATA.y, changed)
    )
    for one, other in zip(before._fitted.parts, after._fitted.parts, strict=True):
        seen = one.outcome.observed
        np.testing.assert_array_equal(seen[group], other.outcome.observed[group])
        assert one.rows.grows is not None or (seen != other.outcome.observed).any()
    doses = np.array([1.0, 3.0])
    np.testing.assert_array_equal(
        before._fitted.parts[0].outcome.curves_out_of_fold(before._fitted.rows.X, doses)[group],
        after._fitted.parts[0].outcome.curves_out_of_fold(after._fitted.rows.X, doses)[group],
    )


@pytest.mark.parametrize("correction", ["orthogonal", "stabilized", "kernel"])
def test_out_of_bag_is_out_of_every_tree_that_saw_a_row_of_the_group(correction, monkeypatch):
    grown = []

    def remembered(rows, values, settings, **named):
        grown.append((grow_forest(rows, values, settings, **named), rows, values, settings, named))
        return grown[-1][0]

    for home in (orthogonal, kernel_growth):
        monkeypatch.setattr(home, "grow_forest", remembered)
    forest = small(correction=recipe(correction, n_rounds=1, leaves=(10,)), density="binned")
    forest.fit(DATA.frame, DATA.y, treatment=DATA.dose, groups=GROUPS)
    assert grown
    group = np.flatnonzero(np.bincount(GROUPS).argmax() == GROUPS)
    turned = np.arange(N)
    turned[group] = group[::-1]  # rows of a group change places: no largest value changes
    for once, rows, values, settings, named in grown:
        channels = named["leaf_channels"][turned]
        again = grow_forest(rows, values[turned], settings, **{**named, "leaf_channels": channels})
        before, after = once.average_oob(rows.table), again.average_oob(rows.table)
        np.testing.assert_array_equal(before[group], after[group])
        assert (np.delete(before, group, axis=0) != np.delete(after, group, axis=0)).any()


# --- missing values ------------------------------------------------------------------------------


@pytest.mark.parametrize("correction", ["orthogonal", "stabilized", "kernel", "none"])
def test_columns_without_a_value_and_gaps_only_in_queries_are_answered(correction):
    frame = DATA.frame.assign(
        nothing=np.nan,
        none=pd.Series([None] * N, dtype="string"),
        full=np.random.default_rng(0).normal(size=N),
        shop=[f"shop {row % 3}" for row in range(N)],
    )
    settings = {"correction": recipe(correction, n_rounds=1), "density": "entropy"}
    if correction == "kernel":
        settings["density"] = "gaussian"
    if correction == "none":
        settings |= {"outcome_model": "stack", "n_folds": 2}
    forest = small(**settings).fit(frame, DATA.y, treatment=DATA.dose)
    gaps = frame.assign(full=np.nan, shop=None, age=np.nan)
    given = frame.assign(nothing=1.0, none="here")
    for table in (frame, gaps, given):
        assert np.isfinite(forest.dose_response(table)).all()
        assert forest.supported(table).shape == (N, len(forest.doses_))
        compact = forest.distill(n_trees=3, verbose=False)
        assert np.isfinite(compact.dose_response(table)).all()
    np.testing.assert_array_equal(
        forest.dose_response(given.assign(nothing=np.nan)), forest.dose_response(frame)
    )
    assert np.isfinite(forest.average_dose_response().values).all()
