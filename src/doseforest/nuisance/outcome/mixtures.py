"""Convex mixtures of predictions."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from doseforest.base.dtypes import FloatArray


def convex_weights(
    predictions: FloatArray, y: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Weights, not negative and adding up to 1, of the least squared error.

    Examples
    --------
    >>> convex_weights(np.array([[1.0, 0.0], [1.0, 4.0]]), np.array([0.5, 2.5])).round(6)
    array([0.5, 0.5])
    """
    root = np.ones(len(y)) if weights is None else np.sqrt(weights)
    return shortest_mixture((predictions - y[:, None]) * root[:, None])


def shortest_mixture(gaps: FloatArray) -> FloatArray:
    """Shares of the columns in the shortest vector of their convex hull.

    Examples
    --------
    >>> shortest_mixture(np.array([[1.0, -1.0], [0.0, 1.0]])).round(6)
    array([0.6, 0.4])
    """
    # Found by asking, beside a short vector, for a sum of 1.
    scale = max(float(np.sqrt((gaps**2).sum(axis=0).min())), 1e-300)
    system = np.vstack([gaps / scale, np.full((1, gaps.shape[1]), 1e4)])
    target = np.append(np.zeros(len(gaps)), 1e4)
    shares, _ = nnls(system, target)
    return np.asarray(shares / shares.sum())
