"""One round: cores sum histograms of the searched nodes, reducers add them and find splits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest import _core
from doseforest.base.dtypes import BY_SET, FloatArray, IntArray
from doseforest.engine.growth.frontier import Splits
from doseforest.spark.blocks import GrowthBlock
from doseforest.spark.growth_spec import GrowthSpec
from doseforest.spark.routing import PartialTrees, growing_rows

NODES_AT_ONCE = 64  # histograms that a partition sums up at a time

Histogram = tuple[FloatArray, NDArray[np.uint32]]  # (n_cells, n_channels) and (n_cells,)


@dataclass(frozen=True, slots=True)
class Round:
    """Nodes that want a split, and the trees that lead to them."""

    partial: PartialTrees
    nodes: IntArray  # (n_nodes,) numbers in the partial trees
    trees: IntArray  # (n_nodes,) tree of each
    keys: NDArray[np.uint64]  # (n_nodes,)


@dataclass(frozen=True, slots=True)
class FoundSplits:
    """What a reducer sends to the driver."""

    places: IntArray  # (n,) places among the nodes of the round
    splits: Splits
    left_rows: IntArray  # (n,) rows that go left


def sum_histograms(
    spec: GrowthSpec, task: Round, blocks: Iterable[GrowthBlock]
) -> Iterable[tuple[int, Histogram]]:
    """Histograms of the nodes that have rows in some blocks, each with its place in the round."""
    total: dict[int, Histogram] = {}
    for block in blocks:
        for place, (sums, counts) in _histograms(spec, task, block):
            # A copy of what stays: views would keep the histograms of 64 nodes alive.
            histogram = (sums, counts) if place in total else (sums.copy(), counts.copy())
            _add(total, place, histogram)
    return total.items()


def _add(total: dict[int, Histogram], place: int, own: Histogram) -> None:
    """Add the histogram of a node to what is there. Sums are exact in any order."""
    if place in total:
        sums, counts = total[place]
        sums += own[0]
        counts += own[1]
    else:
        total[place] = own


def _histograms(
    spec: GrowthSpec, task: Round, block: GrowthBlock
) -> Iterator[tuple[int, Histogram]]:
    result = growing_rows(spec, block, task.partial)
    ranges = result.ranges[task.nodes]
    present = np.flatnonzero(ranges[:, 1] > ranges[:, 0])
    for first in range(0, len(present), NODES_AT_ONCE):
        places = present[first : first + NODES_AT_ONCE]
        sums = np.empty((len(places), spec.n_cells, spec.width))
        counts = np.empty((len(places), spec.n_cells), np.uint32)
        _core.histograms(
            block.bins,
            block.channels,
            spec.n_bins,
            result.rows,
            ranges[places],
            spec.features(task.trees[places], task.keys[places]),
            1,
            sums,
            counts,
        )
        for place, own_sums, own_counts in zip(places.tolist(), sums, counts, strict=True):
            yield place, (own_sums, own_counts)


def find_splits(
    spec: GrowthSpec, task: Round, histograms: Iterable[tuple[int, Histogram]]
) -> FoundSplits:
    """Add up the histograms of each node and find its split."""
    total: dict[int, Histogram] = {}
    for place, histogram in histograms:
        _add(total, place, histogram)
    places = np.array(sorted(total), np.int64)
    if not len(places):
        return FoundSplits(places, Splits.none(0, set_words=spec.set_words), np.zeros(0, np.int64))
    features = spec.features(task.trees[places], task.keys[places])
    splits, left_rows = [], []
    for place, own_features in zip(places.tolist(), features, strict=True):
        sums, counts = total.pop(place)
        best = spec.best_splits(own_features[None], sums[None], counts[None])
        splits.append(best)
        left_rows.append(_left_rows(spec, own_features, counts, best))
    joined = Splits(
        np.concatenate([split.gain for split in splits]),
        np.concatenate([split.cut for split in splits]),
        np.concatenate([split.sets for split in splits]),
    )
    return FoundSplits(places, joined, np.array(left_rows, np.int64))


def _left_rows(
    spec: GrowthSpec, features: NDArray[np.int32], counts: NDArray[np.uint32], split: Splits
) -> int:
    """Rows that a split sends to the left, from the counts of its feature's bins."""
    feature, cut_bin, missing_left = split.cut[0].tolist()
    if feature < 0:
        return 0
    selected = features.tolist()
    start = sum(int(spec.n_bins[f]) + 1 for f in selected[: selected.index(feature)])
    n_bins = int(spec.n_bins[feature])
    bin_counts = counts[start : start + n_bins + 1].astype(np.int64)
    if cut_bin == BY_SET:
        places = np.arange(n_bins)
        words = split.sets[0, places // 64] >> (places % 64).astype(np.uint64)
        goes_left = (words & np.uint64(1)) > 0
    else:
        goes_left = np.arange(n_bins) <= cut_bin
    return int(bin_counts[:-1][goes_left].sum() + (bin_counts[-1] if missing_left else 0))
