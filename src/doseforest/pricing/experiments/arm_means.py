"""Means of both arms, adjusted by what was known before, and the covariance of all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray

Marks = NDArray[np.bool_]
ADJUSTMENTS = ("lin", "cuped", "none")
LEAST_FREEDOM = 1e-6  # of a residual, that leverage leaves


@dataclass(frozen=True, slots=True, eq=False)
class ArmMeans:
    """Means of outcomes over units; control first, then treatment."""

    values: FloatArray  # (2, n_outcomes)
    covariance: FloatArray  # (2 * n_outcomes, 2 * n_outcomes), of `values.ravel()`
    influence: FloatArray  # (n_units, 2 * n_outcomes): what units add, whose products it sums
    treated: Marks  # (n_units,)
    n_slopes: int  # of covariates


def arm_means(
    outcomes: FloatArray, treated: Marks, covariates: FloatArray, adjustment: str
) -> ArmMeans:
    """Means that both arms would have if their covariates were those of all units.

    The mean of an arm is moved by slopes times how far its covariates are from those of all. With
    slopes of its own in each arm this is the regression with interactions of Lin (2013); with the
    same slopes it is CUPED. Units are taken as draws from many, so the covariance also has what
    the covariates of all units vary; for effects in just these units it is conservative. Residuals
    are divided by one minus the unit's leverage (HC3): a few large units pull slopes to themselves.
    Without covariates the variance of a mean is the usual one.

    Parameters
    ----------
    outcomes : array of shape (n_units, n_outcomes)
    treated : bool array of shape (n_units,)
    covariates : array of shape (n_units, n_covariates)
    adjustment : {"lin", "cuped", "none"}
    """
    n_units = len(outcomes)
    x = covariates[:, :0] if adjustment == "none" else covariates - covariates.mean(axis=0)
    arms = (~treated, treated)
    within = x - np.where(treated[:, None], x[treated].mean(axis=0), x[~treated].mean(axis=0))
    seen = arms if adjustment == "lin" else (np.ones_like(treated),) * 2  # who tells the slopes
    values, influences = [], []
    for arm, each in zip(arms, seen, strict=True):
        count = arm.sum()
        # Row i of `pull` is what the outcome of unit i adds to the slopes.
        pull = (within @ _inverse(within[each])) * each[:, None]
        slope = pull.T @ outcomes
        value = outcomes[arm].mean(axis=0) - x[arm].mean(axis=0) @ slope
        own_level = [(outcomes[marks] - x[marks] @ slope).mean(axis=0) for marks in arms]
        residual = outcomes - x @ slope - np.where(treated[:, None], own_level[1], own_level[0])
        freedom = np.maximum(1.0 - (pull * within).sum(axis=1), LEAST_FREEDOM)
        weight = arm / count - pull @ x[arm].mean(axis=0)
        weight *= np.sqrt(count / (count - 1)) / freedom
        values.append(value)
        influences.append(weight[:, None] * residual + x @ slope / n_units)
    influence = np.hstack(influences)
    covariance = influence.T @ influence
    return ArmMeans(np.stack(values), covariance, influence, treated, x.shape[1])


def _inverse(table: FloatArray) -> FloatArray:
    """Inverse of the table's cross products; columns that say the same share their slopes."""
    gram = table.T @ table
    scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(np.float64).tiny))
    inverse = np.linalg.pinv(gram / np.outer(scale, scale), rcond=1e-10, hermitian=True)
    result: FloatArray = inverse / np.outer(scale, scale)
    return result
