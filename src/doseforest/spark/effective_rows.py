"""How many rows an answer of a forest averages over, from sums over a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from doseforest import _core
from doseforest.base.dtypes import FloatArray
from doseforest.data.row_blocks import RowBlock
from doseforest.engine.forest import Forest
from doseforest.estimator.corrections.orthogonal import WEIGHED_QUERIES
from doseforest.spark.cluster_units import Units, fold_of
from doseforest.spark.fold_forests import BinnedFeatures
from doseforest.spark.jobs import described

TREES_AT_ONCE = 16  # routed together when forest weights are looked at


def draw_queries(units: Units) -> FloatArray:
    """Covariates of some rows, chosen by a hash."""
    n, seed = WEIGHED_QUERIES, units.seed

    def candidates(block: RowBlock) -> list[tuple[int, bytes, FloatArray]]:
        hashes = fold_of(block.sample_keys, 2**62, seed)
        last = np.sort(hashes)[:n][-1:]
        rows = np.flatnonzero(hashes <= last)  # by their values where they share a key
        return [(int(hashes[row]), block.X[row].tobytes(), block.X[row]) for row in rows]

    with described(units.context, f"draw {n} rows"):
        result = units.blocks.flatMap(candidates).takeOrdered(n, key=lambda each: each[:2])
    return np.stack([x for _, _, x in result])


def effective_rows(
    units: Units, splits: BinnedFeatures, forests: Sequence[Forest], sent: Any, queries: FloatArray
) -> list[float]:
    """Rows that a query averages over, 1 / sum of its squared weights: the median of some."""
    leaves = [forest.apply(queries, n_jobs=1) for forest in forests]

    def squares(block: RowBlock) -> tuple[FloatArray, ...]:
        return tuple(
            _squared_weights(forest, leaf, block, splits)
            for forest, leaf in zip(sent.value, leaves, strict=True)
        )

    result = units.add_up("rows behind an answer", squares)
    return [float(np.median(1 / each[each > 0])) if (each > 0).any() else 1.0 for each in result]


def _squared_weights(
    forest: Forest,
    leaves: NDArray[np.int32],  # (n_queries, n_trees) of the queries
    block: RowBlock,
    splits: BinnedFeatures,
) -> FloatArray:
    """Sum over the rows of a block of the squared weights that each query gives them."""
    filled = forest.leaf_weights[leaves] > 0
    n_queries, n_rows = len(leaves), len(block)
    own_bins, n_bins = splits.of(block), splits.bins.n_bins
    share = 1.0 / np.maximum(filled.sum(axis=1), 1)
    total = sparse.csr_array((n_queries, n_rows))
    for first in range(0, forest.n_trees, TREES_AT_ONCE):
        trees = np.arange(first, min(first + TREES_AT_ONCE, forest.n_trees), dtype=np.int64)
        routed = np.empty((n_rows, len(trees)), np.int32)
        copies = np.empty((n_rows, len(trees)), np.uint8)
        _core.route_bins(
            forest.plan.to_core(),
            trees,
            forest.roots[trees],
            forest.nodes.view(np.uint8),
            forest.core_sets,
            own_bins,
            n_bins,
            block.ids,
            1,
            routed,
            copies,
        )
        query, tree = np.nonzero(filled[:, trees])
        visits = sparse.csr_array(
            (share[query], (query, leaves[query, trees[tree]])), shape=(n_queries, forest.n_leaves)
        )
        wanted = np.zeros(forest.n_leaves, bool)
        wanted[visits.indices] = True
        row, place = np.nonzero((copies > 0) & wanted[routed])
        leaf = routed[row, place]
        weight = copies[row, place] * block.row_weights[row] / forest.leaf_weights[leaf]
        total = total + visits @ sparse.csr_array(
            (weight, (leaf, row)), shape=(forest.n_leaves, n_rows)
        )
    return np.asarray(total.multiply(total).sum(axis=1)).ravel()
