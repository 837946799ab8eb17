"""Categories as numbers from sums over a cluster, see `doseforest.nuisance.encoding`.

Learned numbers of a training row come from the rows of the other folds, as all that is said of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.data.binning import MAX_CATEGORIES, FeatureBins
from doseforest.data.row_blocks import NUMBERS, RowBlock
from doseforest.doses.vectors import components
from doseforest.nuisance.encoding.category_encoding import (
    RIDGE,
    CategoryEncoder,
    ColumnEncoding,
    indicator_codes,
)
from doseforest.nuisance.encoding.category_numbers import learned_numbers, summed_columns
from doseforest.spark.cluster_units import Units
from doseforest.spark.fold_forests import BINS, CODE_BINS, BinnedFeatures


def encode_units(units: Units, counts: Mapping[int, int]) -> CategoryEncoder | None:
    """Add the covariates as numbers to every block; the encoder of all rows is for new units.

    Parameters
    ----------
    counts : mapping
        Number of codes of each categorical feature; where there is none, nothing is done.
    """
    if not counts:
        return None
    numeric = np.setdiff1d(np.arange(units.n_features), list(counts))
    line = _fit_line(units, numeric)
    *without, full = _encoders(units, counts, line)

    def encoded(block: RowBlock) -> dict[str, FloatArray]:
        out = np.empty((len(block), full.n_columns))
        for fold, encoder in enumerate(without):
            rows = block.folds == fold
            out[rows] = encoder.encode(block.X[rows])
        return {NUMBERS: out}

    units.add("categories as numbers", encoded)
    units.n_numbers = full.n_columns
    return full


def split_features(
    numbers: FeatureBins, encoder: CategoryEncoder | None, counts: Mapping[int, int]
) -> BinnedFeatures:
    """The covariates as trees split on them: sets of codes, where the others have their bins.

    Parameters
    ----------
    numbers : FeatureBins
        Of the covariates as numbers: those that are no categories come first.
    """
    if encoder is None:
        return BinnedFeatures(numbers, BINS)
    starts = numbers.edge_starts
    edges = {
        feature: numbers.edges[starts[place] : starts[place + 1]]
        for place, feature in enumerate(encoder.numeric.tolist())
    }
    for feature, n_codes in counts.items():
        edges[feature] = 0.5 + np.arange(min(n_codes, MAX_CATEGORIES) - 1, dtype=np.float64)
    own = [edges[feature] for feature in range(encoder.n_features)]
    places = np.cumsum([0, *(len(each) for each in own)], dtype=np.int64)
    return BinnedFeatures(FeatureBins(np.concatenate(own), places), CODE_BINS, counts)


@dataclass(frozen=True, slots=True)
class _Line:
    """What numeric covariates explain of the outcome and the doses."""

    numeric: IntArray  # (n_numeric,) features
    level: FloatArray  # (n_numeric,) their means
    means: FloatArray  # (1 + n_components,) of the outcome and the doses
    slopes: FloatArray  # (n_numeric, 1 + n_components)

    def left(self, block: RowBlock) -> FloatArray:
        """What it leaves of a block's outcomes and doses, (n_rows, 1 + n_components)."""
        rest: FloatArray = _targets(block) - self.means - self.offsets(block) @ self.slopes
        return rest

    def offsets(self, block: RowBlock) -> FloatArray:
        """Numeric covariates less their means, 0 where missing."""
        return np.nan_to_num(block.X[:, self.numeric] - self.level)


def _targets(block: RowBlock) -> FloatArray:
    return np.column_stack([block.y, components(block.dose)])


def _fit_line(units: Units, numeric: IntArray) -> _Line:
    """Least squares on standardised covariates with a little ridge, over all rows."""

    def first(block: RowBlock) -> tuple[Any, ...]:
        own, X = block.row_weights, block.X[:, numeric]
        present = ~np.isnan(X)
        sums = own @ np.where(present, X, 0.0)
        return own.sum(), own @ _targets(block), own @ present.astype(np.float64), sums

    weight, targets, known, sums = units.add_up("means of covariates", first)
    start = _Line(
        numeric=numeric,
        level=sums / np.maximum(known, 1e-300),
        means=targets / weight,
        slopes=np.zeros((len(numeric), len(targets))),
    )
    if not len(numeric):
        return start

    def second(block: RowBlock) -> tuple[Any, ...]:
        offsets, left = start.offsets(block), start.left(block)
        weighted = offsets * block.row_weights[:, None]
        return weighted.T @ offsets, weighted.T @ left

    gram, cross = units.add_up("products of covariates", second)
    scale = np.sqrt(np.diag(gram) / weight)
    scale = np.where(scale > 1e-12 * np.abs(start.level), scale, np.inf)
    gram = gram / np.outer(scale, scale) + RIDGE * weight * np.eye(len(scale))
    slopes = np.linalg.solve(gram, cross / scale[:, None]) / scale[:, None]
    return _Line(numeric, start.level, start.means, slopes)


def _encoders(units: Units, counts: Mapping[int, int], line: _Line) -> tuple[CategoryEncoder, ...]:
    """An encoder without each fold, and last one of all rows; their columns mean the same."""
    n_folds, n_features = units.n_folds, units.n_features
    features = sorted(counts)

    def sums(block: RowBlock) -> tuple[Any, ...]:
        left, own = line.left(block), block.row_weights
        columns = list(summed_columns(left, left[:, 1:]))
        found: list[Any] = []
        for feature in features:
            n_cells = counts[feature] + 1
            cells = _cells(block.X[:, feature], counts[feature])
            places = block.folds * n_cells + cells
            by_fold = [np.bincount(places, own * each, n_folds * n_cells) for each in columns]
            found.append(np.bincount(cells, minlength=n_cells))
            found.append(np.reshape(by_fold, (len(columns), n_folds, n_cells)))
        return tuple(found)

    found = units.add_up("means and slopes of categories", sums)
    columns: list[list[ColumnEncoding]] = [[] for _ in range(n_folds + 1)]
    n_targets = len(line.means)
    for place, feature in enumerate(features):
        n_rows, by_fold = found[2 * place : 2 * place + 2]
        indicators, learns = indicator_codes(n_rows)
        learned = np.empty((n_folds + 1, counts[feature] + 1, 0))
        if learns:
            learned = learned_numbers(by_fold, n_targets)
        for own, numbers in zip(columns, learned, strict=True):
            own.append(ColumnEncoding(feature, counts[feature], indicators, numbers))
    return tuple(CategoryEncoder(n_features, tuple(own)) for own in columns)


def _cells(codes: FloatArray, n_codes: int) -> IntArray:
    """Codes as whole numbers, with one for missing values."""
    return np.where(np.isnan(codes), n_codes, codes).astype(np.int64)
