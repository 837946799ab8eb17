"""Any scikit-learn regressor on [X, T] as a member of the outcome stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.dose_values import Doses
from doseforest.nuisance.outcome.block_predictions import predict_in_blocks


@dataclass(frozen=True, slots=True)
class RegressorCurves:
    """A fitted regressor, or a classifier of a binary outcome; the dose is its last column(s)."""

    regressor: Any

    def curves(self, X: FloatArray, doses: DoseArray) -> FloatArray:
        """Mean outcome of each row, shape (n_rows, n_doses), on a grid or unit by unit."""
        table = np.broadcast_to(np.atleast_2d(doses), (len(X), doses.shape[-1]))
        return predict_in_blocks(_Mean(self.regressor), X, table)


@dataclass(frozen=True, slots=True)
class _Mean:
    """Mean outcome of a regressor's or of a classifier's prediction."""

    model: Any

    def predict(self, inputs: FloatArray) -> FloatArray:
        if is_classifier(self.model):
            probabilities: FloatArray = self.model.predict_proba(inputs)[:, 1]
            return probabilities
        values: FloatArray = np.asarray(self.model.predict(inputs), np.float64)
        return values.reshape(len(inputs))


def _set_random_states(model: Any, seed: int) -> None:
    """Seed what the user has left unseeded, so that a fit can be repeated."""
    unset = {
        name: seed % 2**32
        for name, value in model.get_params().items()
        if name.split("__")[-1] == "random_state" and value is None
    }
    if unset:
        model.set_params(**unset)


@dataclass(frozen=True, slots=True)
class RegressorMember:
    """A recipe that fits a clone of a regressor.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, dose = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 2.0, 1.0])
    >>> line = RegressorMember(LinearRegression()).fit(X, dose, X[:, 0] + 3 * dose)
    >>> line.curves(X, np.array([0.0, 1.0])).round(6)
    array([[0., 3.],
           [1., 4.],
           [2., 5.]])
    """

    regressor: Any

    def fit(
        self,
        X: FloatArray,
        dose: DoseArray,
        y: FloatArray,
        *,
        weights: FloatArray | None = None,
        binary: bool = False,
        seed: int = 0,
        n_threads: int = 1,
    ) -> RegressorCurves:
        """Fit; a regressor that takes no weights is refused when there are any."""
        model = clone(self.regressor)
        _set_random_states(model, seed)
        if is_classifier(model) and not (binary and 0 < y.mean() < 1):
            raise ValueError(
                "The 'outcome_model' parameter may be a classifier only when 'y' has the values 0 "
                f"and 1 in every fold. Got {type(model).__name__} for values from {y.min():g} to "
                f"{y.max():g} instead."
            )
        inputs = np.column_stack([X, Doses.of(dose).table])
        if weights is None:
            model.fit(inputs, y)
        elif has_fit_parameter(model, "sample_weight"):
            model.fit(inputs, y, sample_weight=weights)
        else:
            raise ValueError(
                "The 'outcome_model' parameter must take 'sample_weight' in fit when weights are "
                f"given. Got {type(model).__name__} instead."
            )
        return RegressorCurves(model)
