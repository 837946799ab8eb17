"""The default correction: a small basis of the dose, residualised on the covariates, in forests.

What the outcome model leaves is regressed, residual on residual, on functions of the dose with the
weights of honest forests of several leaf sizes. Candidates are stacked by the R-risk out of bag and
shrunk by how sure their gain is; a second round starts from the corrected curves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.seeds import Purpose, derive
from doseforest.base.stopwatch import Stopwatch
from doseforest.data.row_blocks import OneBlock, RowBlock, RowBlocks
from doseforest.doses.bases.dose_basis import FittedBasis
from doseforest.engine.forest import Forest
from doseforest.engine.grow_forest import GrownForest, grow_forest
from doseforest.engine.growth.forest_settings import GrowthSettings
from doseforest.estimator.corrections.dose_shapes import (
    FUNCTIONS,
    DoseShape,
    Duals,
    measure_functions,
)
from doseforest.estimator.corrections.fitted_correction import FittedCorrection
from doseforest.estimator.corrections.projection import fit_projection
from doseforest.estimator.corrections.shape_stack import SHAPES, TARGET, ShapeStack, stack_shapes
from doseforest.estimator.corrections.sieve_forests import (
    OrthogonalCorrection,
    SieveForest,
    SieveRound,
    sieve_curves,
)
from doseforest.estimator.corrections.sieve_readings import offset_readings, plain_readings
from doseforest.estimator.corrections.sieve_rows import (
    ADDED,
    CENTRED,
    CURVES,
    LEFT,
    SCORES,
    corrected,
    leaf_channels,
    measure_everyone,
    residual,
)
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.outcome.cross_fitted_outcome import CrossFittedOutcome
from doseforest.nuisance.treatment.conditional_means import cross_fit_means

WEIGHED_QUERIES = 100  # queries whose forest weights are looked at


@dataclass(frozen=True, slots=True)
class OrthogonalSettings:
    """How the correction is fitted."""

    leaf_sizes: tuple[int, ...] = (5, 15, 50, 150)
    n_rounds: int = 2
    treatment_model: Any = None  # regressor of the dose functions on X; None: boosting
    growth: GrowthSettings = field(default_factory=GrowthSettings)
    seed: int = 0
    stack: Callable[..., ShapeStack] = stack_shapes  # weighs the candidates


@dataclass(frozen=True, slots=True, eq=False)
class RoundForests:
    """The forests of a round, one for each leaf size."""

    forests: tuple[Forest, ...]
    leaf_sizes: tuple[int, ...]
    n_effective: tuple[float, ...]  # rows that a query averages over
    # Leaf channels of the rows of a block, by the trees of one forest that have not seen them.
    out_of_bag: Callable[[RowBlock, int], FloatArray]


class SieveWork(Protocol):
    """What depends on where the rows are: how means are fitted and forests grown."""

    def means(self, targets: Callable[[RowBlock], FloatArray]) -> Callable[[RowBlock], FloatArray]:
        """Fit means of targets given the covariates; returns those of a block, cross-fitted."""

    def grow(self, number: int, scores: Callable[[RowBlock], FloatArray]) -> RoundForests:
        """Grow the forests of a round, which split by scores."""

    def stack(self) -> ShapeStack:
        """Weigh the column `SHAPES`."""


def fit_rounds(
    blocks: RowBlocks,
    work: SieveWork,
    n_rounds: int,
    orders: IntArray | None,
    n_threads: int = 1,
    stopwatch: Stopwatch | None = None,
) -> tuple[SieveRound, ...]:
    """Fit all rounds; the column `ADDED` then has what they add to the rows, out of bag.

    Parameters
    ----------
    blocks : RowBlocks
        With the columns `FUNCTIONS`, `CENTRED`, `CURVES`, `LEFT` and `ADDED`, the last of zeros.
    work : SieveWork
    orders : array of int, optional
        Of the functions of the dose, where they are not 1, 2, ….
    """
    stopwatch = Stopwatch() if stopwatch is None else stopwatch
    shape, duals = measure_functions(blocks, orders)

    rounds = []
    for number in range(n_rounds):
        means = work.means(lambda block: residual(block)[:, None])
        blocks.add(f"round {number + 1}: residuals and scores", _prepared(means, duals))
        # Their squared distance is about that of the curves, on average over the doses.
        grown = work.grow(number, lambda block: shape.split_scores(block[SCORES]))
        with stopwatch("leaves"):
            rounds.append(_stacked(blocks, work, shape, grown, n_threads))
    return tuple(rounds)


def _prepared(
    means: Callable[[RowBlock], FloatArray], duals: Duals
) -> Callable[[RowBlock], dict[str, FloatArray]]:
    """What the rows of a block bring to a round."""

    def prepared(block: RowBlock) -> dict[str, FloatArray]:
        left = residual(block)
        return {
            TARGET: left - means(block)[:, 0],
            SCORES: corrected(block) + duals.of(block[FUNCTIONS]) * left[:, None],
        }

    return prepared


def _stacked(
    blocks: RowBlocks, work: SieveWork, shape: DoseShape, grown: RoundForests, n_threads: int
) -> SieveRound:
    """Weigh every reading of every forest, and add what they add to the rows, out of bag."""
    everyone = measure_everyone(blocks)
    spread = everyone.spread / shape.active
    readings = [offset_readings(shape, spread, blocks.n_rows, "everyone")]
    for leaf_size, n_rows in zip(grown.leaf_sizes, grown.n_effective, strict=True):
        label = f"leaves of {leaf_size}"
        offsets = offset_readings(shape, spread, n_rows, label)
        readings.append([*offsets, *plain_readings(shape, label)])
    out_of_bag = grown.out_of_bag  # without the forests, which are sent to executors once

    def averages(block: RowBlock, place: int) -> FloatArray:
        return everyone.without(block) if place == 0 else out_of_bag(block, place - 1)

    def shapes(block: RowBlock) -> dict[str, FloatArray]:
        columns, curves = [], corrected(block)
        for place, each in enumerate(readings):
            channels = averages(block, place)
            for reading in each:
                added = reading.added(channels, curves, n_threads)
                columns.append((block[CENTRED] * added).sum(axis=1))
        return {SHAPES: np.stack(columns, axis=1)}

    blocks.add("shapes of the corrections, out of bag", shapes)
    stack = work.stack()
    shares = iter(stack.shares.tolist())
    used = [
        [(reading, share) for reading in each if (share := next(shares)) > 0] for each in readings
    ]

    def added_up(block: RowBlock) -> dict[str, FloatArray]:
        total, curves = np.zeros(block[ADDED].shape), corrected(block)
        for place, each in enumerate(used):
            if not each:
                continue
            channels = averages(block, place)
            for reading, share in each:
                total += share * reading.added(channels, curves, n_threads)
        return {ADDED: block[ADDED] + total}

    blocks.add("curves as corrected, out of bag", added_up, dropped=(SHAPES,))
    constant, nothing = np.zeros(len(spread)), np.zeros((1, len(spread)))
    for reading, share in used[0]:
        constant += share * reading.added(everyone.channels[None], nothing, n_threads)[0]
    forests = tuple(
        SieveForest(forest, *map(tuple, zip(*each, strict=True)))
        for forest, each in zip(grown.forests, used[1:], strict=True)
        if each
    )
    names = tuple(reading.name for each in readings for reading in each)
    return SieveRound(forests, constant, stack, names)


@dataclass(frozen=True, slots=True, eq=False)
class AddedSieve:
    """Additions to the training rows' curves, from trees that have not seen the row."""

    basis: FittedBasis
    coefficients: FloatArray  # (n_rows, n_functions), the constant left out

    def curves(self, doses: FloatArray) -> FloatArray:
        """Additions at each dose of a grid."""
        return sieve_curves(self.basis, self.coefficients, doses)

    def observed(self, dose: FloatArray) -> FloatArray:
        """Additions at each row's own dose."""
        return sieve_curves(self.basis, self.coefficients, dose[:, None])[:, 0]


def fit_orthogonal(
    rows: TrainingRows,
    outcome: CrossFittedOutcome,
    basis: FittedBasis,
    settings: OrthogonalSettings,
    *,
    treatment_means: FloatArray | None = None,
    n_threads: int = 1,
    stopwatch: Stopwatch | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> FittedCorrection:
    """Fit the correction to what a cross-fitted outcome model leaves.

    Parameters
    ----------
    treatment_means : array of shape (n_rows, n_functions - 1), optional
        Means of the functions of the dose given the covariates, where they are known; by default
        they are estimated.
    on_progress : callable
        Told after each forest.
    """
    stopwatch = Stopwatch() if stopwatch is None else stopwatch

    def means_of(
        targets: FloatArray, columns: IntArray | None = None, model: Any = None
    ) -> FloatArray:
        with stopwatch("nuisances"):
            return cross_fit_means(
                rows.X if columns is None else rows.X[:, columns],
                targets,
                outcome.folds,
                weights=rows.weights,
                regressor=model,
                counts=rows.category_counts(columns),
                seed=settings.seed,
                n_threads=n_threads,
            )

    functions = basis.evaluate(rows.dose.values)[:, 1:]
    if treatment_means is None:
        treatment_means = means_of(functions, rows.treatment_columns, settings.treatment_model)
    projection = fit_projection(basis, rows.dose, rows.weights)
    with stopwatch("curves"):
        curves = projection.coefficients(
            outcome.curves_out_of_fold(rows.X, projection.nodes, n_threads)
        )
    columns = {
        FUNCTIONS: functions,
        CENTRED: functions - treatment_means,
        CURVES: curves,
        LEFT: rows.y - outcome.observed,
        ADDED: np.zeros(curves.shape),
    }
    blocks = OneBlock(rows.block(outcome.folds, columns), int(outcome.folds.max()) + 1)
    work = _LocalWork(rows, blocks, settings, means_of, stopwatch, on_progress)
    orders = getattr(basis, "orders", None)
    rounds = fit_rounds(blocks, work, settings.n_rounds, orders, n_threads, stopwatch)
    return FittedCorrection(
        correction=OrthogonalCorrection(basis, projection, rounds),
        added=AddedSieve(basis, blocks.block[ADDED]),
        report=tuple(round_.report() for round_ in rounds),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _LocalWork:
    """Means by boosting and forests of all rows at once."""

    rows: TrainingRows
    blocks: OneBlock
    settings: OrthogonalSettings
    means_of: Callable[[FloatArray], FloatArray]
    stopwatch: Stopwatch
    on_progress: Callable[[int], None]

    def means(self, targets: Callable[[RowBlock], FloatArray]) -> Callable[[RowBlock], FloatArray]:
        means = self.means_of(targets(self.blocks.block))
        return lambda block: means

    def grow(self, number: int, scores: Callable[[RowBlock], FloatArray]) -> RoundForests:
        rows, block, settings = self.rows, self.blocks.block, self.settings
        values, channels, grown = scores(block), leaf_channels(block), []
        for leaf_size in settings.leaf_sizes:
            seed = derive(settings.seed, Purpose.CORRECTION_FOREST, number, leaf_size)
            growth = replace(settings.growth, min_node_size=leaf_size, seed=seed)
            grown.append(grow_forest(rows.split_rows, values, growth, leaf_channels=channels))
            self.stopwatch.add(grown[-1].seconds)
            self.on_progress(1)
        X, table = rows.effect_features, rows.split_rows.table
        return RoundForests(
            forests=tuple(each.forest for each in grown),
            leaf_sizes=settings.leaf_sizes,
            n_effective=tuple(effective_rows(each, X) for each in grown),
            out_of_bag=lambda block, place: grown[place].average_oob(table),
        )

    def stack(self) -> ShapeStack:
        block, rows = self.blocks.block, self.rows
        weights = rows.leaf_weights
        return self.settings.stack(block[SHAPES], block[TARGET], weights=weights, clusters=rows.ids)


def effective_rows(forest: GrownForest, X: FloatArray) -> float:
    """Rows that a query averages over, 1 / sum of its squared weights: the median of some queries.

    The sum of squares over trees is not additive; one number per forest has to do.
    """
    places = np.unique(np.linspace(0, len(X) - 1, WEIGHED_QUERIES).astype(np.int64))
    weights = forest.forest_weights(X[places])
    squares = np.asarray(weights.multiply(weights).sum(axis=1)).ravel()
    return float(np.median(1 / squares[squares > 0])) if (squares > 0).any() else 1.0
