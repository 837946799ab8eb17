"""Numbers learned of categories, from sums over their rows: means and slopes, shrunk.

Sums add up, so that rows may lie anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray

PRIOR_ROWS = 10.0  # for which the noise about everyone's mean or slope counts


def summed_columns(targets: FloatArray, doses: FloatArray) -> Iterator[FloatArray]:
    """What is summed over the rows of a category, times their weights.

    Ones, targets and their squares; then doses, their squares, and their products with the first
    target.
    """
    yield np.ones(len(targets))
    yield from targets.T
    yield from (each * each for each in targets.T)
    yield from doses.T
    yield from (each * each for each in doses.T)
    yield from (each * targets[:, 0] for each in doses.T)


def learned_numbers(sums: FloatArray, n_targets: int) -> FloatArray:
    """Numbers of each category, of shape (n_folds + 1, n_cells, n_targets + n_doses).

    Those without each fold and, last, those with all rows.

    Parameters
    ----------
    sums : array of shape (n_columns, n_folds, n_cells)
        Weighted sums of `summed_columns` over the rows of each fold and category.

    Examples
    --------
    >>> sums = np.array([[[50.0, 50.0]] * 2, [[0.0, 50.0]] * 2, [[0.0, 50.0]] * 2])
    >>> learned_numbers(sums, n_targets=1)[-1].round(2).ravel()
    array([-0.5,  0.5])
    """
    n_folds = sums.shape[1]
    seen = np.vstack([1.0 - np.eye(n_folds), np.ones(n_folds)])  # folds of each fit
    weight, *others = (seen @ each for each in sums)
    n_doses = (len(others) - 2 * n_targets) // 3
    totals, squares = others[:n_targets], others[n_targets : 2 * n_targets]
    doses = others[2 * n_targets :]
    tiny = np.finfo(np.float64).tiny

    def within(product: FloatArray, one: FloatArray, two: FloatArray) -> FloatArray:
        """Sums of products about the means of the cells."""
        about: FloatArray = product - one * two / np.maximum(weight, tiny)
        return about

    left = [within(square, total, total) for total, square in zip(totals, squares, strict=True)]
    means = [_mean_numbers(weight, total, rest) for total, rest in zip(totals, left, strict=True)]
    slopes = [
        _slope_numbers(
            weight,
            within(doses[n_doses + k], doses[k], doses[k]),
            within(doses[2 * n_doses + k], doses[k], totals[0]),
            left[0],
        )
        for k in range(n_doses)
    ]
    return np.stack([*means, *slopes], axis=2)


def _mean_numbers(weight: FloatArray, total: FloatArray, left: FloatArray) -> FloatArray:
    """Means of the cells less everyone's, shrunk; `left` is what they leave of squares."""
    return _shrunk(total, weight, left.sum(axis=1), weight.sum(axis=1), (weight > 0).sum(axis=1))


def _slope_numbers(
    weight: FloatArray, dose: FloatArray, product: FloatArray, outcome: FloatArray
) -> FloatArray:
    """Slopes of the cells, from sums of products about their means, less everyone's, shrunk."""
    varies = dose > 1e-9 * dose.max(axis=1, keepdims=True)  # rounding leaves some of a constant
    dose, product = np.where(varies, dose, 0.0), np.where(varies, product, 0.0)
    explained = product**2 / np.where(varies, dose, 1.0)
    n_fitted = (weight > 0).sum(axis=1) + varies.sum(axis=1)
    return _shrunk(product, dose, (outcome - explained).sum(axis=1), weight.sum(axis=1), n_fitted)


def _shrunk(
    total: FloatArray,
    precision: FloatArray,
    left: FloatArray,
    weight: FloatArray,
    n_fitted: IntArray,
) -> FloatArray:
    """Estimates total / precision of the cells less everyone's, times how much is to be believed.

    Their variance is sigma^2 / precision, that of the truths tau^2, from moments; where estimates
    differ no more than noise makes them, all is 0. So is a cell without rows. Cells of single rows
    leave no noise to be seen: what everyone's estimate leaves counts for a few rows more.

    Parameters
    ----------
    total, precision : arrays of shape (n_fits, n_cells)
    left : array of shape (n_fits,)
        Sum of squares that estimates leave within the cells.
    weight : array of shape (n_fits,)
        Of all rows.
    n_fitted : array of shape (n_fits,)
        Numbers fitted in all cells.
    """
    tiny = np.finfo(np.float64).tiny
    known = precision > 0
    everyone = np.maximum(precision.sum(axis=1), tiny)
    mean = total.sum(axis=1) / everyone
    gap = np.where(known, total / np.where(known, precision, 1.0) - mean[:, None], 0.0)
    between, left = (precision * gap**2).sum(axis=1), np.maximum(left, 0.0)
    overall = (between + left) / weight
    noise = (left + PRIOR_ROWS * overall) / (np.maximum(weight - n_fitted, 0.0) + PRIOR_ROWS)
    room = np.maximum(everyone - (precision**2).sum(axis=1) / everyone, tiny)
    truth = np.maximum(between - (known.sum(axis=1) - 1) * noise, 0.0) / room
    believed = precision * truth[:, None]
    shrunk: FloatArray = gap * believed / np.maximum(believed + noise[:, None], tiny)
    return shrunk
