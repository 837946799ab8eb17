"""Doses of several components: two discounts at once, an arm and its dose.

A dose is one element of an array whatever it is made of: a number, or a record of up to three
numbers. Arrays of doses so have the same shapes for every treatment, (n_rows,) as observed,
(n_doses,) as a grid, (n_units, n_doses) as each unit's own, and only what looks into a dose asks
for its `components`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray

MAX_COMPONENTS = 3


def vectors(table: FloatArray) -> DoseArray:
    """Doses of a table of components, (..., n_components) to (...); one component stays a number.

    >>> vectors(np.array([[1.0, 2.0], [3.0, 4.0]])).shape
    (2,)
    >>> vectors(np.array([[1.0], [3.0]]))
    array([1., 3.])
    """
    n_components = table.shape[-1]
    if n_components == 1:
        return table[..., 0]
    dtype = np.dtype([(str(place), np.float64) for place in range(n_components)])
    records: DoseArray = np.ascontiguousarray(table, np.float64).view(dtype)
    return records.reshape(table.shape[:-1])


def components(doses: DoseArray) -> FloatArray:
    """Components of doses of any shape, (...) to (..., n_components).

    >>> components(vectors(np.array([[1.0, 2.0], [3.0, 4.0]])))[1]
    array([3., 4.])
    """
    names = doses.dtype.names
    if names is None:
        numbers: FloatArray = doses[..., None]
        return numbers
    flat = np.ascontiguousarray(doses).view(np.float64)
    return flat.reshape(*doses.shape, len(names))


def n_components(doses: DoseArray) -> int:
    """Number of components of each dose.

    >>> n_components(np.zeros(3))
    1
    """
    return 1 if doses.dtype.names is None else len(doses.dtype.names)


def dose_text(dose: Any, digits: int = 6) -> str:
    """A dose as text: a number, or components in brackets.

    >>> dose_text(2.0), dose_text(vectors(np.array([[1.0, 0.5]]))[0]), dose_text([1.234, 5.0], 3)
    ('2', '(1, 0.5)', '(1.23, 5)')
    """
    parts: Any = dose.item() if isinstance(dose, np.void) else dose
    if np.ndim(parts):
        return f"({', '.join(f'{own:.{digits}g}' for own in parts)})"
    return f"{parts:.{digits}g}"


def dose_columns(dose: DoseArray) -> list[FloatArray]:
    """The observed values of each component, (n_rows,) each."""
    return [np.ascontiguousarray(column) for column in components(dose).T]


def grid_of(axes: list[FloatArray]) -> DoseArray:
    """Every combination of values of the components, the last one changing fastest.

    >>> grid_of([np.array([0.0, 1.0]), np.array([5.0, 6.0])]).tolist()
    [(0.0, 5.0), (0.0, 6.0), (1.0, 5.0), (1.0, 6.0)]
    """
    return vectors(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes)))


def is_record(doses: Any) -> bool:
    """Whether doses have several components.

    >>> is_record([1.0, 2.0]), is_record(vectors(np.zeros((3, 2))))
    (False, True)
    """
    return isinstance(doses, np.ndarray) and doses.dtype.names is not None


def moved(doses: DoseArray, component: int, by: float) -> DoseArray:
    """Doses with one component changed.

    >>> moved(vectors(np.array([[1.0, 2.0]])), 1, 0.5).tolist()
    [(1.0, 2.5)]
    """
    table = components(doses).copy()
    table[..., component] += by
    return vectors(table)


def plain_doses(doses: DoseArray) -> FloatArray:
    """Doses as users give them: numbers, or components along the last axis.

    >>> plain_doses(np.array([1.0, 2.0]))
    array([1., 2.])
    >>> plain_doses(vectors(np.array([[1.0, 2.0]])))
    array([[1., 2.]])
    """
    return components(doses) if is_record(doses) else doses


def plain_dose(dose: Any) -> Any:
    """One dose as plain values: a float, or a list of components.

    >>> plain_dose(vectors(np.array([[1.0, 2.0]]))[0])
    [1.0, 2.0]
    """
    return list(dose.item()) if isinstance(dose, np.void) else float(dose)
