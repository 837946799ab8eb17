"""Categories through all of GeneralizedCausalForest: forms, corrections, answers, refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import r2_score

from causal_tables import Blind, Slopes, Table, small
from doseforest.base.dtypes import CATEGORICAL
from doseforest.data.categories import learn_categories
from doseforest.data.feature_table import as_table
from doseforest.estimator.training_rows import check_training
from doseforest.nuisance.treatment.density_registry import WEIGHT_NAMES
from doseforest.nuisance.treatment.encoded_densities import named_weights
from recipes import recipe

DATA = Table()


@pytest.fixture(scope="module", name="fitted")
def _fitted():
    return small().fit(DATA.frame, DATA.y, treatment=DATA.dose)


def explained(forest, data):
    """Share of the outcome's variance that the curves explain at the observed doses."""
    at_dose = forest.dose_response(data.frame, data.dose[:, None])[:, 0]
    return r2_score(data.y, at_dose)


def polars_frame(dtype=pl.String):
    return pl.DataFrame(
        {"age": DATA.x[:, 0], "city": DATA.labels, "income": DATA.x[:, 1]}, nan_to_null=True
    ).with_columns(pl.col("city").cast(dtype))


FORMS = {
    "polars text": (polars_frame(), None),
    "polars categories": (polars_frame(pl.Categorical), None),
    "pandas categories": (DATA.frame.astype({"city": "category"}), None),
    "codes": (DATA.codes, [1]),
    "codes of a frame": (pd.DataFrame(DATA.codes, columns=["age", "city", "income"]), ["city"]),
    "a coded table": (learn_categories(as_table(DATA.codes), [1]), None),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_category_gives_the_same_bits(fitted, form):
    table, declared = FORMS[form]
    other = small(categorical_features=declared).fit(table, DATA.y, treatment=DATA.dose)
    expected = fitted.dose_response(DATA.frame)
    np.testing.assert_array_equal(other.dose_response(table), expected)
    np.testing.assert_array_equal(other.supported(table), fitted.supported(DATA.frame))
    if declared is None and hasattr(table, "columns"):
        np.testing.assert_array_equal(fitted.dose_response(table), expected)


def test_forests_split_on_sets_of_categories():
    forest = small(outcome_model=Blind()).fit(DATA.frame, DATA.y, treatment=DATA.dose)
    rounds = forest.model_.parts[0].correction.rounds
    forests = [own.forest for each in rounds for own in each.forests]
    assert forests
    for own in forests:
        assert own.categories == {1: (0, 1, 2, 3)}
        assert ((own.nodes["flags"] & CATEGORICAL) > 0).sum() == len(own.category_sets) > 0
    levels = pd.DataFrame({"age": 0.0, "city": sorted({*DATA.labels} - {None}), "income": 0.0})
    # True slopes are 0, 2/3, 4/3 and 2.
    assert np.corrcoef(forest.partial_effect(levels, 1.0, 3.0), DATA.slope)[0, 1] > 0.9


def test_labels_are_kept_by_frequency(fitted):
    counts = pd.Series(DATA.labels).value_counts()
    labels = fitted.model_.categories[1]
    assert [counts[label] for label in labels] == sorted(counts, reverse=True)


def test_the_order_of_rows_and_of_columns_and_other_codes_make_no_difference(fitted):
    frame = DATA.frame
    expected = fitted.effect(frame, 3.0)
    np.testing.assert_array_equal(fitted.effect(frame[["city", "income", "age"]], 3.0), expected)
    # Least squares of the regressor may round otherwise in another place of a table.
    np.testing.assert_allclose(fitted.effect(frame[::-1], 3.0), expected[::-1], rtol=1e-9)
    own = (frame.city == "level 002").to_numpy()
    few = frame[own].astype({"city": "category"})  # its only code is 0
    np.testing.assert_allclose(fitted.effect(few, 3.0), expected[own], rtol=1e-9)


def test_labels_that_training_has_not_seen_count_as_missing(fitted):
    frame = DATA.frame[:20]
    unseen, missing = frame.assign(city="nowhere"), frame.assign(city=None)
    for answer in (fitted.dose_response, fitted.supported, lambda X: fitted.elasticity(X, 2.0)):
        np.testing.assert_array_equal(answer(unseen), answer(missing))
        assert np.isfinite(answer(unseen)).all()


CASES = [("orthogonal", "tree"), ("orthogonal", "swap"), ("stabilized", "tree")]
CASES += [("kernel", "swap"), ("none", "tree")]


@pytest.mark.parametrize(("correction", "honesty"), CASES)
def test_every_correction_finds_the_slopes_of_categories(correction, honesty):
    forest = small(correction=recipe(correction, n_rounds=1), honesty=honesty, density="binned")
    forest.fit(DATA.frame, DATA.y, treatment=DATA.dose)
    levels = pd.DataFrame({"age": 0.0, "city": sorted({*DATA.labels} - {None}), "income": 0.0})
    slopes = forest.partial_effect(levels, 1.0, 3.0)
    # True slopes are 0, 2/3, 4/3 and 2; curves of the published correction lean to the mean.
    assert np.corrcoef(slopes, DATA.slope)[0, 1] > (0.9 if correction == "kernel" else 0.98)
    assert np.abs(slopes - 1 - DATA.slope).max() < (0.6 if correction == "kernel" else 0.4)
    assert explained(forest, DATA) > 0.7
    average = forest.average_effect(3.0, 1.0)
    # The average slope is near 1 and its standard error near 0.1.
    assert abs(average.value - 2 * (1 + DATA.slope[DATA.code].mean())) < 0.4
    assert forest.supported(DATA.frame).any(axis=0).all()
    compact = forest.distill(n_trees=10, verbose=False)
    assert np.corrcoef(compact.effect(levels, 3.0, 1.0), slopes)[0, 1] > 0.95
    assert compact.forest.categories == forest.model_.categories


@pytest.mark.parametrize("name", sorted(WEIGHT_NAMES))
def test_every_kind_of_treatment_weights_takes_categories(name):
    rows = check_training(DATA.frame, DATA.y, DATA.dose)
    folds = np.arange(rows.n_rows) % 4
    found = named_weights(name, rows.X, rows.dose.values, folds, rows.category_counts())
    city = pd.get_dummies(DATA.frame.city).to_numpy(float)
    together = (city - city.mean(axis=0)) * (DATA.dose - DATA.dose.mean())[:, None]
    raw, weighed = (np.abs(r @ together).sum() for r in (np.ones(rows.n_rows), found.r))
    # The city moves the dose by half its deviation; weights take that off, a forest's some of it.
    assert weighed < raw * {"none": 1.01, "forest": 0.9}.get(name, 0.8)


def test_weights_are_chosen_among_those_of_categories():
    forest = small(correction="none").fit(DATA.frame, DATA.y, treatment=DATA.dose)
    assert np.isfinite(forest.average_dose_response([1.0, 3.0]).values).all()
    assert {"entropy", "permutation", "location_scale", "binned"} <= {
        *forest.average.treatment_weights.scores
    }


def test_a_density_of_the_users_own_sees_their_codes():
    seen = []

    def density(X, doses):
        seen.append(X)
        return flat(X, doses)

    declared = DATA.codes * [1, 10, 1] + [0, 7, 0]  # codes 7, 17, 27 and 37
    forest = small(
        correction="none", density=density, categorical_features=[1], density_features=[1, 2]
    )
    forest.fit(declared, DATA.y, treatment=DATA.dose).average_effect(3.0)
    np.testing.assert_array_equal(seen[0], declared[:, 1:])


def flat(X, doses):
    return np.full(doses.shape, 1 / np.ptp(DATA.dose))


def test_a_fitted_forest_can_be_pickled():
    forest = small(correction="none", density=flat, categorical_features=[1])
    forest.fit(DATA.codes, DATA.y, treatment=DATA.dose)
    average = forest.average_effect(3.0)
    again = pickle.loads(pickle.dumps(forest))
    assert again.average_effect(3.0) == average
    np.testing.assert_array_equal(again.dose_response(DATA.codes), forest.dose_response(DATA.codes))


def test_a_regressor_of_the_users_own_sees_numbers():
    seen = []

    class Looking(Slopes):
        def fit(self, X, y, sample_weight=None):
            seen.append(X)
            return super().fit(X, y, sample_weight)

    small(outcome_model=Looking(), correction="none").fit(DATA.frame, DATA.y, treatment=DATA.dose)
    n_missing = np.isnan(seen[0]).sum()
    assert n_missing == np.isnan(DATA.x).sum()  # gaps of numbers stay, those of categories do not
    # Two numbers, four labels and "missing" or not, means of outcome and dose, a slope, the dose.
    assert seen[0].shape[1] in (2 + 4 + 3 + 1, 2 + 5 + 3 + 1)


@pytest.mark.parametrize("n_levels", [2, 10, 300])
def test_few_and_many_levels_are_taken(n_levels):
    data = Table(n=600 if n_levels > 100 else 300, n_levels=n_levels, seed=1)
    forest = small().fit(data.frame, data.y, treatment=data.dose)
    assert len(forest.model_.categories[1]) <= n_levels
    assert np.isfinite(forest.dose_response(data.frame)).all()
    assert explained(forest, data) > 0.5


@pytest.mark.parametrize("label", ["here", None])
@pytest.mark.parametrize("alone", [False, True])
def test_a_constant_or_empty_category_says_nothing(label, alone):
    frame = DATA.frame.assign(city=pd.Series([label] * len(DATA.y), dtype="string"))
    frame = frame[["city"]] if alone else frame
    forest = small().fit(frame, DATA.y, treatment=DATA.dose)
    answers = forest.dose_response(frame)
    other = forest.dose_response(frame.assign(city=pd.Series(["there"] * len(frame))))
    assert np.isfinite(answers).all()
    if label is None:
        np.testing.assert_array_equal(answers, other)
    if alone:
        assert np.ptp(answers, axis=0).max() < 1e-9


def test_a_category_among_the_controls_moves_no_tree():
    forest = small(controls=["city"], density_features=["age", "income"])
    forest.fit(DATA.frame, DATA.y, treatment=DATA.dose)
    for own in forest.model_.parts[0].correction.rounds:
        assert all(grown.forest.categories == {} for grown in own.forests)
    moved = DATA.frame.assign(city="level 000")
    np.testing.assert_array_equal(forest.supported(moved), forest.supported(DATA.frame))
    assert (forest.effect(moved, 3.0) != forest.effect(DATA.frame, 3.0)).any()  # the nuisances'


def test_a_binary_outcome_and_a_dose_of_levels_take_categories():
    bought, level = (DATA.y > 12).astype(float), np.clip(np.round(DATA.dose / 2), 0, 2)
    forest = small(n_trees=20, correction=recipe("orthogonal", leaves=(5, 20))).fit(
        DATA.frame, bought, treatment=level
    )
    curves = forest.dose_response(DATA.frame)
    assert curves.shape == (300, 3)
    assert ((curves >= 0) & (curves <= 1)).all()


# --- refusals ------------------------------------------------------------------------------------


def fit(X, **parameters):
    return small(n_trees=4, **parameters).fit(X, DATA.y, treatment=DATA.dose)


REFUSED_TABLES = {
    "mixed labels": (
        lambda: DATA.frame.assign(city=pd.Categorical(["a", 1, "b"] * 100)),
        TypeError,
        r"all text or all numbers\. Got both in column 'city'",
    ),
    "times": (
        lambda: DATA.frame.assign(city=pd.Timestamp("2026-01-01")),
        TypeError,
        "numeric or boolean columns. Got column 'city'",
    ),
    "text in an array": (lambda: DATA.frame.to_numpy(), TypeError, "must hold real numbers"),
}


@pytest.mark.parametrize(
    ("table", "kind", "said"), REFUSED_TABLES.values(), ids=REFUSED_TABLES.keys()
)
def test_tables_that_have_no_categories_in_them_are_refused(table, kind, said):
    with pytest.raises(kind, match=said):
        fit(table())


@pytest.mark.parametrize(
    ("declared", "kind", "said"),
    [
        ([7], ValueError, "'categorical_features' parameter must hold features of X"),
        (["town"], ValueError, "'categorical_features' parameter must hold features of X"),
        ("city", ValueError, "'categorical_features' parameter"),
        ([0], ValueError, r"whole numbers from 0 to 2\^53"),
    ],
)
def test_features_that_cannot_be_categories_are_refused(declared, kind, said):
    with pytest.raises(kind, match=said):
        fit(DATA.codes, categorical_features=declared)


REFUSED_QUERIES = {
    "a column less": (DATA.frame[["age", "city"]], ValueError, r"without \['income'\]"),
    "numbers for text": (DATA.frame.assign(city=1.0), TypeError, "must have text"),
    "text for numbers": (DATA.frame.assign(age="old"), TypeError, "must have numbers"),
    "other labels": (
        DATA.frame.assign(city=pd.Categorical([1, 2, 3] * 100)),
        TypeError,
        "must have text as categories",
    ),
    "fewer features": (DATA.x, ValueError, "must have 3 features"),
}


@pytest.mark.parametrize(
    ("table", "kind", "said"), REFUSED_QUERIES.values(), ids=REFUSED_QUERIES.keys()
)
def test_units_of_another_kind_are_refused(fitted, table, kind, said):
    for answer in (fitted.dose_response, fitted.supported):
        with pytest.raises(kind, match=said):
            answer(table)


def test_text_is_refused_where_training_had_numbers():
    forest = fit(DATA.x)
    with pytest.raises(TypeError, match=r"numeric or boolean columns\. Got column 'age'"):
        forest.dose_response(pd.DataFrame({"age": ["old"], "income": [1.0]}))
