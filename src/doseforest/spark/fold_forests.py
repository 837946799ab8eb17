"""Forests for nuisances: one without each fold, so that no row is told by trees that saw it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doseforest import _core
from doseforest.data.binning import FeatureBins
from doseforest.dtypes import LEAF, BinArray, FloatArray, bin_dtype
from doseforest.nuisance.tree_ensemble import TreeEnsemble
from doseforest.prediction.forest import Forest
from doseforest.spark.engine import GrowthReport
from doseforest.spark.forests import ForestPlan, ForestRows, distributed_forest
from doseforest.spark.units import UnitBlock, Units

Targets = Callable[[UnitBlock, Any], FloatArray]  # of a block and what lies beside it


@dataclass(slots=True, eq=False)
class ForestWork:
    """How nuisance forests are grown, and a report of what was done."""

    plan: ForestPlan
    report: GrowthReport
    on_progress: Callable[[int], None] = lambda done: None


def bin_units(units: Units, bins: FeatureBins) -> Any:
    """RDD of the bins of every block, kept: covariates, then the dose where `bins` has it."""
    with_dose = bins.n_features > units.n_features

    def binned(block: UnitBlock) -> BinArray:
        table = np.column_stack([block.X, block.dose]) if with_dose else block.X
        out: BinArray = np.empty(table.shape, bin_dtype(int(bins.n_bins.max(initial=0))))
        _core.bin_values(np.ascontiguousarray(table), bins.edges, bins.edge_starts, 1, out)
        return out

    return units.kept.keep(units.blocks.map(binned))


def fold_forests(
    units: Units,
    beside: Any,
    bins: FeatureBins,
    work: ForestWork,
    targets: Callable[[int], Targets],
) -> tuple[Forest, ...]:
    """Grow a forest on the rows outside each fold; their trees are shared out to the folds.

    Parameters
    ----------
    beside : RDD of (bins, anything)
        Of each block; the second goes to the targets.
    targets : callable
        From a fold to what trees without it predict, shape (n_rows, n_targets).
    """
    each = max(1, -(-work.plan.n_trees // units.n_folds))
    grown = []
    for fold in range(units.n_folds):
        plan = replace(work.plan, n_trees=each, seed=work.plan.seed + fold)
        rows = units.beside(beside).map(_rows_outside(fold, targets(fold), bins.n_features))
        forest, report = distributed_forest(
            rows, bins, plan, keep=units.kept.keep, release=units.kept.release
        )
        work.report.add(report)
        work.on_progress(1)
        grown.append(forest)
    return tuple(grown)


def _rows_outside(
    fold: int, target: Targets, n_features: int
) -> Callable[[tuple[UnitBlock, tuple[BinArray, Any]]], ForestRows]:
    def rows(pair: tuple[UnitBlock, tuple[BinArray, Any]]) -> ForestRows:
        block, (bins, other) = pair
        kept = block.folds != fold
        values = target(block, other)[kept]
        return ForestRows(
            bins=np.ascontiguousarray(bins[kept, :n_features]),
            ids=block.ids[kept],
            weights=None if block.weights is None else block.weights[kept],
            curves=values,
            leaf_values=values,
        )

    return rows


def as_ensemble(forests: Sequence[Forest], n_features: int) -> TreeEnsemble:
    """Forests of one response on covariates and dose, as a sum of trees that a file can hold.

    Examples
    --------
    >>> from doseforest import CurveForest
    >>> x, t = np.arange(200.0)[:, None], np.tile([0.0, 1.0], 100)
    >>> table = np.column_stack([x, t])
    >>> forest = CurveForest(4, random_state=0).fit(table, x[:, 0] * t)
    >>> trees = as_ensemble([forest.forest_], 1)
    >>> bool(np.abs(trees.predict(x, t) - forest.predict(table)).max() < 1e-9)
    True
    """
    n_trees = sum(forest.n_trees for forest in forests)
    nodes, roots, values = [], [], []
    first_node = first_leaf = 0
    for forest in forests:
        own = forest.nodes.copy()
        is_leaf = (own["flags"] & LEAF) > 0
        own["left"] += np.where(is_leaf, first_leaf, first_node).astype(np.int32)
        filled = forest.leaf_weights > 0
        means = np.full(len(filled), forest.fallback[0])
        weights = forest.leaf_weights[filled].astype(np.float64)
        means[filled] = forest.leaf_sums[filled, 0] / weights
        nodes.append(own)
        roots.append(forest.roots + first_node)
        values.append(means / n_trees)
        first_node += len(own)
        first_leaf += len(means)
    leaf_values = np.concatenate(values)
    return TreeEnsemble(
        roots=np.concatenate(roots),
        nodes=np.concatenate(nodes),
        leaf_values=leaf_values,
        leaf_constants=leaf_values.copy(),
        leaf_slopes=np.zeros(len(leaf_values)),
        term_starts=np.zeros(len(leaf_values) + 1, np.int64),
        term_features=np.zeros(0, np.int32),
        term_coefficients=np.zeros(0),
        n_features=n_features,
        n_trees=n_trees,
        link="identity",
    )
