"""Fitting the default outcome model: a convex stack around the spline core.

Members are fitted on each fold's complement and on everything. The fits on the complements give
out-of-fold predictions at the observed doses, which set the weights, and cross-fitted curves; the
fits on everything answer for new units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from doseforest.dtypes import FloatArray, IntArray
from doseforest.nuisance.boosting import (
    LINEAR_TREES,
    PLAIN_TREES,
    BoostingRecipe,
    fit_boosting,
)
from doseforest.nuisance.outcome_models import BoostedCore, OutcomeModel, Stack
from doseforest.nuisance.spline_core import fit_spline_core
from doseforest.nuisance.tree_ensemble import TreeEnsemble

EARLY_TREES = 150  # of the boosted residual, beside all of them


def fit_members(
    X: FloatArray,
    dose: FloatArray,
    y: FloatArray,
    *,
    weights: FloatArray | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> dict[str, OutcomeModel]:
    """Fit every member of the stack."""
    core = fit_spline_core(X, dose, y, weights=weights, seed=seed)

    def boost(target: FloatArray, recipe: BoostingRecipe, *, binary: bool) -> TreeEnsemble:
        return fit_boosting(
            X, dose, target, recipe, weights=weights, binary=binary, seed=seed, n_threads=n_threads
        )

    residual = boost(y - core.predict(X, dose, n_threads=n_threads), LINEAR_TREES, binary=False)
    return {
        "core": core,
        "core, boosted early": BoostedCore(core, residual.shorter(EARLY_TREES)),
        "core, boosted": BoostedCore(core, residual),
        "linear trees": boost(y, LINEAR_TREES, binary=core.binary),
        "trees": boost(y, PLAIN_TREES, binary=core.binary),
    }


@dataclass(frozen=True, slots=True)
class CrossFittedOutcome:
    """A stack for new units, and one for each fold that has not seen it."""

    full: Stack
    by_fold: tuple[Stack, ...]
    folds: IntArray  # (n_rows,)
    observed: FloatArray  # (n_rows,) out-of-fold prediction at each row's own dose

    def curves_out_of_fold(
        self, X: FloatArray, doses: FloatArray, *, n_threads: int = 1
    ) -> FloatArray:
        """Curves of the training rows from the stacks that have not seen them.

        The doses are a grid (n_doses,) or each row's own (n_rows, n_doses).
        """
        out = np.empty((len(X), doses.shape[-1]))
        for fold, stack in enumerate(self.by_fold):
            rows = self.folds == fold
            own = doses if doses.ndim == 1 else doses[rows]
            out[rows] = stack.curves(X[rows], own, n_threads=n_threads)
        return out


def cross_fit_stack(
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
    """Fit the members with and without each fold, and stack them.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        NaN is missing.
    dose, y : arrays of shape (n_rows,)
    folds : array of shape (n_rows,)
        Fold of each row, 0, 1, …
    weights : array of shape (n_rows,), optional
    on_progress : callable
        Told after each of the ``n_folds + 1`` rounds of fits.
    """
    n_folds = int(folds.max()) + 1
    everyone = np.ones(len(y), bool)
    fitted = []
    for kept in [everyone, *(folds != fold for fold in range(n_folds))]:
        own = None if weights is None else weights[kept]
        fitted.append(
            fit_members(X[kept], dose[kept], y[kept], weights=own, seed=seed, n_threads=n_threads)
        )
        on_progress(1)
    full, *without = fitted
    names = list(full)
    predictions = np.empty((len(y), len(names)))
    for fold, members in enumerate(without):
        rows = folds == fold
        for column, name in enumerate(names):
            predictions[rows, column] = members[name].predict(
                X[rows], dose[rows], n_threads=n_threads
            )
    shares = convex_weights(predictions, y, weights)
    mixture = dict(zip(names, shares.tolist(), strict=True))
    return CrossFittedOutcome(
        full=Stack(full, mixture),
        by_fold=tuple(Stack(members, mixture) for members in without),
        folds=folds,
        observed=predictions @ shares,
    )


def convex_weights(
    predictions: FloatArray, y: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Weights, not negative and adding up to 1, of the least squared error.

    Examples
    --------
    >>> convex_weights(np.array([[1.0, 0.0], [1.0, 4.0]]), np.array([0.5, 2.5])).round(6)
    array([0.5, 0.5])
    """
    root = np.ones(len(y)) if weights is None else np.sqrt(weights)
    # Differences to the outcome: the best convex mixture is the shortest vector in their hull,
    # found by asking, beside a short vector, for a sum of 1.
    gaps = (predictions - y[:, None]) * root[:, None]
    scale = max(float(np.sqrt((gaps**2).sum(axis=0).min())), 1e-300)
    system = np.vstack([gaps / scale, np.full((1, predictions.shape[1]), 1e4)])
    target = np.append(np.zeros(len(y)), 1e4)
    shares, _ = nnls(system, target)
    return np.asarray(shares / shares.sum())
