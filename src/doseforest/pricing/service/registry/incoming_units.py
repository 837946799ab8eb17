"""Units as they come in, checked once: a policy and its forest do not look at them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import Array
from doseforest.data.feature_table import Categories
from doseforest.policy import DosePolicy, ExplorationPolicy, Explore
from doseforest.policy.artifact.unit_columns import CheckedUnits, checked_units

Feature = str | float | int | bool | None
Features = Mapping[str, Feature]
UNIT = "unit"  # the column that every unit has: its id


@dataclass(frozen=True, slots=True)
class ServedUnit:
    """One unit of a request."""

    unit: str
    cell: str
    features: Features


@dataclass(frozen=True, slots=True)
class UnitColumns:
    """What a policy needs of units."""

    features: tuple[str, ...]  # of its forest, in their order
    categories: Categories
    codes: Mapping[int, Mapping[Any, int]]  # of the labels of categorical features
    columns: tuple[str, ...]  # that its rules name
    numbers: frozenset[str] = frozenset()  # those of the columns that hold numbers
    key: str | None = None  # that of the columns by which draws go

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that it asks of a unit but its id."""
        asked = (*self.features, *self.columns)
        return tuple(dict.fromkeys(name for name in asked if name != UNIT))


def needed_columns(policy: Any) -> UnitColumns:
    """What a policy needs; features without names are x0, x1 and so on."""
    forest = forest_of(policy)
    columns, numbers, key = tuple(policy.columns), _number_columns(policy), _key_of(policy)
    if forest is None:
        return UnitColumns((), {}, {}, columns, numbers, key)
    known = getattr(forest, "forest", forest)  # a distilled forest's own forest
    names = known.feature_names or tuple(f"x{place}" for place in range(known.n_features))
    categories = dict(known.categories)
    codes = {
        place: {label: code for code, label in enumerate(labels)}
        for place, labels in categories.items()
    }
    return UnitColumns(tuple(names), categories, codes, columns, numbers, key)


def forest_of(policy: Any) -> Any:
    """The forest behind a policy; None where it has none."""
    return getattr(getattr(policy, "policy", policy), "forest", None)


def _number_columns(policy: Any) -> frozenset[str]:
    """Columns of amounts and limits; the others hold labels or keys."""
    inner = getattr(policy, "policy", policy)
    if not isinstance(inner, DosePolicy):
        return frozenset()
    limits = [each for each in (inner.min_dose, inner.max_dose) if isinstance(each, str)]
    return frozenset((*limits, *(name for rule in inner.rules for name in rule.columns())))


def _key_of(policy: Any) -> str | None:
    return policy.key if isinstance(policy, ExplorationPolicy | Explore) else None


def checked_request(
    units: Sequence[ServedUnit], needed: UnitColumns
) -> tuple[CheckedUnits, NDArray[np.bool_]]:
    """Units as a policy decides on them, and which of them lack something or have it wrong.

    Of a unit that lacks a feature no feature is known: policies then give it their baseline. A
    feature that is null is missing, which forests know how to deal with.
    """
    lacking: NDArray[np.bool_] = np.zeros(len(units), bool)
    columns = {}
    for name in needed.columns:
        columns[name], without = _column(units, name, needed)
        lacking |= without
    if not needed.features:
        return CheckedUnits(len(units), columns, np.zeros(len(units), bool)), lacking
    values = np.full((len(units), len(needed.features)), np.nan)
    for place, unit in enumerate(units):
        row = _row(unit.features, needed)
        if row is None:
            lacking[place] = True
        else:
            values[place] = row
    return checked_units(values, needed.features, needed.categories, columns), lacking


def _row(features: Features, needed: UnitColumns) -> list[float] | None:
    """Numbers of one unit's features; None where one is absent or not of its kind."""
    row = []
    for place, name in enumerate(needed.features):
        value = features.get(name, needed)
        if value is None:
            row.append(np.nan)
        elif place in needed.codes:
            if value is needed:
                return None
            row.append(needed.codes[place].get(value, np.nan))  # unseen ones are missing
        elif isinstance(value, float):
            row.append(value)
        elif isinstance(value, int):
            row.append(_number(value))
        else:
            return None
    return row


def _number(value: Feature) -> float:
    """A number; NaN for what is none."""
    try:
        return float(value) if isinstance(value, int | float) else np.nan
    except OverflowError:  # a whole number with hundreds of digits
        return np.nan


def _label(value: Feature) -> Feature:
    """A label in one form, whatever its unit's company: 7.0 and true are the numbers 7 and 1."""
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_whole else value  # type: ignore[arg-type]


def _column(
    units: Sequence[ServedUnit], name: str, needed: UnitColumns
) -> tuple[Array, NDArray[np.bool_]]:
    """A column that rules name: numbers or labels; and which units lack it or have it wrong.

    What one unit sends changes nothing for the others: values are read one by one.
    """
    if name == UNIT:
        return np.array([unit.unit for unit in units]), np.zeros(len(units), bool)
    result = [unit.features.get(name) for unit in units]
    if name in needed.numbers:
        column = np.array([_number(value) for value in result], np.float64)
        return column, np.isnan(column)
    absent = np.array([value is None for value in result])
    labels = [_label(value) for value in result]
    if name == needed.key:  # draws of units that lack their key go by their ids
        labels = [
            unit.unit if label is None else label if isinstance(label, int) else str(label)
            for unit, label in zip(units, labels, strict=True)
        ]
    column = np.empty(len(units), object)
    column[:] = labels
    return column, absent
