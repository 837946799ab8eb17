"""Curves without heterogeneity, which any model has to beat: no effect, and one curve for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from doseforest.baselines.inputs import feature_matrix, table_shape
from doseforest.data.checks import checked_columns
from doseforest.dtypes import FloatArray
from doseforest.prediction.curve_effects import CurveEffects, dose_table
from doseforest.treatments.vectors import MAX_COMPONENTS


class ZeroEffect(CurveEffects, BaseEstimator):  # type: ignore[misc]
    """The mean outcome at every dose.

    Examples
    --------
    >>> model = ZeroEffect().fit(np.zeros((2, 1)), [1.0, 3.0], treatment=[0.0, 1.0])
    >>> model.dose_response(np.zeros((1, 1)), [0.0, 5.0])
    array([[2., 2.]])
    """

    def fit(self, X: Any, y: Any, *, treatment: Any = None) -> Self:
        """Average the outcomes."""
        outcome, self.n_features_in_ = _looked_at(X, y, treatment)
        self.level_ = float(outcome.mean())
        return self

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """The mean outcome, shape (n_units, n_doses)."""
        check_is_fitted(self)
        n_units, _ = table_shape(X, self.n_features_in_)
        return np.full(dose_table(doses, n_units).shape, self.level_)


class AverageCurve(CurveEffects, BaseEstimator):  # type: ignore[misc]
    """A given curve for every unit: ADRF only.

    With the exact one, `AverageCurve(simulation.average)`, it has the least error that a model
    without heterogeneity can have.

    Parameters
    ----------
    average : callable
        Average outcome at an array of doses of shape (n_doses,).

    Examples
    --------
    >>> AverageCurve(np.sqrt).effect(np.zeros((2, 1)), dose=9.0, baseline=4.0)
    array([1., 1.])
    """

    def __init__(self, average: Callable[[FloatArray], FloatArray]) -> None:
        self.average = average

    def fit(self, X: Any, y: Any, *, treatment: Any = None) -> Self:
        """Nothing is learned but the number of features; it also answers without a fit."""
        _, self.n_features_in_ = _looked_at(X, y, treatment)
        return self

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """The average curve, shape (n_units, n_doses)."""
        n_units, _ = table_shape(X, getattr(self, "n_features_in_", None))
        return at_distinct_doses(self.average, dose_table(doses, n_units))


class ConstantCurve(CurveEffects, BaseEstimator):  # type: ignore[misc]
    """The average of a model's curves for every unit: what is left without its heterogeneity.

    Parameters
    ----------
    model : estimator with `fit(X, y, treatment=...)` and `dose_response(X, doses)`
        It is cloned.
    max_units : int, default=1000
        Training units whose curves are averaged, evenly spread over the rows.

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
        """Fit the model, keep some units to average over."""
        if self.max_units < 1:
            raise ValueError(
                "The 'max_units' parameter of ConstantCurve must be an int of at least 1. "
                f"Got {self.max_units!r} instead."
            )
        features = feature_matrix(X)
        self.model_ = clone(self.model).fit(features, y, treatment=treatment)
        kept = np.linspace(0, len(features) - 1, min(len(features), self.max_units))
        self.units_ = features[kept.astype(np.int64)]
        self.n_features_in_ = features.shape[1]
        return self

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """The average of the model's curves, shape (n_units, n_doses)."""
        check_is_fitted(self)
        n_units, _ = table_shape(X, self.n_features_in_)
        return at_distinct_doses(self._average, dose_table(doses, n_units))

    def _average(self, doses: FloatArray) -> FloatArray:
        curves = np.asarray(self.model_.dose_response(self.units_, doses))
        average: FloatArray = curves.mean(axis=0)
        return average


def at_distinct_doses(average: Callable[[FloatArray], FloatArray], doses: FloatArray) -> FloatArray:
    """One curve at a table of doses, asked once for each distinct dose.

    Examples
    --------
    >>> at_distinct_doses(np.square, np.array([[1.0, 2.0], [2.0, 1.0]]))
    array([[1., 4.],
           [4., 1.]])
    """
    distinct, place = np.unique(doses, return_inverse=True)
    values: FloatArray = np.asarray(average(distinct), np.float64)
    if values.shape != distinct.shape:
        raise ValueError(
            f"The 'average' parameter must give one value per dose, {distinct.shape}. "
            f"Got shape {values.shape} instead."
        )
    return values[place].reshape(doses.shape)


def _looked_at(X: Any, y: Any, treatment: Any) -> tuple[FloatArray, int]:
    """Outcomes (n_rows,) and the number of features; doses are checked where they are given."""
    n_rows, n_features = table_shape(X)
    if treatment is not None:
        checked_columns(treatment, "treatment", n_rows, MAX_COMPONENTS)
    return checked_columns(y, "y", n_rows, 1)[:, 0], n_features
