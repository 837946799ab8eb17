"""Least squares with standard errors that trust neither equal variances nor independent rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.estimates import JointEstimates

ALONE = 1e-6  # rows with so little left beside their leverage decide on a coefficient alone


def robust_least_squares(
    design: FloatArray,
    target: FloatArray,
    weights: FloatArray | None = None,
    clusters: IntArray | None = None,
) -> JointEstimates:
    """Coefficients of weighted least squares without an intercept, with robust standard errors.

    Errors are HC3, or by clusters. In HC3 residuals are divided by one minus the row's leverage, so
    that rows which pull the fit to themselves do not seem to fit well. With clusters the rows'
    residuals are added up within them as they are, and the covariance multiplied by G / (G - 1) of
    G clusters. A coefficient that a single row, or a single cluster, decides alone has an infinite
    variance. Degrees of freedom are rows less columns, or clusters less one.

    Parameters
    ----------
    design : array of shape (n_rows, n_columns)
    target : array of shape (n_rows,)
    weights : array of shape (n_rows,), optional
    clusters : array of shape (n_rows,), optional
        Rows that are not independent share a number; see `clusters_of`.

    Examples
    --------
    >>> x = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> fit = robust_least_squares(x[:, None], np.array([-2.0, -4.0, 2.0, 4.0]))
    >>> fit.values, fit.standard_errors.round(3)
    (array([3.]), array([0.667]))
    """
    row_weights = np.ones(len(target)) if weights is None else weights
    bread = np.linalg.pinv(design.T @ (design * row_weights[:, None]), hermitian=True).astype(
        np.float64
    )
    coefficients = bread @ (design.T @ (row_weights * target))
    pull = row_weights * (target - design @ coefficients)
    if clusters is None:
        leverage = row_weights * (design @ bread * design).sum(axis=1)
        sums, factor = design * (pull / np.maximum(1 - leverage, ALONE))[:, None], 1.0
        decided = _decided_by_rows(design[1 - leverage < ALONE], bread)
        degrees = float((row_weights > 0).sum()) - design.shape[1]
    else:
        sums, n_clusters = _cluster_sums(design * pull[:, None], clusters, row_weights)
        factor, degrees = n_clusters / (n_clusters - 1), n_clusters - 1.0
        decided = _decided_by_clusters(design * np.sqrt(row_weights)[:, None], clusters)
    covariance = factor * bread @ (sums.T @ sums) @ bread
    covariance[decided], covariance[:, decided] = 0.0, 0.0
    covariance[decided, decided] = np.inf
    errors = np.sqrt(np.diag(covariance))
    return JointEstimates(coefficients, errors, covariance, degrees=max(degrees, 1.0))


def _decided_by_rows(rows: FloatArray, bread: FloatArray) -> NDArray[np.bool_]:
    """Coefficients that move with rows which the fit goes through, (n_columns,)."""
    moved = np.abs(rows @ bread)
    result: NDArray[np.bool_] = moved > ALONE * moved.max(axis=1, keepdims=True, initial=0.0)
    return np.asarray(result.any(axis=0))


def _decided_by_clusters(design: FloatArray, clusters: IntArray) -> NDArray[np.bool_]:
    """Coefficients of columns that one cluster alone has, (n_columns,)."""
    return np.array([len(np.unique(clusters[column != 0])) < 2 for column in design.T], bool)


def clusters_of(ids: IntArray) -> IntArray | None:
    """Clusters of rows by their ids; None where no two rows share one.

    Examples
    --------
    >>> clusters_of(np.array([4, 7, 7])), clusters_of(np.array([4, 7, 9]))
    (array([0, 1, 1]), None)
    """
    distinct, codes = np.unique(ids, return_inverse=True)
    return None if len(distinct) == len(ids) else codes


def _cluster_sums(
    scores: FloatArray, clusters: IntArray, weights: FloatArray
) -> tuple[FloatArray, int]:
    """Scores added up within clusters, and the number of clusters with weight."""
    n_clusters = len(np.unique(clusters[weights > 0]))
    if n_clusters < 2:
        raise ValueError(
            "The 'groups' parameter must have at least two groups for standard errors. "
            f"Got {n_clusters} instead."
        )
    _, codes = np.unique(clusters, return_inverse=True)
    columns = [np.bincount(codes, weights=column) for column in scores.T]
    sums: FloatArray = np.stack(columns, axis=1).astype(np.float64)
    return sums, n_clusters
