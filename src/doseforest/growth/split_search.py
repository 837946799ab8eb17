"""Split search in NumPy: for distances given as callables, and the tests' twin of cpp/scan.hpp."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from doseforest.dtypes import Array, FloatArray
from doseforest.growth.distances import curve_distances
from doseforest.growth.frontier import Splits
from doseforest.growth.grower import StopRules
from doseforest.growth.split_statistics import SplitStatistic


def scan_histograms(
    statistic: SplitStatistic,
    rules: StopRules,
    n_bins: NDArray[np.int32],
    features: NDArray[np.int32],  # (n_nodes, n_selected)
    sums: FloatArray,  # (n_nodes, n_cells, n_channels)
    counts: Array,  # (n_nodes, n_cells)
    n_candidates: int = 1,
) -> Splits:
    """Best splits of each histogram, one per feature, by gain and then by feature."""
    splits = Splits.none(len(features) * n_candidates)
    for node, own_features in enumerate(features):
        found: list[tuple[float, int, int, bool]] = []
        start = 0
        for feature in own_features:
            cells = slice(start, start + n_bins[feature] + 1)
            start = cells.stop
            cuts = _cuts(statistic, rules, sums[node, cells], counts[node, cells].astype(np.int64))
            if cuts:
                gain, cut_bin, missing_left = max(cuts, key=lambda cut: cut[0])  # the first of them
                found.append((gain, int(feature), cut_bin, missing_left))
        found.sort(key=lambda split: (-split[0], split[1]))
        for place, (gain, *cut) in enumerate(found[:n_candidates], node * n_candidates):
            splits.gain[place] = gain
            splits.cut[place] = cut
    return splits


def _cuts(
    statistic: SplitStatistic, rules: StopRules, sums: FloatArray, counts: NDArray[np.int64]
) -> list[tuple[float, int, bool]]:
    """Best cut of one feature for each side that its missing values may take."""
    n_bins = len(counts) - 1
    total, n_rows = sums.sum(axis=0), int(counts.sum())
    by_share = int(np.ceil(rules.min_child_fraction * n_rows * (1 - 1e-12)))  # 7 of 100 at 0.07
    smallest = max(rules.min_node_size, by_share, 1)
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
