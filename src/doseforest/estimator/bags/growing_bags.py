"""Growing the forest of intervals on what an outcome model leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.seeds import Purpose, derive
from doseforest.data.checks import group_codes
from doseforest.data.row_blocks import OneBlock
from doseforest.engine.grow_forest import grow_forest
from doseforest.engine.growth.forest_settings import GrowthSettings
from doseforest.estimator.bags.bag_contrasts import mean_squares
from doseforest.estimator.bags.noise_share import NoiseShare, bags_without, pool_shares
from doseforest.estimator.bags.unit_bags import LEAST_SPREAD, UnitBags
from doseforest.estimator.corrections.dose_shapes import FUNCTIONS, measure_functions
from doseforest.estimator.corrections.moments import moment_channels
from doseforest.estimator.corrections.projection import fit_projection
from doseforest.estimator.fit_plan import FitPlan
from doseforest.estimator.trained_parts import TrainedPart
from doseforest.estimator.training_rows import TrainingRows
from doseforest.estimator.treatment_means import treatment_means
from doseforest.nuisance.treatment.conditional_means import cross_fit_means

N_BAGS = 100
BAG_SIZE = 20  # with few trees in a bag, most of what differs between bags is their noise
# Smaller leaves widen intervals; larger ones leave bias, and noise of nuisances that bags miss.
LEAF_SIZE = 6
LARGE = 8000  # rows; beyond, leaves grow and trees see less, both with the root: files stay small
MOST_FUNCTIONS = 40
FEWEST_GROUPS = 20
N_REFERENCES, N_CONTRASTS = 400, 4  # rows whose noise is looked at, and doses of others for each
LEFT_OUT = 0.4  # of all bags; about half of them leave a row out
FEWEST_BAGS = 10


def check_bags(rows: TrainingRows, forest: Any, plan: FitPlan) -> None:
    """Raise ValueError where a forest cannot have intervals of units."""
    if forest.inference is None:
        return
    split = plan.correction.splits_sample
    if split or forest.honesty == "swap":
        got = f"correction={plan.correction.name!r}" if split else "honesty='swap'"
        raise ValueError(
            "The 'inference' parameter must be None with correction='paper' and honesty='swap': "
            f"intervals need outcome models cross-fitted on all rows. Got {got} instead."
        )
    n_groups = len(np.unique(rows.ids))
    if n_groups < FEWEST_GROUPS:
        raise ValueError(
            f"The 'groups' parameter must have at least {FEWEST_GROUPS} groups for "
            f"inference='bags', which draws halves of them. Got {n_groups} instead."
        )
    n_functions = plan.basis.n_functions - 1
    if n_functions > MOST_FUNCTIONS:
        raise ValueError(
            f"The 'basis' parameter must have at most {MOST_FUNCTIONS} functions beside the "
            "constant for inference='bags': small leaves cannot tell more apart. "
            f"Got {n_functions} instead."
        )


def grow_bags(part: TrainedPart, plan: FitPlan) -> UnitBags:
    """Grow the forest of intervals; nuisances are those of the fit."""
    rows, outcome = part.rows, part.outcome
    functions = plan.basis.evaluate(rows.dose.values)[:, 1:]
    residual = rows.y - outcome.observed
    with plan.stopwatch("nuisances"):
        centred = functions - treatment_means(rows, outcome.folds, plan).values
        means = cross_fit_means(
            rows.X,
            residual[:, None],
            outcome.folds,
            weights=rows.weights,
            counts=rows.category_counts(),
            seed=plan.seed,
            n_threads=plan.n_threads,
        )
    projection = fit_projection(plan.basis, rows.dose, rows.weights)
    with plan.stopwatch("curves"):
        curves = projection.coefficients(
            outcome.curves_out_of_fold(rows.X, projection.nodes, plan.n_threads)
        )
    block = rows.block(outcome.folds, {FUNCTIONS: functions})
    orders = getattr(plan.basis, "orders", None)
    shape, duals = measure_functions(OneBlock(block, plan.n_folds), orders)
    scores = curves + duals.of(functions) * residual[:, None]
    grown = grow_forest(
        rows.split_rows,
        shape.split_scores(scores),
        growth_of_bags(rows.n_rows, plan),
        leaf_channels=moment_channels(centred, residual - means[:, 0]),
    )
    plan.stopwatch.add(grown.seconds)
    spread = rows.leaf_mean(centred**2)
    bags = UnitBags(
        grown.forest,
        plan.basis,
        np.where(spread >= LEAST_SPREAD, spread, 0.0),
        tuple(model for repeat in outcome.repeats for model in repeat.models),
    )
    with plan.stopwatch("intervals"):
        return replace(bags, share=common_share(bags, rows, functions, plan.n_threads))


def common_share(
    bags: UnitBags, rows: TrainingRows, functions: FloatArray, n_threads: int
) -> NoiseShare:
    """Shares of sampling noise in bags that have left a row out, at doses of other rows."""
    rng = np.random.default_rng(bags.forest.plan.seed)
    chosen = rng.choice(rows.n_rows, min(rows.n_rows, N_REFERENCES), replace=False)
    ids = group_codes(rows.ids, rows.n_rows)[chosen]
    without = bags_without(bags.forest.plan, ids, bags.n_bags)
    n_bags = int(LEFT_OUT * bags.n_bags)
    enough = without.sum(axis=1) >= n_bags
    if n_bags < FEWEST_BAGS or not enough.any():
        return NoiseShare.unknown()
    chosen, without = chosen[enough], without[enough]
    own_bags = np.argsort(~without, axis=1, kind="stable")[:, :n_bags]
    noise = bags.noise_in(rows.effect_features[chosen], own_bags, n_threads)
    others = [np.roll(chosen, step) for step in range(1, 1 + N_CONTRASTS)]
    contrasts = functions[chosen][:, None] - np.stack(
        [functions[other] for other in others], axis=1
    )
    between, within, lost = mean_squares(noise, contrasts)
    return pool_shares(between[~lost], within[~lost], n_bags, bags.bag_size)


def growth_of_bags(n_rows: int, plan: FitPlan) -> GrowthSettings:
    """Growth of the forest: that of the fit where it says how trees split."""
    shrinking = max(1.0, n_rows / LARGE) ** 0.5
    return GrowthSettings(
        n_trees=N_BAGS * BAG_SIZE,
        bag_size=BAG_SIZE,
        min_node_size=round(LEAF_SIZE * shrinking),
        sample_fraction=0.5 / shrinking,
        mtry=plan.growth.mtry,
        n_threads=plan.growth.n_threads,
        memory_limit=plan.growth.memory_limit,
        seed=derive(plan.seed, Purpose.BAGS),
    )
