"""Predictions of any regressor on [X, T] at many doses, a block of rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.dose_values import Doses

BLOCK_VALUES = 2**24  # 128 MB of [X, T] at a time, whatever the number of units and doses
BLOCK_ROWS = 2_000_000  # and what predict holds per row, when features are few


def predict_in_blocks(regressor: Any, features: FloatArray, doses: FloatArray) -> FloatArray:
    """Predictions at a table of doses; never more than `BLOCK_ROWS` rows at once.

    Parameters
    ----------
    regressor : fitted regressor
        Its last column is the dose, or its last ones the components.
    features : array of shape (n_units, n_features)
        Units.
    doses : array of shape (n_units, n_doses)
        Doses of each.

    Returns
    -------
    array of shape (n_units, n_doses)
    """
    n_doses = doses.shape[1]
    out = np.empty(doses.size)
    width = features.shape[1] + Doses.of(doses).n_components
    block = min(BLOCK_ROWS, max(1, BLOCK_VALUES // width))
    for first in range(0, len(out), block):
        unit, place = np.divmod(np.arange(first, min(first + block, len(out))), n_doses)
        inputs = np.column_stack([features[unit], Doses.of(doses[unit, place]).table])
        out[first : first + block] = regressor.predict(inputs)
    return out.reshape(doses.shape)
