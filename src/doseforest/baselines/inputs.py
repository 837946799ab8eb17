"""What baselines take: rows to learn from, units to answer for."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from doseforest.data.checks import checked_columns
from doseforest.data.table import as_table
from doseforest.dtypes import FloatArray


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Rows to learn from, checked."""

    features: FloatArray  # (n_rows, n_features), NaN is missing
    outcome: FloatArray  # (n_rows,)
    dose: FloatArray  # (n_rows, n_components)


def training_rows(X: Any, y: Any, treatment: Any, max_components: int = 1) -> TrainingRows:
    """Rows from numpy, pandas or polars; outcomes and doses must be finite.

    Examples
    --------
    >>> training_rows([[1], [None]], [1, 2], [0, 5]).dose.ravel()
    array([0., 5.])
    """
    features = feature_matrix(X)
    outcome = checked_columns(y, "y", len(features), 1)[:, 0]
    dose = checked_columns(treatment, "treatment", len(features), max_components)
    return TrainingRows(features, outcome.astype(np.float64), dose.astype(np.float64))


def units_of(X: Any, n_features: int) -> FloatArray:
    """Features of units, which must be as many as in fit.

    Examples
    --------
    >>> units_of([[1, 2]], n_features=3)
    Traceback (most recent call last):
    ...
    ValueError: The 'X' parameter must have 3 features, as in fit. Got 2 instead.
    """
    features = feature_matrix(X)
    _require_features(features.shape[1], n_features)
    return features


def table_shape(X: Any, n_features: int | None = None) -> tuple[int, int]:
    """Rows and features of any table, with text too; of as many features as wanted.

    Examples
    --------
    >>> table_shape([[1, 2]])
    (1, 2)
    """
    table = as_table(X, with_categories=True)
    _require_features(table.n_features, n_features)
    return table.n_rows, table.n_features


def varied_dose(dose: FloatArray) -> FloatArray:
    """One-dimensional doses, which must not all be the same.

    Examples
    --------
    >>> varied_dose(np.array([[1.0], [2.0]]))
    array([1., 2.])
    """
    single = dose[:, 0]
    if len(single) and single.min() == single.max():
        raise ValueError(
            f"The 'treatment' parameter must hold different doses. Got only {single[0]:g} instead."
        )
    return single


def require_int(name: str, value: Any, least: int, n_rows: int | None = None) -> None:
    """Raise ValueError for what is not an int in its range; rows, where they are given, end it.

    Examples
    --------
    >>> require_int("n_folds", 9, 2, n_rows=5)
    Traceback (most recent call last):
    ...
    ValueError: The 'n_folds' parameter must be an int of at least 2 and at most the number of rows
    (5). Got 9 instead.
    """
    most = np.inf if n_rows is None else n_rows
    if not isinstance(value, Integral) or not least <= int(value) <= most:
        end = "" if n_rows is None else f" and at most the number of rows ({n_rows})"
        raise ValueError(
            f"The {name!r} parameter must be an int of at least {least}{end}. "
            f"Got {value!r} instead."
        )


def feature_matrix(X: Any) -> FloatArray:
    """Features as numbers, shape (n_units, n_features), from numpy, pandas or polars.

    Examples
    --------
    >>> feature_matrix([[1, 2], [3, None]])
    array([[ 1.,  2.],
           [ 3., nan]])
    """
    return np.concatenate([block for _, block in as_table(X).blocks()])


def _require_features(got: int, wanted: int | None) -> None:
    if wanted is not None and got != wanted:
        raise ValueError(
            f"The 'X' parameter must have {wanted} features, as in fit. Got {got} instead."
        )
