"""The default outcome model: the members of a stack around the spline core, and its weights.

Their cross-fitting is in `cross_fitting`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import nnls

from doseforest.dtypes import FloatArray
from doseforest.nuisance.boosting import (
    LINEAR_TREES,
    PLAIN_TREES,
    BoostingRecipe,
    fit_boosting,
)
from doseforest.nuisance.outcome_models import BoostedCore, OutcomeModel
from doseforest.nuisance.spline_core import fit_spline_core
from doseforest.nuisance.tree_ensemble import TreeEnsemble

EARLY_TREES = 150  # of the boosted residual, beside all of them


def fit_members(
    X: FloatArray,
    dose: FloatArray,
    y: FloatArray,
    *,
    weights: FloatArray | None = None,
    binary: bool = False,
    seed: int = 0,
    n_threads: int = 1,
) -> dict[str, OutcomeModel]:
    """Fit every member of the stack; those of a binary outcome stay in [0, 1]."""
    core = fit_spline_core(X, dose, y, weights=weights, binary=binary, seed=seed)

    def boost(target: FloatArray, recipe: BoostingRecipe, *, binary: bool) -> TreeEnsemble:
        return fit_boosting(
            X, dose, target, recipe, weights=weights, binary=binary, seed=seed, n_threads=n_threads
        )

    residual = boost(y - core.predict(X, dose, n_threads=n_threads), LINEAR_TREES, binary=False)
    members: dict[str, OutcomeModel] = {
        "core": core,
        "core, boosted early": BoostedCore(core, residual.shorter(EARLY_TREES)),
        "core, boosted": BoostedCore(core, residual),
        "linear trees": boost(y, LINEAR_TREES, binary=binary),
        "trees": boost(y, PLAIN_TREES, binary=binary),
    }
    if binary:  # noisy outcomes: likelihood over-fits sooner than squared error does
        squared = replace(boost(y, PLAIN_TREES, binary=False), link="clipped")
        members["trees, squared error, early"] = squared.shorter(PLAIN_TREES.n_trees // 2)
        members["trees, squared error"] = squared
    return members


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
