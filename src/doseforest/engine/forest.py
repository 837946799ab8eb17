"""The finished forest: arrays and what they answer. Needs NumPy and the compiled core only."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest import _core
from doseforest.base.dtypes import ID_DTYPE, Array, FloatArray, IntArray, SetArray, no_sets
from doseforest.base.late import late
from doseforest.base.machine import thread_count
from doseforest.data.categories import recoded
from doseforest.data.feature_table import BlockSource, Categories, as_table
from doseforest.data.sampling import SamplingPlan
from doseforest.engine.leaves.leaf_curves import LeafCurve
from doseforest.engine.look_inside.forest_views import ForestViews
from doseforest.engine.look_inside.node_names import node_depths


class UnseenRowsWarning(UserWarning):
    """Some rows are in every tree: there is no answer out of bag for them."""


@dataclass(frozen=True, slots=True, eq=False)
class Forest(ForestViews):
    """A grown forest of curves.

    Made by `CurveForest.fit` or `load_forest`; all methods are safe to call from many threads.
    """

    nodes: Array  # (n_nodes,) NODE_DTYPE, tree after tree, breadth-first in each
    gains: FloatArray  # (n_nodes,) gain of each split, 0 at leaves
    roots: IntArray  # (n_trees,)
    leaf_sums: NDArray[np.float32]  # (n_leaves, n_leaf_channels)
    leaf_weights: NDArray[np.float32]  # (n_leaves,); 0 only where a whole tree is empty
    fallback: FloatArray  # (n_leaf_channels,) mean over all rows
    plan: SamplingPlan
    leaf_curve: LeafCurve
    n_features: int
    n_training_rows: int
    feature_names: tuple[str, ...] | None = None
    doses: tuple[float, ...] | None = None  # what the columns of a curve stand for
    categories: Categories = field(default_factory=dict)  # labels of the categorical features
    category_sets: SetArray = field(default_factory=no_sets)  # (n_sets, 4 or 16) bins that go left

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots)

    @property
    def core_sets(self) -> SetArray | None:
        """Category sets as the compiled core takes them: None where no node has one."""
        return self.category_sets if len(self.category_sets) else None

    @property
    def n_leaves(self) -> int:
        """Number of leaves over all trees."""
        return len(self.leaf_weights)

    def predict(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Curve of each row, shape (n_rows, n_doses)."""
        table = self.checked_table(X)
        n_threads = thread_count(n_jobs) if table.n_rows > 1 else 1
        averages = self._average(table, None, n_threads)[0]
        return self.leaf_curve.solve(averages, self.fallback, n_threads)

    def predict_oob(self, X: Any, *, row_ids: Any = None, n_jobs: int | None = None) -> FloatArray:
        """Curves of training rows from the trees that did not see them.

        A row that every tree has seen gets the overall mean, and a warning.

        Parameters
        ----------
        X : table of the training rows, or some of them
        row_ids : array of shape (n_rows,), optional
            What the rows were drawn by: the ids given to ``fit``, or, when groups were given, the
            rank of each row's group among the sorted groups. By default 0, 1, 2, …
        """
        averages = self.average_oob(X, row_ids=row_ids, n_jobs=n_jobs)
        return self.leaf_curve.solve(averages, self.fallback, thread_count(n_jobs))

    def average(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Leaf channels averaged over the trees, shape (n_rows, n_leaf_channels)."""
        return self._average(self.checked_table(X), None, thread_count(n_jobs))[0]

    def average_oob(self, X: Any, *, row_ids: Any = None, n_jobs: int | None = None) -> FloatArray:
        """Leaf channels averaged over the trees that did not see a row; see `predict_oob`."""
        table = self.checked_table(X)
        ids = np.arange(table.n_rows) if row_ids is None else np.asarray(row_ids)
        if ids.shape != (table.n_rows,):
            raise ValueError(
                f"The 'row_ids' parameter must have one id per row of X ({table.n_rows}). "
                f"Got shape {ids.shape} instead."
            )
        averages, n_trees = self._average(
            table, np.ascontiguousarray(ids, ID_DTYPE), thread_count(n_jobs)
        )
        n_without = int((n_trees == 0).sum())
        if n_without:
            warnings.warn(
                f"{n_without} of {table.n_rows} rows have no filled tree that has not seen them "
                "and get the overall mean. Raise 'n_trees' or lower 'sample_fraction'.",
                UnseenRowsWarning,
                stacklevel=3,
            )
        return averages

    def apply(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Leaf of each row in each tree, (n_rows, n_trees), numbered over the whole forest."""
        table = self.checked_table(X)
        leaves = np.empty((table.n_rows, self.n_trees), np.int32)
        for first, block in table.blocks():
            own = leaves[first : first + len(block)]
            _core.route(
                self.roots,
                self.nodes.view(np.uint8),
                self.core_sets,
                block,
                thread_count(n_jobs),
                own,
            )
        return leaves

    def save(self, path: str | Path) -> None:
        """Write the forest to one file, atomically; see `load_forest`."""
        late("doseforest.files.forest_file:save_forest")(self, path)

    def checked_table(self, X: Any) -> BlockSource:
        """Queries as blocks of rows with the features of the training table."""
        table = as_table(
            X, expected_names=self.feature_names, with_categories=bool(self.categories)
        )
        if table.n_features != self.n_features:
            raise ValueError(
                "The 'X' parameter must have the features of the training table: "
                f"X has {table.n_features} features, but Forest is expecting {self.n_features} "
                "features as input."
            )
        return recoded(table, self.categories)

    def tree_depths(self) -> IntArray:
        """Depth of each tree; 0 for a lone leaf."""
        depths: IntArray = np.maximum.reduceat(node_depths(self.nodes, self.roots), self.roots)
        return depths

    @property
    def _inspected(self) -> Forest:
        return self

    def _average(
        self, table: BlockSource, out_of_bag: IntArray | None, n_threads: int
    ) -> tuple[FloatArray, NDArray[np.int32]]:
        """Averages of the leaf channels, and the number of trees behind each."""
        out = np.empty((table.n_rows, self.leaf_sums.shape[1]))
        n_trees = np.empty(table.n_rows, np.int32)
        for first, block in table.blocks():
            rows = slice(first, first + len(block))
            _core.average(
                self.roots,
                self.nodes.view(np.uint8),
                self.core_sets,
                self.leaf_sums,
                self.leaf_weights,
                block,
                None if out_of_bag is None else self.plan.to_core(),
                None if out_of_bag is None else out_of_bag[rows],
                n_threads,
                out[rows],
                n_trees[rows],
            )
        out[n_trees == 0] = self.fallback
        return out, n_trees
