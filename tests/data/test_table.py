"""Feature tables: every form of the same numbers gives the same blocks; the rest says why not."""

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import sparse

from doseforest.base.dtypes import MAX_FEATURES
from doseforest.data.feature_table import BLOCK_ROWS, ArrayTable, as_table

deterministic = settings(derandomize=True, deadline=None, max_examples=60)

SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)
MATRICES = hnp.arrays(np.float64, SHAPES, elements=st.floats(allow_infinity=False))


def rows_of(X: Any, **options: Any) -> NDArray[np.float64]:
    """Read all blocks of a table, checked to follow on each other."""
    table = as_table(X, **options)
    parts = []
    for first, block in table.blocks():
        assert first == sum(map(len, parts))
        assert block.dtype == np.float64
        assert block.flags.c_contiguous
        parts.append(block)
    rows = np.concatenate(parts)
    assert rows.shape == (table.n_rows, table.n_features)
    return rows


def named(values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    return {f"x{j}": values[:, j] for j in range(values.shape[1])}


def with_none(values: NDArray[np.float64]) -> NDArray[Any]:
    return np.where(np.isnan(values), None, values.astype(object))


# --- forms -------------------------------------------------------------------------------------

FORMS: dict[str, Callable[[NDArray[np.float64]], Any]] = {
    "C order": np.ascontiguousarray,
    "F order": np.asfortranarray,
    "every other column": lambda values: np.repeat(values, 2, axis=1)[:, ::2],
    "every other row": lambda values: np.repeat(values, 2, axis=0)[1::2],
    "negative strides": lambda values: values[::-1, ::-1].copy()[::-1, ::-1],
    "swapped bytes": lambda values: values.astype(values.dtype.newbyteorder()),
    "objects with None": with_none,
    "nested lists with None": lambda values: with_none(values).tolist(),
    "pandas": lambda values: pd.DataFrame(named(values)),
    "pandas nullable": lambda values: pd.DataFrame(named(values)).astype("Float64"),
    "pandas on pyarrow": lambda values: pd.DataFrame(named(values)).astype("double[pyarrow]"),
    "polars with NaN": lambda values: pl.DataFrame(named(values)),
    "polars with nulls": lambda values: pl.DataFrame(named(values)).fill_nan(None),
    "pyarrow": lambda values: pa.table(named(values)),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@given(values=MATRICES)
@deterministic
def test_every_form_of_a_table_gives_the_same_rows(
    form: Callable[[NDArray[np.float64]], Any], values: NDArray[np.float64]
) -> None:
    np.testing.assert_array_equal(rows_of(form(values)), values)


@given(
    values=st.sampled_from("bhilBHILefd?").flatmap(
        lambda code: hnp.arrays(
            code, SHAPES, elements={"allow_infinity": False} if code in "efd" else None
        )
    )
)
@deterministic
def test_every_real_type_reads_as_its_float64_copy(values: NDArray[Any]) -> None:
    for form in (values, pd.DataFrame(named(values))):
        np.testing.assert_array_equal(rows_of(form), values.astype(np.float64))


FRAMES_WITH_GAPS = {
    "pandas": lambda: pd.DataFrame(
        {
            "whole": pd.array([3, None, -1], dtype="Int64"),
            "truth": pd.array([True, None, False], dtype="boolean"),
            "share": pd.array([None, 0.5, 0.25], dtype="Float64"),
        }
    ),
    "polars": lambda: pl.DataFrame(
        {"whole": [3, None, -1], "truth": [True, None, False], "share": [None, 0.5, 0.25]}
    ),
    "pyarrow": lambda: pa.table(
        {"whole": [3, None, -1], "truth": [True, None, False], "share": [None, 0.5, 0.25]}
    ),
}


@pytest.mark.parametrize("frame", FRAMES_WITH_GAPS.values(), ids=FRAMES_WITH_GAPS.keys())
def test_gaps_of_whole_numbers_and_truths_become_nan(frame: Callable[[], Any]) -> None:
    expected = [[3, 1, np.nan], [np.nan, np.nan, 0.5], [-1, 0, 0.25]]
    np.testing.assert_array_equal(rows_of(frame()), expected)
    assert as_table(frame()).names == ("whole", "truth", "share")


def test_the_missing_value_of_pandas_is_missing_in_an_array_of_objects() -> None:
    values = np.array([[1, pd.NA], [2.5, True]], dtype=object)
    np.testing.assert_array_equal(rows_of(values), [[1, np.nan], [2.5, 1]])


@pytest.mark.parametrize("frame_type", [pl.DataFrame, pa.table])
def test_a_column_of_nulls_alone_is_a_column_of_missing_values(
    frame_type: Callable[[Any], Any],
) -> None:
    frame = frame_type({"empty": [None, None], "full": [1.0, 2.0]})
    np.testing.assert_array_equal(rows_of(frame), [[np.nan, 1], [np.nan, 2]])


UNUSUAL: dict[str, tuple[Callable[[], Any], list[list[float]]]] = {
    "masked entries": (
        lambda: np.ma.masked_array([[1.0, 99.0]], mask=[[False, True]]),
        [[1.0, np.nan]],
    ),
    "names in levels": (
        lambda: pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])),
        [[1.0, 2.0]],
    ),
}


@pytest.mark.parametrize(("make", "expected"), UNUSUAL.values(), ids=UNUSUAL.keys())
def test_unusual_tables_are_read_right_or_refused_by_name(
    make: Callable[[], Any], expected: list[list[float]]
) -> None:
    try:
        rows = rows_of(make())
    except (TypeError, ValueError) as refusal:
        assert "The 'X' parameter must" in str(refusal)  # noqa: PT017 - either answer will do
    else:
        np.testing.assert_array_equal(rows, expected)


# --- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame_type", [pd.DataFrame, pl.DataFrame, pa.table])
@given(values=MATRICES, data=st.data())
@deterministic
def test_columns_are_taken_by_name_whatever_their_order(
    frame_type: Callable[[Any], Any], values: NDArray[np.float64], data: st.DataObject
) -> None:
    columns = named(values)
    shuffled = {name: columns[name] for name in data.draw(st.permutations(list(columns)))}
    shuffled["not asked for"] = np.zeros(len(values))
    rows = rows_of(frame_type(shuffled), expected_names=tuple(columns))
    np.testing.assert_array_equal(rows, values)


@pytest.mark.parametrize("labels", [[0, 1, 2], [7, -1, 3], [1, "1", 1.5]])
def test_labels_that_are_not_text_name_nothing(labels: list[Any]) -> None:
    values = np.arange(12.0).reshape(4, 3)
    frame = pd.DataFrame(values, columns=labels)
    assert as_table(frame).names is None
    np.testing.assert_array_equal(rows_of(frame), values)


def test_an_array_has_no_names_and_is_read_by_position() -> None:
    assert as_table([[1.0, 2.0]]).names is None
    np.testing.assert_array_equal(rows_of([[1.0, 2.0]], expected_names=("b", "a")), [[1, 2]])


def test_a_source_of_blocks_is_taken_as_it_is() -> None:
    source = ArrayTable(np.eye(2), ("b", "a"))
    assert as_table(source) is source
    assert as_table(source, expected_names=("b", "a")) is source


def test_a_source_of_blocks_with_its_columns_in_another_order_is_never_misread() -> None:
    source = ArrayTable(np.array([[1.0, 2.0]]), ("b", "a"))
    try:
        rows = rows_of(source, expected_names=("a", "b"))
    except ValueError as refusal:
        assert "The 'X' parameter must" in str(refusal)  # noqa: PT017 - either answer will do
    else:
        np.testing.assert_array_equal(rows, [[2, 1]])


# --- blocks ------------------------------------------------------------------------------------


@given(values=MATRICES, block_rows=st.integers(1, 8))
@deterministic
def test_blocks_of_any_size_give_the_same_rows(
    values: NDArray[np.float64], block_rows: int
) -> None:
    blocks = list(ArrayTable(values, block_rows=block_rows).blocks())
    assert [first for first, _ in blocks] == list(range(0, len(values), block_rows))
    np.testing.assert_array_equal(np.concatenate([block for _, block in blocks]), values)


def test_a_table_longer_than_a_block_comes_in_several() -> None:
    values = np.arange(2 * (BLOCK_ROWS + 1), dtype=np.float32).reshape(-1, 2)
    assert [first for first, _ in as_table(values).blocks()] == [0, BLOCK_ROWS]
    np.testing.assert_array_equal(rows_of(values), values)


def test_an_infinity_is_reported_by_its_row_in_the_whole_table() -> None:
    values = np.zeros((10, 3))
    values[7, 2] = -np.inf
    with pytest.raises(ValueError, match=r"'X' parameter .* Got -inf in row 7, column 2 instead"):
        list(ArrayTable(values, block_rows=3).blocks())


def test_an_infinity_is_reported_by_the_name_of_its_column() -> None:
    with pytest.raises(ValueError, match=r"'X' parameter .* inf in row 1, column 'price'"):
        rows_of(pd.DataFrame({"cost": [0.0, 0.0], "price": [1.0, np.inf]}))


# --- refusals ----------------------------------------------------------------------------------

DAY = datetime.date(2024, 2, 29)
REFUSALS: dict[str, tuple[Callable[[], Any], type[Exception], list[str]]] = {
    "one dimension": (lambda: np.zeros(3), ValueError, ["two-dimensional", "(3,)"]),
    "a pandas series": (lambda: pd.Series([1.0]), ValueError, ["two-dimensional", "(1,)"]),
    "three dimensions": (lambda: np.zeros((2, 1, 4)), ValueError, ["two-dim", "(2, 1, 4)"]),
    "nothing": (lambda: None, ValueError, ["two-dimensional", "()"]),
    "no rows": (lambda: np.zeros((0, 3)), ValueError, ["at least 1 row", "Got 0"]),
    "a frame without rows": (
        lambda: pd.DataFrame({"a": np.zeros(0)}),
        ValueError,
        ["1 row", "Got 0"],
    ),
    "no columns": (lambda: np.zeros((3, 0)), ValueError, ["features", "Got 0"]),
    "a frame without columns": (lambda: pd.DataFrame(index=[0]), ValueError, ["Got 0"]),
    "too many columns": (
        lambda: np.zeros((1, MAX_FEATURES + 1), np.int8),
        ValueError,
        [str(MAX_FEATURES), str(MAX_FEATURES + 1)],
    ),
    "ragged lists": (lambda: [[1.0, 2.0], [3.0]], ValueError, ["rows", "length"]),
    "text": (lambda: np.array([["a"]]), TypeError, ["real numbers", "<U1"]),
    "text objects": (lambda: np.array([["a"]], object), TypeError, ["real numbers", "object"]),
    "numbers as text objects": (
        lambda: np.array([["1.5"]], object),
        TypeError,
        ["real numbers", "object"],
    ),
    "complex numbers": (lambda: np.array([[1j]]), ValueError, ["real numbers", "complex128"]),
    "dates": (lambda: np.array([[DAY]], "M8[D]"), TypeError, ["real", "datetime64[D]"]),
    "a dict": (lambda: {"a": [1.0]}, TypeError, ["real numbers", "object"]),
    "pandas text": (lambda: pd.DataFrame({"c": ["a"]}), TypeError, ["numeric", "'c'", "String"]),
    "polars text": (lambda: pl.DataFrame({"c": ["1"]}), TypeError, ["numeric", "'c'", "String"]),
    "pandas objects": (
        lambda: pd.DataFrame({"c": [True, None]}),
        TypeError,
        ["numeric", "'c'", "Object"],
    ),
    "pandas dates": (
        lambda: pd.DataFrame({"c": pd.to_datetime([DAY])}),
        TypeError,
        ["numeric", "'c'", "Datetime"],
    ),
    "polars dates": (lambda: pl.DataFrame({"c": [DAY]}), TypeError, ["numeric", "'c'", "Date"]),
    "pandas categories": (
        lambda: pd.DataFrame({"c": pd.Categorical([1, 2])}),
        TypeError,
        ["numeric", "'c'", "Categorical"],
    ),
    "polars categories": (
        lambda: pl.DataFrame({"c": ["a"]}).cast(pl.Categorical),
        TypeError,
        ["numeric", "'c'", "Categorical"],
    ),
    "a name twice": (
        lambda: pd.DataFrame([[1, 2]], columns=["c", "c"]),
        ValueError,
        ["distinct column names", "'c'"],
    ),
    "bytes": (lambda: np.array([[b"1.5"]], object), TypeError, ["real numbers"]),
    "a sparse array": (lambda: sparse.csr_array(np.eye(2)), TypeError, ["dense", "csr_array"]),
    "a sparse matrix": (lambda: sparse.csc_matrix(np.eye(2)), TypeError, ["dense", "csc_matrix"]),
    "a lazy frame": (lambda: pl.LazyFrame({"c": [1.0]}), TypeError, ["eager", "LazyFrame"]),
}


@pytest.mark.parametrize(("make", "kind", "said"), REFUSALS.values(), ids=REFUSALS.keys())
def test_what_is_no_table_of_numbers_is_refused_by_name_rule_and_value(
    make: Callable[[], Any], kind: type[Exception], said: list[str]
) -> None:
    with pytest.raises(kind) as refusal:
        as_table(make())
    for words in ["The 'X' parameter must", *said]:
        assert words in str(refusal.value)


@pytest.mark.parametrize("frame_type", [pd.DataFrame, pl.DataFrame])
def test_columns_that_a_frame_lacks_are_named(frame_type: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"'X' parameter .* without \['age', 'income'\]"):
        as_table(frame_type({"price": [1.0]}), expected_names=("age", "price", "income"))


@pytest.mark.skipif(
    np.finfo(np.longdouble).max <= np.finfo(np.float64).max, reason="long double is double here"
)
def test_a_number_beyond_float64_is_refused_as_an_infinity() -> None:
    with pytest.raises(ValueError, match=r"'X' parameter .* Got inf in row 0, column 0"):
        rows_of(np.array([[np.finfo(np.longdouble).max]]))
