"""Leaves of the paper's Algorithm 1: kernel averages of the outcomes of rows that did not grow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from doseforest.base.dtypes import FloatArray
from doseforest.data.exact_grid import row_blocks
from doseforest.engine.forest import Forest
from doseforest.engine.leaves.leaf_curves import RatioCurve


def filled_with_averages(
    forest: Forest,
    X: FloatArray,
    kernel: FloatArray,
    y: FloatArray,
    n_threads: int = 1,
) -> Forest:
    """Give a grown forest leaves that hold sum K Y / sum K at each dose.

    A unit's curve is the mean of its leaves' ratios over the trees: ratios are taken leaf by leaf,
    before the average. A leaf without a row of weight at a dose does not count at that dose; where
    no tree counts, the ratio of all rows stands.

    Parameters
    ----------
    forest : Forest
        Grown on other rows; what its leaves hold is dropped.
    X : array of shape (n_rows, n_features)
    kernel : array of shape (n_rows, n_doses)
        Weights K of each row at each dose, not negative.
    y : array of shape (n_rows,)

    Examples
    --------
    >>> from doseforest import CurveForest
    >>> x = np.repeat([[0.0], [1.0]], 20, axis=0)
    >>> grown = CurveForest(1, sample_fraction=1.0, honesty="none").fit(x, x[:, 0]).forest_
    >>> half = np.array([[0.0], [0.0], [1.0]])
    >>> kernel = np.array([[3.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    >>> filled_with_averages(grown, half, kernel, np.array([8.0, 4.0, 2.0])).predict([[0.0], [1.0]])
    array([[7., 8.],
           [2., 8.]])
    """
    sums = np.zeros((2, forest.n_leaves, kernel.shape[1]))
    for rows in row_blocks(len(X), forest.n_trees + 2 * kernel.shape[1]):
        block = kernel[rows]
        leaves = forest.apply(X[rows], n_jobs=n_threads)
        members = np.repeat(np.arange(len(block)), forest.n_trees)
        holds = sparse.csr_array(
            (np.ones(leaves.size), (leaves.ravel(), members)), shape=(forest.n_leaves, len(block))
        )
        sums[0] += holds @ (block * y[rows, None])
        sums[1] += holds @ block
    seen = sums[1] > 0
    averages = np.divide(sums[0], sums[1], out=np.zeros_like(sums[0]), where=seen)
    overall = (y @ kernel) / kernel.sum(axis=0)
    return replace(
        forest,
        # The mean of ratios over the mean of marks: over the trees that have a ratio.
        leaf_sums=np.hstack([averages, seen]).astype(np.float32),
        leaf_weights=np.ones(forest.n_leaves, np.float32),
        fallback=np.append(overall, np.ones(len(overall))),
        leaf_curve=RatioCurve(),
    )
