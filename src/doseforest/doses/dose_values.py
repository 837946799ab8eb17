"""Doses, whatever they are made of: a number each, two discounts at once, an arm and its dose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray

MAX_COMPONENTS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Doses:
    """Doses of one or several components, in an array of any shape with one element for each dose.

    An element is a number, or a record of up to three numbers. Shapes so are the same for every
    treatment: (n_rows,) as observed, (n_doses,) as a grid, (n_units, n_doses) as doses of each
    unit, () as one dose. Only `table` and `columns` look into a dose.

    Parameters
    ----------
    values : array
        Checked doses: numbers, or records of numbers. Where a dose is one number, what calculates
        with it does so on `values`.

    Examples
    --------
    >>> doses = Doses.of_table(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> doses.shape, doses.n_components, doses.columns[1]
    ((2,), 2, array([2., 4.]))
    >>> doses[0].plain, Doses.of([0.5, 1.0])[1].plain
    ([1.0, 2.0], 1.0)
    """

    values: DoseArray

    @classmethod
    def of(cls, doses: Any) -> Doses:
        """Doses of an array with one element for each, checked already.

        >>> Doses.of(2.0).shape
        ()
        """
        return doses if isinstance(doses, cls) else cls(np.asarray(doses))

    @classmethod
    def of_table(cls, table: FloatArray) -> Doses:
        """Doses of a table of components, (..., n_components); one component stays a number.

        >>> Doses.of_table(np.array([[1.0], [3.0]])).values
        array([1., 3.])
        """
        n_components = table.shape[-1]
        if n_components == 1:
            return cls(table[..., 0])
        dtype = np.dtype([(str(place), np.float64) for place in range(n_components)])
        records: DoseArray = np.ascontiguousarray(table, np.float64).view(dtype)
        return cls(records.reshape(table.shape[:-1]))

    @classmethod
    def product(cls, axes: Sequence[FloatArray]) -> Doses:
        """Every combination of values of the components, the last one changing fastest.

        >>> Doses.product([np.array([0.0, 1.0]), np.array([5.0, 6.0])]).values.tolist()
        [(0.0, 5.0), (0.0, 6.0), (1.0, 5.0), (1.0, 6.0)]
        """
        return cls.of_table(
            np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of doses."""
        return self.values.shape

    @property
    def n_components(self) -> int:
        """Number of components of each dose."""
        names = self.values.dtype.names
        return 1 if names is None else len(names)

    @property
    def joint(self) -> bool:
        """Whether each dose has several components."""
        return self.values.dtype.names is not None

    @property
    def table(self) -> FloatArray:
        """Components along a last axis, (..., n_components)."""
        names = self.values.dtype.names
        if names is None:
            numbers: FloatArray = self.values[..., None]
            return numbers
        flat = np.ascontiguousarray(self.values).view(np.float64)
        return flat.reshape(*self.values.shape, len(names))

    @property
    def columns(self) -> list[FloatArray]:
        """Values of each component of doses of shape (n,), (n,) each."""
        return [np.ascontiguousarray(column) for column in self.table.T]

    @property
    def plain(self) -> Any:
        """Doses as users give them: numbers, or components along the last axis.

        One dose is a float or a list.

        >>> Doses.of_table(np.array([[1.0, 2.0]])).plain, Doses.of(1).plain
        (array([[1., 2.]]), 1.0)
        """
        if not self.shape:
            return self.table.tolist() if self.joint else float(self.values)
        return self.table if self.joint else self.values

    @classmethod
    def stack(cls, parts: Sequence[Doses]) -> Doses:
        """Doses of the same shape side by side along a new last axis.

        >>> Doses.stack([Doses.of([1.0, 2.0]), Doses.of([5.0, 6.0])]).plain
        array([[1., 5.],
               [2., 6.]])
        """
        return cls(np.stack([part.values for part in parts], axis=-1))

    @property
    def distinct(self) -> Doses:
        """Each dose once, ascending by its components, (n,)."""
        return Doses(np.unique(self.values))

    @property
    def axis(self) -> FloatArray | None:
        """The numbers of doses of one component, which a curve runs along; None of several."""
        return None if self.joint else self.values

    @property
    def element(self) -> Any:
        """One dose as an array holds it: a number, or a record."""
        return self.values[()]

    def moved(self, component: int, by: float) -> Doses:
        """Doses with one component changed.

        >>> Doses.of_table(np.array([[1.0, 2.0]])).moved(1, 0.5).plain
        array([[1. , 2.5]])
        """
        table = self.table.copy()
        table[..., component] += by
        return Doses.of_table(table)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, places: Any) -> Doses:
        return Doses(np.asarray(self.values[places]))

    def __iter__(self) -> Iterator[Doses]:
        return (self[place] for place in range(len(self)))

    def __eq__(self, other: Any) -> Any:
        """Which doses are the same, one by one, as of arrays."""
        return self.values == Doses.of(other).values

    def __ne__(self, other: Any) -> Any:
        return self.values != Doses.of(other).values

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> DoseArray:
        return np.array(self.values, dtype, copy=copy)


AnyDoses = Doses | DoseArray  # what a function takes that is about observed doses


def is_checked(doses: Any) -> bool:
    """Whether doses were checked before: they are of the type, or records of an answer.

    >>> is_checked([1.0, 2.0]), is_checked(Doses.of([1.0, 2.0]))
    (False, True)
    """
    records = isinstance(doses, np.ndarray | np.void) and doses.dtype.names is not None
    return records or isinstance(doses, Doses)


def dose_text(dose: Any, digits: int = 6) -> str:
    """One dose as text: a number, or components in brackets.

    >>> dose_text(2.0), dose_text(Doses.of_table(np.array([1.0, 0.5]))), dose_text([1.234, 5.0], 3)
    ('2', '(1, 0.5)', '(1.23, 5)')
    """
    parts = Doses.of(dose).plain
    if np.ndim(parts):
        return f"({', '.join(f'{part:.{digits}g}' for part in parts)})"
    return f"{parts:.{digits}g}"
