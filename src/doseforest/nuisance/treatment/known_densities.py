"""Densities that are known: given values, given functions, and doses randomised within strata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray
from doseforest.data.checks import as_labels, as_numbers, group_codes, missing_marks
from doseforest.nuisance.treatment.known_assignments import (
    FunctionRows,
    KnownDensity,
    KnownRows,
    LevelRows,
    StrataRows,
    ValueRows,
    level_places,
    strata_densities,
)
from doseforest.nuisance.treatment.marginal import marginal_density
from doseforest.nuisance.treatment.treatment_support import dose_support, support_within

SMALLEST_STRATUM = 10
SLACK = 0.01  # how far from 1 the probabilities of a row may add up


@dataclass(frozen=True, slots=True)
class Strata:
    """A dose that was randomised within strata.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        Stratum of each training row: integers or text; None or NaN where it was not randomised.

    Examples
    --------
    >>> dose = np.concatenate([np.linspace(0, 1, 100), np.linspace(0, 2, 100)])
    >>> strata = Strata(np.repeat(["low", "high"], 100))
    >>> known_rows(strata, np.zeros((200, 1)), dose).observed[[50, 150]].round(1)
    array([1. , 0.5])
    """

    labels: Any


def known_rows(
    density: Any, X: FloatArray, dose: FloatArray, weights: FloatArray | None = None
) -> KnownRows:
    """What a user says about the assignment of the training rows, checked.

    Parameters
    ----------
    density : array, callable or Strata
        Values pi(T_i | X_i) of the rows, shape (n_rows,); or, for a dose of few levels, the
        probability of every level, shape (n_rows, n_levels), the levels ascending; or a function
        from X and doses (n_units, n_doses) to densities of that shape; or the strata within which
        the dose was randomised. At a point mass the value is a probability. NaN, or a stratum of
        None, marks rows whose density is not known.
    X : array of shape (n_rows, n_features)
    dose : array of shape (n_rows,)
    weights : array of shape (n_rows,), optional

    Examples
    --------
    >>> shares = np.array([[0.5, 0.5], [0.2, 0.8], [np.nan, np.nan]])
    >>> given = known_rows(shares, np.zeros((3, 1)), np.array([0.0, 1.0, 1.0]))
    >>> given.known, given.observed
    (array([ True,  True, False]), array([0.5, 0.8, nan]))
    """
    if isinstance(density, Strata):
        given: KnownRows = _strata_rows(density, dose, weights)
    elif callable(density):
        function = KnownDensity(density)
        observed = function.raw(X, dose[:, None])[0][:, 0]
        known = ~np.isnan(observed)
        given = FunctionRows(function, X, dose, weights, known, observed)
    else:
        given = _array_rows(as_numbers(density, "density").astype(np.float64), dose, weights)
    if not given.known.any():
        raise ValueError("The 'density' parameter must be known of some rows. Got none instead.")
    _check_positive(given)
    return given


def _array_rows(
    values: FloatArray, dose: FloatArray, weights: FloatArray | None
) -> ValueRows | LevelRows:
    support = dose_support(dose, weights)
    if values.shape == dose.shape:
        return ValueRows(dose, weights, support, ~np.isnan(values), values)
    levels = np.array(support.masses)
    if support.continuous or values.shape != (len(dose), len(levels)):
        columns = "" if support.continuous else f", or one for each of the levels {levels.tolist()}"
        raise ValueError(
            f"The 'density' parameter must have one value per row ({len(dose)}){columns}. "
            f"Got shape {values.shape} instead."
        )
    known: NDArray[np.bool_] = np.asarray(~np.isnan(values).all(axis=1))
    totals = values.sum(axis=1)
    bad = known & ~((values >= 0).all(axis=1) & (np.abs(totals - 1) <= SLACK))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            "The 'density' parameter must give every known row probabilities of the levels that "
            f"add up to 1. Got {values[row].tolist()} in row {row} instead."
        )
    shares = values / totals[:, None]
    observed = shares[np.arange(len(dose)), level_places(levels, dose)]
    return LevelRows(levels, shares, dose, weights, known, observed)


def _strata_rows(strata: Strata, dose: FloatArray, weights: FloatArray | None) -> StrataRows:
    labels = as_labels(strata.labels, "labels")
    if labels.shape != dose.shape:
        raise ValueError(
            f"The 'labels' parameter of Strata must have one entry per row ({len(dose)}). "
            f"Got shape {labels.shape} instead."
        )
    known = ~missing_marks(labels)
    codes = np.full(len(dose), -1, np.int64)
    codes[known] = group_codes(labels[known], int(known.sum()))
    row_weights = np.ones(len(dose)) if weights is None else weights
    support = dose_support(dose, row_weights)
    parts = []
    for code in range(int(codes.max(initial=-1)) + 1):
        rows = np.flatnonzero((codes == code) & (row_weights > 0))
        name = labels[np.argmax(codes == code)]
        n_doses = len(np.unique(dose[rows]))
        n_beside = len(np.setdiff1d(dose[rows], support.masses))
        if len(rows) < SMALLEST_STRATUM or n_doses == 1 or n_beside == 1:
            raise ValueError(
                f"The 'labels' parameter of Strata must make strata of at least "
                f"{SMALLEST_STRATUM} rows with doses that vary, beside point masses too. "
                f"Got stratum {name!s} with {len(rows)} rows and {n_doses} distinct doses instead."
            )
        within = support_within(support, dose[rows])
        parts.append(marginal_density(dose[rows], row_weights[rows], support=within))
    observed = np.full(len(dose), np.nan)
    observed[known] = strata_densities(codes[known], tuple(parts), dose[known, None])[:, 0]
    return StrataRows(codes, tuple(parts), dose, weights, known, observed)


def _check_positive(given: KnownRows) -> None:
    values: FloatArray = given.observed
    bad: NDArray[np.bool_] = given.known & ~((values > 0) & (values < np.inf))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            "The 'density' parameter must be positive and finite at every observed dose. "
            f"Got {values[row]} in row {row} instead."
        )
