"""One compact forest of curves in place of an outcome model and its corrections."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.vectors import dose_columns, grid_of, is_record
from doseforest.engine.curve_forest import CurveForest
from doseforest.estimator.distilled_forest import DistilledForest
from doseforest.estimator.effect_forest import EffectForest

SAMPLE_FRACTION = 0.7


def distill(
    model: EffectForest,
    X: FloatArray,
    grid: DoseArray,
    *,
    weights: FloatArray | None = None,
    n_trees: int,
    min_node_size: int,
    seed: int,
    n_jobs: int | None = None,
) -> DistilledForest:
    """Grow a forest on the curves of some units and measure what it loses, out of bag."""
    grid = _whole_grid(model, grid)
    small = distill_curves(
        model.curves(X, grid),
        X,
        grid,
        baseline=model.baseline,
        categorical_features=list(model.categories),
        weights=weights,
        n_trees=n_trees,
        min_node_size=min_node_size,
        seed=seed,
        n_jobs=n_jobs,
    )
    return with_features_of(model, small)


def distill_curves(
    curves: FloatArray,
    X: Any,
    grid: DoseArray,
    *,
    baseline: Any,
    categorical_features: Any = None,
    weights: FloatArray | None = None,
    n_trees: int,
    min_node_size: int,
    seed: int,
    n_jobs: int | None = None,
) -> DistilledForest:
    """Grow a forest on any curves of units over a grid of doses, with the baseline in it."""
    forest = CurveForest(
        n_trees=n_trees,
        min_node_size=min_node_size,
        honesty="none",  # the curves carry no noise of their own
        sample_fraction=SAMPLE_FRACTION,
        categorical_features=categorical_features,
        random_state=seed,
        n_jobs=n_jobs,
    ).fit(X, curves, doses=None if is_record(grid) else grid, sample_weight=weights)
    exact = _effects(curves, grid, baseline)
    lost = _effects(forest.predict_oob(X), grid, baseline) - exact
    return DistilledForest(
        forest=forest.forest_,
        baseline=baseline,
        error=float(np.sqrt(np.average((lost**2).mean(axis=1), weights=weights))),
        spread=float(exact.std()),
        grid=grid if is_record(grid) else None,
    )


def with_features_of(model: EffectForest, small: DistilledForest) -> DistilledForest:
    """A forest that was grown on a model's codes, with the labels that the model knows."""
    forest = replace(small.forest, feature_names=model.feature_names, categories=model.categories)
    return replace(small, forest=forest)


def _whole_grid(model: EffectForest, grid: DoseArray) -> DoseArray:
    """A grid with the baseline, out to the ends of the support; arms keep their own doses."""
    whole: DoseArray = np.unique(np.append(grid, model.baseline))
    axes = [np.unique(column) for column in dose_columns(whole)]
    if len(whole) < np.prod([len(axis) for axis in axes]):
        return whole
    ends = [[own.low, own.high] for own in model.ranges]
    return grid_of([np.union1d(axis, own) for axis, own in zip(axes, ends, strict=True)])


def _effects(curves: FloatArray, grid: DoseArray, baseline: Any) -> FloatArray:
    """Curves on the grid less their value at the baseline."""
    return curves - curves[:, [int(np.argmax(grid == baseline))]]
