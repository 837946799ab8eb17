"""Categorical features from the table to the prediction: every form, every label, every refusal."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from doseforest import CurveForest, load_forest
from doseforest.base.dtypes import CATEGORICAL
from doseforest.data.categories import CodedTable, learn_categories, recoded
from doseforest.data.feature_table import ArrayTable, as_table, categories_of
from doseforest.engine import TreatmentGuard
from forests import assert_same_bits, single_tree

RNG = np.random.default_rng(0)
N_ROWS, N_CITIES, N_SHOPS = 600, 6, 20
CITY = RNG.choice(N_CITIES, size=N_ROWS, p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05])
SHOP = RNG.integers(0, N_SHOPS, N_ROWS)
AGE = RNG.normal(size=N_ROWS)
NO_CITY, NO_SHOP = RNG.random(N_ROWS) < 0.1, RNG.random(N_ROWS) < 0.1
EFFECTS = RNG.normal(size=(N_CITIES + N_SHOPS, 3))
CURVES = EFFECTS[CITY] + EFFECTS[N_CITIES + SHOP] + 0.3 * RNG.normal(size=(N_ROWS, 3))
# Text whose order is that of the codes, so that ties of frequency are broken alike.
CITY_NAMES = np.array([f"city {code}" for code in range(N_CITIES)])
SHOP_NAMES = np.array([f"shop {code:02d}" for code in range(N_SHOPS)])
CITIES = [None if gap else name for gap, name in zip(NO_CITY, CITY_NAMES[CITY], strict=True)]
SHOPS = [None if gap else name for gap, name in zip(NO_SHOP, SHOP_NAMES[SHOP], strict=True)]
CODES = np.stack([np.where(NO_CITY, np.nan, CITY), AGE, np.where(NO_SHOP, np.nan, SHOP)], axis=1)
LABELS = {"city": CITIES, "age": AGE, "shop": SHOPS}


def forest(**changes):
    options = {"n_trees": 8, "min_node_size": 5, "random_state": 0, "n_jobs": 1}
    return CurveForest(**(options | changes))


def pandas_as(dtype):
    frame = pd.DataFrame({"city": pd.Series(CITIES, dtype=object), "age": AGE, "shop": SHOPS})
    return frame.astype({"city": dtype, "shop": dtype})


def polars_as(dtype):
    return pl.DataFrame(LABELS).with_columns(pl.col("city", "shop").cast(dtype))


FRAMES = {
    "pandas objects": lambda: pandas_as(object),
    "pandas text": lambda: pandas_as("string"),
    "pandas categories": lambda: pandas_as("category"),
    "pandas ordered categories": lambda: pd.DataFrame(LABELS).assign(
        city=pd.Categorical(CITIES, categories=CITY_NAMES[::-1], ordered=True)
    ),
    "pandas unused categories": lambda: pd.DataFrame(LABELS).assign(
        city=pd.Categorical(CITIES, categories=["nowhere", *CITY_NAMES])
    ),
    "polars text": lambda: pl.DataFrame(LABELS),
    "polars categories": lambda: polars_as(pl.Categorical),
    "polars enum": lambda: pl.DataFrame(LABELS).with_columns(
        pl.col("city").cast(pl.Enum(CITY_NAMES[::-1].tolist()))
    ),
    "pyarrow text": lambda: pa.table({**LABELS, "age": pa.array(AGE)}),
    "pyarrow dictionaries": lambda: pa.table(
        {**LABELS, "age": pa.array(AGE), "shop": pa.array(SHOPS).dictionary_encode()}
    ),
}
NUMBERS = {
    "an array": lambda: (CODES, [0, 2]),
    "lists": lambda: (CODES.tolist(), (0, 2)),
    "blocks": lambda: (ArrayTable(CODES, block_rows=97), [2, 0]),
    "pandas numbers": lambda: (pd.DataFrame(CODES, columns=[*LABELS]), ["shop", 0]),
    "polars numbers": lambda: (pl.DataFrame(CODES, schema=[*LABELS]), np.array(["city", "shop"])),
    "pandas categories of numbers": lambda: (
        pd.DataFrame(CODES, columns=[*LABELS]).astype({"city": "category", "shop": "category"}),
        None,
    ),
}


@pytest.fixture(scope="module", name="fitted")
def _fitted():
    return forest().fit(pd.DataFrame(LABELS), CURVES)


def test_the_forest_in_question_splits_on_categories_both_few_and_many(fitted):
    nodes = fitted.forest_.nodes
    by_set = (nodes["flags"] & CATEGORICAL) > 0
    assert set(nodes["feature"][by_set]) == {0, 2}
    assert by_set.sum() == len(fitted.forest_.category_sets) > 20


@pytest.mark.parametrize("form", FRAMES)
def test_every_form_of_text_gives_the_same_forest(fitted, form):
    frame = FRAMES[form]()
    other = forest().fit(frame, CURVES)
    assert_same_bits(fitted.forest_, other.forest_)
    assert other.forest_.categories == fitted.forest_.categories
    expected = fitted.predict(pd.DataFrame(LABELS))
    np.testing.assert_array_equal(other.predict(frame), expected)
    np.testing.assert_array_equal(fitted.predict(frame), expected)


@pytest.mark.parametrize("form", NUMBERS)
def test_every_form_of_codes_gives_the_forest_of_the_labels(fitted, form):
    table, declared = NUMBERS[form]()
    other = forest(categorical_features=declared).fit(table, CURVES)
    assert_same_bits(fitted.forest_, other.forest_)
    assert set(other.forest_.categories) == {0, 2}
    np.testing.assert_array_equal(other.predict(table), fitted.predict(pd.DataFrame(LABELS)))
    np.testing.assert_array_equal(other.predict(CODES), other.predict(table))


def test_labels_are_in_the_order_of_their_frequency_then_their_own():
    table = pd.DataFrame({"c": ["b", "z", "a", None, "z", "é", "b", "é", "y"]})
    coded = learn_categories(as_table(table, with_categories=True))
    assert categories_of(coded) == {0: ("b", "z", "é", "a", "y")}
    codes = np.concatenate([block[:, 0] for _, block in coded.blocks()])
    np.testing.assert_array_equal(codes, [0, 1, 3, np.nan, 1, 2, 0, 2, 4])


def test_what_is_coded_is_not_coded_again_and_a_view_of_the_users_array_is_left_alone():
    codes = np.array([[5.0], [3.0], [5.0]])
    table = learn_categories(as_table(codes), [0])
    assert isinstance(table, CodedTable)
    assert recoded(table, {0: (5, 3)}) is table
    assert [block.tolist() for _, block in table.blocks()] == [[[0.0], [1.0], [0.0]]]
    np.testing.assert_array_equal(codes, [[5], [3], [5]])


def test_columns_in_another_order_are_found_by_name(fitted):
    frame = pd.DataFrame(LABELS)
    shuffled = frame[["shop", "city", "age"]].assign(more="text that nobody asked for")
    np.testing.assert_array_equal(fitted.predict(shuffled), fitted.predict(frame))
    np.testing.assert_array_equal(fitted.predict_oob(shuffled), fitted.predict_oob(frame))
    np.testing.assert_array_equal(fitted.apply(shuffled), fitted.apply(frame))


def test_the_rows_that_fill_leaves_fall_as_the_same_rows_do_when_predicted(fitted):
    frame = pd.DataFrame(LABELS)
    weights = fitted.forest_weights(frame)
    # Leaf sums are float32.
    np.testing.assert_allclose(weights @ CURVES, fitted.predict(frame), rtol=0, atol=1e-5)


def test_a_label_that_training_has_not_seen_goes_where_missing_values_go(fitted):
    frame = pd.DataFrame(LABELS)
    unseen, missing = frame.assign(city="nowhere"), frame.assign(city=None)
    np.testing.assert_array_equal(fitted.predict(unseen), fitted.predict(missing))
    assert not np.array_equal(fitted.predict(unseen), fitted.predict(frame))


@pytest.mark.parametrize("like", ["a", "b"])
def test_the_direction_of_missing_values_is_learned(like):
    labels = np.array(["a", "b"])[np.arange(90) % 3 % 2]
    curves = (labels == "a").astype(float)
    known = pd.DataFrame({"c": [*labels, *[None] * 10]})
    y = np.append(curves, np.full(10, float(like == "a")))
    tree = single_tree(min_node_size=1).fit(known, y)
    for label in (None, "never seen"):
        assert tree.predict(pd.DataFrame({"c": pd.Series([label], dtype=object)})) == (like == "a")


def test_without_missing_values_an_unseen_label_goes_with_most_rows():
    labels = np.repeat(["a", "b", "c"], [20, 15, 15])
    y = (labels == "a").astype(float)
    tree = single_tree(min_node_size=1).fit(pd.DataFrame({"c": labels}), y)
    assert tree.predict(pd.DataFrame({"c": ["d"]})) == 0.0


@pytest.mark.parametrize("memory_map", [False, True])
def test_a_loaded_forest_maps_labels_itself(fitted, tmp_path, memory_map):
    fitted.save(tmp_path / "model.dose")
    loaded = load_forest(tmp_path / "model.dose", memory_map=memory_map)
    assert_same_bits(loaded, fitted.forest_)
    assert loaded.categories == fitted.forest_.categories
    frame = pl.DataFrame(LABELS).select("shop", "age", "city")
    np.testing.assert_array_equal(loaded.predict(frame), fitted.predict(frame))
    np.testing.assert_array_equal(loaded.predict_oob(frame), fitted.predict_oob(frame))


def test_a_forest_of_codes_is_loaded_with_its_codes(tmp_path):
    coded = forest(categorical_features=[0, 2]).fit(CODES, CURVES)
    coded.save(tmp_path / "model.dose")
    loaded = load_forest(tmp_path / "model.dose")
    np.testing.assert_array_equal(loaded.predict(CODES), coded.predict(CODES))


def test_a_column_of_missing_labels_alone_is_a_column_of_missing_values():
    frame = pd.DataFrame({"c": pd.Series([None] * 40, dtype="category"), "x": np.arange(40.0)})
    tree = single_tree(min_node_size=5).fit(frame, np.arange(40.0))
    assert tree.forest_.categories == {0: ()}
    np.testing.assert_array_equal(tree.predict(frame.assign(c="a")), tree.predict(frame))


def test_no_feature_declared_is_none():
    plain, none = (forest(categorical_features=value).fit(CODES, CURVES) for value in (None, []))
    assert_same_bits(plain.forest_, none.forest_)


def column(values):
    return pd.DataFrame({"c": values, "x": np.arange(len(values), dtype=float)})


DAY = datetime.date(2024, 2, 29)
FIT_REFUSALS = {
    "negative codes": ([[0.0], [-1.0]], [0], ValueError, "whole numbers.*Got -1.0 in row 1, col"),
    "fractions": ([[0.5], [1.0]], [0], ValueError, "whole numbers.*Got 0.5 in row 0, column 0"),
    "too large codes": ([[2.0**54]], [0], ValueError, "from 0 to 2.53"),
    "a place beyond": ([[1.0]], [1], ValueError, "'categorical_features'.*Got 1 instead"),
    "an unknown name": (column([1, 2]), ["d"], ValueError, "'categorical_features'.*Got 'd'"),
    "a name alone": (column([1, 2]), "c", ValueError, "'categorical_features'"),
    "mixed labels": (
        column(pd.Categorical(["a", 1], categories=["a", 1])),
        None,
        TypeError,
        "all text or all numbers. Got both in column 'c'",
    ),
    "mixed objects": (
        column(pd.Series(["a", 1], dtype=object)),
        None,
        TypeError,
        "'c' of type Obj",
    ),
    "dates": (column(pd.Categorical([DAY])), None, TypeError, "text or numbers.*type date"),
}


@pytest.mark.parametrize(
    ("table", "declared", "kind", "said"), FIT_REFUSALS.values(), ids=FIT_REFUSALS.keys()
)
def test_what_are_no_categories_is_refused_by_name_rule_and_value(table, declared, kind, said):
    with pytest.raises(kind, match=said):
        forest(categorical_features=declared).fit(table, np.zeros(len(table)))


QUERY_REFUSALS = {
    "numbers for text": (CODES, TypeError, "text where the training table had.*column"),
    "text for numbers": (
        pd.DataFrame(LABELS).assign(age="old"),
        TypeError,
        "Got labels in .*'age'",
    ),
    "categories of numbers for text": (
        pd.DataFrame(LABELS).assign(city=pd.Categorical(CITY)),
        TypeError,
        "must have text as categories.*column 'city'",
    ),
    "a column less": (pd.DataFrame(LABELS)[["age", "shop"]], ValueError, r"without \['city'\]"),
}


@pytest.mark.parametrize(
    ("table", "kind", "said"), QUERY_REFUSALS.values(), ids=QUERY_REFUSALS.keys()
)
def test_a_query_of_another_kind_is_refused(fitted, table, kind, said):
    with pytest.raises(kind, match=said):
        fitted.predict(table)


@pytest.mark.parametrize("code", [-1.0, 0.5])
def test_a_query_with_an_impossible_code_is_refused(code):
    coded = forest(categorical_features=[0, 2]).fit(CODES, CURVES)
    with pytest.raises(ValueError, match=f"whole numbers.*Got {code} in row 3, column 0"):
        coded.predict(np.vstack([CODES[:3], [[code, 0.0, 0.0]]]))


def test_a_guard_sees_the_children_of_a_set():
    # Categories 0 and 1 differ most, but all rows of 0 have the same dose.
    codes = np.repeat([0, 1, 2, 3], 30)
    dose = np.where(codes == 0, 0.5, np.tile(np.linspace(0, 1, 30), 4))
    y = np.array([9.0, 0.0, 1.0, 2.0])[codes]
    settings = {"categorical_features": [0], "max_depth": 1, "honesty": "none", "random_state": 0}
    plain = CurveForest(1, sample_fraction=1.0, **settings).fit(codes[:, None], y)
    guard = TreatmentGuard(min_treatment_variance=0.1)
    guarded = CurveForest(1, sample_fraction=1.0, guard=guard, **settings)
    guarded.fit(codes[:, None], y, treatment=dose)
    assert plain.predict([[0], [1], [2], [3]]) == pytest.approx([9.0, 1.0, 1.0, 1.0])
    assert guarded.forest_.n_leaves == 1  # the one feature's best split is the one candidate


def test_trees_are_told_with_their_labels():
    frame = pd.DataFrame({"city": np.repeat(["Bonn", "Köln", "Ulm"], 40)})
    y = np.repeat([0.0, 5.0, 0.0], 40)
    forest = CurveForest(1, sample_fraction=1.0, honesty="none", random_state=0).fit(frame, y)
    first = forest.tree_text().splitlines()[0]
    assert first.startswith("city in {'Bonn', 'Ulm'}, missing left")
