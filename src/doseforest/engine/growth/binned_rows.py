"""Training rows as forests see them: features in bins, weights, and what rows are drawn by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import BinArray, ChannelArray, FloatArray, IntArray
from doseforest.data.binning import FeatureBins, fit_bins
from doseforest.data.categories import learn_categories
from doseforest.data.checks import checked_row_ids, checked_weights, group_codes
from doseforest.data.feature_table import (
    ArrayTable,
    BlockSource,
    Categories,
    categories_of,
    category_marks,
)


@dataclass(frozen=True, slots=True, eq=False)
class BinnedRows:
    """A checked feature table in bins, made once and shared by all forests of a fit."""

    table: BlockSource  # its categories are codes
    bins: FeatureBins  # where each feature is cut
    codes: BinArray  # (n_rows, n_features) bin of each value
    weights: ChannelArray | None  # (n_rows,) of mean 1; None: all equal
    sampling_ids: IntArray  # (n_rows,) what rows are drawn by: row ids, or codes of groups
    grows: NDArray[np.bool_] | None = None  # (n_rows,) rows that may grow; the others fill leaves

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.table.n_features

    @property
    def categories(self) -> Categories:
        """Labels of the features that hold codes."""
        return categories_of(self.table)

    @property
    def most_categories(self) -> int | None:
        """Labels of the feature with the most; None where no feature has any."""
        return max(map(len, self.categories.values())) if self.categories else None

    @property
    def categorical(self) -> NDArray[np.uint8] | None:
        """1 for each categorical feature; None where there is none."""
        return category_marks(self.categories, self.n_features)


def bin_rows(
    table: BlockSource,
    *,
    max_bins: int,
    weights: ChannelArray | None,
    row_ids: IntArray,
    sampling_ids: IntArray,
    grows: NDArray[np.bool_] | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> BinnedRows:
    """Place the bins of checked rows, and bin them."""
    bins = fit_bins(table, max_bins=max_bins, weights=weights, row_ids=row_ids, seed=seed)
    codes = bins.transform(table, n_threads)
    return BinnedRows(table, bins, codes, weights, sampling_ids, grows)


def bin_array(
    X: FloatArray,
    *,
    categorical: Sequence[Any] = (),
    max_bins: int = 64,
    weights: FloatArray | None = None,
    groups: IntArray | None = None,
    grows: NDArray[np.bool_] | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> BinnedRows:
    """Bin an array of checked features, as estimators have it once their border is passed.

    Parameters
    ----------
    categorical : sequence of int
        Columns that hold codes of categories.
    weights : array of shape (n_rows,), optional
    groups : array of shape (n_rows,), optional
        Rows of a group are drawn together; by default each row by itself.
    grows : array of bool of shape (n_rows,), optional
    seed : int
        Of the sample of rows that places bins beyond 200,000 rows.

    Examples
    --------
    >>> bin_array(np.array([[0.0], [2.0], [np.nan]])).codes.ravel()
    array([0, 1, 2], dtype=uint8)
    """
    ids = checked_row_ids(None, len(X))
    return bin_rows(
        learn_categories(ArrayTable(X), list(categorical)),
        max_bins=max_bins,
        weights=checked_weights(weights, len(X)),
        row_ids=ids,
        sampling_ids=ids if groups is None else group_codes(groups, len(X)),
        grows=grows,
        seed=seed,
        n_threads=n_threads,
    )
