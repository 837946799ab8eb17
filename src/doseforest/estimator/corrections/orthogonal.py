"""The default correction: a small basis of the dose, residualised on the covariates, in forests.

What the outcome model leaves is regressed, residual on residual, on functions of the dose with the
weights of honest forests of several leaf sizes. Candidates are stacked by the R-risk out of bag and
shrunk by how sure their gain is; a second round starts from the corrected curves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.stopwatch import Stopwatch
from doseforest.doses.bases.dose_basis import FittedBasis
from doseforest.engine.curve_forest import CurveForest
from doseforest.estimator.corrections.dose_shapes import DoseShape, dual_functions
from doseforest.estimator.corrections.fitted_correction import FittedCorrection
from doseforest.estimator.corrections.moments import moment_channels
from doseforest.estimator.corrections.projection import fit_projection
from doseforest.estimator.corrections.shape_stack import ShapeStack, stack_shapes
from doseforest.estimator.corrections.sieve_forests import (
    OrthogonalCorrection,
    Reading,
    SieveForest,
    SieveRound,
    sieve_curves,
)
from doseforest.estimator.corrections.sieve_readings import offset_readings, plain_readings
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.cross_fitting import CrossFittedOutcome
from doseforest.nuisance.treatment.conditional_means import cross_fit_means

SEED_STEP = 1009
WEIGHED_QUERIES = 100  # queries whose forest weights are looked at


@dataclass(frozen=True, slots=True)
class OrthogonalSettings:
    """How the correction is fitted."""

    leaf_sizes: tuple[int, ...] = (5, 15, 50, 150)
    n_rounds: int = 2
    treatment_model: Any = None  # regressor of the dose functions on X; None: boosting
    growth: Mapping[str, Any] = field(default_factory=dict)  # parameters of `CurveForest`
    seed: int = 0
    stack: Callable[..., ShapeStack] = stack_shapes  # weighs the candidates


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

    functions = basis.evaluate(rows.dose)[:, 1:]
    if treatment_means is None:
        treatment_means = means_of(functions, rows.treatment_columns, settings.treatment_model)
    centred = functions - treatment_means
    dual = dual_functions(functions, rows.weights)
    shape = DoseShape.of(functions, rows.weights, getattr(basis, "orders", None))
    projection = fit_projection(basis, rows.dose, rows.weights)
    with stopwatch("curves"):
        curves = projection.coefficients(
            outcome.curves_out_of_fold(rows.X, projection.nodes, n_threads)
        )
    added = np.zeros(curves.shape)
    rounds = []
    for number in range(settings.n_rounds):
        residual = rows.y - outcome.observed - (functions * added).sum(axis=1)
        sums = _Sums(
            shape=shape,
            centred=centred,
            target=residual - means_of(residual[:, None])[:, 0],
            curves=curves + added,
            scores=curves + added + dual * residual[:, None],
        )
        grown = []
        for leaf_size in settings.leaf_sizes:
            seed = settings.seed + SEED_STEP * number + leaf_size
            grown.append(_grow(rows, sums, leaf_size, seed, settings.growth))
            stopwatch.add(grown[-1].seconds_)
            on_progress(1)
        with stopwatch("leaves"):
            own_round, own_added = _stack_forests(rows, sums, grown, settings.stack, n_threads)
        rounds.append(own_round)
        added = added + own_added
    return FittedCorrection(
        correction=OrthogonalCorrection(basis, projection, tuple(rounds)),
        added=AddedSieve(basis, added),
        report=tuple(own.report() for own in rounds),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """What the rows of a round bring, functions of the dose without the constant."""

    shape: DoseShape
    centred: FloatArray  # (n_rows, n_functions) functions of the dose less their means given X
    target: FloatArray  # (n_rows,) residual of the current curves less its mean given X
    curves: FloatArray  # (n_rows, n_functions) coefficients of the current curves
    scores: FloatArray  # (n_rows, n_functions) the same plus dual functions times residual

    @property
    def channels(self) -> FloatArray:
        """What leaves add up: packed moments, then scores."""
        return np.hstack([moment_channels(self.centred, self.target), self.scores])

    @property
    def split_scores(self) -> FloatArray:
        """Scores whose squared distance is about that of the curves, on average over the doses."""
        return self.shape.split_scores(self.scores)


def _grow(
    rows: TrainingRows, sums: _Sums, leaf_size: int, seed: int, growth: Mapping[str, Any]
) -> CurveForest:
    """Grow a forest on the first coefficients of the doubly robust curves."""
    forest = CurveForest(min_node_size=leaf_size, random_state=seed % 2**32, **growth)
    return forest.fit(
        rows.effect_features,
        sums.split_scores,
        leaf_channels=sums.channels,
        sample_weight=rows.weights,
        groups=rows.ids,
        grows=rows.grows,
    )


def _stack_forests(
    rows: TrainingRows,
    sums: _Sums,
    grown: list[CurveForest],
    weigh: Callable[..., ShapeStack],
    n_threads: int,
) -> tuple[SieveRound, FloatArray]:
    """Weigh every reading of every forest; also what they add to the rows, out of bag."""
    spread = rows.leaf_mean(sums.centred**2) / sums.shape.active
    overall = rows.leaf_mean(sums.channels)[None]
    readings = [offset_readings(sums.shape, spread, rows.n_rows, "everyone")]
    for forest in grown:
        label = f"leaves of {forest.min_node_size}"
        n_effective = effective_rows(forest, rows.effect_features)
        offsets = offset_readings(sums.shape, spread, n_effective, label)
        readings.append([*offsets, *plain_readings(sums.shape, label)])

    def averages(forest: CurveForest | None) -> FloatArray:
        if forest is None:
            return rows.leaf_means_without(sums.channels)
        return forest.average_oob(rows.effect_features)

    sources: list[tuple[CurveForest | None, list[Reading]]]
    sources = list(zip([None, *grown], readings, strict=True))
    shapes = []
    for source, own in sources:
        out_of_bag = averages(source)
        for reading in own:
            added = reading.added(out_of_bag, sums.curves, n_threads)
            shapes.append((sums.centred * added).sum(axis=1))
    stack = weigh(
        np.stack(shapes, axis=1), sums.target, weights=rows.leaf_weights, clusters=rows.ids
    )
    total = np.zeros(sums.curves.shape)
    constant = np.zeros(len(spread))
    forests = []
    shares = iter(stack.shares.tolist())
    for source, own in sources:
        used = [(reading, share) for reading in own if (share := next(shares)) > 0]
        if not used:
            continue
        out_of_bag = averages(source)
        for reading, share in used:
            total += share * reading.added(out_of_bag, sums.curves, n_threads)
        if source is None:
            for reading, share in used:
                constant += share * reading.added(overall, sums.curves[:1], n_threads)[0]
        else:
            forests.append(SieveForest(source.forest_, *map(tuple, zip(*used, strict=True))))
    names = tuple(reading.name for own in readings for reading in own)
    return SieveRound(tuple(forests), constant, stack, names), total


def effective_rows(forest: CurveForest, X: FloatArray) -> float:
    """Rows that a query averages over, 1 / sum of its squared weights: the median of some queries.

    The sum of squares over trees is not additive; one number per forest has to do.
    """
    places = np.unique(np.linspace(0, len(X) - 1, WEIGHED_QUERIES).astype(np.int64))
    weights = forest.forest_weights(X[places])
    squares = np.asarray(weights.multiply(weights).sum(axis=1)).ravel()
    return float(np.median(1 / squares[squares > 0])) if (squares > 0).any() else 1.0
