"""Checks of what comes beside the feature table. Every error names parameter, rule and value."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from doseforest.data.exact_grid import normalised_weights
from doseforest.dtypes import ID_DTYPE, Array, ChannelArray, FloatArray, IntArray

LARGEST_VALUE = float(np.finfo(np.float32).max) / 4  # leaves room for weights and rounding


def checked_columns(values: Any, name: str, n_rows: int, max_columns: int) -> Array:
    """Finite real columns, shape (n_rows, k); a single column may be one-dimensional."""
    if values is None:
        raise ValueError(
            f"The {name!r} parameter must be given: this estimator requires {name} to be passed, "
            f"but the target {name} is None."
        )
    array = np.asarray(values)
    shape = array.shape
    if array.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"The {name!r} parameter must hold real numbers. Got {array.dtype} instead."
        )
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) != n_rows:
        raise ValueError(
            f"The {name!r} parameter must have one row per row of X ({n_rows}). "
            f"Got shape {shape} instead."
        )
    if not 1 <= array.shape[1] <= max_columns:
        raise ValueError(
            f"The {name!r} parameter must have 1 to {max_columns} columns. "
            f"Got {array.shape[1]} instead."
        )
    bad = ~(np.abs(array) <= LARGEST_VALUE)  # NaN, infinite, or beyond float32
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"The {name!r} parameter must hold finite numbers of size at most {LARGEST_VALUE:.2g}. "
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
    ids = np.asarray(values)
    if ids.dtype.kind not in "iu" or ids.shape != (n_rows,):
        raise ValueError(
            f"The 'row_ids' parameter must be {n_rows} integers, one per row of X. "
            f"Got {ids.dtype} of shape {ids.shape} instead."
        )
    if len(np.unique(ids)) < n_rows:
        values, counts = np.unique(ids, return_counts=True)
        raise ValueError(
            "The 'row_ids' parameter must be distinct. "
            f"Got {values[counts > 1][0]} more than once instead."
        )
    return np.ascontiguousarray(ids.astype(ID_DTYPE))


def group_codes(values: Any, n_rows: int) -> IntArray:
    """Return the rank of each row's group among the sorted groups."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    groups = np.asarray(values)
    if groups.shape != (n_rows,):
        raise ValueError(
            f"The 'groups' parameter must have one entry per row of X ({n_rows}). "
            f"Got shape {groups.shape} instead."
        )
    if groups.dtype.kind in "fmMO" and any(group is None or group != group for group in groups):
        raise ValueError("The 'groups' parameter must not have missing entries.")
    try:
        return np.unique(groups, return_inverse=True)[1].astype(ID_DTYPE)
    except TypeError as error:
        raise TypeError(
            "The 'groups' parameter must hold values of one sortable type, such as integers or "
            f"strings. Got a mixture instead ({error})."
        ) from error


def checked_grid(values: Any, name: str, n_doses: int, *, ascending: bool) -> FloatArray:
    """One finite number per curve point: doses in ascending order, or weights not below zero."""
    grid = np.asarray(values, dtype=np.float64)
    rule = "ascending" if ascending else "not negative, one of them positive"
    valid = grid.shape == (n_doses,) and bool(np.isfinite(grid).all())
    if valid:
        valid = bool((np.diff(grid) > 0).all() if ascending else (grid >= 0).all() and grid.any())
    if not valid:
        raise ValueError(
            f"The {name!r} parameter must be {n_doses} finite numbers, one per curve point, "
            f"{rule}. Got {values!r} instead."
        )
    return grid
