"""Checks of what is compared, and rows added up within the units that were assigned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array, FloatArray, IntArray
from doseforest.data.checks import LARGEST_VALUE, as_labels, as_numbers, missing_marks


@dataclass(frozen=True, slots=True, eq=False)
class AssignedUnits:
    """Rows added up within the units that were assigned."""

    unit: IntArray  # (n_rows,)
    n_units: int
    treated: Array  # (n_units,)
    rows: FloatArray  # (n_units,) number of rows

    def sums(self, values: FloatArray) -> FloatArray:
        """Over the rows of each unit."""
        return np.bincount(self.unit, values, self.n_units).astype(np.float64)


def number_column(values: Any, name: str, n_rows: int | None = None) -> FloatArray:
    """A finite number for each row."""
    column = as_numbers(values, name).astype(np.float64)
    if column.ndim != 1 or (n_rows is not None and len(column) != n_rows):
        shape = "(n_rows,)" if n_rows is None else f"({n_rows},)"
        raise ValueError(
            f"The {name!r} parameter must have shape {shape}. Got shape {column.shape} instead."
        )
    _check_finite(column, name)
    return column


def _check_finite(values: FloatArray, name: str) -> None:
    odd = ~(np.abs(values) <= LARGEST_VALUE)
    if odd.any():
        raise ValueError(
            f"The {name!r} parameter must hold finite numbers of size at most "
            f"{LARGEST_VALUE:.0e}. Got {values[odd][0]} in row {np.argwhere(odd)[0][0]} instead."
        )


def two_arms(arms: Any, control: Any, n_rows: int) -> tuple[tuple[str, str], Array]:
    """Names of control and treatment, and which rows are treated."""
    labels = _labels(arms, "arms", n_rows)
    names = sorted({str(label) for label in labels.tolist()})
    if len(names) != 2:
        raise ValueError(f"The 'arms' parameter must name two arms. Got {names[:5]} instead.")
    own = str(control)
    if own not in names:
        raise ValueError(
            f"The 'control' parameter must be one of the arms {names}. Got {control!r} instead."
        )
    treatment = names[1 - names.index(own)]
    return (own, treatment), labels.astype(str) == treatment


def _labels(values: Any, name: str, n_rows: int) -> Array:
    labels = as_labels(values, name)
    if labels.shape != (n_rows,):
        raise ValueError(
            f"The {name!r} parameter must have shape ({n_rows},). Got shape {labels.shape} instead."
        )
    if missing_marks(labels).any():
        row = int(np.flatnonzero(missing_marks(labels))[0])
        raise ValueError(
            f"The {name!r} parameter must not have missing labels. Got one in row {row} instead."
        )
    return labels


def assigned_units(units: Any, treated: Array) -> AssignedUnits:
    """Units by their labels, each in one arm; by default each row is one."""
    if units is None:
        return AssignedUnits(np.arange(len(treated)), len(treated), treated, np.ones(len(treated)))
    labels = _labels(units, "units", len(treated))
    keys = labels.astype(str) if labels.dtype.kind == "O" else labels
    distinct, first, place = np.unique(keys, return_index=True, return_inverse=True)
    of_units = treated[first]
    split = np.flatnonzero(of_units[place] != treated)
    if len(split):
        raise ValueError(
            "The 'units' parameter must have each unit in one arm alone. "
            f"Got unit {labels[split[0]]!r} in both instead."
        )
    counts = np.bincount(place, minlength=len(distinct)).astype(np.float64)
    return AssignedUnits(place, len(distinct), of_units, counts)


def unit_covariates(covariates: Any, own: AssignedUnits, n_rows: int) -> FloatArray:
    """Covariates of units, (n_units, n_covariates)."""
    if covariates is None:
        return np.empty((own.n_units, 0))
    table = as_numbers(covariates, "covariates").astype(np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != n_rows:
        raise ValueError(
            f"The 'covariates' parameter must have {n_rows} rows and one or two axes. "
            f"Got shape {table.shape} instead."
        )
    _check_finite(table, "covariates")
    means = [own.sums(column) / own.rows for column in table.T]
    return np.stack(means, axis=1) if means else np.empty((own.n_units, 0))


def check_enough_units(n_units: tuple[int, int], n_covariates: int) -> None:
    """Raise where a regression within an arm would have nothing left to tell its error by."""
    if min(n_units) < n_covariates + 2:
        raise ValueError(
            f"The 'units' parameter must have at least {n_covariates + 2} units in each arm, two "
            f"more than covariates. Got {n_units[0]} and {n_units[1]} instead."
        )
