"""The orthogonal correction on a cluster: how `corrections.orthogonal` fits and grows there."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.seeds import Purpose, derive
from doseforest.data.row_blocks import RowBlock
from doseforest.doses.bases.dose_basis import FittedBasis
from doseforest.engine.forest import Forest, UnseenRowsWarning
from doseforest.estimator.corrections.dose_shapes import FUNCTIONS
from doseforest.estimator.corrections.orthogonal import RoundForests, fit_rounds
from doseforest.estimator.corrections.projection import Projection
from doseforest.estimator.corrections.shape_stack import N_FOLDS, ShapeStack, stack_blocks
from doseforest.estimator.corrections.sieve_forests import OrthogonalCorrection
from doseforest.estimator.corrections.sieve_rows import ADDED, CENTRED, CURVES, LEFT, leaf_channels
from doseforest.nuisance.cross_fit import FoldModels
from doseforest.spark.cluster_density import PREDICTED
from doseforest.spark.cluster_means import MeanFitter
from doseforest.spark.cluster_outcome import FoldOutcomes, observed
from doseforest.spark.cluster_units import Units, fold_of
from doseforest.spark.effective_rows import draw_queries, effective_rows
from doseforest.spark.engine import GrowthReport
from doseforest.spark.fold_forests import BinnedFeatures, ForestWork
from doseforest.spark.forests import ForestPlan, ForestRows, distributed_forest
from doseforest.spark.jobs import at_once


@dataclass(slots=True, eq=False)
class SieveFit:
    """What fitting the correction needs and reports."""

    units: Units
    outcomes: FoldOutcomes
    basis: FittedBasis
    projection: Projection
    splits: BinnedFeatures  # the covariates
    mean_fitter: MeanFitter
    plan: ForestPlan  # of the forests of each leaf size
    leaf_sizes: tuple[int, ...]
    n_rounds: int
    nuisances: ForestWork
    report: GrowthReport = field(default_factory=GrowthReport)
    on_progress: Callable[[int], None] = lambda done: None
    queries: FloatArray | None = None  # whose forest weights are looked at

    def fit(self) -> OrthogonalCorrection:
        """Fit all rounds; the units then have what they add, out of bag."""
        self._start()
        self.queries = draw_queries(self.units)
        orders = getattr(self.basis, "orders", None)
        rounds = fit_rounds(self.units, self, self.n_rounds, orders)
        return OrthogonalCorrection(self.basis, self.projection, rounds)

    def means(self, targets: Callable[[RowBlock], FloatArray]) -> Callable[[RowBlock], FloatArray]:
        """Means of targets given the covariates, out of fold."""
        return self._means(targets, "residuals")

    def grow(self, number: int, scores: Callable[[RowBlock], FloatArray]) -> RoundForests:
        """Grow the forests of a round side by side."""
        forests = at_once(lambda size: self._forest(number, size, scores), self.leaf_sizes)
        # Sent for the rest of the fit: what a lost executor held is made anew from them.
        sent = self.units.kept.send(self.units.context, tuple(forests))
        assert self.queries is not None  # drawn before the rounds
        n_effective = effective_rows(self.units, self.splits, forests, sent, self.queries)
        return RoundForests(tuple(forests), self.leaf_sizes, tuple(n_effective), _OutOfBag(sent))

    def stack(self) -> ShapeStack:
        """Weigh the readings; folds are by hash."""
        seed = derive(self.units.seed, Purpose.GAIN_FOLDS)

        def folds(block: RowBlock) -> IntArray:
            return fold_of(block.ids, N_FOLDS, seed)

        return stack_blocks(self.units, folds)

    def _start(self) -> None:
        """Add functions of the dose, less their means given X, and the outcome model's curves."""
        units, basis, projection = self.units, self.basis, self.projection

        def functions_of(block: RowBlock) -> FloatArray:
            return basis.evaluate(block.dose)[:, 1:]

        means = self._means(functions_of, "functions of the dose")
        sent = units.kept.send(units.context, self.outcomes.without)

        def start(block: RowBlock) -> dict[str, FloatArray]:
            functions, nodes = functions_of(block), projection.nodes
            curves = FoldModels(block.folds, sent.value, None).out_of_fold(
                lambda model, rows: model.curves(block.numbers[rows], nodes), len(nodes)
            )
            return {
                FUNCTIONS: functions,
                CENTRED: functions - means(block),
                CURVES: projection.coefficients(curves),
                LEFT: block.y - observed(sent.value, block),
                ADDED: np.zeros(functions.shape),
            }

        units.add("curves of the outcome model", start, dropped=(PREDICTED,))

    def _means(
        self, targets: Callable[[RowBlock], FloatArray], what: str
    ) -> Callable[[RowBlock], FloatArray]:
        fitted = self.mean_fitter.fit(targets, self.nuisances, what)
        sent = self.units.kept.send(self.units.context, fitted)

        def predicted(block: RowBlock) -> FloatArray:
            means: FloatArray = sent.value.predict(block)
            return means

        return predicted

    def _forest(
        self, number: int, leaf_size: int, scores: Callable[[RowBlock], FloatArray]
    ) -> Forest:
        splits = self.splits

        def forest_rows(block: RowBlock) -> ForestRows:
            return ForestRows(
                bins=splits.of(block),
                ids=block.ids,
                weights=block.weights,
                curves=scores(block),
                leaf_values=leaf_channels(block),
            )

        seed = derive(self.plan.seed, Purpose.CORRECTION_FOREST, number, leaf_size)
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


@dataclass(frozen=True, slots=True)
class _OutOfBag:
    """Leaf channels of rows by the trees of forests on the executors that have not seen them."""

    sent: Any  # broadcast of the forests

    def __call__(self, block: RowBlock, place: int) -> FloatArray:
        forest: Forest = self.sent.value[place]
        if not len(block):  # a partition may be empty
            return np.zeros((0, forest.leaf_sums.shape[1]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenRowsWarning)  # they get the overall mean
            return forest.average_oob(block.X, row_ids=block.ids, n_jobs=1)
