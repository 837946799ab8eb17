"""One compact forest of curves in place of an outcome model and its corrections."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from doseforest.curve_forest import CurveForest
from doseforest.dtypes import FloatArray
from doseforest.prediction.distilled_forest import DistilledForest
from doseforest.prediction.effect_forest import EffectForest

SAMPLE_FRACTION = 0.7


def distill(
    model: EffectForest,
    X: FloatArray,
    *,
    weights: FloatArray | None = None,
    n_trees: int,
    min_node_size: int,
    seed: int,
    n_jobs: int | None = None,
) -> DistilledForest:
    """Grow a forest on the curves of some units and measure what it loses, out of bag."""
    ends = [model.support.low, model.baseline, model.support.high]
    grid = np.union1d(model.doses, ends)
    curves = model.curves(X, grid)
    forest = CurveForest(
        n_trees=n_trees,
        min_node_size=min_node_size,
        honesty="none",  # the curves carry no noise of their own
        sample_fraction=SAMPLE_FRACTION,
        categorical_features=list(model.categories),
        random_state=seed,
        n_jobs=n_jobs,
    ).fit(X, curves, doses=grid, sample_weight=weights)
    exact = _effects(curves, grid, model.baseline)
    lost = _effects(forest.predict_oob(X), grid, model.baseline) - exact
    return DistilledForest(
        # It was grown on codes, whose labels the model knows.
        forest=replace(
            forest.forest_, feature_names=model.feature_names, categories=model.categories
        ),
        baseline=model.baseline,
        error=float(np.sqrt(np.average((lost**2).mean(axis=1), weights=weights))),
        spread=float(exact.std()),
    )


def _effects(curves: FloatArray, grid: FloatArray, baseline: float) -> FloatArray:
    """Curves on the grid less their value at the baseline."""
    return curves - curves[:, [int(np.searchsorted(grid, baseline))]]
