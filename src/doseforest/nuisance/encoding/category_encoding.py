"""Categories as numbers, for models that take numbers only.

A categorical column becomes indicators of its frequent categories and a few learned numbers: how
far a category's mean of a target, and its slope of the outcome by the dose, are from everyone's,
once what numeric covariates explain by a line is taken off, and shrunk by how sure that is. An
encoder is fitted inside each fit, on the rows which that fit sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import MAX_FEATURES, Array, FloatArray, IntArray
from doseforest.data.row_blocks import OneBlock, RowBlock, RowBlocks, Sums
from doseforest.doses.stored_values import FLOATS, FileChecks
from doseforest.nuisance.cross_fit import FoldModels, draw_folds
from doseforest.nuisance.encoding.category_numbers import learned_numbers, summed_columns
from doseforest.nuisance.encoding.numeric_line import fit_line

CategoryCounts = Mapping[int, int]  # of a column that holds codes: how many codes there are

MAX_INDICATORS = 24  # of a column; see docs/estimator.md for what other numbers cost
MIN_ROWS = 20  # of a category with an indicator
MOST_CODES = 2**31  # of a column in a file
CHECKS = FileChecks("outcome model")
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

    def encode(self, codes: FloatArray) -> FloatArray:
        """Indicators, then learned numbers, (n_rows, n_columns)."""
        cells = code_cells(codes, self.n_codes)
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
        return np.setdiff1d(np.arange(self.n_features), [column.feature for column in self.columns])

    @property
    def n_columns(self) -> int:
        """Columns of the table of numbers."""
        return len(self.numeric) + sum(column.n_columns for column in self.columns)

    def encode(self, X: FloatArray) -> FloatArray:
        """Numbers of each row, shape (n_rows, n_columns); NaN stays NaN in numeric columns."""
        return np.concatenate(
            [X[:, self.numeric], *(column.encode(X[:, column.feature]) for column in self.columns)],
            axis=1,
        )

    def to_arrays(self, prefix: str) -> tuple[list[Any], dict[str, Array]]:
        """Plain JSON, and arrays by their names in a file.

        >>> column = ColumnEncoding(2, 3, np.array([0, 3]), np.zeros((4, 1)))
        >>> described, arrays = CategoryEncoder(5, (column,)).to_arrays("outcome")
        >>> described, list(arrays)
        ([{'feature': 2, 'n_codes': 3, 'indicators': [0, 3]}], ['outcome/encoder/2'])
        """
        described = [
            {
                "feature": int(column.feature),
                "n_codes": int(column.n_codes),
                "indicators": column.indicators.tolist(),
            }
            for column in self.columns
        ]
        return described, {
            f"{prefix}/encoder/{column.feature}": column.learned for column in self.columns
        }

    @classmethod
    def from_arrays(
        cls, described: Any, arrays: Mapping[str, Array], prefix: str, n_features: int
    ) -> CategoryEncoder:
        """Put an encoder together that `to_arrays` took apart.

        Raises
        ------
        ForestFileError
            Features are out of order, or numbers do not fit their codes.
        """
        CHECKS.require(isinstance(described, list) and len(described) > 0, "has an empty encoder")
        columns: list[ColumnEncoding] = []
        for each in described:
            least = columns[-1].feature + 1 if columns else 0
            feature = CHECKS.count(each, "feature", least, n_features - 1)
            n_codes, indicators = CHECKS.count(each, "n_codes", 0, MOST_CODES), each["indicators"]
            CHECKS.require(
                isinstance(indicators, list)
                and all(type(code) is int and 0 <= code <= n_codes for code in indicators)
                and sorted(set(indicators)) == indicators,
                "has indicators of codes that there are not",
            )
            name = f"{prefix}/encoder/{feature}"
            learned: FloatArray = CHECKS.array(arrays, name, FLOATS, 2)
            CHECKS.require(len(learned) == n_codes + 1, "has not one number per code")
            CHECKS.moderate(learned, name)
            codes = np.array(indicators, np.int64)
            columns.append(ColumnEncoding(feature, n_codes, codes, learned))
        encoder = cls(n_features, tuple(columns))
        CHECKS.require(
            1 <= encoder.n_columns <= MAX_FEATURES, "has an encoder with too many columns"
        )
        return encoder


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
    columns = targets if doses is None else np.column_stack([targets, doses])
    first = targets[:, 0]
    ids = np.arange(len(X))
    block = RowBlock(X, first, first, weights, ids, draw_folds(ids, N_FOLDS, seed))
    encoders = fit_encoders(
        OneBlock(block, N_FOLDS), counts, lambda block: columns, targets.shape[1]
    )
    return encoders[-1], encode_out_of_fold(encoders, block)


def encode_out_of_fold(encoders: Sequence[CategoryEncoder], block: RowBlock) -> FloatArray:
    """Numbers of rows by the encoders that have not seen their folds."""
    return FoldModels(block.folds, tuple(encoders[:-1]), encoders[-1]).out_of_fold(
        lambda encoder, rows: encoder.encode(block.X[rows]), encoders[0].n_columns
    )


def fit_encoders(
    blocks: RowBlocks,
    counts: CategoryCounts,
    columns_of: Callable[[RowBlock], FloatArray],
    n_targets: int,
) -> tuple[CategoryEncoder, ...]:
    """Learn an encoder without each fold and, last, one with all rows; their columns mean the same.

    Parameters
    ----------
    blocks : RowBlocks
    counts : mapping
        Number of codes of each column that holds codes.
    columns_of : callable
        From a block to targets and, after `n_targets` of them, doses: (n_rows, n_columns).
    """
    line, n_folds, features = fit_line(blocks, counts, columns_of), blocks.n_folds, sorted(counts)

    def sums(block: RowBlock) -> Sums:
        left, slopes = np.hsplit(line.left(block), [n_targets])
        columns, weights = list(summed_columns(left, slopes)), block.row_weights
        out: list[Any] = []
        for feature in features:
            cells, n_cells = code_cells(block.X[:, feature], counts[feature]), counts[feature] + 1
            places = block.folds * n_cells + cells
            by_fold = [np.bincount(places, weights * each, n_folds * n_cells) for each in columns]
            out.append(np.bincount(cells, minlength=n_cells))
            out.append(np.reshape(by_fold, (len(columns), n_folds, n_cells)))
        return tuple(out)

    summed = blocks.add_up("means and slopes of categories", sums)
    encodings: list[list[ColumnEncoding]] = [[] for _ in range(n_folds + 1)]
    for place, feature in enumerate(features):
        n_rows, by_fold = summed[2 * place : 2 * place + 2]
        indicators, learns = indicator_codes(n_rows)
        learned = np.empty((n_folds + 1, counts[feature] + 1, 0))
        if learns:
            learned = learned_numbers(by_fold, n_targets)
        for encoding, numbers in zip(encodings, learned, strict=True):
            encoding.append(ColumnEncoding(feature, counts[feature], indicators, numbers))
    n_features = len(line.numeric) + len(features)
    return tuple(CategoryEncoder(n_features, tuple(each)) for each in encodings)


def code_cells(codes: FloatArray, n_codes: int) -> IntArray:
    """Codes as whole numbers, with one for missing values."""
    return np.where(np.isnan(codes), n_codes, codes).astype(np.int64)


def indicator_codes(n_rows: IntArray) -> tuple[IntArray, bool]:
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
