"""One compact forest of curves in place of an outcome model and its corrections."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.machine import thread_count
from doseforest.base.seeds import Purpose, derive
from doseforest.data.categories import learn_categories
from doseforest.data.checks import checked_row_ids, checked_weights
from doseforest.data.feature_table import as_table
from doseforest.doses.dose_values import Doses
from doseforest.engine.grow_forest import grow_forest
from doseforest.engine.growth.binned_rows import bin_rows
from doseforest.engine.growth.forest_settings import GrowthSettings
from doseforest.estimator.distilled_forest import DistilledForest
from doseforest.estimator.effect_forest import EffectForest

SAMPLE_FRACTION = 0.7
MAX_BINS = 64


def distill(
    model: EffectForest,
    X: FloatArray,
    grid: Doses,
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
        model.curves(X, grid.values),
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
    small = replace(small, has_levels=bool(model.dose_levels.values))
    return with_features_of(model, small)


def distill_curves(
    curves: FloatArray,
    X: Any,
    grid: Doses,
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
    settings = GrowthSettings(
        n_trees=n_trees,
        min_node_size=min_node_size,
        honesty="none",  # the curves carry no noise of their own
        sample_fraction=SAMPLE_FRACTION,
        n_threads=thread_count(n_jobs),
        progress=None,
        seed=derive(seed, Purpose.DISTILLED_FOREST),
    )
    table = learn_categories(as_table(X, with_categories=True), categorical_features)
    ids = checked_row_ids(None, table.n_rows)
    rows = bin_rows(
        table,
        max_bins=MAX_BINS,
        weights=checked_weights(weights, table.n_rows),
        row_ids=ids,
        sampling_ids=ids,
        seed=settings.seed,
        n_threads=settings.n_threads,
    )
    grown = grow_forest(rows, curves, settings, doses=grid.axis)
    exact = _effects(curves, grid, baseline)
    lost = _effects(grown.predict_oob(table), grid, baseline) - exact
    return DistilledForest(
        forest=grown.forest,
        baseline=baseline,
        error=float(np.sqrt(np.average((lost**2).mean(axis=1), weights=weights))),
        spread=float(exact.std()),
        grid=grid.values if grid.joint else None,
    )


def with_features_of(model: EffectForest, small: DistilledForest) -> DistilledForest:
    """A forest that was grown on a model's codes, with the labels that the model knows."""
    forest = replace(small.forest, feature_names=model.feature_names, categories=model.categories)
    return replace(small, forest=forest)


def _whole_grid(model: EffectForest, grid: Doses) -> Doses:
    """A grid with the baseline, out to the ends of the support; arms keep their own doses."""
    whole = Doses(np.append(grid, model.baseline)).distinct
    axes = [np.unique(column) for column in whole.columns]
    if len(whole) < np.prod([len(axis) for axis in axes]):
        return whole
    ends = [[range_.low, range_.high] for range_ in model.ranges]
    return Doses.product([np.union1d(axis, end) for axis, end in zip(axes, ends, strict=True)])


def _effects(curves: FloatArray, grid: Doses, baseline: Any) -> FloatArray:
    """Curves on the grid less their value at the baseline."""
    return curves - curves[:, [int(np.argmax(grid == baseline))]]
