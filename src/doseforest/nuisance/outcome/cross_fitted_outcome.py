"""Outcome models cross-fitted: their members stacked by what they predict out of fold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.nuisance.cross_fit import HELD_OUT, FoldModels, cross_fit_repeats
from doseforest.nuisance.encoding.category_encoding import CategoryCounts
from doseforest.nuisance.outcome.encoded_models import stacked
from doseforest.nuisance.outcome.outcome_models import OutcomeModel
from doseforest.nuisance.outcome.stack_weights import (
    MOST_JUDGED,
    possible_doses,
    stack_weights,
    usual_outcomes,
)


class MemberFit(Protocol):
    """Fits the members of an outcome model to rows; `StackFit` is one."""

    def __call__(
        self,
        X: FloatArray,
        dose: FloatArray,
        y: FloatArray,
        *,
        weights: FloatArray | None,
        binary: bool,
        seed: int,
        n_threads: int,
    ) -> Mapping[str, OutcomeModel]:
        """Fit every member."""


@dataclass(frozen=True, slots=True)
class CrossFittedOutcome:
    """An outcome model for new units, and others that have not seen the training rows."""

    full: OutcomeModel
    weights: Mapping[str, float]  # of its members
    repeats: tuple[FoldModels[OutcomeModel], ...]
    observed: FloatArray  # (n_rows,) out-of-fold prediction at each row's own dose

    @property
    def folds(self) -> IntArray:
        """Folds of the first repeat, for what is cross-fitted on top."""
        return self.repeats[0].folds

    def curves_out_of_fold(
        self, X: FloatArray, doses: FloatArray, n_threads: int = 1
    ) -> FloatArray:
        """Curves of the training rows from models that have not seen them, over all repeats."""

        def curves(model: OutcomeModel, rows: IntArray) -> FloatArray:
            asked = doses if doses.ndim == 1 else doses[rows]
            return model.curves(X[rows], asked, n_threads=n_threads)

        total = self.repeats[0].out_of_fold(curves, doses.shape[-1])
        for repeat in self.repeats[1:]:
            total += repeat.out_of_fold(curves, doses.shape[-1])
        return total / len(self.repeats)


def is_binary(y: FloatArray, weights: FloatArray | None = None) -> bool:
    """Whether all outcomes of positive weight are zeros and ones.

    >>> is_binary(np.array([0.0, 1.0, 0.5]), np.array([1.0, 1.0, 0.0]))
    True
    """
    counted = y if weights is None else y[weights > 0]
    return bool(np.isin(counted, (0.0, 1.0)).all())


def cross_fit_outcome(
    fit: MemberFit,
    X: FloatArray,
    dose: FloatArray,
    y: FloatArray,
    folds: IntArray,
    *,
    weights: FloatArray | None = None,
    counts: CategoryCounts | None = None,
    seed: int = 0,
    n_threads: int = 1,
    on_progress: Callable[[int], None] = lambda done: None,
) -> CrossFittedOutcome:
    """Fit the members on all rows and without each fold, and stack them.

    The convex weights of the stack are those of `stack_weights`, out of fold.

    Parameters
    ----------
    fit : callable
        Fits the members, see `MemberFit`.
    X : array of shape (n_rows, n_features)
        NaN is missing.
    dose, y : arrays of shape (n_rows,)
    folds : array of shape (n_repeats, n_rows)
        Fold of each row, 0, 1, …, once for every repeat; predictions are averaged over repeats.
        Rows of fold `HELD_OUT` are out of every fit; see `cross_fit`.
    weights : array of shape (n_rows,), optional
    counts : mapping, optional
        Number of codes of each column of X that holds categories.
    n_threads : int
        Fits that run side by side, one thread each.
    on_progress : callable
        Told after each round of fits: one, and one for every fold of every repeat.
    """
    binary = is_binary(y, weights)
    seen = folds[0] != HELD_OUT

    def fitted(rows: IntArray) -> Mapping[str, OutcomeModel]:
        kept = None if weights is None else weights[rows]
        return fit(
            X[rows], dose[rows], y[rows], weights=kept, binary=binary, seed=seed, n_threads=1
        )

    members = cross_fit_repeats(
        fitted, folds, full=True, n_threads=n_threads, on_progress=on_progress
    )
    full = members[0].full
    assert full is not None  # as asked for
    names = list(full)

    def predicted(models: Mapping[str, OutcomeModel], rows: IntArray) -> FloatArray:
        columns = [models[name].predict(X[rows], dose[rows], n_threads=n_threads) for name in names]
        return np.stack(columns, axis=1)

    counted = np.flatnonzero(seen if weights is None else seen & (weights > 0))
    judged = np.random.default_rng(seed).permutation(len(counted))[:MOST_JUDGED]

    def shares_of(drawn: FoldModels[Mapping[str, OutcomeModel]], out: FloatArray) -> FloatArray:
        if len(names) == 1:
            return np.ones(1)
        asked = possible_doses(
            X, dose, drawn.folds, weights=weights, counts=counts, seed=seed, n_threads=n_threads
        )
        usual = usual_outcomes(drawn, X, asked, counted[judged], n_threads)
        heavy = None if weights is None else weights[counted]
        return stack_weights(out[counted], usual, y[counted], heavy, judged)

    repeats, observed, mixtures = [], np.zeros(len(y)), []
    for drawn in members:
        predictions = drawn.out_of_fold(predicted, len(names))
        shares = shares_of(drawn, predictions)
        mixture = dict(zip(names, shares.tolist(), strict=True))
        mixtures.append(shares)
        observed += predictions @ shares / len(folds)
        repeats.append(
            FoldModels(
                drawn.folds,
                tuple(stacked(models, mixture) for models in drawn.models),
                stacked(full, mixture),
            )
        )
    mean_shares = dict(zip(names, np.mean(mixtures, axis=0).tolist(), strict=True))
    return CrossFittedOutcome(
        full=stacked(full, mean_shares),
        weights=mean_shares,
        repeats=tuple(repeats),
        observed=observed,
    )
