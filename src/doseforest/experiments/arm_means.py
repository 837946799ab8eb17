"""Means of both arms, adjusted by what was known before, and the covariance of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.dtypes import FloatArray

Marks = NDArray[np.bool_]
# (outcomes, covariates, treated) to the slopes of (control, treatment), each (p, n_outcomes).
Slopes = Callable[[FloatArray, FloatArray, Marks], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True, eq=False)
class ArmMeans:
    """Means of outcomes over units; control first, then treatment."""

    values: FloatArray  # (2, n_outcomes)
    covariance: FloatArray  # (2 * n_outcomes, 2 * n_outcomes), of `values.ravel()`


def arm_means(
    outcomes: FloatArray, treated: Marks, covariates: FloatArray, adjustment: str
) -> ArmMeans:
    """Means that both arms would have if their covariates were those of all units.

    The mean of an arm is moved by slopes times how far its covariates are from those of all. With
    slopes of its own in each arm this is the regression with interactions of Lin (2013); with the
    same slopes it is CUPED. Units are taken as draws from many, so the covariance also has what
    the covariates of all units vary; for effects in just these units it is conservative.

    Parameters
    ----------
    outcomes : array of shape (n_units, n_outcomes)
    treated : bool array of shape (n_units,)
    covariates : array of shape (n_units, n_covariates)
    adjustment : str
        A key of ADJUSTMENTS.
    """
    n_units = len(outcomes)
    centred = covariates - covariates.mean(axis=0)
    slopes = ADJUSTMENTS[adjustment](outcomes, centred, treated)
    n_slopes = 0 if adjustment == "none" else int(np.linalg.matrix_rank(centred))
    values, influences = [], []
    for marks, slope in zip((~treated, treated), slopes, strict=True):
        count = int(marks.sum())
        level = (outcomes[marks] - centred[marks] @ slope).mean(axis=0)
        residual = (outcomes - level - centred @ slope) * marks[:, None]
        # Residuals of a fit are too small, as in any regression.
        inflation = np.sqrt(count / (count - 1 - n_slopes))
        values.append(level)
        influences.append(inflation * residual * n_units / count + centred @ slope)
    influence = np.hstack(influences)
    return ArmMeans(np.stack(values), influence.T @ influence / n_units**2)


def no_slopes(
    outcomes: FloatArray, covariates: FloatArray, treated: Marks
) -> tuple[FloatArray, FloatArray]:
    """Means as they are."""
    zero: FloatArray = np.zeros((covariates.shape[1], outcomes.shape[1]))
    return zero, zero


def slopes_of_arms(
    outcomes: FloatArray, covariates: FloatArray, treated: Marks
) -> tuple[FloatArray, FloatArray]:
    """Least squares within each arm."""
    control, own = (_moments(outcomes, covariates, marks) for marks in (~treated, treated))
    return _solved(*control), _solved(*own)


def common_slopes(
    outcomes: FloatArray, covariates: FloatArray, treated: Marks
) -> tuple[FloatArray, FloatArray]:
    """Least squares with one slope and a level for each arm."""
    control, own = (_moments(outcomes, covariates, marks) for marks in (~treated, treated))
    slope = _solved(control[0] + own[0], control[1] + own[1])
    return slope, slope


ADJUSTMENTS: dict[str, Slopes] = {
    "lin": slopes_of_arms,
    "cuped": common_slopes,
    "none": no_slopes,
}


def _moments(
    outcomes: FloatArray, covariates: FloatArray, marks: Marks
) -> tuple[FloatArray, FloatArray]:
    X = covariates[marks] - covariates[marks].mean(axis=0)
    return X.T @ X, X.T @ outcomes[marks]


def _solved(gram: FloatArray, cross: FloatArray) -> FloatArray:
    """Slopes; of covariates that say the same the shortest ones."""
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    inverse = np.linalg.pinv(gram / np.outer(scale, scale), rcond=1e-10, hermitian=True)
    slopes: FloatArray = (inverse @ (cross / scale[:, None])) / scale[:, None]
    return slopes
