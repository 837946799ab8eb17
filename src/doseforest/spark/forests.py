"""A forest of curves from units on executors: `CurveForest`, its channels laid out by partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from doseforest.base.dtypes import BinArray, ChannelArray, FloatArray, IntArray
from doseforest.data.binning import FeatureBins
from doseforest.data.exact_grid import grid_steps, padded_width
from doseforest.data.feature_table import Categories, category_marks
from doseforest.data.sampling import Honesty, SamplingPlan
from doseforest.engine.forest import Forest
from doseforest.engine.growth.grower import StopRules
from doseforest.engine.splits.mean_statistic import MeanCurveStatistic, rounding_noise
from doseforest.spark.blocks import GrowthBlock, TrainingBlock
from doseforest.spark.cluster_units import largest
from doseforest.spark.engine import GrowthLimits, GrowthReport
from doseforest.spark.grow import grow_forest
from doseforest.spark.growth_spec import GrowthSpec

DISTANCE = "l2"


@dataclass(frozen=True, slots=True)
class ForestRows:
    """What a block of rows brings to a forest."""

    bins: BinArray  # (n_rows, n_features)
    ids: IntArray  # (n_rows,)
    weights: ChannelArray | None  # (n_rows,)
    curves: FloatArray  # (n_rows, k) what trees split by
    leaf_values: FloatArray  # (n_rows, n_leaf_channels) what leaves sum up


@dataclass(frozen=True, slots=True)
class ForestPlan:
    """How a forest is grown; see `CurveForest` for what the names mean."""

    n_trees: int
    min_node_size: int
    seed: int
    sample_fraction: float = 0.5
    honesty: Honesty = "tree"
    honesty_fraction: float = 0.5
    mtry: int | None = None  # None: all features
    mode: str = "hybrid"
    limits: GrowthLimits = field(default_factory=GrowthLimits)

    def sampling(self) -> SamplingPlan:
        """How trees draw rows, with the seed that `CurveForest(random_state=seed)` would have."""
        drawn = check_random_state(self.seed % 2**32).randint(0, 2**62, dtype=np.int64)
        return SamplingPlan(
            seed=int(drawn),
            fraction=self.sample_fraction,
            honesty=self.honesty,
            growth_fraction=self.honesty_fraction,
        )


@dataclass(frozen=True, slots=True)
class _Layout:
    """Shift and grid step of every channel, from all rows."""

    centre: FloatArray  # (k,) of the curves
    steps: FloatArray  # (k,) of the curves
    weight_step: FloatArray  # (1,)
    leaf_steps: FloatArray  # (n_leaf_channels,)

    def training(self, rows: ForestRows) -> TrainingBlock:
        """Channels of a block on the exact grid."""
        parts = [_on_grid(rows.curves - self.centre, rows.weights, self.steps)]
        if rows.weights is not None:
            parts.append(_on_grid(np.ones((len(rows.ids), 1)), rows.weights, self.weight_step))
        width = sum(part.shape[1] for part in parts)
        channels = np.zeros((len(rows.ids), padded_width(width)), np.float32)
        channels[:, :width] = np.hstack(parts)
        leaf_channels = _on_grid(rows.leaf_values, rows.weights, self.leaf_steps)
        return TrainingBlock(
            GrowthBlock(rows.bins, channels, rows.ids), leaf_channels, rows.weights
        )


def distributed_forest(
    rows: Any,
    bins: FeatureBins,
    plan: ForestPlan,
    *,
    names: tuple[str, ...] | None = None,
    categories: Categories | None = None,
    keep: Callable[[Any], Any] = lambda data: data,
    release: Callable[[Any], None] = lambda data: None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[Forest, GrowthReport]:
    """Grow a forest from an RDD of `ForestRows`; what is persisted goes through `keep`.

    The result is that of `CurveForest` on the same rows, bins and seed.
    """
    layout, statistic = _lay_out(rows)
    blocks = keep(rows.map(layout.training))
    try:
        spec = GrowthSpec(
            statistic=statistic,
            rules=StopRules(
                min_node_size=plan.min_node_size, noise_per_row=statistic.noise_per_row
            ),
            plan=plan.sampling(),
            n_bins=bins.n_bins,
            mtry=bins.n_features if plan.mtry is None else plan.mtry,
            categorical=category_marks(categories, bins.n_features),
        )
        return grow_forest(
            blocks,
            spec,
            bins,
            n_trees=plan.n_trees,
            mode=plan.mode,
            limits=plan.limits,
            names=names,
            categories=categories,
            on_progress=on_progress,
        )
    finally:
        release(blocks)


def _lay_out(rows: Any) -> tuple[_Layout, MeanCurveStatistic]:
    """Look for the largest values: the grid goes by them."""

    def ends(own: ForestRows) -> tuple[FloatArray, ...]:
        return (*_ends(own.curves), _most(own.leaf_values, own.weights), _heaviest(own))

    text = "range of what trees split by and leaves sum up"
    high, minus_low, most_leaf, heaviest = largest(rows, text, ends)
    centre = -minus_low / 2.0 + high / 2.0
    most = np.maximum(np.abs(high - centre), np.abs(-minus_low - centre))
    weighted = bool(heaviest[0] > 0)
    if weighted:
        (most,) = largest(
            rows,
            "range of the weighted curves",
            lambda each: (_most(each.curves - centre, each.weights),),
        )
    layout = _Layout(centre, grid_steps(most), grid_steps(heaviest), grid_steps(most_leaf))
    quadrature = np.ones(len(centre))
    noise = 0.0
    if weighted:
        noise = rounding_noise(_on_grid(most[None], None, layout.steps), quadrature, DISTANCE)
    statistic = MeanCurveStatistic(
        channels=np.zeros((0, padded_width(len(centre) + weighted)), np.float32),
        centre=centre,
        quadrature=quadrature,
        distance=DISTANCE,
        weighted=weighted,
        zeta=0.0,
        positivity="none",
        noise_per_row=noise,
    )
    return layout, statistic


def _ends(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Largest values, and the smallest times -1, of each column."""
    return values.max(axis=0, initial=-np.inf), (-values).max(axis=0, initial=-np.inf)


def _most(values: FloatArray, weights: ChannelArray | None) -> FloatArray:
    row_weights = values if weights is None else values * weights[:, None]
    most: FloatArray = np.abs(row_weights).max(axis=0, initial=0.0)
    return most


def _heaviest(rows: ForestRows) -> FloatArray:
    """Largest weight; 0 without weights."""
    weights = np.zeros(0) if rows.weights is None else rows.weights
    return np.array([weights.max(initial=0.0)], np.float64)


def _on_grid(values: FloatArray, weights: ChannelArray | None, steps: FloatArray) -> ChannelArray:
    row_weights = values if weights is None else values * weights[:, None]
    rounded: ChannelArray = (np.rint(row_weights / steps) * steps).astype(np.float32)
    return rounded
