"""What baselines take: rows to learn from, units to answer for."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.checks import checked_columns
from doseforest.data.feature_table import BlockSource, as_table


@dataclass(frozen=True, slots=True)
class BaselineRows:
    """Rows to learn from, checked."""

    features: FloatArray  # (n_rows, n_features), NaN is missing
    outcome: FloatArray  # (n_rows,)
    dose: FloatArray  # (n_rows, n_components)
    names: tuple[str, ...] | None  # of the features, where the table has them


def training_rows(X: Any, y: Any, treatment: Any, max_components: int = 1) -> BaselineRows:
    """Rows from numpy, pandas or polars; outcomes and doses must be finite, and doses differ.

    Examples
    --------
    >>> training_rows([[1], [None]], [1, 2], [0, 5]).dose.ravel()
    array([0., 5.])
    """
    table = as_table(X)
    features = _matrix(table)
    outcome = checked_columns(y, "y", len(features), 1)[:, 0].astype(np.float64)
    dose = checked_columns(treatment, "treatment", len(features), max_components)
    dose = dose.astype(np.float64)
    require_varied(dose)
    return BaselineRows(features, outcome, dose, table.names)


def units_of(X: Any, n_features: int, names: tuple[str, ...] | None = None) -> FloatArray:
    """Features of units as numbers, as many as in fit; of a frame by their names in fit.

    Examples
    --------
    >>> units_of([[1, 2]], n_features=3)
    Traceback (most recent call last):
    ...
    ValueError: The 'X' parameter must have 3 features, as in fit. Got 2 instead.
    """
    table = as_table(X, expected_names=names)
    _require_features(table.n_features, n_features)
    return _matrix(table)


def table_of(
    X: Any, n_features: int | None = None, names: tuple[str, ...] | None = None
) -> BlockSource:
    """Any table, with text too, of as many features as wanted and with their names.

    Examples
    --------
    >>> table_of([[1, 2]]).n_features
    2
    """
    table = as_table(X, expected_names=names, with_categories=True)
    _require_features(table.n_features, n_features)
    return table


def require_varied(dose: FloatArray) -> None:
    """Raise ValueError where all rows have one dose, (n_rows, n_components), or one component.

    Examples
    --------
    >>> require_varied(np.array([[1.0, 5.0], [2.0, 5.0]]))
    Traceback (most recent call last):
    ...
    ValueError: The 'treatment' parameter must hold different doses in every column. Got only 5 in
    column 1 instead.
    """
    constant = np.ptp(dose, axis=0) == 0
    if constant.any():
        place = int(np.argmax(constant))
        several = len(constant) > 1
        every, which = (" in every column", f" in column {place}") if several else ("", "")
        raise ValueError(
            f"The 'treatment' parameter must hold different doses{every}. "
            f"Got only {dose[0, place]:g}{which} instead."
        )


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


def drawn_seed(random_state: int | None) -> int:
    """The seed that was given, or a new one.

    Examples
    --------
    >>> drawn_seed(7)
    7
    """
    if random_state is None:
        return int(np.random.default_rng().integers(2**30))
    require_int("random_state", random_state, 0)
    return int(random_state)


def _matrix(table: BlockSource) -> FloatArray:
    """All blocks of a table of numbers, (n_rows, n_features)."""
    return np.concatenate([block for _, block in table.blocks()])


def _require_features(got: int, wanted: int | None) -> None:
    if wanted is not None and got != wanted:
        raise ValueError(
            f"The 'X' parameter must have {wanted} features, as in fit. Got {got} instead."
        )
