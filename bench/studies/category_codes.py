"""Columns that are codes of categories: which they are, and indicators in their place."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.preprocessing import OneHotEncoder

from bench.designs import CATEGORY_COLUMNS, Simulation
from doseforest.base.dtypes import FloatArray


def code_columns(data: Simulation) -> list[int] | None:
    """Places of the columns of a data set that are codes; None without any.

    Examples
    --------
    >>> from bench.designs import find_design
    >>> [code_columns(find_design(name).draw(n=10, seed=0)) for name in ("shops", "steps")]
    [[0], None]
    """
    return list(CATEGORY_COLUMNS.get(data.name, ())) or None


class WithIndicators:
    """Curves of a model that has an indicator of each category in the place of its code.

    Categories that fit has not seen have none.

    Examples
    --------
    >>> from doseforest.baselines import boosting
    >>> X, doses = np.array([[7.0, 0.5], [3.0, 0.1], [7.0, 0.2]]), np.arange(3.0)
    >>> model = WithIndicators(boosting(), [0]).fit(X, doses, treatment=doses)
    >>> model.encode(np.array([[3.0, 0.4], [5.0, 0.4]]))
    array([[0.4, 1. , 0. ],
           [0.4, 0. , 0. ]])
    """

    def __init__(self, model: Any, columns: list[int]) -> None:
        self.model = model
        self.columns = columns

    def fit(self, X: FloatArray, y: FloatArray, *, treatment: FloatArray) -> Self:
        """Learn the categories and fit the model."""
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        self.encoder_ = encoder.fit(X[:, self.columns])
        self.model_ = self.model.fit(self.encode(X), y, treatment=treatment)
        return self

    def encode(self, X: FloatArray) -> FloatArray:
        """The other columns, then indicators."""
        others = np.delete(X, self.columns, axis=1)
        encoded: FloatArray = np.hstack([others, self.encoder_.transform(X[:, self.columns])])
        return encoded

    def dose_response(self, X: FloatArray, doses: Any) -> FloatArray:
        """Curves of the model."""
        curves: FloatArray = self.model_.dose_response(self.encode(X), doses)
        return curves
