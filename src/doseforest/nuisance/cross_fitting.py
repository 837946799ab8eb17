"""Cross-fitting: what is said about a row never comes from a model that has seen it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from doseforest.base.concurrency import side_by_side
from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.nuisance.outcome.encoded_models import stacked
from doseforest.nuisance.outcome.mixtures import convex_weights
from doseforest.nuisance.outcome.outcome_models import OutcomeModel


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
class FoldModels:
    """One model for each fold that has not seen it; the last is for rows that none has seen."""

    folds: IntArray  # (n_rows,) 0, 1, …, or -1 for a row held out of everything
    models: tuple[OutcomeModel, ...]  # (n_folds + 1,)

    def curves(self, X: FloatArray, doses: FloatArray, n_threads: int) -> FloatArray:
        """Curves of the training rows, shape (n_rows, n_doses)."""
        out = np.empty((len(X), doses.shape[-1]))
        for fold in np.unique(self.folds):
            rows, model = self.folds == fold, self.models[fold]
            out[rows] = model.curves(
                X[rows], doses if doses.ndim == 1 else doses[rows], n_threads=n_threads
            )
        return out


@dataclass(frozen=True, slots=True)
class CrossFittedOutcome:
    """An outcome model for new units, and others that have not seen the training rows."""

    full: OutcomeModel
    weights: Mapping[str, float]  # of its members
    repeats: tuple[FoldModels, ...]
    observed: FloatArray  # (n_rows,) out-of-fold prediction at each row's own dose

    @property
    def folds(self) -> IntArray:
        """Folds of the first repeat, for what is cross-fitted on top."""
        return self.repeats[0].folds

    def curves_out_of_fold(
        self, X: FloatArray, doses: FloatArray, n_threads: int = 1
    ) -> FloatArray:
        """Curves of the training rows from models that have not seen them, over all repeats."""
        total = self.repeats[0].curves(X, doses, n_threads)
        for repeat in self.repeats[1:]:
            total += repeat.curves(X, doses, n_threads)
        return total / len(self.repeats)


def is_binary(y: FloatArray, weights: FloatArray | None = None) -> bool:
    """Whether all outcomes of positive weight are zeros and ones.

    >>> is_binary(np.array([0.0, 1.0, 0.5]), np.array([1.0, 1.0, 0.0]))
    True
    """
    counted = y if weights is None else y[weights > 0]
    return bool(np.isin(counted, (0.0, 1.0)).all())


def draw_folds(ids: IntArray, n_folds: int, seed: int) -> IntArray:
    """Fold of each row, of nearly equal numbers of ids; rows that share an id share the fold.

    Examples
    --------
    >>> np.bincount(draw_folds(np.arange(10), n_folds=4, seed=0))
    array([3, 3, 2, 2])
    """
    distinct, own = np.unique(ids, return_inverse=True)
    places = np.random.default_rng(seed).permutation(len(distinct)) % n_folds
    return places[own].astype(np.int64)


def cross_fit_outcome(
    fit: MemberFit,
    X: FloatArray,
    dose: FloatArray,
    y: FloatArray,
    folds: IntArray,
    *,
    weights: FloatArray | None = None,
    seed: int = 0,
    n_threads: int = 1,
    on_progress: Callable[[int], None] = lambda done: None,
) -> CrossFittedOutcome:
    """Fit the members on all rows and without each fold, and stack them.

    The convex weights of the stack have the least squared error out of fold at the observed doses.

    Parameters
    ----------
    fit : callable
        Fits the members, see `MemberFit`.
    X : array of shape (n_rows, n_features)
        NaN is missing.
    dose, y : arrays of shape (n_rows,)
    folds : array of shape (n_repeats, n_rows)
        Fold of each row, 0, 1, …, once for every repeat; predictions are averaged over repeats.
        Rows of fold -1 are held out of every fit.
    weights : array of shape (n_rows,), optional
    n_threads : int
        Fits that run side by side, one thread each.
    on_progress : callable
        Told after each round of fits: one, and one for every fold of every repeat.
    """
    binary = is_binary(y, weights)
    seen = folds[0] >= 0
    kept = [np.flatnonzero(seen)]
    for own_folds in folds:
        last = int(own_folds.max())
        kept += [np.flatnonzero(seen & (own_folds != fold)) for fold in range(last + 1)]

    def fitted(rows: IntArray) -> Mapping[str, OutcomeModel]:
        own = None if weights is None else weights[rows]
        return fit(X[rows], dose[rows], y[rows], weights=own, binary=binary, seed=seed, n_threads=1)

    full, *others = side_by_side(fitted, kept, n_threads, on_progress)
    remaining = iter(others)
    names = list(full)
    repeats, observed, mixtures = [], np.zeros(len(y)), []
    for own_folds in folds:
        by_fold = [next(remaining) for _ in range(int(own_folds.max()) + 1)] + [full]
        predictions = np.empty((len(y), len(names)))
        for fold in np.unique(own_folds):
            rows, members = own_folds == fold, by_fold[fold]
            for column, name in enumerate(names):
                predictions[rows, column] = members[name].predict(
                    X[rows], dose[rows], n_threads=n_threads
                )
        own_weights = None if weights is None else weights[seen]
        shares = np.ones(1)
        if len(names) > 1:
            shares = convex_weights(predictions[seen], y[seen], own_weights)
        mixture = dict(zip(names, shares.tolist(), strict=True))
        mixtures.append(shares)
        observed += predictions @ shares / len(folds)
        models = tuple(stacked(members, mixture) for members in by_fold)
        repeats.append(FoldModels(own_folds, models))
    mean_shares = dict(zip(names, np.mean(mixtures, axis=0).tolist(), strict=True))
    return CrossFittedOutcome(
        full=stacked(full, mean_shares),
        weights=mean_shares,
        repeats=tuple(repeats),
        observed=observed,
    )
