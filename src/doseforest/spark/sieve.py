"""The orthogonal correction on a cluster; its steps are those of `corrections.orthogonal`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from doseforest.corrections.moments import moment_channels
from doseforest.corrections.orthogonal import SEED_STEP
from doseforest.corrections.projection import Projection
from doseforest.corrections.sieve_forests import OrthogonalCorrection, SieveRound
from doseforest.corrections.sieve_readings import SieveShape
from doseforest.data.binning import FeatureBins
from doseforest.dtypes import BinArray, FloatArray
from doseforest.spark.conditional_means import MeanFitter
from doseforest.spark.engine import GrowthReport
from doseforest.spark.fold_forests import ForestWork
from doseforest.spark.forests import ForestPlan, ForestRows, distributed_forest
from doseforest.spark.jobs import described
from doseforest.spark.outcome import FoldOutcomes, observed
from doseforest.spark.sieve_stack import stack_forests
from doseforest.spark.units import UnitBlock, Units, add_up
from doseforest.treatments.bases import FittedBasis


@dataclass(frozen=True, slots=True)
class SieveRows:
    """What rows of a block carry from round to round; the constant function is left out."""

    functions: FloatArray  # (n_rows, n_functions)
    centred: FloatArray  # (n_rows, n_functions) less their means given the covariates
    curves: FloatArray  # (n_rows, n_functions) coefficients of the outcome model's curves
    left: FloatArray  # (n_rows,) outcome less the outcome model's prediction
    added: FloatArray  # (n_rows, n_functions) what rounds have added so far, out of bag

    @property
    def residual(self) -> FloatArray:
        """What the corrected curves leave of the outcome."""
        explained: FloatArray = (self.functions * self.added).sum(axis=1)
        return self.left - explained


@dataclass(frozen=True, slots=True)
class RoundRows:
    """What rows of a block bring to a round."""

    centred: FloatArray  # (n_rows, n_functions)
    target: FloatArray  # (n_rows,) residual less its mean given the covariates
    curves: FloatArray  # (n_rows, n_functions) of the curves as corrected so far
    scores: FloatArray  # (n_rows, n_functions) the same plus dual functions times residual

    @property
    def channels(self) -> FloatArray:
        """What leaves add up: packed moments, then scores."""
        return np.hstack([moment_channels(self.centred, self.target), self.scores])


@dataclass(slots=True, eq=False)
class SieveFit:
    """What fitting the correction needs and reports."""

    units: Units
    outcomes: FoldOutcomes
    basis: FittedBasis
    projection: Projection
    binned: Any  # RDD of bins
    bins: FeatureBins  # of the covariates
    means: MeanFitter
    plan: ForestPlan  # of the forests of each leaf size
    leaf_sizes: tuple[int, ...]
    n_rounds: int
    nuisances: ForestWork
    report: GrowthReport = field(default_factory=GrowthReport)
    on_progress: Callable[[int], None] = lambda done: None

    def fit(self) -> tuple[OrthogonalCorrection, Any]:
        """Fit all rounds; also an RDD of the rows as they are after the last."""
        rows = self._start()
        shape, dual = self._shape(rows)
        rounds = []
        for number in range(self.n_rounds):
            own_round, rows = self._round(rows, shape, dual, number)
            rounds.append(own_round)
        return OrthogonalCorrection(self.basis, self.projection, tuple(rounds)), rows

    def _start(self) -> Any:
        """Functions of the dose, their means given X, and the outcome model's curves."""
        units, kept, basis, projection = self.units, self.units.kept, self.basis, self.projection
        functions = kept.keep(units.blocks.map(lambda block: basis.evaluate(block.dose)[:, 1:]))
        means = self.means.fit(functions, self.nuisances, "functions of the dose")
        models = kept.send(units.context, (means, self.outcomes.without))

        def start(pair: tuple[UnitBlock, FloatArray]) -> SieveRows:
            block, own = pair
            means, without = models.value
            outcomes = FoldOutcomes(without, without[0], {})
            curves = outcomes.of_block(
                block, lambda model, units, rows: model.curves(units.X[rows], projection.nodes)
            )
            coefficients = projection.coefficients(curves)
            return SieveRows(
                functions=own,
                centred=own - means.predict(block),
                curves=coefficients,
                left=block.y - outcomes.of_block(block, observed),
                added=np.zeros(coefficients.shape),
            )

        return kept.keep(units.beside(functions).map(start))

    def _shape(self, rows: Any) -> tuple[SieveShape, FloatArray]:
        """What kind of functions there are, and the matrix that makes their duals."""

        def sums(pair: tuple[UnitBlock, SieveRows]) -> tuple[Any, ...]:
            block, own = pair
            weights, functions = block.own_weights, own.functions
            is_other = ~np.isin(functions, (0.0, 1.0))
            return (
                weights.sum(),
                weights @ functions,
                (functions * weights[:, None]).T @ functions,
                weights @ (functions != 0),
                is_other.sum(axis=0),
            )

        text = "moments of the functions of the dose"
        weight, total, products, active, others = add_up(self.units.beside(rows), text, sums)
        mean = total / weight
        gram = products / weight - np.outer(mean, mean)
        shape = SieveShape.of_moments(
            is_indicator=others == 0,
            variance=np.maximum(np.diag(gram), 0.0),
            active=active / weight,
            orders=getattr(self.basis, "orders", None),
        )
        return shape, np.vstack([mean, np.linalg.pinv(gram, hermitian=True)])

    def _round(
        self, rows: Any, shape: SieveShape, dual: FloatArray, number: int
    ) -> tuple[SieveRound, Any]:
        units, kept = self.units, self.units.kept
        residual = kept.keep(rows.map(lambda own: own.residual[:, None]))
        means = self.means.fit(residual, self.nuisances, "residuals")
        sent = kept.send(units.context, means)

        def prepared(pair: tuple[UnitBlock, SieveRows]) -> RoundRows:
            block, own = pair
            left = own.residual
            curves = own.curves + own.added
            duals = (own.functions - dual[0]) @ dual[1:]
            return RoundRows(
                centred=own.centred,
                target=left - sent.value.predict(block)[:, 0],
                curves=curves,
                scores=curves + duals * left[:, None],
            )

        ready = kept.keep(units.beside(rows).map(prepared))
        forests = [self._grow(ready, shape, leaf_size, number) for leaf_size in self.leaf_sizes]
        own_round, added = stack_forests(
            units, ready, self.binned, self.bins, forests, self.leaf_sizes, shape
        )
        after = kept.keep(
            rows.zip(added).map(lambda pair: replace(pair[0], added=pair[0].added + pair[1]))
        )
        with described(units.context, f"curves after round {number + 1}"):
            after.count()  # made while what it is made of is there
        for done in (residual, ready):
            kept.release(done)
        return own_round, after

    def _grow(self, ready: Any, shape: SieveShape, leaf_size: int, number: int) -> Any:
        n_used = shape.n_used(shape.split_order)
        n_features, deviation = self.bins.n_features, shape.deviation[:n_used]

        def forest_rows(own: tuple[UnitBlock, tuple[BinArray, RoundRows]]) -> ForestRows:
            block, (bins, rows) = own
            return ForestRows(
                bins=np.ascontiguousarray(bins[:, :n_features]),
                ids=block.ids,
                weights=block.weights,
                curves=rows.scores[:, :n_used] * deviation,
                leaf_values=rows.channels,
            )

        seed = (self.plan.seed + SEED_STEP * number + leaf_size) % 2**32
        forest, report = distributed_forest(
            self.units.beside(self.binned.zip(ready)).map(forest_rows),
            self.bins,
            replace(self.plan, min_node_size=leaf_size, seed=seed),
            keep=self.units.kept.keep,
            release=self.units.kept.release,
        )
        self.report.add(report)
        self.on_progress(1)
        return forest
