"""Split search in NumPy: for distances given as callables, and the tests' twin of cpp/scan.hpp."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import BY_SET, Array, FloatArray, SetArray, set_words
from doseforest.engine.growth.frontier import Splits
from doseforest.engine.growth.grower import StopRules
from doseforest.engine.splits.category_search import as_set, best_category_split
from doseforest.engine.splits.distances import curve_distances
from doseforest.engine.splits.split_statistics import SplitStatistic

# Gain, (feature, bin or BY_SET, missing_left), and the set of a split by one.
FoundSplit = tuple[float, tuple[int, int, bool], SetArray | None]


def scan_histograms(
    statistic: SplitStatistic,
    rules: StopRules,
    n_bins: NDArray[np.int32],
    features: NDArray[np.int32],  # (n_nodes, n_selected)
    sums: FloatArray,  # (n_nodes, n_cells, n_channels)
    counts: Array,  # (n_nodes, n_cells)
    categorical: NDArray[np.uint8] | None = None,  # (n_features,)
    n_candidates: int = 1,
) -> Splits:
    """Best splits of each histogram, one per feature, by gain and then by feature."""
    n_words = 0 if categorical is None else set_words(int(n_bins.max()))
    splits = Splits.none(len(features) * n_candidates, set_words=n_words)
    for node, own_features in enumerate(features):
        result: list[FoundSplit] = []
        start = 0
        for feature in own_features:
            cells = slice(start, start + n_bins[feature] + 1)
            start = cells.stop
            own_sums, own_counts = sums[node, cells], counts[node, cells].astype(np.int64)
            if categorical is not None and categorical[feature]:
                result += _best_set(int(feature), statistic, rules, own_sums, own_counts)
                continue
            cuts = _cuts(statistic, rules, own_sums, own_counts)
            if cuts:
                gain, cut_bin, missing_left = max(cuts, key=lambda cut: cut[0])  # the first of them
                result.append((gain, (int(feature), cut_bin, missing_left), None))
        result.sort(key=lambda split: (-split[0], split[1][0]))
        for place, (gain, cut, own_set) in enumerate(result[:n_candidates], node * n_candidates):
            splits.gain[place] = gain
            splits.cut[place] = cut
            if own_set is not None:
                splits.sets[place, : len(own_set)] = own_set
    return splits


def _best_set(
    feature: int,
    statistic: SplitStatistic,
    rules: StopRules,
    sums: FloatArray,
    counts: NDArray[np.int64],
) -> list[FoundSplit]:
    """Best set of categories of a feature, if there is any."""
    total, n_rows = sums.sum(axis=0), int(counts.sum())
    smallest = _smallest_child(rules, n_rows)

    def gains(left: FloatArray, left_rows: NDArray[np.int64]) -> FloatArray:
        admissible = (left_rows >= smallest) & (n_rows - left_rows >= smallest)
        out = np.full(len(left), -np.inf)
        if admissible.any():
            out[admissible] = split_gains(
                statistic, left[admissible], left_rows[admissible], total, n_rows
            )
        return out

    result = best_category_split(statistic, sums, counts, gains)
    if result is None or not result.gain > -np.inf:
        return []
    missing_left = bool(result.left[-1]) if counts[-1] else 2 * result.left_rows >= n_rows
    cut = feature, BY_SET, missing_left
    return [(result.gain, cut, as_set(result.left, counts, missing_left))]


def _smallest_child(rules: StopRules, n_rows: int) -> int:
    by_share = int(np.ceil(rules.min_child_fraction * n_rows * (1 - 1e-12)))  # 7 of 100 at 0.07
    return max(rules.min_node_size, by_share, 1)


def _cuts(
    statistic: SplitStatistic, rules: StopRules, sums: FloatArray, counts: NDArray[np.int64]
) -> list[tuple[float, int, bool]]:
    """Best cut of one feature for each side that its missing values may take."""
    n_bins = len(counts) - 1
    total, n_rows = sums.sum(axis=0), int(counts.sum())
    smallest = _smallest_child(rules, n_rows)
    best = []
    for missing_left in (False, True) if counts[-1] else (False,):
        left = np.cumsum(sums[:-1], axis=0) + missing_left * sums[-1]
        left_rows = np.cumsum(counts[:-1]) + missing_left * counts[-1]
        admissible = (counts[:-1] > 0) & (left_rows >= smallest) & (n_rows - left_rows >= smallest)
        places = np.flatnonzero(admissible)
        if len(places) == 0:
            continue
        gains = split_gains(statistic, left[places], left_rows[places], total, n_rows)
        if not np.isfinite(gains).any():
            continue
        winner = int(np.nanargmax(gains))
        place = int(places[winner])
        later = np.flatnonzero(counts[place + 1 : n_bins])
        cut_bin = place + int(later[0]) // 2 if len(later) else n_bins - 1
        side = missing_left if counts[-1] else bool(2 * left_rows[place] >= n_rows)
        best.append((float(gains[winner]), cut_bin, side))
    return best


def split_gains(
    statistic: SplitStatistic,
    left: FloatArray,  # (n_cuts, n_channels) sums of the left child
    left_rows: NDArray[np.int64],
    total: FloatArray,  # (n_channels,) sums of the node
    n_rows: int,
) -> FloatArray:
    """Gain n1 n2 / nP * D(mean_1, mean_2) + zeta * sigma of each cut, GCF Eq. 2."""
    weight_left = left_rows.astype(np.float64)
    weight_total = float(n_rows)
    if statistic.weight_channel >= 0:
        weight_left = left[:, statistic.weight_channel]
        weight_total = float(total[statistic.weight_channel])
        if weight_total <= 0:
            return np.full(len(left), -np.inf)
    possible = (weight_left > 0) & (weight_left < weight_total)
    weight_left = np.where(possible, weight_left, weight_total / 2)  # anything that divides
    left_curves, right_curves = statistic.child_curves(left, weight_left, total, weight_total)
    distances = curve_distances(statistic.distance, left_curves, right_curves, statistic.quadrature)
    gains = weight_left * (weight_total - weight_left) / weight_total * distances
    gains += statistic.extra_gain(left, weight_left, total, weight_total)
    return np.where(possible, gains, -np.inf)
