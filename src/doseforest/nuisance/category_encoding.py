"""Categories as numbers, for models that take numbers only.

A categorical column becomes indicators of its frequent categories and a few learned numbers: how
far a category's mean of a target, and its slope of the outcome by the dose, are from everyone's,
once what numeric covariates explain by a line is taken off, and shrunk by how sure that is. An
encoder is fitted inside each fit, on the rows which that fit sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from doseforest.dtypes import FloatArray, IntArray

CategoryCounts = Mapping[int, int]  # of a column that holds codes: how many codes there are

MAX_INDICATORS = 24  # of a column; see docs/estimator.md for what other numbers cost
MIN_ROWS = 20  # of a category with an indicator
RIDGE = 1e-2  # of the line, per row, on standardised covariates
PRIOR_ROWS = 10.0  # for which the noise about everyone's mean or slope counts
N_FOLDS = 5  # a training row's learned numbers come from the other folds


@dataclass(frozen=True, slots=True, eq=False)
class ColumnEncoding:
    """How one column of codes becomes numbers; code `n_codes` stands for a missing value."""

    feature: int
    n_codes: int
    indicators: IntArray  # (n_indicators,) codes
    learned: FloatArray  # (n_codes + 1, n_learned) numbers of each code

    @property
    def n_columns(self) -> int:
        """Columns that it becomes."""
        return len(self.indicators) + int(self.learned.shape[1])

    def cells(self, codes: FloatArray) -> IntArray:
        """Codes as whole numbers, with one for missing values."""
        return np.where(np.isnan(codes), self.n_codes, codes).astype(np.int64)

    def encode(self, codes: FloatArray) -> FloatArray:
        """Indicators, then learned numbers, (n_rows, n_columns)."""
        cells = self.cells(codes)
        return np.concatenate([cells[:, None] == self.indicators, self.learned[cells]], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class CategoryEncoder:
    """From a table with columns of codes to one of numbers.

    Examples
    --------
    >>> encoder, _ = fit_encoder(np.repeat([[0.0], [1.0], [2.0]], 30, axis=0), {0: 3}, np.eye(90))
    >>> encoder.encode(np.array([[1.0], [np.nan]]))[:, :3]
    array([[0., 1., 0.],
           [0., 0., 0.]])
    """

    n_features: int  # of the table
    columns: tuple[ColumnEncoding, ...]  # ascending by feature

    @property
    def numeric(self) -> IntArray:
        """Columns that stay as they are; they come first."""
        return np.setdiff1d(np.arange(self.n_features), [own.feature for own in self.columns])

    @property
    def n_columns(self) -> int:
        """Columns of the table of numbers."""
        return len(self.numeric) + sum(own.n_columns for own in self.columns)

    def encode(self, X: FloatArray) -> FloatArray:
        """Numbers of each row, shape (n_rows, n_columns); NaN stays NaN in numeric columns."""
        return np.concatenate(
            [X[:, self.numeric], *(own.encode(X[:, own.feature]) for own in self.columns)], axis=1
        )


def fit_encoder(
    X: FloatArray,
    counts: CategoryCounts,
    targets: FloatArray,
    *,
    doses: FloatArray | None = None,
    weights: FloatArray | None = None,
    seed: int = 0,
) -> tuple[CategoryEncoder, FloatArray]:
    """Learn an encoder, and encode the rows it was learned from.

    Learned numbers of these rows come from rows of other folds: with its own outcome in them, a
    number would seem to tell more than it does.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Columns of codes 0, 1, … among others; NaN is missing.
    counts : mapping
        Number of codes of each column that holds codes.
    targets : array of shape (n_rows, n_targets)
        What the means of categories are learned of.
    doses : array of shape (n_rows, n_doses), optional
        With them, slopes of the first target by each dose are learned, too.
    weights : array of shape (n_rows,), optional
    seed : int
        Of the folds.

    Examples
    --------
    >>> x = np.tile([[0.0], [1.0]], (50, 1))
    >>> encoder, encoded = fit_encoder(x, {0: 2}, x)
    >>> encoded[:2]
    array([[0.],
           [1.]])
    """
    own = np.ones(len(X)) if weights is None else weights
    folds = np.random.default_rng(seed).permutation(len(X)) % N_FOLDS
    numeric = X[:, [feature for feature in range(X.shape[1]) if feature not in counts]]
    columns = targets if doses is None else np.column_stack([targets, doses])
    left, slopes = np.hsplit(_unexplained(numeric, columns, own), [targets.shape[1]])
    encodings, encoded = [], {}
    for feature, n_codes in sorted(counts.items()):
        empty = ColumnEncoding(feature, n_codes, np.empty(0, np.int64), np.empty((n_codes + 1, 0)))
        cells = empty.cells(X[:, feature])
        indicators, learns = _indicators(np.bincount(cells, minlength=n_codes + 1))
        learned = np.empty((N_FOLDS + 1, n_codes + 1, 0))
        if learns:
            learned = _learned(cells, n_codes + 1, left, slopes, own, folds)
        encoding = ColumnEncoding(feature, n_codes, indicators, learned[-1])
        encodings.append(encoding)
        encoded[feature] = np.concatenate(
            [cells[:, None] == indicators, learned[folds, cells]], axis=1
        )
    encoder = CategoryEncoder(X.shape[1], tuple(encodings))
    return encoder, np.concatenate([numeric, *encoded.values()], axis=1)


def _unexplained(X: FloatArray, columns: FloatArray, weights: FloatArray) -> FloatArray:
    """What a line in the covariates leaves of some columns, of weighted mean 0 each.

    Without the line, what covariates do would be noise, or bias, in what categories seem to do.
    """
    gap = np.isnan(X)
    present = np.where(gap, 0.0, weights[:, None])
    level = (present * np.where(gap, 0.0, X)).sum(axis=0) / np.maximum(present.sum(axis=0), 1e-300)
    offset = np.where(gap, 0.0, X - level)
    scale = np.sqrt(np.average(offset**2, axis=0, weights=weights))
    offset /= np.where(scale > 1e-12 * np.abs(level), scale, np.inf)
    offset -= np.average(offset, axis=0, weights=weights)
    centred = columns - np.average(columns, axis=0, weights=weights)
    weighted = weights[:, None] * offset
    gram = weighted.T @ offset + RIDGE * weights.sum() * np.eye(X.shape[1])
    left: FloatArray = centred - offset @ np.linalg.solve(gram, weighted.T @ centred)
    return left


def _indicators(n_rows: IntArray) -> tuple[IntArray, bool]:
    """Codes that get an indicator, and whether numbers are to be learned beside them.

    They are, of three categories and more: indicators alone leave it to every model to shrink
    what few rows say of a category's own slope.
    """
    present = np.flatnonzero(n_rows)
    order = present[np.argsort(-n_rows[present], kind="stable")][:MAX_INDICATORS]
    frequent = np.sort(order[n_rows[order] >= MIN_ROWS])
    if len(present) == 1:  # says nothing, but a table needs a column
        return present, False
    if len(present) == 2 and len(frequent) == 2:  # one says what the other would
        return frequent[1:], False
    return frequent, True


def _learned(
    cells: IntArray,
    n_cells: int,
    targets: FloatArray,
    doses: FloatArray,
    weights: FloatArray,
    folds: IntArray,
) -> FloatArray:
    """Learned numbers without each fold and, last, with all rows: (n_folds + 1, n_cells, n)."""
    places = folds * n_cells + cells
    seen = np.vstack([1.0 - np.eye(N_FOLDS), np.ones(N_FOLDS)])  # folds of each fit

    def sums(values: FloatArray) -> FloatArray:
        """Weighted sums over the cells, without each fold and with all rows."""
        by_fold = np.bincount(places, weights * values, N_FOLDS * n_cells)
        return seen @ by_fold.reshape(N_FOLDS, n_cells)

    weight = sums(np.ones(len(cells)))

    def within(one: FloatArray, two: FloatArray) -> FloatArray:
        """Sums of products about the means of the cells."""
        tiny = np.finfo(np.float64).tiny
        return sums(one * two) - sums(one) * sums(two) / np.maximum(weight, tiny)

    means = [_mean_numbers(weight, sums(own), within(own, own)) for own in targets.T]
    first = targets[:, 0]
    left = within(first, first)
    slopes = [
        _slope_numbers(weight, within(dose, dose), within(dose, first), left) for dose in doses.T
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
