"""The default outcome model: the members of a stack around the spline core.

Their cross-fitting is in `cross_fitting`, their weights in `mixtures`.
"""

from __future__ import annotations

from dataclasses import replace

from doseforest.base.dtypes import FloatArray
from doseforest.nuisance.outcome.boosting import (
    LINEAR_TREES,
    PLAIN_TREES,
    BoostingRecipe,
    fit_boosting,
)
from doseforest.nuisance.outcome.outcome_models import BoostedCore, OutcomeModel
from doseforest.nuisance.outcome.spline_core import fit_spline_core
from doseforest.nuisance.outcome.tree_ensemble import TreeEnsemble

EARLY_TREES = 150  # of the boosted residual, beside all of them


def fit_members(
    X: FloatArray,
    dose: FloatArray,
    y: FloatArray,
    *,
    weights: FloatArray | None = None,
    binary: bool = False,
    powers: bool = True,
    seed: int = 0,
    n_threads: int = 1,
) -> dict[str, OutcomeModel]:
    """Fit every member of the stack; those of a binary outcome stay in [0, 1].

    `powers` are parabolas and cubics in the spline core.
    """
    core = fit_spline_core(X, dose, y, weights=weights, binary=binary, powers=powers, seed=seed)

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
