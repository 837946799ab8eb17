"""How much of each reading of each forest is taken, from sums over a cluster."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from doseforest import _core
from doseforest.base.dtypes import FloatArray
from doseforest.data.row_blocks import RowBlock
from doseforest.engine.forest import Forest, UnseenRowsWarning
from doseforest.estimator.corrections.dose_shapes import DoseShape
from doseforest.estimator.corrections.orthogonal import WEIGHED_QUERIES
from doseforest.estimator.corrections.shape_stack import N_FOLDS, ShapeStack, shares_up_to_one
from doseforest.estimator.corrections.sieve_forests import Reading, SieveForest, SieveRound
from doseforest.estimator.corrections.sieve_readings import offset_readings, plain_readings
from doseforest.spark import sieve_rows as columns
from doseforest.spark.cluster_units import Units, fold_of
from doseforest.spark.fold_forests import BinnedFeatures
from doseforest.spark.jobs import described

STACK_SEED = 5  # of the folds on which the gain is measured
TREES_AT_ONCE = 16  # routed together when forest weights are looked at


def stack_forests(
    units: Units,
    splits: BinnedFeatures,
    forests: Sequence[Forest],
    leaf_sizes: Sequence[int],
    shape: DoseShape,
    queries: FloatArray,
) -> SieveRound:
    """Weigh every reading of every forest, and add what they add to the rows, out of bag."""
    everyone = _everyone(units)
    spread = everyone.squares / everyone.weight / shape.active
    # Sent for the rest of the fit: what a lost executor held is made anew from them.
    sent = units.kept.send(units.context, tuple(forests))
    readings = [offset_readings(shape, spread, units.n_rows, "everyone")]
    n_effective = _effective_rows(units, splits, forests, sent, queries)
    for leaf_size, n_rows in zip(leaf_sizes, n_effective, strict=True):
        label = f"leaves of {leaf_size}"
        own = offset_readings(shape, spread, n_rows, label)
        readings.append([*own, *plain_readings(shape, label)])
    _add_shapes(units, sent, everyone, readings)
    stack = _stack(units)
    shares = iter(stack.shares.tolist())
    used = [[(reading, next(shares)) for reading in own] for own in readings]
    used = [[pair for pair in own if pair[1] > 0] for own in used]
    _add_up_rounds(units, sent, everyone, used)
    constant = np.zeros(len(spread))
    overall, nothing = everyone.channels[None] / everyone.weight, np.zeros((1, len(spread)))
    for reading, share in used[0]:
        constant += share * reading.added(overall, nothing, 1)[0]
    chosen = tuple(
        SieveForest(forest, *map(tuple, zip(*own, strict=True)))
        for forest, own in zip(forests, used[1:], strict=True)
        if own
    )
    names = tuple(reading.name for own in readings for reading in own)
    return SieveRound(chosen, constant, stack, names)


@dataclass(frozen=True, slots=True)
class _Everyone:
    """Sums over all rows."""

    weight: float
    squares: FloatArray  # (n_functions,) of the residualised functions of the dose
    channels: FloatArray  # (n_leaf_channels,)


def _everyone(units: Units) -> _Everyone:
    def sums(block: RowBlock) -> tuple[Any, ...]:
        own = block.row_weights
        return own.sum(), own @ block[columns.CENTRED] ** 2, own @ columns.leaf_channels(block)

    weight, squares, channels = units.add_up("moments of all rows", sums)
    return _Everyone(float(weight), squares, channels)


def _out_of_bag(block: RowBlock, forest: Forest | None, everyone: _Everyone) -> FloatArray:
    """Leaf channels of rows averaged without them; without a forest, over everyone else."""
    if not len(block):  # a partition may be empty
        return np.zeros((0, len(everyone.channels)))
    if forest is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenRowsWarning)  # they get the overall mean
            return forest.average_oob(block.X, row_ids=block.ids, n_jobs=1)
    _, own = np.unique(block.ids, return_inverse=True)  # rows of a group are in one partition
    weights = block.row_weights
    n_groups = int(own.max(initial=-1)) + 1
    group_sums = np.zeros((n_groups, len(everyone.channels)))
    np.add.at(group_sums, own, columns.leaf_channels(block) * weights[:, None])
    rest = everyone.weight - np.bincount(own, weights, n_groups)
    means: FloatArray = (everyone.channels - group_sums[own]) / rest[own][:, None]
    return means


def _add_shapes(
    units: Units, sent: Any, everyone: _Everyone, readings: Sequence[Sequence[Reading]]
) -> None:
    """Add what each reading adds to the outcomes of the rows, out of bag."""

    def shapes(block: RowBlock) -> dict[str, FloatArray]:
        found, curves = [], columns.corrected(block)
        for forest, own in zip((None, *sent.value), readings, strict=True):
            averages = _out_of_bag(block, forest, everyone)
            for reading in own:
                added = reading.added(averages, curves, 1)
                found.append((block[columns.CENTRED] * added).sum(axis=1))
        return {columns.SHAPES: np.stack(found, axis=1)}

    units.add("shapes of the corrections, out of bag", shapes)


def _add_up_rounds(
    units: Units,
    sent: Any,
    everyone: _Everyone,
    used: Sequence[Sequence[tuple[Reading, float]]],
) -> None:
    """Add to the coefficients of the rows what readings add, times their shares."""

    def added(block: RowBlock) -> dict[str, FloatArray]:
        total, curves = block[columns.ADDED].copy(), columns.corrected(block)
        for forest, own in zip((None, *sent.value), used, strict=True):
            if own:
                averages = _out_of_bag(block, forest, everyone)
                for reading, share in own:
                    total += share * reading.added(averages, curves, 1)
        return {columns.ADDED: total}

    units.add("curves as corrected, out of bag", added, dropped=(columns.SHAPES,))


def _stack(units: Units) -> ShapeStack:
    """Regress residuals on shapes, and shrink by how sure the gain is; see `stack_shapes`."""
    seed = units.seed + STACK_SEED

    def by_fold(block: RowBlock) -> FloatArray:
        system = np.column_stack([block[columns.SHAPES], block[columns.TARGET]])
        scaled = system * np.sqrt(block.row_weights)[:, None]
        folds = fold_of(block.ids, N_FOLDS, seed)
        return np.stack([scaled * (folds == fold)[:, None] for fold in range(N_FOLDS)])

    triangles = units.triangle("stack the corrections", by_fold)
    shares = shares_up_to_one(list(triangles))
    others = np.stack(
        [
            shares_up_to_one([triangles[k] for k in range(N_FOLDS) if k != fold])
            for fold in range(N_FOLDS)
        ]
    )

    def gains(block: RowBlock) -> tuple[Any, ...]:
        target, weights = block[columns.TARGET], block.row_weights
        folds = fold_of(block.ids, N_FOLDS, seed)
        left = target - (block[columns.SHAPES] * others[folds]).sum(axis=1)
        gain = weights * (target**2 - left**2)
        _, own = np.unique(block.ids, return_inverse=True)
        sums = np.bincount(own, gain)
        return len(sums), sums.sum(), (sums**2).sum(), weights.sum()

    text = "gain of the corrections on rows left out"
    n, total, squares, weight = units.add_up(text, gains)
    spread = np.sqrt(max(squares - total**2 / n, 0.0) / max(n - 1, 1) * n)
    t_value = float(total / spread) if spread > 0 else 0.0
    strength = max(0.0, 1.0 - 1.0 / t_value**2) if t_value > 0 else 0.0
    shares = strength * shares
    # The risks follow from the triangles: no other pass over the rows.
    joined = np.vstack(list(triangles))
    risk = float((joined[:, -1] ** 2).sum() / weight)
    left = joined[:, -1] - joined[:, :-1] @ shares
    return ShapeStack(shares, strength, t_value, risk, float((left**2).sum() / weight))


def draw_queries(units: Units) -> FloatArray:
    """Covariates of some rows, chosen by a hash."""
    n, seed = WEIGHED_QUERIES, units.seed

    def candidates(block: RowBlock) -> list[tuple[int, bytes, FloatArray]]:
        hashes = fold_of(block.sample_keys, 2**62, seed)
        last = np.sort(hashes)[:n][-1:]
        rows = np.flatnonzero(hashes <= last)  # by their values where they share a key
        return [(int(hashes[row]), block.X[row].tobytes(), block.X[row]) for row in rows]

    with described(units.context, f"draw {n} rows"):
        found = units.blocks.flatMap(candidates).takeOrdered(n, key=lambda own: own[:2])
    return np.stack([x for _, _, x in found])


def _effective_rows(
    units: Units, splits: BinnedFeatures, forests: Sequence[Forest], sent: Any, queries: FloatArray
) -> list[float]:
    """Rows that a query averages over, 1 / sum of its squared weights: the median of some."""
    leaves = [forest.apply(queries, n_jobs=1) for forest in forests]

    def squares(block: RowBlock) -> tuple[FloatArray, ...]:
        return tuple(
            _squared_weights(forest, own, block, splits)
            for forest, own in zip(sent.value, leaves, strict=True)
        )

    found = units.add_up("rows behind an answer", squares)
    return [float(np.median(1 / own[own > 0])) if (own > 0).any() else 1.0 for own in found]


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
