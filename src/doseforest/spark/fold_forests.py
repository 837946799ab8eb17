"""Forests for nuisances: one without each fold, so that no row is told by trees that saw it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import LEAF, BinArray, FloatArray
from doseforest.base.seeds import Purpose, derive
from doseforest.data.binning import FeatureBins
from doseforest.data.feature_table import ArrayTable, Categories
from doseforest.data.row_blocks import RowBlock
from doseforest.doses.dose_values import Doses
from doseforest.engine.forest import Forest
from doseforest.nuisance.outcome.tree_ensemble import TreeEnsemble
from doseforest.spark.cluster_units import Units
from doseforest.spark.engine import GrowthReport
from doseforest.spark.forests import ForestPlan, ForestRows, distributed_forest
from doseforest.spark.jobs import at_once

Targets = Callable[[RowBlock], FloatArray]  # (n_rows, n_targets) of a block
BINS = "bins"  # the column of the bins: of the covariates as numbers, then of the dose
CODE_BINS = "code bins"  # of the covariates with codes, where some are categorical


@dataclass(frozen=True, slots=True)
class BinnedFeatures:
    """What trees split on."""

    bins: FeatureBins
    column: str = BINS  # of the blocks
    counts: Mapping[int, int] = field(default_factory=dict)  # codes of each categorical feature

    def of(self, block: RowBlock) -> BinArray:
        """Bins of the rows of a block."""
        bins: BinArray = np.ascontiguousarray(block[self.column][:, : self.bins.n_features])
        return bins

    @property
    def categories(self) -> Categories:
        """Labels of the categorical features: their codes."""
        return {feature: tuple(range(n_codes)) for feature, n_codes in self.counts.items()}


@dataclass(slots=True, eq=False)
class ForestWork:
    """How nuisance forests are grown, and a report of what was done."""

    plan: ForestPlan
    report: GrowthReport
    on_progress: Callable[[int], None] = lambda done: None


def bin_units(units: Units, bins: FeatureBins, covariates: BinnedFeatures) -> None:
    """Add the bins of the covariates and of the dose to every block.

    Parameters
    ----------
    bins : FeatureBins
        Of the covariates as numbers, then of the dose.
    covariates : BinnedFeatures
        Covariates with codes, where some are categorical.
    """

    def binned(block: RowBlock) -> dict[str, BinArray]:
        result = {BINS: _bin(bins, np.column_stack([block.numbers, Doses.of(block.dose).table]))}
        if covariates.column != BINS:
            result[covariates.column] = _bin(covariates.bins, block.X)
        return result

    units.add("bin the rows", binned)


def _bin(bins: FeatureBins, table: FloatArray) -> BinArray:
    return bins.transform(ArrayTable(table, block_rows=max(1, len(table))))


def fold_forests(
    units: Units,
    splits: BinnedFeatures,
    work: ForestWork,
    targets: Callable[[int], Targets],
    purpose: Purpose,
    chosen: Callable[[RowBlock], NDArray[np.bool_]] | None = None,
) -> tuple[Forest, ...]:
    """Grow a forest on the rows outside each fold; their trees are shared out to the folds.

    Parameters
    ----------
    splits : BinnedFeatures
        Covariates, and the dose where trees may split on it.
    targets : callable
        From a fold to what trees without it predict.
    purpose : Purpose
        Of the forests: no two kinds draw the same rows.
    chosen : callable, optional
        Marks the rows to grow from; by default all.
    """
    each = max(1, -(-work.plan.n_trees // units.n_folds))

    def grown(fold: int) -> Forest:
        forest, report = distributed_forest(
            units.blocks.map(_rows_outside(fold, targets(fold), splits, chosen)),
            splits.bins,
            replace(work.plan, n_trees=each, seed=derive(work.plan.seed, purpose, fold)),
            categories=splits.categories,
            keep=units.kept.keep,
            release=units.kept.release,
        )
        work.report.add(report)
        work.on_progress(1)
        return forest

    return tuple(at_once(grown, range(units.n_folds)))


def _rows_outside(
    fold: int,
    target: Targets,
    splits: BinnedFeatures,
    chosen: Callable[[RowBlock], NDArray[np.bool_]] | None,
) -> Callable[[RowBlock], ForestRows]:
    def rows(block: RowBlock) -> ForestRows:
        kept = block.folds != fold
        if chosen is not None:
            kept &= chosen(block)
        values = target(block)[kept]
        return ForestRows(
            bins=splits.of(block)[kept],
            ids=block.ids[kept],
            weights=None if block.weights is None else block.weights[kept],
            curves=values,
            leaf_values=values,
        )

    return rows


def as_ensemble(forests: Sequence[Forest], n_features: int, n_components: int = 1) -> TreeEnsemble:
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
        records = forest.nodes.copy()
        is_leaf = (records["flags"] & LEAF) > 0
        records["left"] += np.where(is_leaf, first_leaf, first_node).astype(np.int32)
        filled = forest.leaf_weights > 0
        means = np.full(len(filled), forest.fallback[0])
        weights = forest.leaf_weights[filled].astype(np.float64)
        means[filled] = forest.leaf_sums[filled, 0] / weights
        nodes.append(records)
        roots.append(forest.roots + first_node)
        values.append(means / n_trees)
        first_node += len(records)
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
        n_components=n_components,
    )
