"""The fitted orthogonal correction: forests whose averaged moments give coefficients of a curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.bases.dose_basis import FittedBasis, own_values
from doseforest.engine.forest import Forest
from doseforest.estimator.corrections.moments import sieve_coefficients
from doseforest.estimator.corrections.projection import Projection
from doseforest.estimator.corrections.shape_stack import ShapeStack
from doseforest.nuisance.outcome.outcome_models import OutcomeModel


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read averaged leaf channels as an addition to a curve's coefficients.

    The channels are packed moments, then the coefficients of the rows' own curves. An offset
    solves the moments; a plain reading takes the mean of the curves in place of the curve.
    """

    name: str
    n_used: int  # functions of the dose, of those in the basis
    penalty: tuple[float, ...] | None  # of an offset; None: plain

    def added(self, averages: FloatArray, curves: FloatArray, n_threads: int) -> FloatArray:
        """Addition to the coefficients of the queries' curves, both (n, n_functions)."""
        n_functions = curves.shape[1]
        if self.penalty is not None:
            return sieve_coefficients(averages, n_functions, self.penalty, n_threads)
        added = averages[:, -n_functions:] - curves
        added[:, self.n_used :] = 0.0
        return added


@dataclass(frozen=True, slots=True, eq=False)
class SieveForest:
    """A forest and the readings of it that have a share."""

    forest: Forest
    readings: tuple[Reading, ...]
    shares: tuple[float, ...]

    def added(self, X: FloatArray, curves: FloatArray, n_threads: int) -> FloatArray:
        """Sum of the readings, each times its share."""
        averages = self.forest.average_codes(X, n_threads)
        total = np.zeros(curves.shape)
        for reading, share in zip(self.readings, self.shares, strict=True):
            total += share * reading.added(averages, curves, n_threads)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class SieveRound:
    """One round: some forests, and what is added for everyone alike."""

    forests: tuple[SieveForest, ...]
    constant: FloatArray  # (n_functions,)
    stack: ShapeStack  # how the shares came about
    names: tuple[str, ...]  # of its candidates

    def report(self) -> dict[str, Any]:
        """Shares of the candidates that have one, and what they gain out of bag."""
        return self.stack.report(self.names)

    @property
    def reads_curves(self) -> bool:
        """Whether a reading needs the coefficients of the queries' curves."""
        for forest in self.forests:
            for reading in forest.readings:
                if reading.penalty is None:
                    return True
        return False

    def added(self, X: FloatArray, curves: FloatArray, n_threads: int) -> FloatArray:
        """Addition to the coefficients of the queries' curves."""
        total = np.tile(self.constant, (len(curves), 1))
        for forest in self.forests:
            total += forest.added(X, curves, n_threads)
        return total

    def with_forests(self, change: Callable[[Forest], Any]) -> Self:
        """Return the same round with other forests."""
        changed = (replace(forest, forest=change(forest.forest)) for forest in self.forests)
        return replace(self, forests=tuple(changed))


@dataclass(frozen=True, slots=True, eq=False)
class OrthogonalCorrection:
    """Coefficients of dose functions to be added to an outcome model's curves."""

    basis: FittedBasis
    projection: Projection
    rounds: tuple[SieveRound, ...]

    def curves(
        self,
        outcome: OutcomeModel,
        X: FloatArray,
        splits: FloatArray,
        doses: FloatArray,
        n_threads: int,
    ) -> FloatArray:
        """Corrected curves, see `Correction`."""
        added = self.coefficients(outcome, X, splits, n_threads)
        return outcome.curves(X, doses, n_threads=n_threads) + sieve_curves(
            self.basis, added, doses
        )

    def coefficients(
        self, outcome: OutcomeModel, X: FloatArray, splits: FloatArray, n_threads: int
    ) -> FloatArray:
        """Coefficients added over all rounds, shape (n_units, n_functions)."""
        start = np.zeros((len(X), self.projection.matrix.shape[1]))
        for each in self.rounds:
            if each.reads_curves:
                nodes = self.projection.nodes
                start = self.projection.coefficients(outcome.curves(X, nodes, n_threads=n_threads))
                break
        total = np.zeros(start.shape)
        for round_ in self.rounds:
            total += round_.added(splits, start + total, n_threads)
        return total

    def forest_shares(self) -> list[tuple[Forest, float]]:
        """Forests of all rounds, each with the shares of its readings."""
        return [
            (forest.forest, sum(forest.shares))
            for round_ in self.rounds
            for forest in round_.forests
        ]

    def with_forests(self, change: Callable[[Forest], Any]) -> Self:
        """Return the same correction with other forests."""
        return replace(self, rounds=tuple(round_.with_forests(change) for round_ in self.rounds))


def sieve_curves(basis: FittedBasis, coefficients: FloatArray, doses: FloatArray) -> FloatArray:
    """Values of combinations of the dose functions, the constant left out.

    Examples
    --------
    >>> from doseforest.doses.bases.polynomials import Legendre
    >>> basis = Legendre(2).fit([-1.0, 1.0])
    >>> sieve_curves(basis, np.array([[2.0], [3.0]]), np.array([-1.0, 0.0, 1.0]))
    array([[-2.,  0.,  2.],
           [-3.,  0.,  3.]])
    """
    if doses.ndim == 1:
        return coefficients @ basis.evaluate(doses)[:, 1:].T
    values = own_values(basis, doses)[:, :, 1:]
    curves: FloatArray = np.einsum("nk,nmk->nm", coefficients, values)
    return curves
