"""Doses of two components as the cells of a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class DoseCells:
    """Values of both components, and the cell of each dose."""

    first: FloatArray  # (n_first,) ascending
    second: FloatArray  # (n_second,) ascending
    places: IntArray  # (n_doses,) in the flattened table

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return len(self.first), len(self.second)

    def filled(self, values: FloatArray) -> FloatArray:
        """The table of values, NaN where there is no dose."""
        table = np.full(len(self.first) * len(self.second), np.nan)
        table[self.places] = values
        return table.reshape(self.shape)


def dose_cells(doses: FloatArray) -> DoseCells | None:
    """Cells of doses (n_doses, 2); None where less than half of the table would be filled.

    Examples
    --------
    >>> cells = dose_cells(np.array([[0.0, 5.0], [0.0, 6.0], [1.0, 5.0]]))
    >>> cells.filled(np.array([1.0, 2.0, 3.0]))
    array([[ 1.,  2.],
           [ 3., nan]])
    >>> dose_cells(np.array([0.0, 1.0])) is None
    True
    """
    if doses.ndim != 2 or doses.shape[1] != 2:
        return None
    first, row = np.unique(doses[:, 0], return_inverse=True)
    second, column = np.unique(doses[:, 1], return_inverse=True)
    if min(len(first), len(second)) < 2 or 2 * len(doses) < len(first) * len(second):
        return None
    return DoseCells(first, second, row * len(second) + column)
