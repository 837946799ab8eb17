"""What the orthogonal correction makes of the rows: columns of the blocks, and a look at them.

Functions of the dose are those of the basis without the constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.row_blocks import RowBlock
from doseforest.estimator.corrections.moments import moment_channels

FUNCTIONS = "functions"  # (n_rows, n_functions) of the dose
CENTRED = "centred"  # (n_rows, n_functions) less their means given the covariates
CURVES = "curves"  # (n_rows, n_functions) coefficients of the outcome model's curves
LEFT = "left"  # (n_rows,) outcome less the outcome model's prediction
ADDED = "added"  # (n_rows, n_functions) what rounds have added so far, out of bag
TARGET = "target"  # (n_rows,) what corrected curves leave, less its mean given the covariates
SCORES = "scores"  # (n_rows, n_functions) corrected curves plus dual functions times residual
SHAPES = "shapes"  # (n_rows, n_readings) what candidates add to the outcome, out of bag


def residual(block: RowBlock) -> FloatArray:
    """What the corrected curves leave of the outcomes."""
    left: FloatArray = block[LEFT] - (block[FUNCTIONS] * block[ADDED]).sum(axis=1)
    return left


def corrected(block: RowBlock) -> FloatArray:
    """Coefficients of the curves as corrected so far."""
    curves: FloatArray = block[CURVES] + block[ADDED]
    return curves


def leaf_channels(block: RowBlock) -> FloatArray:
    """What leaves add up: packed moments, then scores."""
    return np.hstack([moment_channels(block[CENTRED], block[TARGET]), block[SCORES]])


@dataclass(frozen=True, slots=True)
class Duals:
    """Functions whose mean product with a curve is its coefficient."""

    mean: FloatArray  # (n_functions,) of the functions of the dose
    inverse: FloatArray  # (n_functions, n_functions) of their covariances

    def of(self, functions: FloatArray) -> FloatArray:
        """Dual functions of rows."""
        return (functions - self.mean) @ self.inverse
