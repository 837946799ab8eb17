"""Native categories beside one-hot columns: errors and CPU of the same forest.

Usage: ``python benchmarks/categories.py [--rows N] [--levels K] [--trees N] [--seeds N]``. Prints a
Markdown table. Each level has a random curve, other features act as well, and levels are uneven as
they are in life. The forest without the column tells what there is to gain. Exits with 1 if native
categories are not ahead of one-hot columns in both error and time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest import CurveForest

DOSES = np.linspace(0, 1, 12)
N_NUMERIC = 5
NOISE = 1.0

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Units:
    """Numeric features, a category and curves of units."""

    numbers: FloatArray  # (n, N_NUMERIC)
    codes: NDArray[np.int64]  # (n,)
    curves: FloatArray  # (n, n_doses)
    truth: FloatArray  # (n, n_doses)


@dataclass(frozen=True, slots=True)
class Way:
    """A way of giving the category to a forest."""

    table: Callable[[Units, int], FloatArray]
    options: dict[str, list[int]]


def with_codes(units: Units, n_levels: int) -> FloatArray:
    return np.column_stack([units.numbers, units.codes])


def with_one_hot(units: Units, n_levels: int) -> FloatArray:
    return np.hstack([units.numbers, np.eye(n_levels)[units.codes]])


def without(units: Units, n_levels: int) -> FloatArray:
    return units.numbers


WAYS = {
    "native categories": Way(with_codes, {"categorical_features": [N_NUMERIC]}),
    "one-hot columns": Way(with_one_hot, {}),
    "codes as numbers": Way(with_codes, {}),
    "without the column": Way(without, {}),
}


def draw(n_rows: int, n_levels: int, seed: int) -> tuple[Units, Units]:
    """Training units and new ones of the same levels."""
    rng = np.random.default_rng(seed)
    shapes = np.stack([DOSES, DOSES**2, np.sin(2 * np.pi * DOSES)])
    level_curves = rng.normal(size=(n_levels, 3)) @ shapes
    shares = rng.dirichlet(np.full(n_levels, 2.0))

    def units(n: int) -> Units:
        numbers = rng.normal(size=(n, N_NUMERIC))
        codes = rng.choice(n_levels, size=n, p=shares)
        slope = 1 + 0.5 * (numbers[:, 1] > 0)
        truth = slope[:, None] * level_curves[codes] + numbers[:, :1] * DOSES
        return Units(numbers, codes, truth + NOISE * rng.normal(size=truth.shape), truth)

    return units(n_rows), units(n_rows // 4)


def measure(way: Way, training: Units, new: Units, n_levels: int, n_trees: int) -> FloatArray:
    """Return the error on new units and the CPU seconds of the fit and of the prediction."""
    options = {"n_trees": n_trees, "random_state": 0, "n_jobs": 1, **way.options}
    table, queries = way.table(training, n_levels), way.table(new, n_levels)
    started = time.process_time()
    forest = CurveForest(**options).fit(table, training.curves, doses=DOSES)
    fitted = time.process_time()
    predicted = forest.predict(queries)
    ended = time.process_time()
    error = np.sqrt(np.mean((predicted - new.truth) ** 2))
    return np.array([error, fitted - started, ended - fitted])


def main() -> int:
    parser = argparse.ArgumentParser(description="Native categories beside one-hot columns.")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--levels", type=int, default=30)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    results = {name: np.zeros(3) for name in WAYS}
    for seed in range(given.seeds):
        training, new = draw(given.rows, given.levels, seed)
        for name, way in WAYS.items():
            costs = measure(way, training, new, given.levels, given.trees)
            results[name] += costs / given.seeds
    print(
        f"{given.rows:,} rows, {given.levels} levels, {N_NUMERIC} numeric features, "
        f"{len(DOSES)} doses, {given.trees} trees, mean of {given.seeds} draws\n"
    )
    print("| forest | error (rms) | fit, CPU s | predict, CPU s |\n|---|---|---|---|")
    for name, (error, fit, predict) in results.items():
        print(f"| {name} | {error:.3f} | {fit:.2f} | {predict:.3f} |")
    native, one_hot = results["native categories"], results["one-hot columns"]
    ahead = bool((native[:2] < one_hot[:2]).all())
    print(f"\nNative categories {'are' if ahead else 'are NOT'} ahead in error and time.")
    return 0 if ahead else 1


if __name__ == "__main__":
    raise SystemExit(main())
