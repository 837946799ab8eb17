"""Weighted quantile bins of the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest import _core
from doseforest.base.dtypes import BinArray, ChannelArray, FloatArray, IntArray, bin_dtype
from doseforest.base.seeds import draw, stream, uniform
from doseforest.data.feature_table import BlockSource, categories_of
from doseforest.data.sampling import DRAW_BIN_SAMPLE

MAX_BINS = 255  # of a number: a byte, less one code for missing values
MAX_CATEGORIES = 1023  # with a bin each: ten bits, less one code for missing values
SAMPLE_ROWS = 200_000  # quantiles of this many rows place 64 bins well within a percent


@dataclass(frozen=True, slots=True)
class FeatureBins:
    """Where each feature is cut.

    A value lies in the first bin whose upper edge is not below it; the last bin has no upper
    edge; missing values have the bin after the last.
    """

    edges: FloatArray  # all features' upper edges, one feature after another, ascending in each
    edge_starts: IntArray  # (n_features + 1,)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.edge_starts) - 1

    @property
    def n_bins(self) -> NDArray[np.int32]:
        """Bins of each feature, without the one for missing values."""
        return (np.diff(self.edge_starts) + 1).astype(np.int32)

    def threshold(self, features: IntArray, bins: IntArray) -> FloatArray:
        """Upper edge of each (feature, bin): infinite for the last bin."""
        last = bins >= self.n_bins[features] - 1
        places = np.where(last, 0, self.edge_starts[features] + bins)
        edges = self.edges if len(self.edges) else np.zeros(1)
        return np.where(last, np.inf, edges[places])

    def transform(self, source: BlockSource, n_threads: int = 1) -> BinArray:
        """Bin every row, shape (n_rows, n_features): bytes unless a feature has too many bins."""
        shape = source.n_rows, source.n_features
        out: BinArray = np.empty(shape, bin_dtype(int(self.n_bins.max(initial=0))))
        for first, block in source.blocks():
            _core.bin_values(
                block, self.edges, self.edge_starts, n_threads, out[first : first + len(block)]
            )
        return out


def fit_bins(
    source: BlockSource,
    *,
    max_bins: int = 64,
    weights: ChannelArray | None = None,
    row_ids: IntArray | None = None,
    seed: int = 0,
) -> FeatureBins:
    """Place bins at weighted quantiles; few distinct values keep a bin each.

    Beyond 200,000 rows the quantiles come from a sample by hash of the row ids; a feature with few
    distinct values still keeps each of them. Categories have a bin each, whatever `max_bins` is;
    beyond 1,023 the rarest share the last.

    Examples
    --------
    >>> from doseforest.data.feature_table import as_table
    >>> fit_bins(as_table([[0.0], [1.0], [1.0], [3.0]])).edges
    array([0.5, 2. ])
    """
    keep = _sampled_rows(source.n_rows, row_ids, seed)
    kept = []
    for first, block in source.blocks():
        kept.append(block if keep is None else block[keep[first : first + len(block)]])
    sample = np.concatenate(kept)
    if weights is not None and keep is not None:
        weights = weights[keep]
    edges = [feature_edges(column, weights, max_bins) for column in sample.T]
    if keep is not None:
        for feature, levels in _all_levels(source, sample, max_bins).items():
            edges[feature] = midpoints(levels[:-1], levels[1:])
    for feature, labels in categories_of(source).items():
        edges[feature] = 0.5 + np.arange(min(len(labels), MAX_CATEGORIES) - 1, dtype=np.float64)
    starts = np.cumsum([0, *(len(edge) for edge in edges)], dtype=np.int64)
    return FeatureBins(np.concatenate(edges), starts)


def _all_levels(source: BlockSource, sample: FloatArray, max_bins: int) -> dict[int, FloatArray]:
    """Distinct values of the features that have few: the sample may have missed the rare ones."""
    levels = {}
    for feature, column in enumerate(sample.T):
        distinct = np.unique(column[~np.isnan(column)])
        if len(distinct) <= max_bins:
            levels[feature] = distinct
    for _, block in source.blocks():
        for feature in list(levels):
            column = block[:, feature]
            new = np.unique(column[~np.isnan(column)])
            levels[feature] = np.union1d(levels[feature], new)
            if len(levels[feature]) > max_bins:  # not few after all
                del levels[feature]
    return levels


def _sampled_rows(n_rows: int, row_ids: IntArray | None, seed: int) -> NDArray[np.bool_] | None:
    ids = np.arange(n_rows) if row_ids is None else row_ids
    return sampled_ids(ids, n_rows, seed)


def sampled_ids(ids: IntArray, n_rows: int, seed: int) -> NDArray[np.bool_] | None:
    """Which ids are in the sample of a table with so many rows; None: all of them."""
    if n_rows <= SAMPLE_ROWS:
        return None
    key = stream(seed, DRAW_BIN_SAMPLE, np.zeros(1, np.uint64))
    return uniform(draw(key, ids.astype(np.uint64))) < SAMPLE_ROWS / n_rows


def feature_edges(values: FloatArray, weights: ChannelArray | None, max_bins: int) -> FloatArray:
    """Upper edges of the bins of one feature; NaN is missing."""
    present = ~np.isnan(values)
    if weights is not None:
        present &= weights > 0
    if weights is None:
        distinct, counts = np.unique(values[present], return_counts=True)
        mass: FloatArray = counts.astype(np.float64)
    else:
        distinct, inverse = np.unique(values[present], return_inverse=True)
        own_weights = weights[present].astype(np.float64)
        mass = np.bincount(inverse, own_weights, len(distinct)).astype(np.float64)
    if len(distinct) < 2:
        return np.empty(0)
    if len(distinct) <= max_bins:
        return midpoints(distinct[:-1], distinct[1:])
    cut = _quantile_cuts(mass, max_bins)
    return midpoints(distinct[cut], distinct[cut + 1])


def _quantile_cuts(mass: FloatArray, max_bins: int) -> IntArray:
    """Places after which to cut, so that bins hold equal mass as far as single values allow.

    A value heavier than a bin fills one bin and no more, which makes room for finer bins elsewhere:
    its mass counts as that of a bin.
    """
    heaviest = np.sort(mass)[::-1][:max_bins]
    lighter = mass.sum() - np.cumsum(heaviest)
    sizes = (lighter + heaviest) / np.arange(max_bins, max_bins - len(heaviest), -1)
    n_heavy = int(np.argmax(heaviest <= sizes)) if (heaviest <= sizes).any() else len(heaviest) - 1
    capped = np.minimum(mass, sizes[n_heavy])
    cumulated = np.cumsum(capped)
    targets = cumulated[-1] * np.arange(1, max_bins) / max_bins
    cuts = np.searchsorted(cumulated, targets * (1 - 1e-12))
    return np.unique(cuts[cuts < len(mass) - 1])


def midpoints(low: FloatArray, high: FloatArray) -> FloatArray:
    """Middles between values and the next higher ones, never equal to the higher."""
    middle = low / 2 + high / 2  # halves first: the sum could overflow
    return np.where((middle >= low) & (middle < high), middle, low)
