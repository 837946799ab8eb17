"""Checks of what comes beside the feature table. Every error names parameter, rule and value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import ID_DTYPE, Array, ChannelArray, FloatArray, IntArray
from doseforest.data.exact_grid import normalised_weights

# Leaf sums of 2^30 rows of this size, however the weights lie, stay within float32.
LARGEST_VALUE = 1e27
N_LABELS = 10  # shown of those that are refused


def as_array(values: Any, name: str) -> Array:
    """Make an array of what a user gave, whatever it holds."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"The {name!r} parameter must not have missing entries. "
            "Got an array with masked entries instead."
        )
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ValueError(
            f"The {name!r} parameter must have rows of equal length. "
            f"Got a ragged list instead: {error}"
        ) from error


def as_numbers(values: Any, name: str) -> Array:
    """Make an array of real numbers; None and pandas' NA become NaN."""
    array = as_array(values, name)
    rule = f"The {name!r} parameter must hold real numbers."
    if array.dtype.kind in "biuf":
        # Half precision could not even hold the limits that follow.
        return array.astype(np.float32) if array.dtype == np.float16 else array
    if array.dtype.kind == "c":
        raise ValueError(f"{rule} Complex data not supported. Got {array.dtype} instead.")
    if array.dtype.kind == "O":
        try:
            return np.array([_number(value) for value in array.flat]).reshape(array.shape)
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(f"{rule} Got objects that are not numbers instead: {error}.") from error
    raise TypeError(f"{rule} Got {array.dtype} instead.")


def _number(value: Any) -> float:
    if _is_missing(value):
        return np.nan
    if isinstance(value, str | bytes):
        raise TypeError(f"the text {value!r}")
    return float(value)


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def refuse_labels(values: Any, name: str) -> None:
    """Raise TypeError for text where doses or levels are wanted, and say what to do about it."""
    labels = as_labels(values, name)
    if labels.dtype.kind == "O":
        text = sorted({label for label in labels.flat if isinstance(label, str)})
    else:
        text = np.unique(labels).astype(str).tolist() if labels.dtype.kind in "US" else []
    if text:
        named = ", ".join(map(repr, text[:N_LABELS])) + (", …" if len(text) > N_LABELS else "")
        codes = ", ".join(f"{label!r}: {code}" for code, label in enumerate(text[:2]))
        raise TypeError(
            f"The {name!r} parameter must hold real numbers: doses, or codes of levels in an order "
            f"that means something. Got text with {len(text)} distinct label(s), {named}, "
            f"instead: code them, for instance by .map({{{codes}, …}})."
        )


def checked_columns(values: Any, name: str, n_rows: int, max_columns: int) -> Array:
    """Finite real columns, shape (n_rows, k); a single column may be one-dimensional."""
    if values is None:
        raise ValueError(
            f"The {name!r} parameter must be given: this estimator requires {name} to be passed, "
            f"but the target {name} is None."
        )
    array = as_numbers(values, name)
    shape = array.shape
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) != n_rows:
        raise ValueError(
            f"The {name!r} parameter must have one row per row of X ({n_rows}). "
            f"Got shape {shape} instead."
        )
    if not 1 <= array.shape[1] <= max_columns:
        columns = "one column" if max_columns == 1 else f"1 to {max_columns} columns"
        raise ValueError(
            f"The {name!r} parameter must have {columns}. Got {array.shape[1]} instead."
        )
    if not max(-float(array.min()), float(array.max())) <= LARGEST_VALUE:  # also true of NaN
        row, column = np.argwhere(~(np.abs(array) <= LARGEST_VALUE))[0]
        raise ValueError(
            f"The {name!r} parameter must hold finite numbers of size at most {LARGEST_VALUE:.0e}. "
            f"Got {array[row, column]} in row {row}, column {column} instead."
        )
    return array


def checked_weights(values: Any, n_rows: int) -> ChannelArray | None:
    """Row weights scaled to mean 1; None when all are equal."""
    if values is None:
        return None
    weights = checked_columns(values, "sample_weight", n_rows, 1)[:, 0].astype(np.float64)
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise ValueError(
            "The 'sample_weight' parameter must not be negative. "
            f"Got {weights[row]} in row {row} instead."
        )
    if not (weights > 0).any():
        raise ValueError(
            "The 'sample_weight' parameter must have a positive entry. Got only zeros."
        )
    if (weights == weights[0]).all():
        return None
    return normalised_weights(weights)


def checked_row_ids(values: Any, n_rows: int) -> IntArray:
    """Distinct integer ids; by default the positions of the rows."""
    if values is None:
        return np.arange(n_rows, dtype=ID_DTYPE)
    ids = as_array(values, "row_ids")
    if ids.dtype.kind not in "iu" or ids.shape != (n_rows,):
        raise ValueError(
            f"The 'row_ids' parameter must be {n_rows} integers, one per row of X. "
            f"Got {ids.dtype} of shape {ids.shape} instead."
        )
    distinct, counts = np.unique(ids, return_counts=True)
    if len(distinct) < n_rows:
        raise ValueError(
            "The 'row_ids' parameter must be distinct. "
            f"Got {distinct[counts > 1][0]} more than once instead."
        )
    return np.ascontiguousarray(ids.astype(ID_DTYPE))


def checked_halves(values: Any, name: str, n_rows: int) -> NDArray[np.bool_]:
    """A mark for each row, neither all set nor none."""
    marks = as_array(values, name)
    if marks.dtype != np.bool_ or marks.shape != (n_rows,) or marks.all() or not marks.any():
        raise ValueError(
            f"The {name!r} parameter must be {n_rows} booleans, one per row of X, not all alike. "
            f"Got {marks.dtype} of shape {marks.shape} instead."
        )
    return marks


def group_codes(values: Any, n_rows: int) -> IntArray:
    """Rank of each row's group among the sorted groups."""
    groups = as_labels(values, "groups")
    if groups.shape != (n_rows,):
        raise ValueError(
            f"The 'groups' parameter must have one entry per row of X ({n_rows}). "
            f"Got shape {groups.shape} instead."
        )
    if missing_marks(groups).any():
        raise ValueError("The 'groups' parameter must not have missing entries.")
    try:
        return np.unique(groups, return_inverse=True)[1].astype(ID_DTYPE)
    except TypeError as error:
        raise TypeError(
            "The 'groups' parameter must hold values of one sortable type, such as integers or "
            f"strings. Got a mixture instead ({error})."
        ) from error


def as_labels(values: Any, name: str) -> Array:
    """Make an array of labels in which a missing one among text stays missing."""
    if not hasattr(values, "dtype"):  # numpy would make text of a NaN among text
        values = np.array([*values], dtype=object) if _is_flat_list(values) else values
    return as_array(values, name)


def missing_marks(labels: Array) -> NDArray[np.bool_]:
    """Whether each entry is None, NaN or pandas' NA.

    >>> missing_marks(np.array(["a", None, np.nan], dtype=object))
    array([False,  True,  True])
    """
    if labels.dtype.kind in "fmM":
        return np.asarray(labels != labels)
    if labels.dtype.kind != "O":
        return np.zeros(labels.shape, bool)
    return np.array([_is_missing(label) for label in labels.flat], bool).reshape(labels.shape)


def _is_flat_list(values: Any) -> bool:
    return isinstance(values, list | tuple) and not any(
        isinstance(value, list | tuple) for value in values
    )


def checked_grid(values: Any, name: str, n_doses: int, *, ascending: bool) -> FloatArray:
    """One finite number per curve point: doses in ascending order, or weights not below zero."""
    rule = "ascending" if ascending else "not negative, one of them positive"
    grid = as_numbers(values, name).astype(np.float64)
    valid = grid.shape == (n_doses,) and bool((np.abs(grid) <= LARGEST_VALUE).all())
    if valid:
        valid = bool((np.diff(grid) > 0).all() if ascending else (grid >= 0).all() and grid.any())
    if not valid:
        raise ValueError(
            f"The {name!r} parameter must be {n_doses} finite numbers of size at most "
            f"{LARGEST_VALUE:.0e}, one per curve point, {rule}. Got {values!r} instead."
        )
    return grid
