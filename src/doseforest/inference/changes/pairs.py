"""What pairs of units add to the error of an average with a cross-fitted representer.

Beside what units say one by one such an average is a sum over pairs: the residual of i times what j
has added to the weight of i, and the other way round. The spread of the scores knows how much such
terms differ, but takes them for independent, and those of i with j and of j with i are not. Draws
of folds tell the rest. A draw of K folds leaves out the pairs within a fold, one in K, so averages
of draws differ by a (K - 1)th of the variance that all pairs have. As much of it as the moves of
single units between draws explain is in the spread of the scores already.
"""

from __future__ import annotations

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray

Variance = tuple[float, float]  # an estimate and its degrees of freedom


def pair_variance(
    draws: FloatArray,
    residual: FloatArray,
    clusters: IntArray,
    weights: FloatArray | None = None,
    *,
    n_folds: int,
) -> Variance:
    """Variance of the mean of a representer times residuals that single units do not tell.

    Both that of all pairs and that of the mean over these draws and not others. It is not known,
    and 0 is said, of less than two draws.

    Parameters
    ----------
    draws : array of shape (n_draws, n_rows)
        Representers by draw of the folds, whose mean is the one in use.
    residual : array of shape (n_rows,)
    clusters : array of shape (n_rows,)
        Rows of a cluster count as one unit.
    weights : array of shape (n_rows,), optional
    n_folds : int
        Of each draw.

    Examples
    --------
    >>> draws = np.array([[1.0, 1.0], [2.0, 2.0]])  # means of 1 and 2: a variance of 0.5, half
    >>> pair_variance(draws, np.ones(2), np.arange(2), n_folds=5)  # of it by single units
    (1.125, 1.0)
    """
    n_draws = len(draws)
    if n_draws < 2:
        return 0.0, np.inf
    row_weights = np.ones(len(residual)) if weights is None else weights
    moves = (draws - draws.mean(axis=0)) * (residual * row_weights / row_weights.sum())
    alone = sum(float((np.bincount(clusters, weights=move) ** 2).sum()) for move in moves)
    together = float((moves.sum(axis=1) ** 2).sum())
    shared = max(together - alone, 0.0) / (n_draws - 1)
    return shared * (n_folds - 1 + 1 / n_draws), n_draws - 1.0


def summed(first: Variance, second: Variance) -> Variance:
    """Sum of two estimates of variances, and its degrees of freedom by Satterthwaite's rule.

    >>> summed((1.0, 10.0), (1.0, 10.0)), summed((4.0, 7.0), (0.0, np.inf))
    ((2.0, 20.0), (4.0, 7.0))
    """
    total = first[0] + second[0]
    if not 0 < total < np.inf:
        return total, first[1]
    return total, float(1 / sum((each / total) ** 2 / degrees for each, degrees in (first, second)))
