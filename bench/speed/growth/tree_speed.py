"""CPU per tree: ours, scikit-learn's and LightGBM's."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

from bench.speed.growth.growth_settings import (
    HONEST,
    LARGE,
    LIGHTGBM,
    MIDDLE,
    MIN_NODE_SIZE,
    MTRY,
    N_BINS,
    N_CHANNELS,
    N_FEATURES,
    PER_TREE,
    REFERENCE,
    SAMPLE_FRACTION,
    SEED,
    SKLEARN,
    Effort,
    cpu_of,
    repeats,
    simulate,
)
from doseforest import CurveForest, _core
from doseforest.base.dtypes import LEAF, ROW_DTYPE, FloatArray, IntArray
from doseforest.engine.forest import Forest


@dataclass(frozen=True, slots=True)
class Shape:
    """What one grown forest looks like."""

    leaves: float  # per tree
    row_visits: float  # per tree, of the trees that only the larger fit has


@dataclass(frozen=True, slots=True)
class Marginal:
    """CPU seconds of fits with few and with many trees, measured in turn."""

    few: int  # trees
    many: int  # trees
    cpu_few: list[float]
    cpu_many: list[float]

    @property
    def per_tree(self) -> float:
        """Median over all pairs of a fit with few and one with many trees."""
        differences = np.subtract.outer(self.cpu_many, self.cpu_few)
        return float(np.median(differences)) / (self.many - self.few)

    @property
    def rest(self) -> float:
        """What a fit takes besides its trees."""
        return statistics.median(self.cpu_few) - self.few * self.per_tree


@dataclass(frozen=True, slots=True)
class TreeCost:
    """One line of the table of trees."""

    n: int
    method: str
    fits: Marginal
    shape: Shape
    binning_cpu: float = 0.0  # seconds, where it is not part of the fits

    @property
    def cpu_per_tree(self) -> float:
        """CPU seconds per tree."""
        return self.fits.per_tree

    @property
    def setup_cpu(self) -> float:
        """CPU seconds of what is done once."""
        return self.binning_cpu + self.fits.rest

    @property
    def ns_per_visit(self) -> float:
        """Nanoseconds of CPU per row visit."""
        return 1e9 * self.cpu_per_tree / self.shape.row_visits


@dataclass(frozen=True, slots=True)
class ThreadCost:
    """Time of a whole fit."""

    n: int
    n_trees: int
    n_threads: int
    cpu: float  # seconds
    wall: float  # seconds


Fit = Callable[[int], Any]  # number of trees -> what was grown


def marginal_cost(fit: Fit, few: int, many: int, repeats: int) -> tuple[Marginal, Any]:
    """Time fits with few and many trees in turn; also return what the last one grew."""
    fit(few)  # the first fit pays for fresh pages
    cpu_few, cpu_many, grown = [], [], None
    for _ in range(repeats):
        cpu_few.append(cpu_of(partial(fit, few))[0])
        seconds, grown = cpu_of(partial(fit, many))
        cpu_many.append(seconds)
    return Marginal(few, many, cpu_few, cpu_many), grown


def doseforest_fit(x: FloatArray, y: FloatArray, n_threads: int = 1, **parameters: Any) -> Fit:
    def fit(n_trees: int) -> Forest:
        forest = CurveForest(
            n_trees,
            mtry=MTRY,
            min_node_size=MIN_NODE_SIZE,
            sample_fraction=SAMPLE_FRACTION,
            n_jobs=n_threads,
            progress=False,
            random_state=SEED,
            **parameters,
        )
        return forest.fit(x, y).forest_

    return fit


def leaf_depths(forest: Forest) -> IntArray:
    """Depth of each leaf, by leaf number."""
    depths = np.zeros(forest.n_leaves, np.int64)
    level, depth = forest.roots, 0
    while len(level):
        nodes = forest.nodes[level]
        is_leaf = (nodes["flags"] & LEAF) > 0
        depths[nodes["left"][is_leaf]] = depth
        left = nodes["left"][~is_leaf].astype(np.int64)
        level, depth = np.concatenate([left, left + 1]), depth + 1
    return depths


def growth_rows(forest: Forest, tree: int) -> NDArray[np.uint32]:
    """Rows that grew a tree."""
    ids = np.arange(forest.n_training_rows)
    trees, plan, count = np.array([tree]), forest.plan.to_core(), np.empty(1, np.int64)
    _core.count_rows(plan, trees, ids, 1, count)
    rows = np.empty(int(count[0]), ROW_DTYPE)
    _core.draw_rows(plan, trees, ids, 1, np.zeros(1, np.int64), rows)
    return rows


def doseforest_shape(forest: Forest, x: FloatArray, few: int) -> Shape:
    """Count the visits in some trees: a row is in as many split nodes as its leaf is deep."""
    trees = np.arange(few, min(forest.n_trees, few + max(4, LARGE // len(x))))
    counted = replace(forest, roots=forest.roots[trees])
    leaves, depths = counted.apply(x, n_jobs=1), leaf_depths(counted)
    visits = 0
    for place, tree in enumerate(trees.tolist()):
        rows = growth_rows(forest, tree)
        sizes = np.bincount(leaves[rows, place], minlength=forest.n_leaves)
        visits += int(sizes @ (depths + (sizes >= 2 * MIN_NODE_SIZE)))  # searched in vain: once
    return Shape(forest.n_leaves / forest.n_trees, visits / len(trees))


def sklearn_fit(x: FloatArray, y: FloatArray) -> Fit:
    def fit(n_trees: int) -> RandomForestRegressor:
        forest = RandomForestRegressor(
            n_trees,
            max_features=MTRY,
            min_samples_leaf=MIN_NODE_SIZE,
            max_samples=SAMPLE_FRACTION,
            n_jobs=1,
            random_state=SEED,
        )
        return forest.fit(x, y)

    return fit


def sklearn_shape(forest: RandomForestRegressor, few: int) -> Shape:
    trees = forest.estimators_[few:]
    sizes = [tree.tree_.n_node_samples for tree in trees]
    searched = [int(own[own >= 2 * MIN_NODE_SIZE].sum()) for own in sizes]
    return Shape(float(np.mean([tree.get_n_leaves() for tree in trees])), float(np.mean(searched)))


def lightgbm_parameters(n: int) -> dict[str, Any]:
    return {
        "boosting": "rf",
        "objective": "regression",
        "bagging_fraction": SAMPLE_FRACTION,
        "bagging_freq": 1,
        "feature_fraction_bynode": MTRY / N_FEATURES,
        "min_data_in_leaf": MIN_NODE_SIZE,
        "num_leaves": n // MIN_NODE_SIZE,  # twice what half of the rows can fill
        "max_bin": N_BINS - 1,
        "num_threads": 1,
        "seed": SEED,
        "verbosity": -1,
    }


def lightgbm_shape(booster: lightgbm.Booster, few: int) -> Shape:
    leaves, visits = [], 0
    trees = booster.dump_model(start_iteration=few)["tree_info"]
    for tree in trees:
        leaves.append(tree["num_leaves"])
        stack = [tree["tree_structure"]]
        while stack:
            node = stack.pop()
            if "left_child" in node:
                stack += [node["left_child"], node["right_child"]]
                visits += node["internal_count"]
            elif node["leaf_count"] >= 2 * MIN_NODE_SIZE:
                visits += node["leaf_count"]
    return Shape(float(np.mean(leaves)), visits / len(trees))


def measure_ours(x: FloatArray, y: FloatArray, effort: Effort) -> Iterator[TreeCost]:
    variants: dict[str, dict[str, Any]] = {
        REFERENCE: {"mtry_scope": "node", "honesty": "none"},
        PER_TREE: {"mtry_scope": "tree", "honesty": "none"},
        HONEST: {"mtry_scope": "node", "honesty": "tree"},
    }
    for method, parameters in variants.items():
        few = effort.few_trees(len(x), method)
        effort.tell(f"n = {len(x):.0e}: {method}, {few} and {2 * few} trees")
        fit = doseforest_fit(x, y, **parameters)
        fits, forest = marginal_cost(fit, few, 2 * few, repeats(len(x)))
        yield TreeCost(len(x), method, fits, doseforest_shape(forest, x, few))


def measure_sklearn(x: FloatArray, y: FloatArray, effort: Effort) -> TreeCost:
    few = effort.few_trees(len(x), SKLEARN)
    effort.tell(f"n = {len(x):.0e}: {SKLEARN}, {few} and {3 * few} trees")
    fits, forest = marginal_cost(sklearn_fit(x, y), few, 3 * few, 1 if len(x) >= LARGE else 3)
    return TreeCost(len(x), SKLEARN, fits, sklearn_shape(forest, few))


def measure_lightgbm(x: FloatArray, y: FloatArray, effort: Effort) -> TreeCost:
    few = effort.few_trees(len(x), LIGHTGBM)
    effort.tell(f"n = {len(x):.0e}: {LIGHTGBM}, {few} and {3 * few} trees")
    parameters = lightgbm_parameters(len(x))
    data = lightgbm.Dataset(x, y[:, N_CHANNELS // 2], params=parameters)
    binning, _ = cpu_of(data.construct)
    train = partial(lightgbm.train, parameters, data)
    fits, booster = marginal_cost(train, few, 3 * few, repeats(len(x)))
    return TreeCost(len(x), LIGHTGBM, fits, lightgbm_shape(booster, few), binning)


def measure_trees(effort: Effort) -> tuple[list[TreeCost], list[ThreadCost]]:
    costs: list[TreeCost] = []
    threads: list[ThreadCost] = []
    for n in effort.sizes:
        x, y = simulate(n)
        costs += measure_ours(x, y, effort)
        if n < LARGE or effort.slow:
            costs.append(measure_sklearn(x, y, effort))
        costs.append(measure_lightgbm(x, y, effort))
        if n == MIDDLE:
            threads = measure_threads(x, y, effort)
    return costs, threads


def measure_threads(x: FloatArray, y: FloatArray, effort: Effort) -> list[ThreadCost]:
    """Whole fits with one and two threads in turn, medians."""
    n_trees = effort.few_trees(len(x), REFERENCE)
    effort.tell(f"n = {len(x):.0e}: whole fits of {n_trees} trees with one and two threads")
    seconds: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    for _ in range(repeats(len(x))):
        for n_threads, own in seconds.items():
            start = time.perf_counter()
            fit = doseforest_fit(x, y, n_threads, honesty="none")
            cpu, _ = cpu_of(partial(fit, n_trees))
            own.append((cpu, time.perf_counter() - start))
    return [
        ThreadCost(len(x), n_trees, n_threads, *np.median(own, axis=0).tolist())
        for n_threads, own in seconds.items()
    ]
