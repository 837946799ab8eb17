"""Bins and spline terms of the features from one pass: a sample by hash that merges by itself.

Every partition sends the values of its sampled rows, feature by feature; a reducer places the bins
and knots of a feature. The sample is the one that the local engine would draw, so the bins are too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import ChannelArray, FloatArray
from doseforest.data.binning import FeatureBins, feature_edges, midpoints, sampled_ids
from doseforest.data.row_blocks import RowBlock
from doseforest.nuisance.outcome.covariate_terms import (
    CovariateTerms,
    fit_covariate_terms,
    has_many_values,
)
from doseforest.nuisance.outcome.knot_search import knot_edges
from doseforest.spark.cluster_units import Units
from doseforest.spark.jobs import described


@dataclass(frozen=True, slots=True)
class FeatureSummary:
    """What is known of one feature over all rows."""

    edges: FloatArray  # upper edges of its bins
    terms: CovariateTerms  # of a table with this column alone
    knots: FloatArray  # where a search may put knots, in standardised units; none: few values


@dataclass(frozen=True, slots=True)
class _Column:
    """One feature in one partition."""

    values: FloatArray  # of the sampled rows
    weights: ChannelArray | None
    levels: FloatArray | None  # distinct values of all rows; None: too many
    gappy: bool


@dataclass(frozen=True, slots=True)
class FeatureSummaries:
    """What is known of all features."""

    bins: FeatureBins
    terms: CovariateTerms
    knots: tuple[FloatArray, ...]  # of each feature


def summarise_features(units: Units, max_bins: int) -> FeatureSummaries:
    """Place the bins and knots of all features."""
    n_features, n_rows, seed = units.n_numbers, units.n_rows, units.seed
    n_reducers = min(n_features, max(1, units.context.defaultParallelism))
    with described(units.context, "quantiles of the features"):
        columns = units.blocks.flatMap(lambda block: _columns(block, n_rows, seed, max_bins))
        result = dict(
            columns.partitionBy(n_reducers, lambda feature: feature)
            .mapPartitions(lambda parts: _summaries(parts, max_bins))
            .collect()
        )
    summaries = [result[feature] for feature in range(n_features)]
    starts = np.cumsum([0, *(len(each.edges) for each in summaries)], dtype=np.int64)
    bins = FeatureBins(np.concatenate([each.edges for each in summaries]), starts)
    terms = _joined_terms([each.terms for each in summaries])
    return FeatureSummaries(bins, terms, tuple(each.knots for each in summaries))


def _columns(
    block: RowBlock, n_rows: int, seed: int, max_bins: int
) -> Iterator[tuple[int, _Column]]:
    kept = sampled_ids(block.sample_keys, n_rows, seed)
    sample = block.numbers if kept is None else block.numbers[kept]
    weights = block.weights
    if weights is not None and kept is not None:
        weights = weights[kept]
    for feature, column in enumerate(block.numbers.T):
        missing = np.isnan(column)
        levels = np.unique(column[~missing])
        yield (
            feature,
            _Column(
                values=np.ascontiguousarray(sample[:, feature]),
                weights=weights,
                levels=levels if len(levels) <= max_bins else None,
                gappy=bool(missing.any()),
            ),
        )


def _summaries(
    parts: Iterable[tuple[int, _Column]], max_bins: int
) -> list[tuple[int, FeatureSummary]]:
    by_feature: dict[int, list[_Column]] = {}
    for feature, column in parts:
        by_feature.setdefault(feature, []).append(column)
    return [(feature, _summary(each, max_bins)) for feature, each in by_feature.items()]


def _summary(parts: list[_Column], max_bins: int) -> FeatureSummary:
    values = np.concatenate([part.values for part in parts])
    weights = None
    if any(part.weights is not None for part in parts):
        weights = np.concatenate([part.weights for part in parts if part.weights is not None])
    levels = all_levels([part.levels for part in parts], max_bins)
    if levels is None:
        edges = feature_edges(values, weights, max_bins)
    else:
        edges = midpoints(levels[:-1], levels[1:])
    gappy = any(part.gappy for part in parts)
    values = np.sort(values)  # sums over them must not depend on the order of partitions
    table = np.append(values, np.nan) if gappy and not np.isnan(values).any() else values
    terms = fit_covariate_terms(table[:, None])
    standardised = terms.standardised(table[:, None])[:, 0]
    knots = knot_edges(standardised) if has_many_values(standardised) else np.zeros(0)
    return FeatureSummary(edges, terms, knots)


def all_levels(found: list[FloatArray | None], most: int) -> FloatArray | None:
    """Distinct values over all partitions, if they are few; None: a partition has too many.

    >>> all_levels([np.array([1.0, 2.0]), np.array([2.0, 3.0])], most=3)
    array([1., 2., 3.])
    >>> all_levels([np.array([1.0, 2.0]), None], most=3)
    """
    known: list[Any] = [levels for levels in found if levels is not None]
    if len(known) < len(found):
        return None
    levels = np.unique(np.concatenate(known))
    return levels if len(levels) <= most else None


def _joined_terms(each: list[CovariateTerms]) -> CovariateTerms:
    """Terms of single columns as those of the whole table."""

    def numbered(name: str) -> Any:
        return np.concatenate(
            [getattr(terms, name) + feature for feature, terms in enumerate(each)]
        ).astype(np.int64)

    def values(name: str) -> FloatArray:
        return np.concatenate([getattr(terms, name) for terms in each])

    return CovariateTerms(
        median=values("median"),
        mean=values("mean"),
        scale=values("scale"),
        gappy=numbered("gappy"),
        power_feature=numbered("power_feature"),
        power_degree=np.concatenate([terms.power_degree for terms in each]),
        power_low=values("power_low"),
        power_high=values("power_high"),
        hinge_feature=numbered("hinge_feature"),
        hinge_knot=values("hinge_knot"),
        step_feature=numbered("step_feature"),
        step_knot=values("step_knot"),
    )
