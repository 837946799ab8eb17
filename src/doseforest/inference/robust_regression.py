"""Least squares with standard errors that trust neither equal variances nor independent rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.dtypes import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class RobustFit:
    """Coefficients and their covariance."""

    coefficients: FloatArray  # (n_columns,)
    covariance: FloatArray  # (n_columns, n_columns)

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors, (n_columns,)."""
        errors: FloatArray = np.sqrt(np.diag(self.covariance))
        return errors


def robust_least_squares(
    design: FloatArray,
    target: FloatArray,
    weights: FloatArray | None = None,
    clusters: IntArray | None = None,
) -> RobustFit:
    """Weighted least squares without an intercept of its own; HC3, added up within clusters.

    Residuals are divided by one minus the row's leverage, so that rows which pull the fit to
    themselves do not seem to fit well.

    Parameters
    ----------
    design : array of shape (n_rows, n_columns)
    target : array of shape (n_rows,)
    weights : array of shape (n_rows,), optional
    clusters : array of shape (n_rows,), optional
        Rows that are not independent share a number.

    Examples
    --------
    >>> x = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> fit = robust_least_squares(x[:, None], np.array([-2.0, -4.0, 2.0, 4.0]))
    >>> fit.coefficients, fit.standard_errors.round(3)
    (array([3.]), array([0.667]))
    """
    own = np.ones(len(target)) if weights is None else weights
    bread = np.linalg.pinv(design.T @ (design * own[:, None]), hermitian=True)
    coefficients = bread @ (design.T @ (own * target))
    leverage = own * (design @ bread * design).sum(axis=1)
    pull = own * (target - design @ coefficients) / np.maximum(1 - leverage, 1e-6)
    scores = design * pull[:, None]
    if clusters is not None:
        columns = [np.bincount(clusters, weights=column) for column in scores.T]
        scores = np.stack(columns, axis=1)
    return RobustFit(coefficients, bread @ (scores.T @ scores) @ bread)
