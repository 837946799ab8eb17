"""Feature tables as blocks of rows: numpy arrays, pandas and polars frames look the same from here.

A block source is anything with the members of `BlockSource`; a file reader only has to yield
blocks to be binned and scored without another change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import MAX_FEATURES, Array, FloatArray
from doseforest.data.checks import as_numbers

BLOCK_ROWS = 65_536

Label = str | int | float  # of a category
Categories = Mapping[int, tuple[Label, ...]]  # of a feature: code k stands for the k-th label


@runtime_checkable
class BlockSource(Protocol):
    """Rows of numeric features that arrive in blocks."""

    @property
    def n_rows(self) -> int:
        """Number of rows over all blocks."""

    @property
    def n_features(self) -> int:
        """Number of columns of every block."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the features, or None where the source has none."""

    def blocks(self) -> Iterator[tuple[int, FloatArray]]:
        """Yield (first row, C-ordered float64 block); NaN is a missing value."""


@dataclass(frozen=True, slots=True)
class ArrayTable:
    """A block source on a two-dimensional numpy array."""

    values: Array  # (n_rows, n_features), any real type
    names: tuple[str, ...] | None = None
    block_rows: int = BLOCK_ROWS
    categories: Categories = field(default_factory=dict)  # of the columns that hold codes of labels

    def __len__(self) -> int:
        return self.n_rows

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.values.shape[1])

    def blocks(self) -> Iterator[tuple[int, FloatArray]]:
        """Yield the rows as float64 blocks, checked for infinities."""
        for first in range(0, self.n_rows, self.block_rows):
            rows = self.values[first : first + self.block_rows]
            with np.errstate(over="ignore"):  # beyond float64 is infinite, and refused as such
                block = np.ascontiguousarray(rows, dtype=np.float64)
            if np.isinf(block).any():
                row, column = np.argwhere(np.isinf(block))[0]
                raise ValueError(
                    "The 'X' parameter must hold finite numbers or NaN for missing values. "
                    f"Got {block[row, column]} in row {first + row}, "
                    f"column {column_label(self.names, int(column))} instead."
                )
            yield first, block


def as_table(
    X: Any, *, expected_names: tuple[str, ...] | None = None, with_categories: bool = False
) -> BlockSource:
    """Check a feature table and make it a block source.

    Parameters
    ----------
    X : array of shape (n_rows, n_features), pandas or polars frame, nested lists, or BlockSource
        Numbers and booleans; NaN, None and null are missing values.
    expected_names : tuple of str, optional
        The columns to take, in this order, when X is a frame.
    with_categories : bool, default=False
        Read columns of text and of categories too, as codes: `categories_of` tells their labels.

    Examples
    --------
    >>> table = as_table([[1, 2.5], [3, None]])
    >>> table.n_rows, table.n_features
    (2, 2)
    """
    if isinstance(X, ArrayTable | BlockSource):  # the first is found without a look at members
        if categories_of(X) and not with_categories:
            raise _not_numeric(column_label(X.names, min(categories_of(X))), "categories")
        return _checked(_in_order(X, expected_names))
    if _is_frame(X):
        return _frame_table(X, expected_names, with_categories)
    if hasattr(X, "toarray"):
        raise TypeError(
            "The 'X' parameter must be a dense table: sparse input is not supported. "
            f"Got {type(X).__name__} instead; use X.toarray() if it fits in memory."
        )
    if isinstance(X, np.ma.MaskedArray):
        X = np.where(np.ma.getmaskarray(X), np.nan, X.data)
    values = as_numbers(X, "X")
    if values.ndim != 2:
        raise ValueError(
            f"The 'X' parameter must be two-dimensional (rows, features). "
            f"Got an array of shape {values.shape} instead. "
            "Reshape your data: X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row."
        )
    return _checked(ArrayTable(values))


def categories_of(source: BlockSource) -> Categories:
    """Labels of a source's categorical columns; most sources have none, and need not say so."""
    categories: Categories = getattr(source, "categories", {})
    return categories


def category_marks(categories: Categories | None, n_features: int) -> NDArray[np.uint8] | None:
    """1 for each feature that holds codes; None where there is none.

    >>> category_marks({1: ("a", "b")}, 3)
    array([0, 1, 0], dtype=uint8)
    """
    if not categories:
        return None
    marks = np.zeros(n_features, np.uint8)
    marks[list(categories)] = 1
    return marks


def _in_order(source: BlockSource, expected_names: tuple[str, ...] | None) -> BlockSource:
    if None not in (source.names, expected_names) and source.names != expected_names:
        raise ValueError(
            f"The 'X' parameter must have the columns {expected_names} in this order. "
            f"Got {source.names} instead."
        )
    return source


def _is_frame(X: Any) -> bool:
    return hasattr(type(X), "columns")  # of the type: a lazy frame would have to compute its own


def _frame_table(
    X: Any, expected_names: tuple[str, ...] | None, with_categories: bool
) -> BlockSource:
    import narwhals as nw

    try:
        frame = nw.from_native(X, eager_only=True)
        names = list(frame.columns)
        columns = list(frame.iter_columns())
    except nw.exceptions.DuplicateError as error:
        raise ValueError(
            f"The 'X' parameter must have distinct column names. Got a repeated one: {error}"
        ) from error
    except TypeError as error:
        raise TypeError(
            "The 'X' parameter must be a numpy array or an eager pandas or polars frame. "
            f"Got {type(X).__name__} instead."
        ) from error
    if expected_names is not None:
        missing = [name for name in expected_names if name not in names]
        if missing:
            unseen = [name for name in names if name not in expected_names]
            raise ValueError(
                "The 'X' parameter must have the columns of the training table: the feature names "
                "should match those that were passed during fit. "
                f"Got a frame without {missing[:5]}"
                + (f" and with {unseen[:5]}, unseen at fit time," if unseen else "")
                + " instead."
            )
        columns = [columns[names.index(name)] for name in expected_names]
        names = list(expected_names)
    values = np.empty((len(frame), len(columns)))
    categories = {}
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        if with_categories and isinstance(column.dtype, nw.String | nw.Categorical | nw.Enum):
            values[:, j], categories[j] = _column_codes(column)
        else:
            values[:, j] = _column_values(column, name)
    # Labels that are not text, such as pandas' default numbers, name nothing.
    named = bool(names) and all(isinstance(name, str) for name in names)
    own_names = tuple(names) if named else None
    return _checked(ArrayTable(values, own_names, categories=categories))


def _column_codes(column: Any) -> tuple[FloatArray, tuple[Any, ...]]:
    """Codes of a column's labels, in no order that means anything, and the labels."""
    import narwhals as nw

    labels = column.drop_nulls().unique().to_list()
    if not labels:
        return np.full(len(column), np.nan), ()
    codes = column.replace_strict(
        labels, np.arange(len(labels)).tolist(), return_dtype=nw.Float64
    ).to_numpy()
    return np.asarray(codes, dtype=np.float64), tuple(labels)


def _column_values(column: Any, name: Any) -> FloatArray:
    import narwhals as nw

    if column.dtype.is_numeric():
        values = column.cast(nw.Float64).to_numpy()
    elif column.dtype == nw.Boolean:
        values = column.cast(nw.Int8).cast(nw.Float64).to_numpy()
    elif column.null_count() == len(column):  # a column of nulls has no type of its own
        values = np.full(len(column), np.nan)
    else:
        raise _not_numeric(repr(name), column.dtype)
    return np.asarray(values, dtype=np.float64)


def _not_numeric(column: str, dtype: Any) -> TypeError:
    return TypeError(
        "The 'X' parameter must have numeric or boolean columns. "
        f"Got column {column} of type {dtype} instead."
    )


def _checked(table: BlockSource) -> BlockSource:
    if table.n_rows == 0:
        raise ValueError("The 'X' parameter must have at least 1 row. Got 0 rows instead.")
    if not 1 <= table.n_features <= MAX_FEATURES:
        raise ValueError(
            f"The 'X' parameter must have 1 to {MAX_FEATURES} features. Got {table.n_features} "
            f"feature(s) (shape=({table.n_rows}, {table.n_features})) while a minimum of 1 is "
            "required."
        )
    return table


def column_label(names: tuple[str, ...] | None, column: int) -> str:
    """Return a column as errors name it: its name, or its place."""
    return str(column) if names is None else repr(names[column])
