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
    """A grown forest of curves: its trees, and what their leaves hold.

    `CurveForest.fit` and `load_forest` make it. All methods are safe to call from many threads.

    Attributes
    ----------
    nodes : array of shape (n_nodes,)
        Records of all nodes, tree after tree, breadth-first in each.
    gains : array of shape (n_nodes,)
        Gain of each split; 0 at leaves.
    roots : array of int of shape (n_trees,)
        Place of each tree's root in ``nodes``.
    leaf_sums : array of shape (n_leaves, n_channels)
        Weighted sums of the leaf channels.
    leaf_weights : array of shape (n_leaves,)
        Weight of the rows of each leaf; 0 only where a whole tree is empty.
    fallback : array of shape (n_channels,)
        Mean of the leaf channels over all rows, for rows that no tree can answer.
    plan : SamplingPlan
        How trees drew their rows, for predictions out of bag.
    leaf_curve : LeafCurve
        How averaged channels become curves.
    n_features : int
        Number of features.
    n_training_rows : int
        Number of rows that the forest was fitted on.
    feature_names : tuple of str or None
        Names of the features, where the training table had them.
    doses : tuple of float or None
        What the columns of a curve stand for, where ``fit`` was given the doses.
    categories : dict
        Labels of each categorical feature, by its place.
    category_sets : array of shape (n_sets, 4 or 16)
        Bins that go left at splits on categories, as bits.
    n_trees : int
        Number of trees.
    n_leaves : int
        Number of leaves over all trees.

    Examples
    --------
    >>> import numpy as np
    >>> from doseforest import CurveForest
    >>> x = np.arange(200.0)[:, None]
    >>> forest = CurveForest(20, random_state=0).fit(x, np.where(x < 100, 1.0, 3.0)).forest_
    >>> forest.n_trees, forest.predict([[10.0], [190.0]]).ravel().round(1)
    (20, array([1. , 2.9]))
    """

    nodes: Array  # (n_nodes,)
    gains: FloatArray  # (n_nodes,)
    roots: IntArray  # (n_trees,)
    leaf_sums: NDArray[np.float32]  # (n_leaves, n_leaf_channels)
    leaf_weights: NDArray[np.float32]  # (n_leaves,)
    fallback: FloatArray  # (n_leaf_channels,)
    plan: SamplingPlan
    leaf_curve: LeafCurve
    n_features: int
    n_training_rows: int
    feature_names: tuple[str, ...] | None = None
    doses: tuple[float, ...] | None = None
    categories: Categories = field(default_factory=dict)
    category_sets: SetArray = field(default_factory=no_sets)  # (n_sets, 4 or 16)

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
        """Predict the curve of each row.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Rows with the features of the training table.
        n_jobs : int, optional
            Number of threads; by default all cores. It never changes the result.

        Returns
        -------
        array of shape (n_rows, n_doses)
            The curves.
        """
        table = self.checked_table(X)
        n_threads = thread_count(n_jobs) if table.n_rows > 1 else 1
        averages = self._average(table, None, n_threads)[0]
        return self.leaf_curve.solve(averages, self.fallback, n_threads)

    def curves(self, X: FloatArray) -> FloatArray:
        """Predict the curve of each row of a checked table.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Features in the order of the training table, categories as codes.

        Returns
        -------
        array of shape (n_rows, n_doses)
            The curves.
        """
        n_threads = thread_count(None) if len(X) > 1 else 1
        averages = np.empty((len(X), self.leaf_sums.shape[1]))
        n_trees = np.empty(len(X), np.int32)
        self._average_block(X, None, n_threads, averages, n_trees)
        return self.leaf_curve.solve(averages, self.fallback, n_threads)

    def predict_oob(self, X: Any, *, row_ids: Any = None, n_jobs: int | None = None) -> FloatArray:
        """Predict training rows, each by the trees that did not see it.

        A row that every tree has seen gets the overall mean, with an `UnseenRowsWarning`.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            The training rows, or some of them.
        row_ids : array of shape (n_rows,), optional
            What the rows were drawn by: the ids that were passed to ``fit``, or with groups the
            rank of each row's group among the sorted groups. By default 0, 1, 2, …
        n_jobs : int, optional
            Number of threads; by default all cores.

        Returns
        -------
        array of shape (n_rows, n_doses)
            The curves.
        """
        averages = self.average_oob(X, row_ids=row_ids, n_jobs=n_jobs)
        return self.leaf_curve.solve(averages, self.fallback, thread_count(n_jobs))

    def average(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Average the leaf channels of each row over the trees.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Rows with the features of the training table.
        n_jobs : int, optional
            Number of threads; by default all cores.

        Returns
        -------
        array of shape (n_rows, n_channels)
            The averages, of which ``leaf_curve`` makes curves.
        """
        return self._average(self.checked_table(X), None, thread_count(n_jobs))[0]

    def average_codes(self, X: FloatArray, n_threads: int) -> FloatArray:
        """`average` of rows that are checked.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Features in the order of the training table, categories as codes.
        n_threads : int
            Number of threads.

        Returns
        -------
        array of shape (n_rows, n_channels)
            The averages.
        """
        if self.categories or X.shape[1] != self.n_features:  # codes may be of other labels
            return self.average(X, n_jobs=n_threads)
        out = np.empty((len(X), self.leaf_sums.shape[1]))
        n_trees = np.empty(len(X), np.int32)
        _core.average(
            self.roots,
            self.nodes.view(np.uint8),
            None,
            self.leaf_sums,
            self.leaf_weights,
            np.ascontiguousarray(X, np.float64),
            None,
            None,
            n_threads,
            out,
            n_trees,
        )
        out[n_trees == 0] = self.fallback
        return out

    def average_oob(self, X: Any, *, row_ids: Any = None, n_jobs: int | None = None) -> FloatArray:
        """Average the leaf channels over the trees that did not see a row.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            The training rows, or some of them.
        row_ids : array of shape (n_rows,), optional
            What the rows were drawn by, as in `predict_oob`.
        n_jobs : int, optional
            Number of threads; by default all cores.

        Returns
        -------
        array of shape (n_rows, n_channels)
            The averages.
        """
        table = self.checked_table(X)
        ids = np.arange(table.n_rows) if row_ids is None else np.asarray(row_ids)
        if ids.shape != (table.n_rows,):
            raise ValueError(
                f"The 'row_ids' parameter must have one id per row of X ({table.n_rows}). "
                f"Got shape {ids.shape} instead."
            )
        return self.averages_without(
            table, np.ascontiguousarray(ids, ID_DTYPE), thread_count(n_jobs)
        )

    def averages_without(self, table: BlockSource, row_ids: IntArray, n_threads: int) -> FloatArray:
        """`average_oob` of rows that are checked, with the ids that they were drawn by.

        Parameters
        ----------
        table : BlockSource
            Blocks of rows, checked.
        row_ids : array of int of shape (n_rows,)
            What the rows were drawn by.
        n_threads : int
            Number of threads.

        Returns
        -------
        array of shape (n_rows, n_channels)
            The averages.
        """
        averages, n_trees = self._average(table, row_ids, n_threads)
        n_without = int((n_trees == 0).sum())
        if n_without:
            warnings.warn(
                f"{n_without} of {table.n_rows} rows have no filled tree that has not seen them "
                "and get the overall mean. Raise 'n_trees' or lower 'sample_fraction'.",
                UnseenRowsWarning,
                stacklevel=4,
            )
        return averages

    def apply(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Find the leaf of each row in each tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Rows with the features of the training table.
        n_jobs : int, optional
            Number of threads; by default all cores.

        Returns
        -------
        array of int of shape (n_rows, n_trees)
            Numbers of the leaves, counted over the whole forest.
        """
        table = self.checked_table(X)
        leaves = np.empty((table.n_rows, self.n_trees), np.int32)
        for first, block in table.blocks():
            part = leaves[first : first + len(block)]
            _core.route(
                self.roots,
                self.nodes.view(np.uint8),
                self.core_sets,
                block,
                thread_count(n_jobs),
                part,
            )
        return leaves

    def save(self, path: str | Path) -> None:
        """Write the forest to one file, which `doseforest.load_forest` reads.

        Parameters
        ----------
        path : str or Path
            Where to write; a file that is there is replaced, never left half written.
        """
        late("doseforest.files.forest_file:save_forest")(self, path)

    def checked_table(self, X: Any) -> BlockSource:
        """Check a table of rows and cut it into blocks that trees can read.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Rows; columns with names are put in the order of the training table.

        Returns
        -------
        BlockSource
            Blocks of rows, with categories as the codes of the forest.
        """
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
        """Depth of each tree.

        Returns
        -------
        array of int of shape (n_trees,)
            Number of splits above the deepest leaf; 0 for a lone leaf.
        """
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
            ids = None if out_of_bag is None else out_of_bag[rows]
            self._average_block(block, ids, n_threads, out[rows], n_trees[rows])
        return out, n_trees

    def _average_block(
        self,
        block: FloatArray,  # IN (n_rows, n_features)
        out_of_bag: IntArray | None,  # IN (n_rows,)
        n_threads: int,
        out: FloatArray,  # OUT (n_rows, n_leaf_channels)
        n_trees: NDArray[np.int32],  # OUT (n_rows,)
    ) -> None:
        _core.average(
            self.roots,
            self.nodes.view(np.uint8),
            self.core_sets,
            self.leaf_sums,
            self.leaf_weights,
            block,
            None if out_of_bag is None else self.plan.to_core(),
            out_of_bag,
            n_threads,
            out,
            n_trees,
        )
        out[n_trees == 0] = self.fallback
