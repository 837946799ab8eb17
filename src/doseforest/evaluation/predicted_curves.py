"""Curves of any model with the effect API, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import given_doses

BLOCK_ROWS = 100_000  # so that models need not answer for a million units at once


def predicted_curves(model: Any, X: Any, doses: Any) -> FloatArray:
    """What a model predicts for units at doses, shape (n_units, n_doses).

    Curves where the model has `dose_response`, else effects against the first dose. Doses beyond
    those that it was fitted on (its `support_` or `support`, where it has one) are taken for the
    nearest that was. An array of that shape is returned as it is.

    Parameters
    ----------
    model : object with `dose_response(X, doses)` or `effect(X, dose, baseline)`, or array
    X : table of shape (n_units, n_features)
    doses : array of shape (n_doses,) or (n_doses, n_components)

    Examples
    --------
    >>> from doseforest.baselines import AverageCurve
    >>> predicted_curves(AverageCurve(lambda doses: 2 * doses), np.zeros((2, 1)), [0.0, 3.0])
    array([[0., 6.],
           [0., 6.]])
    """
    grid = np.asarray(doses, np.float64)
    n_units = len(X)
    if isinstance(model, np.ndarray):
        return _checked(model.astype(np.float64), (n_units, len(grid)))
    within = getattr(model, "support_", getattr(model, "support", None))
    if within is not None:
        grid = Doses.of(within.clip(given_doses(grid).values)).plain
    parts = []
    for start in range(0, n_units, BLOCK_ROWS):
        units = X[start : start + BLOCK_ROWS]
        if hasattr(model, "dose_response"):
            parts.append(np.asarray(model.dose_response(units, grid), np.float64))
        elif hasattr(model, "effect"):
            effects = [np.asarray(model.effect(units, each, grid[0])) for each in grid[1:]]
            parts.append(np.column_stack([np.zeros(len(units)), *effects]))
        else:
            raise TypeError(
                "The 'model' parameter must have a method dose_response(X, doses) or "
                f"effect(X, dose, baseline). Got {type(model).__name__} instead."
            )
    return _checked(np.concatenate(parts), (n_units, len(grid)))


def _checked(curves: FloatArray, shape: tuple[int, int]) -> FloatArray:
    if curves.shape != shape or not np.isfinite(curves).all():
        raise ValueError(
            f"The 'model' parameter must give a finite number for each row and dose, shape {shape}."
            f" Got shape {curves.shape} with {int((~np.isfinite(curves)).sum())} that are not "
            "finite instead."
        )
    return curves
