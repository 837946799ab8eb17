"""Forest weights alpha_i(x): how much each training row speaks for a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from doseforest import _core
from doseforest.leaves.leaf_sums import LeafRows

if TYPE_CHECKING:
    from doseforest.prediction.forest import Forest


@dataclass(frozen=True, slots=True)
class TrainingLeaves:
    """Which training rows fill which leaves."""

    shares: sparse.csr_array  # (n_leaves, n_training) a row's share of its leaf's weight
    leaf_weights: NDArray[np.float64]  # (n_leaves,)
    overall: NDArray[np.float64]  # (n_training,) shares of all rows, for queries in empty trees

    @classmethod
    def of(cls, forest: Forest, rows: LeafRows, n_threads: int) -> TrainingLeaves:
        """Send the training rows down the trees that they fill."""
        n_rows = len(rows.bins)
        leaves = np.empty((n_rows, forest.n_trees), np.int32)
        copies = np.empty((n_rows, forest.n_trees), np.uint8)
        _core.route_bins(
            forest.plan.to_core(),
            forest.roots,
            forest.nodes.view(np.uint8),
            rows.bins,
            rows.n_bins,
            rows.sampling_ids,
            n_threads,
            leaves,
            copies,
        )
        row, tree = np.nonzero(leaves >= 0)
        leaf = leaves[row, tree]
        weight = copies[row, tree].astype(np.float64)
        if rows.weights is not None:
            weight *= rows.weights[row]
        totals: NDArray[np.float64] = np.bincount(leaf, weight, forest.n_leaves).astype(np.float64)
        present = weight > 0
        row, leaf, weight = row[present], leaf[present], weight[present]
        shares = sparse.csr_array(
            (weight / totals[leaf], (leaf, row)), shape=(forest.n_leaves, n_rows)
        )
        overall = np.ones(n_rows) if rows.weights is None else rows.weights.astype(np.float64)
        return cls(shares, totals, overall / overall.sum())

    def weights(self, query_leaves: NDArray[np.int32]) -> sparse.csr_array:
        """Mean over the trees of the rows' shares in the leaves of each query."""
        n_queries, n_trees = query_leaves.shape
        filled = self.leaf_weights[query_leaves] > 0
        n_filled = filled.sum(axis=1)
        query = np.repeat(np.arange(n_queries), n_trees)[filled.ravel()]
        visits = sparse.csr_array(
            (1.0 / n_filled[query], (query, query_leaves.ravel()[filled.ravel()])),
            shape=(n_queries, self.shares.shape[0]),
        )
        weights = visits @ self.shares
        stranded = sparse.csr_array((n_filled == 0).astype(np.float64).reshape(-1, 1))
        return weights + stranded @ sparse.csr_array(self.overall[None, :])
