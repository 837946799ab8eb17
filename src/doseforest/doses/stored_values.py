"""Values of a file, checked before anything is computed with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np

from doseforest.base.container import require_of
from doseforest.base.dtypes import Array, DoseArray, FloatArray
from doseforest.data.checks import LARGEST_VALUE
from doseforest.doses.dose_values import MAX_COMPONENTS, Doses

FLOATS, INTEGERS = np.dtype("<f8"), np.dtype("<i8")
# No correction of outcomes of size 1e27 comes near it, and products of three are finite.
LARGEST_RESULT = 1e100

ArrayTypes = Mapping[str, tuple[np.dtype[Any], int]]  # type and number of dimensions


@dataclass(frozen=True, slots=True)
class FileChecks:
    """Refuses values that do not fit; its errors name what they belong to.

    Examples
    --------
    >>> FileChecks("forest").count({"n_features": 3}, "n_features", 1, 10)
    3
    >>> FileChecks("forest").number({"share": -0.5}, "share", 0.0, 1.0)
    Traceback (most recent call last):
        ...
    doseforest.base.container.ForestFileError: the forest has share out of range; ...
    """

    owner: str

    def require(self, condition: bool, problem: str) -> None:
        """Raise ForestFileError unless a condition holds."""
        require_of(self.owner, condition, problem)

    def count(self, values: Mapping[str, Any], name: str, least: int, most: int) -> int:
        """Return a whole number of a description."""
        value = values[name]
        self.require(type(value) is int and least <= value <= most, f"has {name} out of range")
        return int(value)

    def number(
        self,
        values: Mapping[str, Any],
        name: str,
        least: float = -math.inf,
        most: float = math.inf,
    ) -> float:
        """Return a finite number of a description."""
        value = values[name]
        fits = type(value) in (int, float) and math.isfinite(value) and least <= value <= most
        self.require(fits, f"has {name} out of range")
        return float(value)

    def dose(self, values: Mapping[str, Any], name: str) -> float:
        """Return a dose of a description, no larger than doses of training may be."""
        return self.number(values, name, -LARGEST_VALUE, LARGEST_VALUE)

    def one_dose(self, value: Any, name: str, n_components: int) -> Any:
        """Return a dose of a description: a number, or as many as it has components."""
        if n_components == 1:
            return self.dose({name: value}, name)
        fits = isinstance(value, list) and len(value) == n_components
        self.require(fits, f"has {name} out of range")
        return Doses.of_table(np.array([[self.dose({name: own}, name) for own in value]])).values[0]

    def flag(self, values: Mapping[str, Any], name: str) -> bool:
        """Return a truth of a description."""
        value = values[name]
        self.require(isinstance(value, bool), f"has {name} out of range")
        return bool(value)

    def fields(self, made: Any, *parts: type) -> None:
        """Refuse an object with fields that are no numbers, tuples or parts of a kind."""
        values = [getattr(made, field.name) for field in fields(made)]
        fits = all(type(value) in (int, float, tuple, *parts) for value in values)
        self.require(fits, "is not made of numbers")

    def finite(self, *values: Any) -> None:
        """Refuse what is no finite number."""
        finite = all(type(value) in (int, float) and math.isfinite(value) for value in values)
        self.require(finite, "has something else than finite numbers")

    def increasing(self, values: Sequence[float], name: str) -> None:
        """Refuse numbers out of order."""
        self.require(all(low < high for low, high in pairwise(values)), f"has {name} out of order")

    def names(self, names: Any, n_names: int, what: str) -> tuple[str, ...]:
        """Return as many texts as there should be, no two of them equal."""
        self.require(
            isinstance(names, list)
            and len(names) == n_names
            and all(isinstance(name, str) for name in names)
            and len(set(names)) == n_names,
            f"has not one name per {what}, all distinct",
        )
        return tuple(names)

    def array(
        self, arrays: Mapping[str, Array], name: str, dtype: np.dtype[Any], n_dimensions: int
    ) -> Any:
        """Return an array of the right type, with nothing but finite numbers in it."""
        self.require(name in arrays, f"lacks the array {name!r}")
        array = arrays[name]
        self.require(
            array.dtype == dtype and array.ndim == n_dimensions,
            f"has an array {name!r} of the wrong type or shape",
        )
        finite = dtype.kind != "f" or bool(np.isfinite(array).all())
        self.require(finite, f"has a non-finite number in {name}")
        return array

    def arrays(self, arrays: Mapping[str, Array], types: ArrayTypes) -> dict[str, Any]:
        """Return several arrays, each of its type, with nothing but finite numbers in them."""
        return {
            name: self.array(arrays, name, dtype, n_dimensions)
            for name, (dtype, n_dimensions) in types.items()
        }

    def vector(self, arrays: Mapping[str, Array], name: str, length: int) -> FloatArray:
        """Return that many numbers, none of them so large that sums overflow."""
        vector: FloatArray = self.array(arrays, name, FLOATS, 1)
        self.require(len(vector) == length, f"has an array {name!r} of the wrong length")
        self.moderate(vector, name)
        return vector

    def moderate(self, values: FloatArray, name: str) -> None:
        """Refuse numbers that are NaN or so large that sums of products overflow."""
        fits = bool((np.abs(values) <= LARGEST_RESULT).all())
        self.require(fits, f"has too large a number in {name}")

    def doses(self, arrays: Mapping[str, Array], name: str) -> DoseArray:
        """Return one or more ascending doses; those of several components are a table in a file."""
        self.require(name in arrays, f"lacks the array {name!r}")
        table = self.array(arrays, name, FLOATS, 2 if arrays[name].ndim == 2 else 1)
        joint = table.ndim == 2
        fits = not joint or 2 <= table.shape[1] <= MAX_COMPONENTS
        self.require(fits, f"has {name} out of range")
        doses = Doses.of_table(table) if joint else Doses(table)
        self.ascending(doses, name)
        return doses.values

    def ascending(self, doses: Doses, name: str) -> None:
        """Refuse doses that are none, too large or not ascending."""
        self.require(
            len(doses) > 0
            and bool((np.abs(doses.table) <= LARGEST_VALUE).all())
            and np.array_equal(doses.distinct, doses),
            f"has {name} out of order",
        )
