"""The entry to growth: what everything inside the library grows forests by.

`CurveForest` is a shell around it, with checks and scikit-learn's manners. Whoever has checked rows
bins them once, by `bin_array`, and grows any number of forests on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from doseforest.base.dtypes import Array, FloatArray
from doseforest.base.progress import ProgressBar
from doseforest.base.stopwatch import Stopwatch
from doseforest.data.exact_grid import exact_channels
from doseforest.data.feature_table import BlockSource
from doseforest.engine.forest import Forest
from doseforest.engine.growth.binned_rows import BinnedRows
from doseforest.engine.growth.forest_builder import finish_group, join_groups, tree_groups
from doseforest.engine.growth.forest_settings import GrowthSettings
from doseforest.engine.growth.grower import StopRules, grow_trees
from doseforest.engine.growth.growth_inputs import MAX_CURVE_POINTS, MAX_LEAF_CHANNELS
from doseforest.engine.growth.local_engine import LocalEngine
from doseforest.engine.growth.memory import MemoryPlan, memory_need, plan_memory
from doseforest.engine.leaves.forest_weights import forest_weights
from doseforest.engine.leaves.leaf_curves import MeanCurve
from doseforest.engine.leaves.leaf_sums import LeafRows
from doseforest.engine.splits.mean_splits import SplitByMeans
from doseforest.engine.splits.split_statistics import SplitRecipe, SplitStatistic, StatisticRows


@dataclass(frozen=True, slots=True, eq=False)
class GrownForest:
    """A finished forest with the rows that fill its leaves, for answers out of bag."""

    forest: Forest
    settings: GrowthSettings
    rows: LeafRows  # all training rows
    fills: NDArray[np.bool_] | None  # (n_rows,) rows that may fill leaves; None: all
    seconds: dict[str, float]  # of growth and of filling the leaves

    def average_oob(self, table: BlockSource) -> FloatArray:
        """Leaf channels of the training rows averaged over the trees that did not see them."""
        ids, n_threads = self.rows.sampling_ids, self.settings.n_threads
        return self.forest.averages_without(table, ids, n_threads)

    def predict_oob(self, table: BlockSource) -> FloatArray:
        """Curves of the training rows from the trees that did not see them."""
        forest = self.forest
        return forest.leaf_curve.solve(
            self.average_oob(table), forest.fallback, self.settings.n_threads
        )

    def forest_weights(self, X: Any) -> sparse.csr_array:
        """Weights of the training rows for each row of a table, (n_queries, n_training)."""
        filling = self.rows if self.fills is None else self.rows.where(self.fills)
        n_threads = self.settings.n_threads
        leaves = self.forest.apply(X, n_jobs=n_threads)
        weights = forest_weights(self.forest, filling, leaves, n_threads)
        if self.fills is None:
            return weights
        columns = np.flatnonzero(self.fills)[weights.indices]
        shape = (weights.shape[0], len(self.fills))
        return sparse.csr_array((weights.data, columns, weights.indptr), shape=shape)


def grow_forest(
    rows: BinnedRows,
    values: Array,
    settings: GrowthSettings,
    *,
    leaf_channels: Array | None = None,
    doses: FloatArray | None = None,
    quadrature: FloatArray | None = None,
    spread: Array | None = None,
    treatment: FloatArray | None = None,
) -> GrownForest:
    """Grow a forest on rows that are checked and binned.

    Parameters
    ----------
    rows : BinnedRows
    values : array of shape (n_rows, n_columns)
        What trees split by: curves, unless the statistic reads the columns otherwise.
    settings : GrowthSettings
    leaf_channels : array of shape (n_rows, n_leaf_channels), optional
        What leaves sum up; by default the values.
    doses : array of shape (n_doses,), optional
        What the columns stand for.
    quadrature : array of shape (n_points,), optional
        Weights of the points at which children are compared, in place of those of the doses.
    spread : array of shape (n_rows, 1 or 2), optional
        Moments of the treatment given the covariates, for a positivity term.
    treatment : array of shape (n_rows,), optional
        Observed doses, for a guard.

    Examples
    --------
    >>> from doseforest.engine.growth.binned_rows import bin_array
    >>> rows = bin_array(np.arange(100.0)[:, None])
    >>> steps = np.where(np.arange(100.0) > 49, 1.0, 0.0)[:, None]
    >>> settings = GrowthSettings(n_trees=3, max_depth=1, min_node_size=5)
    >>> grow_forest(rows, steps, settings).forest.n_leaves
    6
    """
    leaf_values = values if leaf_channels is None else leaf_channels
    _check_width("split by", values.shape[1], MAX_CURVE_POINTS)
    _check_width("fill leaves with", leaf_values.shape[1], MAX_LEAF_CHANNELS)
    memory = growth_memory(
        settings,
        n_rows=rows.n_rows,
        n_features=rows.n_features,
        n_columns=values.shape[1],
        n_leaf_channels=leaf_values.shape[1],
        n_doses=0 if doses is None else len(doses),
        weighted=rows.weights is not None,
        most_categories=rows.most_categories,
    )
    recipe = _recipe(settings)
    if quadrature is None:
        quadrature = recipe.point_weights(recipe.n_doses(values.shape[1]), doses, None)
    statistic = recipe.lay_out(
        StatisticRows(
            values=values,
            doses=doses,
            quadrature=quadrature,
            distance=settings.distance,
            weights=rows.weights,
            spread=spread,
            zeta=settings.zeta,
            positivity=settings.positivity,
        )
    )
    guard = None
    if settings.guard is not None:
        guard = settings.guard.fit(treatment, doses, rows.weights)
    rules = _stop_rules(settings, statistic)
    leaf_rows = LeafRows(
        bins=rows.codes,
        n_bins=rows.bins.n_bins,
        channels=exact_channels(leaf_values, weights=rows.weights, pad=False),
        weights=rows.weights,
        sampling_ids=rows.sampling_ids,
        categorical=rows.categorical,
    )
    plan = settings.plan
    engine = LocalEngine(
        leaf_rows,
        statistic,
        rules,
        plan,
        mtry=settings.features_of_split(rows.n_features),
        mtry_per_tree=settings.mtry_scope == "tree",
        n_threads=settings.n_threads,
        histogram_bytes=memory.histogram_bytes,
        grows=rows.grows,
        guard=guard,
    )
    stopwatch, groups = Stopwatch(), []
    with ProgressBar(settings.n_trees, "growing", "tree", settings.progress) as bar:
        for trees in tree_groups(settings.n_trees, memory.trees_at_once):
            with stopwatch("growth"):
                table = grow_trees(engine, rules, seed=plan.seed, trees=trees)
            with stopwatch("leaves"):
                groups.append(finish_group(engine, trees, table, rows.bins))
            bar.advance(len(trees))
    grown = join_groups(groups)
    fills = None if rows.grows is None else ~rows.grows
    forest = Forest(
        nodes=grown.nodes,
        gains=grown.gains,
        roots=grown.roots,
        leaf_sums=grown.leaf_sums,
        leaf_weights=grown.leaf_weights,
        fallback=(leaf_rows if fills is None else leaf_rows.where(fills)).mean(),
        plan=plan,
        leaf_curve=MeanCurve() if settings.leaf_curve is None else settings.leaf_curve,
        n_features=rows.n_features,
        n_training_rows=rows.n_rows,
        feature_names=rows.table.names,
        doses=None if doses is None else tuple(doses.tolist()),
        categories=rows.categories,
        category_sets=grown.category_sets,
    )
    return GrownForest(forest, settings, leaf_rows, fills, stopwatch.seconds)


def growth_memory(
    settings: GrowthSettings,
    *,
    n_rows: int,
    n_features: int,
    n_columns: int,
    n_leaf_channels: int,
    n_doses: int,
    weighted: bool,
    most_categories: int | None,
) -> MemoryPlan:
    """Memory of growth under the limit, or MemoryError; nothing large need be there yet."""
    extra = weighted + 2 * (settings.zeta > 0)
    if settings.guard is not None:
        extra += settings.guard.n_channels(n_doses)
    need = memory_need(
        n_rows=n_rows,
        n_features=n_features,
        n_channels=_recipe(settings).n_channels(n_columns) + extra,
        n_leaf_channels=n_leaf_channels,
        n_trees=settings.n_trees,
        min_node_size=settings.min_node_size,
        plan=settings.plan,
        most_categories=most_categories,
    )
    return plan_memory(
        need,
        memory_limit=settings.memory_limit,
        n_trees=settings.n_trees,
        tree_rows=settings.plan.rows_per_tree(n_rows),
        n_threads=settings.n_threads,
    )


def _check_width(use: str, n_columns: int, most: int) -> None:
    if n_columns > most:
        raise ValueError(
            f"Forests {use} at most {most} columns. Got {n_columns} instead: take fewer 'doses', "
            "or a 'basis' of fewer functions."
        )


def _recipe(settings: GrowthSettings) -> SplitRecipe:
    return SplitByMeans() if settings.statistic is None else settings.statistic


def _stop_rules(settings: GrowthSettings, statistic: SplitStatistic) -> StopRules:
    return StopRules(
        min_node_size=settings.min_node_size,
        min_info_gain=settings.min_info_gain,
        max_depth=settings.max_depth,
        min_child_fraction=settings.min_child_fraction,
        noise_per_row=statistic.noise_per_row,
    )
