"""The orthogonal correction on a cluster; its steps are those of `corrections.orthogonal`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.row_blocks import RowBlock
from doseforest.doses.bases.dose_basis import FittedBasis
from doseforest.engine.forest import Forest
from doseforest.estimator.corrections.dose_shapes import DoseShape
from doseforest.estimator.corrections.orthogonal import SEED_STEP
from doseforest.estimator.corrections.projection import Projection
from doseforest.estimator.corrections.sieve_forests import OrthogonalCorrection, SieveRound
from doseforest.spark import sieve_rows as columns
from doseforest.spark.cluster_density import TOLD
from doseforest.spark.cluster_means import MeanFitter
from doseforest.spark.cluster_outcome import FoldOutcomes, by_fold, observed
from doseforest.spark.cluster_units import Units
from doseforest.spark.engine import GrowthReport
from doseforest.spark.fold_forests import BinnedFeatures, ForestWork
from doseforest.spark.forests import ForestPlan, ForestRows, distributed_forest
from doseforest.spark.jobs import at_once
from doseforest.spark.sieve_rows import Duals
from doseforest.spark.sieve_stack import draw_queries, stack_forests


@dataclass(slots=True, eq=False)
class SieveFit:
    """What fitting the correction needs and reports."""

    units: Units
    outcomes: FoldOutcomes
    basis: FittedBasis
    projection: Projection
    splits: BinnedFeatures  # the covariates
    means: MeanFitter
    plan: ForestPlan  # of the forests of each leaf size
    leaf_sizes: tuple[int, ...]
    n_rounds: int
    nuisances: ForestWork
    report: GrowthReport = field(default_factory=GrowthReport)
    on_progress: Callable[[int], None] = lambda done: None

    def fit(self) -> OrthogonalCorrection:
        """Fit all rounds; the units then have what they add, out of bag."""
        self._start()
        shape, duals = self._shape()
        queries = draw_queries(self.units)
        rounds = [self._round(shape, duals, queries, number) for number in range(self.n_rounds)]
        return OrthogonalCorrection(self.basis, self.projection, tuple(rounds))

    def _start(self) -> None:
        """Add functions of the dose, less their means given X, and the outcome model's curves."""
        units, basis, projection = self.units, self.basis, self.projection
        means = self.means.fit(
            lambda block: basis.evaluate(block.dose)[:, 1:], self.nuisances, "functions of the dose"
        )
        sent = units.kept.send(units.context, (means, self.outcomes.without))

        def start(block: RowBlock) -> dict[str, FloatArray]:
            means, without = sent.value
            functions = basis.evaluate(block.dose)[:, 1:]
            curves = by_fold(
                without, block, lambda model, own, r: model.curves(own.numbers[r], projection.nodes)
            )
            return {
                columns.FUNCTIONS: functions,
                columns.CENTRED: functions - means.predict(block),
                columns.CURVES: projection.coefficients(curves),
                columns.LEFT: block.y - by_fold(without, block, observed),
                columns.ADDED: np.zeros(functions.shape),
            }

        units.add("curves of the outcome model", start, dropped=(TOLD,))

    def _shape(self) -> tuple[DoseShape, Duals]:
        """What kind of functions there are, and their duals."""

        def sums(block: RowBlock) -> tuple[Any, ...]:
            weights, functions = block.row_weights, block[columns.FUNCTIONS]
            return (
                weights.sum(),
                weights @ functions,
                (functions * weights[:, None]).T @ functions,
                weights @ (functions != 0),
                (~np.isin(functions, (0.0, 1.0))).sum(axis=0),
            )

        text = "moments of the functions of the dose"
        weight, total, products, active, others = self.units.add_up(text, sums)
        mean = total / weight
        gram = products / weight - np.outer(mean, mean)
        shape = DoseShape.of_moments(
            is_indicator=others == 0,
            variance=np.maximum(np.diag(gram), 0.0),
            active=active / weight,
            orders=getattr(self.basis, "orders", None),
        )
        return shape, Duals(mean, np.linalg.pinv(gram, hermitian=True))

    def _round(
        self, shape: DoseShape, duals: Duals, queries: FloatArray, number: int
    ) -> SieveRound:
        units = self.units
        means = self.means.fit(
            lambda block: columns.residual(block)[:, None], self.nuisances, "residuals"
        )
        sent = units.kept.send(units.context, means)

        def prepared(block: RowBlock) -> dict[str, FloatArray]:
            left = columns.residual(block)
            scores = columns.corrected(block) + duals.of(block[columns.FUNCTIONS]) * left[:, None]
            return {
                columns.TARGET: left - sent.value.predict(block)[:, 0],
                columns.SCORES: scores,
            }

        units.add(f"round {number + 1}: residuals and scores", prepared)
        forests = at_once(lambda size: self._grow(shape, size, number), self.leaf_sizes)
        return stack_forests(units, self.splits, forests, self.leaf_sizes, shape, queries)

    def _grow(self, shape: DoseShape, leaf_size: int, number: int) -> Forest:
        n_used = shape.n_used(shape.split_order)
        splits, deviation = self.splits, shape.deviation[:n_used]

        def forest_rows(block: RowBlock) -> ForestRows:
            return ForestRows(
                bins=splits.of(block),
                ids=block.ids,
                weights=block.weights,
                curves=block[columns.SCORES][:, :n_used] * deviation,
                leaf_values=columns.leaf_channels(block),
            )

        seed = (self.plan.seed + SEED_STEP * number + leaf_size) % 2**32
        forest, report = distributed_forest(
            self.units.blocks.map(forest_rows),
            splits.bins,
            replace(self.plan, min_node_size=leaf_size, seed=seed),
            categories=splits.categories,
            keep=self.units.kept.keep,
            release=self.units.kept.release,
        )
        self.report.add(report)
        self.on_progress(1)
        return forest
