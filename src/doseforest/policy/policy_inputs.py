"""Checks of what users ask to decide on. Every error names parameter, rule and value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import Array, FloatArray, IntArray
from doseforest.data.checks import LARGEST_VALUE, as_labels, as_numbers, missing_marks
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import given_doses
from doseforest.policy.problem import BLOCK_ENTRIES, DoseProblem, Limit
from doseforest.policy.risk import checked_risk

ASKED_UNITS = 2**16  # in one call of a user's function
MOST_DOSES = 2**15 - 1  # what an increment's dose field can hold


def checked_problem(
    value: Any,
    cost: Any,
    *,
    doses: Any = None,
    n_units: int | None = None,
    allowed: Any = None,
    min_dose: Any = None,
    max_dose: Any = None,
    allow_negative_cost: bool = False,
) -> DoseProblem:
    """A problem without limits."""
    values = _value_matrix(value, n_units)
    costs = _costs(cost, values.shape, allow_negative_cost)
    own_doses = _doses(doses, values.shape[1])
    marks = _allowed(allowed, values.shape)
    marks = _within(marks, own_doses, min_dose, "min_dose", values.shape)
    marks = _within(marks, own_doses, max_dose, "max_dose", values.shape)
    if marks is not None:
        stuck = np.flatnonzero(~marks.any(axis=1))
        if len(stuck):
            raise ValueError(
                "The 'allowed', 'min_dose' and 'max_dose' parameters must leave every unit a dose. "
                f"Got none for unit {stuck[0]} ({len(stuck)} such units) instead."
            )
    return DoseProblem(values, costs, own_doses.values, marks, ())


def _value_matrix(value: Any, n_units: int | None) -> Array:
    if callable(value):
        if not isinstance(n_units, Integral) or n_units < 0:
            raise ValueError(
                "The 'n_units' parameter must be the number of units where 'value' is a function. "
                f"Got {n_units!r} instead."
            )
        values = _answers(value, "value", int(n_units))
    else:
        values = as_numbers(value, "value")
    if values.ndim != 2 or not 1 <= values.shape[1] <= MOST_DOSES:
        raise ValueError(
            "The 'value' parameter must have shape (units, doses), with 1 to "
            f"{MOST_DOSES} doses. Got shape {values.shape} instead."
        )
    if n_units is not None and len(values) != n_units:
        raise ValueError(
            f"The 'n_units' parameter must be the number of rows of 'value' ({len(values)}). "
            f"Got {n_units!r} instead."
        )
    _check_finite(values, "value")
    return values


def _answers(function: Any, name: str, n_units: int) -> Array:
    """The matrix that a function of blocks of units makes, asked once for each block."""
    pieces = []
    for start in range(0, max(n_units, 1), ASKED_UNITS):
        rows = slice(start, min(start + ASKED_UNITS, n_units))
        piece = as_numbers(function(rows), name)
        if piece.ndim != 2 or len(piece) != rows.stop - rows.start:
            raise ValueError(
                f"The {name!r} parameter must give {rows.stop - rows.start} rows for as many "
                f"units. Got shape {piece.shape} for {rows} instead."
            )
        pieces.append(piece)
    return np.concatenate(pieces)


def _costs(cost: Any, shape: tuple[int, ...], negative: bool) -> Array:
    if cost is None:
        return np.broadcast_to(np.zeros(1), shape)
    costs = _matrix(cost, "cost", shape)
    if not negative:
        _check_not_negative(costs, "cost", " unless 'allow_negative_cost' is set")
    return costs


def _matrix(given: Any, name: str, shape: tuple[int, ...]) -> Array:
    """A finite matrix of units and doses; a row is the same for all units."""
    matrix = _answers(given, name, shape[0]) if callable(given) else as_numbers(given, name)
    if matrix.shape == shape[1:]:
        _check_finite(matrix[None], name)
        return np.broadcast_to(matrix, shape)
    if matrix.shape != shape:
        raise ValueError(
            f"The {name!r} parameter must have the shape {shape} of 'value', or one entry per "
            f"dose ({shape[1]}). Got shape {matrix.shape} instead."
        )
    _check_finite(matrix, name)
    return matrix


def _check_finite(matrix: Array, name: str) -> None:
    for start in range(0, len(matrix), BLOCK_ENTRIES):
        block = matrix[start : start + BLOCK_ENTRIES]
        if block.size and not max(-float(block.min()), float(block.max())) <= LARGEST_VALUE:
            row, column = np.argwhere(~(np.abs(block) <= LARGEST_VALUE))[0]
            raise ValueError(
                f"The {name!r} parameter must hold finite numbers of size at most "
                f"{LARGEST_VALUE:.0e}. "
                f"Got {block[row, column]} for unit {start + row}, dose {column} instead."
            )


def _check_not_negative(matrix: Array, name: str, unless: str = "") -> None:
    if matrix.size and matrix.min() < 0:
        row, column = np.argwhere(matrix < 0)[0]
        raise ValueError(
            f"The {name!r} parameter must not be negative{unless}. "
            f"Got {matrix[row, column]} for unit {row}, dose {column} instead."
        )


def _doses(doses: Any, n_doses: int) -> Doses:
    own = given_doses(np.arange(n_doses) if doses is None else doses)
    if own.shape != (n_doses,) or not np.isfinite(own.table).all():
        raise ValueError(
            f"The 'doses' parameter must be {n_doses} finite doses, one per column of 'value'. "
            f"Got {doses!r} instead."
        )
    return own


def _allowed(allowed: Any, shape: tuple[int, ...]) -> NDArray[np.bool_] | None:
    if allowed is None:
        return None
    marks = np.asarray(allowed)
    if marks.dtype != np.bool_ or marks.shape not in (shape, shape[1:]):
        raise ValueError(
            f"The 'allowed' parameter must be booleans of shape {shape}, or one per dose. "
            f"Got {marks.dtype} of shape {marks.shape} instead."
        )
    return np.broadcast_to(marks, shape)


def _within(
    marks: NDArray[np.bool_] | None,
    doses: Doses,
    end: Any,
    name: str,
    shape: tuple[int, ...],
) -> NDArray[np.bool_] | None:
    """Marks of allowed doses, less those beyond an end in a component."""
    if end is None:
        return marks
    ends = as_numbers(end, name).astype(np.float64)
    table = doses.table
    wide = table.shape[1]
    if ends.ndim < 2 and ends.shape != (wide,) and wide == 1 and ends.size in (1, shape[0]):
        ends = ends.reshape(-1, 1)
    if ends.shape not in ((1, 1), (wide,), (1, wide), (shape[0], wide)) or np.isnan(ends).any():
        raise ValueError(
            f"The {name!r} parameter must be a dose, or one for each of {shape[0]} units. "
            f"Got shape {np.shape(end)}{' with NaN' if np.isnan(ends).any() else ''} instead."
        )
    ends = np.broadcast_to(ends, (shape[0], wide))
    inside = np.ones(shape, bool)
    for column, each in zip(table.T, ends.T, strict=True):
        beyond = np.less if name == "min_dose" else np.greater
        inside &= ~beyond(column[None], each[:, None])
    return inside if marks is None else inside & marks


def checked_number(value: Any, name: str, *, lowest: float = -np.inf) -> float:
    """One number, infinity included."""
    if not isinstance(value, Real) or isinstance(value, bool) or not float(value) >= lowest:
        rule = "" if lowest == -np.inf else f" of at least {lowest:g}"
        raise ValueError(f"The {name!r} parameter must be a number{rule}. Got {value!r} instead.")
    return float(value)


def budget_limit(problem: DoseProblem, budget: Any) -> Limit:
    """The limit of a budget for all units."""
    cap = checked_number(budget, "budget")
    return Limit("budget", problem.cost, None, np.array([cap]), np.array(["all units"]))


def part_limit(
    problem: DoseProblem, weights: Array, parts: Any, caps: Any, names: tuple[str, str]
) -> Limit:
    """The limit of caps by label; `names` are those of the labels and of the caps."""
    of_units, of_caps = names
    labels = as_labels(parts, of_units)
    if labels.shape != (problem.n_units,) or missing_marks(labels).any():
        raise ValueError(
            f"The {of_units!r} parameter must have one label per unit ({problem.n_units}), none "
            f"of them missing. Got shape {labels.shape} instead."
        )
    if isinstance(caps, Mapping):
        return _by_label(weights, labels, caps, names)
    amounts = as_numbers(caps, of_caps).astype(np.float64)
    labels = np.asarray(labels.tolist()) if labels.dtype.kind == "O" else labels
    if len(labels) and labels.dtype.kind not in "iu":
        raise ValueError(
            f"The {of_caps!r} parameter must be a dictionary by label where {of_units!r} are not "
            f"integers. Got {type(caps).__name__} instead."
        )
    if amounts.ndim != 1:
        raise ValueError(
            f"The {of_caps!r} parameter must be one number for each of {of_units!r}. "
            f"Got shape {amounts.shape} instead."
        )
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(amounts):
        raise ValueError(
            f"The {of_units!r} parameter must hold places in {of_caps!r}, 0 to "
            f"{len(amounts) - 1}. Got {labels.min()} to {labels.max()} instead."
        )
    return _limit(weights, labels.astype(np.int64), amounts, np.arange(len(amounts)), names)


def _by_label(
    weights: Array, labels: Array, caps: Mapping[Any, Any], names: tuple[str, str]
) -> Limit:
    """Caps from a dictionary, whose keys may also be labels that no unit has."""
    try:
        found, place = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise TypeError(
            f"The {names[0]!r} parameter must hold values of one sortable type, such as integers "
            f"or strings. Got a mixture instead ({error})."
        ) from error
    known = found.tolist()
    without = [label for label in known if label not in caps]
    if without:
        raise ValueError(
            f"The {names[1]!r} parameter must have a cap for each of {names[0]!r}, infinity where "
            f"there is none. Got none for {without[0]!r} ({len(without)} such labels) instead."
        )
    seen = set(known)
    every = [*known, *(label for label in caps if label not in seen)]
    amounts = np.array([checked_number(caps[label], names[1]) for label in every], np.float64)
    listed = np.empty(len(every), object)
    listed[:] = every
    return _limit(weights, place.astype(np.int64), amounts, listed, names)


def _limit(
    weights: Array, parts: IntArray, caps: FloatArray, labels: Array, names: tuple[str, str]
) -> Limit:
    if np.isnan(caps).any():
        where = labels[np.isnan(caps)].tolist()[0]
        raise ValueError(
            f"The {names[1]!r} parameter must hold numbers, or infinity. Got nan for {where!r} "
            "instead."
        )
    return Limit(names[1], weights, parts, caps, labels)


def with_risk(problem: DoseProblem, standard_error: Any, risk: Any) -> DoseProblem:
    """The problem with what uncertainty takes off its values."""
    rule = checked_risk(risk)
    if (standard_error is None) != (rule is None):
        missing, given = ("risk", "standard_error") if rule is None else ("standard_error", "risk")
        raise ValueError(
            f"The {missing!r} parameter must be given together with {given!r}. Got None instead."
        )
    if rule is None:
        return problem
    errors = _matrix(standard_error, "standard_error", problem.value.shape)
    _check_not_negative(errors, "standard_error")
    return replace(problem, value=problem.value - rule.penalty(errors))


def checked_demand(problem: DoseProblem, demand: Any) -> Array:
    """Demand of every unit at every dose."""
    if demand is None:
        raise ValueError(
            "The 'demand' parameter must be given where 'cells' have a supply. Got None instead."
        )
    matrix = _matrix(demand, "demand", problem.value.shape)
    _check_not_negative(matrix, "demand")
    return matrix
