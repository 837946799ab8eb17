"""How much of each reading of each forest is taken, from sums over a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from doseforest import _core
from doseforest.corrections.orthogonal import WEIGHED_QUERIES
from doseforest.corrections.shape_stack import N_FOLDS, ShapeStack, shares_up_to_one
from doseforest.corrections.sieve_forests import Reading, SieveForest, SieveRound
from doseforest.corrections.sieve_readings import SieveShape, offset_readings, plain_readings
from doseforest.data.binning import FeatureBins
from doseforest.dtypes import BinArray, FloatArray
from doseforest.prediction.forest import Forest
from doseforest.spark.jobs import broadcast, described
from doseforest.spark.units import UnitBlock, Units, add_up, fold_of, triangle

STACK_SEED = 5  # of the folds on which the gain is measured
TREES_AT_ONCE = 16  # routed together when forest weights are looked at


def stack_forests(
    units: Units,
    ready: Any,
    binned: Any,
    bins: FeatureBins,
    forests: Sequence[Forest],
    leaf_sizes: Sequence[int],
    shape: SieveShape,
) -> tuple[SieveRound, Any]:
    """Weigh every reading of every forest; also an RDD of what they add to the rows, out of bag.

    Parameters
    ----------
    ready : RDD of RoundRows
    binned : RDD of bins
    """
    weight, squares, channels = _totals(units, ready)
    spread = squares / weight / shape.active
    overall = channels / weight
    queries = _queries(units)
    readings = [offset_readings(shape, spread, units.n_rows, "everyone")]
    for forest, leaf_size in zip(forests, leaf_sizes, strict=True):
        label = f"leaves of {leaf_size}"
        n_effective = effective_rows(units, binned, bins, forest, queries)
        own = offset_readings(shape, spread, n_effective, label)
        readings.append([*own, *plain_readings(shape, label)])
    # Sent for the rest of the fit: what a lost executor held is made anew from them.
    sources = [units.kept.send(units.context, own) for own in (None, *forests)]
    kept = [
        units.kept.keep(_shapes(units, ready, source, own, weight, channels))
        for source, own in zip(sources, readings, strict=True)
    ]
    stack = _stack(units, ready, kept)
    for done in kept:
        units.kept.release(done)
    added = ready.map(lambda rows: np.zeros(rows.curves.shape))
    constant = np.zeros(len(spread))
    chosen = []
    shares = iter(stack.shares.tolist())
    for grown, source, own in zip([None, *forests], sources, readings, strict=True):
        used = [(reading, share) for reading in own if (share := next(shares)) > 0]
        if not used:
            continue
        mine = _added(units, ready, source, used, weight, channels)
        added = added.zip(mine).map(lambda pair: pair[0] + pair[1])
        if grown is None:
            nothing = np.zeros((1, len(spread)))
            for reading, share in used:
                constant += share * reading.added(overall[None], nothing, 1)[0]
        else:
            chosen.append(SieveForest(grown, *map(tuple, zip(*used, strict=True))))
    names = tuple(reading.name for own in readings for reading in own)
    return SieveRound(tuple(chosen), constant, stack, names), added


def _totals(units: Units, ready: Any) -> tuple[float, FloatArray, FloatArray]:
    """Weight of all rows, and sums of squared functions and of leaf channels."""

    def sums(pair: tuple[UnitBlock, Any]) -> tuple[Any, ...]:
        own = pair[0].own_weights
        return own.sum(), own @ pair[1].centred ** 2, own @ pair[1].channels

    weight, squares, channels = add_up(units.beside(ready), "moments of all rows", sums)
    return float(weight), squares, channels


def out_of_bag(
    block: UnitBlock, rows: Any, forest: Forest | None, weight: float, channels: FloatArray
) -> FloatArray:
    """Leaf channels of rows averaged without them; without a forest, over everyone else."""
    if forest is not None:
        return forest.average_oob(block.X, row_ids=block.ids, n_jobs=1)
    _, own = np.unique(block.ids, return_inverse=True)  # rows of a group are in one partition
    weights = block.own_weights
    n_groups = int(own.max(initial=-1)) + 1
    group_sums = np.zeros((n_groups, len(channels)))
    np.add.at(group_sums, own, rows.channels * weights[:, None])
    group_weights = np.bincount(own, weights, n_groups)
    means: FloatArray = (channels - group_sums[own]) / (weight - group_weights[own])[:, None]
    return means


def _shapes(
    units: Units,
    ready: Any,
    sent: Any,
    readings: Sequence[Reading],
    weight: float,
    channels: FloatArray,
) -> Any:
    """RDD of what each reading of a forest that was sent adds to the outcomes of the rows."""

    def shapes(pair: tuple[UnitBlock, Any]) -> FloatArray:
        block, rows = pair
        averages = out_of_bag(block, rows, sent.value, weight, channels)
        return np.stack(
            [
                (rows.centred * reading.added(averages, rows.curves, 1)).sum(axis=1)
                for reading in readings
            ],
            axis=1,
        )

    return units.beside(ready).map(shapes)


def _added(
    units: Units,
    ready: Any,
    sent: Any,
    used: Sequence[tuple[Reading, float]],
    weight: float,
    channels: FloatArray,
) -> Any:
    """RDD of what readings add to the coefficients of the rows, times their shares."""

    def added(pair: tuple[UnitBlock, Any]) -> FloatArray:
        block, rows = pair
        averages = out_of_bag(block, rows, sent.value, weight, channels)
        total = np.zeros(rows.curves.shape)
        for reading, share in used:
            total += share * reading.added(averages, rows.curves, 1)
        return total

    return units.beside(ready).map(added)


def _stack(units: Units, ready: Any, kept: Sequence[Any]) -> ShapeStack:
    """Regress residuals on shapes, and shrink by how sure the gain is; see `stack_shapes`."""
    together = kept[0].map(lambda own: [own])
    for other in kept[1:]:
        together = together.zip(other).map(lambda pair: [*pair[0], pair[1]])
    rows = units.beside(ready.zip(together))
    seed = units.seed + STACK_SEED

    def system(pair: tuple[UnitBlock, tuple[Any, list[FloatArray]]]) -> tuple[Any, ...]:
        block, (own, shapes) = pair
        folds = fold_of(block.ids, N_FOLDS, seed)
        return np.hstack(shapes), own.target, block.own_weights, folds, block.ids

    def by_fold(pair: Any) -> FloatArray:
        shapes, target, weights, folds, _ = system(pair)
        scaled = np.column_stack([shapes, target]) * np.sqrt(weights)[:, None]
        return np.stack([scaled * (folds == fold)[:, None] for fold in range(N_FOLDS)])

    triangles = triangle(rows, "stack the corrections", by_fold)
    shares = shares_up_to_one(list(triangles))
    others = np.stack(
        [
            shares_up_to_one([triangles[k] for k in range(N_FOLDS) if k != fold])
            for fold in range(N_FOLDS)
        ]
    )

    def gains(pair: Any) -> tuple[Any, ...]:
        shapes, target, weights, folds, ids = system(pair)
        left = target - (shapes * others[folds]).sum(axis=1)
        gain = weights * (target**2 - left**2)
        _, own = np.unique(ids, return_inverse=True)
        sums = np.bincount(own, gain) if len(own) else np.zeros(0)
        return len(sums), sums.sum(), (sums**2).sum()

    n, total, squares = add_up(rows, "gain of the corrections on rows left out", gains)
    spread = np.sqrt(max(squares - total**2 / n, 0.0) / max(n - 1, 1) * n)
    t_value = float(total / spread) if spread > 0 else 0.0
    strength = max(0.0, 1.0 - 1.0 / t_value**2) if t_value > 0 else 0.0
    shares = strength * shares

    def risks(pair: Any) -> tuple[Any, ...]:
        shapes, target, weights, _, _ = system(pair)
        left = target - shapes @ shares
        return weights.sum(), weights @ target**2, weights @ left**2

    weight, risk, corrected = add_up(rows, "risk of the corrected curves", risks)
    return ShapeStack(shares, strength, t_value, float(risk / weight), float(corrected / weight))


def _queries(units: Units) -> FloatArray:
    """Covariates of some rows, chosen by the hash of their ids."""
    n, seed = WEIGHED_QUERIES, units.seed

    def candidates(block: UnitBlock) -> list[tuple[int, int, FloatArray]]:
        hashes = fold_of(block.ids, 2**62, seed)
        order = np.argsort(hashes, kind="stable")[:n]
        return [(int(hashes[row]), int(block.ids[row]), block.X[row]) for row in order]

    with described(units.context, f"draw {n} rows"):
        found = units.blocks.flatMap(candidates).takeOrdered(n, key=lambda own: own[:2])
    return np.stack([x for _, _, x in found])


def effective_rows(
    units: Units, binned: Any, bins: FeatureBins, forest: Forest, queries: FloatArray
) -> float:
    """Rows that a query averages over, 1 / sum of its squared weights: the median of some."""
    leaves = forest.apply(queries, n_jobs=1)
    filled = forest.leaf_weights[leaves] > 0
    n_bins = bins.n_bins
    with broadcast(units.context, (forest, leaves, filled)) as sent:

        def squares(pair: tuple[UnitBlock, BinArray]) -> tuple[FloatArray]:
            return (_squared_weights(sent.value, pair[0], pair[1], n_bins),)

        (found,) = add_up(units.beside(binned), "rows behind an answer", squares)
    return float(np.median(1 / found[found > 0])) if (found > 0).any() else 1.0


def _squared_weights(
    asked: tuple[Forest, Any, Any],  # forest, leaves of the queries and whether they are filled
    block: UnitBlock,
    bins: BinArray,
    n_bins: Any,
) -> FloatArray:
    """Sum over the rows of a block of the squared weights that each query gives them."""
    forest, leaves, filled = asked
    n_queries, n_rows = len(leaves), len(block)
    own_bins = np.ascontiguousarray(bins[:, : len(n_bins)])
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
        weight = copies[row, place] * block.own_weights[row] / forest.leaf_weights[leaf]
        total = total + visits @ sparse.csr_array(
            (weight, (leaf, row)), shape=(forest.n_leaves, n_rows)
        )
    return np.asarray(total.multiply(total).sum(axis=1)).ravel()
