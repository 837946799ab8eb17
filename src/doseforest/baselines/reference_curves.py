"""Curves without heterogeneity, which any model has to beat: no effect, and one curve for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.baselines.baseline import Baseline
from doseforest.baselines.baseline_inputs import require_int, table_of
from doseforest.data.checks import checked_columns
from doseforest.data.feature_table import ArrayTable, BlockSource, categories_of
from doseforest.doses.curve_effects import dose_table
from doseforest.doses.dose_values import MAX_COMPONENTS, Doses


class ZeroEffect(Baseline):
    """The mean outcome at every dose.

    Examples
    --------
    >>> model = ZeroEffect().fit(np.zeros((2, 1)), [1.0, 3.0], treatment=[0.0, 1.0])
    >>> model.dose_response(np.zeros((1, 1)), [0.0, 5.0])
    array([[2., 2.]])
    """

    def fit(self, X: Any, y: Any, *, treatment: Any = None) -> Self:
        """Average the outcomes.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features: a table of numpy, pandas or polars.
        y : array of shape (n_rows,)
            Outcomes.
        treatment : array of shape (n_rows,) or (n_rows, n_components), optional
            Observed doses, for `elasticity`.

        Returns
        -------
        ZeroEffect
            The same object, fitted.
        """
        table = table_of(X)
        outcome = checked_columns(y, "y", table.n_rows, 1)[:, 0]
        self._keep(table.n_features, table.names, _given_doses(treatment, table.n_rows))
        self.level_ = float(outcome.mean())
        return self

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """The mean outcome, shape (n_units, n_doses)."""
        table = dose_table(doses, self._count(X), n_components=self.n_components)
        return np.full(table.shape, self.level_)


class AverageCurve(Baseline):
    """A given curve for every unit: ADRF only.

    With the exact one, `AverageCurve(simulation.average)`, it has the least error that a model
    without heterogeneity can have.

    Parameters
    ----------
    average : callable
        Average outcome at an array of doses of shape (n_doses,), or (n_doses, n_components).

    Examples
    --------
    >>> AverageCurve(np.sqrt).effect(np.zeros((2, 1)), dose=9.0, baseline=4.0)
    array([1., 1.])
    """

    def __init__(self, average: Callable[[FloatArray], FloatArray]) -> None:
        self.average = average

    def fit(self, X: Any, y: Any, *, treatment: Any = None) -> Self:
        """Keep the columns and the range of doses: the curve is not estimated.

        Predictions work without a fit too.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features: a table of numpy, pandas or polars.
        y : array of shape (n_rows,)
            Outcomes; only their number counts.
        treatment : array of shape (n_rows,) or (n_rows, n_components), optional
            Observed doses, for `elasticity`.

        Returns
        -------
        AverageCurve
            The same object.
        """
        table = table_of(X)
        checked_columns(y, "y", table.n_rows, 1)
        self._keep(table.n_features, table.names, _given_doses(treatment, table.n_rows))
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Always."""
        return True

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """The average curve, shape (n_units, n_doses)."""
        table = dose_table(doses, self._count(X), n_components=self.n_components)
        return at_distinct_doses(self.average, table)


class ConstantCurve(Baseline):
    """The average of a model's curves for every unit: what is left without its heterogeneity.

    Parameters
    ----------
    model : estimator with `fit(X, y, treatment=...)` and `dose_response(X, doses)`
        It is cloned, and given tables as they come.
    max_units : int, default=1000
        Training units whose curves are averaged, evenly spread over the rows.

    Attributes
    ----------
    model_ : estimator
        Fitted.
    units_ : table of shape (n_kept, n_features)
        Units whose curves are averaged, in the kind of table that fit was given.

    Examples
    --------
    >>> from doseforest.baselines import OutcomeRegressor
    >>> from sklearn.linear_model import LinearRegression
    >>> X, dose = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([0.0, 2.0, 1.0, 5.0])
    >>> model = ConstantCurve(OutcomeRegressor(LinearRegression()))
    >>> model.fit(X, X[:, 0] + 3 * dose, treatment=dose).dose_response(X[:2], [0.0, 1.0]).round(6)
    array([[1.75, 4.75],
           [1.75, 4.75]])
    """

    def __init__(self, model: Any, max_units: int = 1000) -> None:
        self.model = model
        self.max_units = max_units

    def fit(self, X: Any, y: Any, *, treatment: Any) -> Self:
        """Fit the model, and keep some units to average over.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features, as the model takes them.
        y : array of shape (n_rows,)
            Outcomes.
        treatment : array of shape (n_rows,) or (n_rows, n_components)
            Observed doses.

        Returns
        -------
        ConstantCurve
            The same object, fitted.
        """
        require_int("max_units", self.max_units, 1)
        table = table_of(X)
        self.model_ = clone(self.model).fit(X, y, treatment=treatment)
        kept = np.linspace(0, table.n_rows - 1, min(table.n_rows, int(self.max_units)))
        self.units_ = _rows_at(X, kept.astype(np.int64))
        self._keep(table.n_features, table.names, _given_doses(treatment, table.n_rows))
        return self

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """The average of the model's curves, shape (n_units, n_doses)."""
        table = dose_table(doses, self._count(X), n_components=self.n_components)
        return at_distinct_doses(self._average, table)

    def _average(self, doses: FloatArray) -> FloatArray:
        curves = np.asarray(self.model_.dose_response(self.units_, doses))
        average: FloatArray = curves.mean(axis=0)
        return average


def at_distinct_doses(average: Callable[[FloatArray], FloatArray], doses: Doses) -> FloatArray:
    """One curve at a table of doses, asked once for each distinct dose.

    It is asked about numbers, (n_doses,), or about components, (n_doses, n_components).

    Examples
    --------
    >>> at_distinct_doses(np.square, Doses.of([[1.0, 2.0], [2.0, 1.0]]))
    array([[1., 4.],
           [4., 1.]])
    """
    distinct, place = np.unique(doses.values, return_inverse=True)
    values: FloatArray = np.asarray(average(Doses(distinct).plain), np.float64)
    if values.shape != distinct.shape:
        raise ValueError(
            f"The 'average' parameter must give one value per dose, {distinct.shape}. "
            f"Got shape {values.shape} instead."
        )
    return values[place].reshape(doses.shape)


def _given_doses(treatment: Any, n_rows: int) -> FloatArray | None:
    """Doses (n_rows, n_components), checked where they are given."""
    if treatment is None:
        return None
    return checked_columns(treatment, "treatment", n_rows, MAX_COMPONENTS).astype(np.float64)


def _rows_at(X: Any, places: IntArray) -> Any:
    """Rows of a table, in its own kind; of blocks as one array with their names and labels."""
    if not isinstance(X, BlockSource):
        return _safe_indexing(X, places)
    values = np.concatenate([block for _, block in X.blocks()])
    return ArrayTable(values[places], X.names, categories=categories_of(X))
