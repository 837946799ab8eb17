"""Forest weights alpha_i(x): how much each training row speaks for a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from doseforest import _core
from doseforest.engine.leaves.leaf_sums import LeafRows

if TYPE_CHECKING:
    from doseforest.engine.forest import Forest

_ROUTED_AT_ONCE = 32_000_000  # (row, tree) pairs; bounds the memory, not the result


def forest_weights(
    forest: Forest, rows: LeafRows, query_leaves: NDArray[np.int32], n_threads: int
) -> sparse.csr_array:
    """Mean over the trees of the training rows' shares in the leaves of each query.

    Parameters
    ----------
    forest : Forest
    rows : LeafRows
        The training rows.
    query_leaves : array of shape (n_queries, n_trees)
    n_threads : int

    Returns
    -------
    sparse array of shape (n_queries, n_training); every row adds up to 1
    """
    n_rows, n_queries = len(rows.bins), len(query_leaves)
    filled = forest.leaf_weights[query_leaves] > 0
    n_filled = filled.sum(axis=1)
    total = sparse.csr_array((n_queries, n_rows))
    at_once = max(1, _ROUTED_AT_ONCE // n_rows)
    for first in range(0, forest.n_trees, at_once):
        trees = np.arange(first, min(first + at_once, forest.n_trees), dtype=np.int64)
        query, tree = np.nonzero(filled[:, trees])
        visits = sparse.csr_array(
            (1.0 / n_filled[query], (query, query_leaves[query, trees[tree]])),
            shape=(n_queries, forest.n_leaves),
        )
        wanted = np.zeros(forest.n_leaves, bool)
        wanted[visits.indices] = True
        total = total + visits @ _leaf_shares(forest, rows, trees, wanted, n_threads)
    # A query that no filled tree answers gets the overall mean: every row by its own weight.
    overall = np.ones(n_rows) if rows.weights is None else rows.weights.astype(np.float64)
    stranded = sparse.csr_array((n_filled == 0).astype(np.float64).reshape(-1, 1))
    return total + stranded @ sparse.csr_array((overall / overall.sum()).reshape(1, -1))


def _leaf_shares(
    forest: Forest,
    rows: LeafRows,
    trees: NDArray[np.int64],
    wanted: NDArray[np.bool_],  # (n_leaves,)
    n_threads: int,
) -> sparse.csr_array:
    """Share of each training row in the weight of each wanted leaf, (n_leaves, n_training)."""
    n_rows = len(rows.bins)
    leaves = np.empty((n_rows, len(trees)), np.int32)
    copies = np.empty((n_rows, len(trees)), np.uint8)
    _core.route_bins(
        forest.plan.to_core(),
        trees,
        forest.roots[trees],
        forest.nodes.view(np.uint8),
        forest.core_sets,
        rows.bins,
        rows.n_bins,
        rows.sampling_ids,
        n_threads,
        leaves,
        copies,
    )
    row, own = np.nonzero((copies > 0) & wanted[leaves])  # leaf -1 has no copies
    leaf = leaves[row, own]
    weight = copies[row, own].astype(np.float64)
    if rows.weights is not None:
        weight *= rows.weights[row]
    totals = np.bincount(leaf, weight, forest.n_leaves)
    present = weight > 0
    shares = weight[present] / totals[leaf[present]]
    return sparse.csr_array(
        (shares, (leaf[present], row[present])), shape=(forest.n_leaves, n_rows)
    )
