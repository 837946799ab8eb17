"""Native categories beside one-hot columns and beside target encodings.

Usage: ``python -m bench.speed.category_speed [--rows N] [--levels K] [--trees N] [--seeds N]``.
Prints Markdown and writes it to ``categories.md`` in the folder ``--out``. Exits with 1 if one of
the two lags:

1. Errors and CPU of the same forest with native categories and with one-hot columns. Each level has
   a random curve, other features act as well, and levels are uneven as they are in life. The forest
   without the column tells what there is to gain.
2. Gain of the first split of 300 levels over that of the best cut of the same levels in the order
   of their mean outcome, over all doses or at one: no cut of a target encoding may gain more.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.speed.speed_files import read_options, write_files
from doseforest import CurveForest
from doseforest.engine.splits.distances import CURVE_DISTANCES

DOSES = np.linspace(0, 1, 12)
N_NUMERIC = 5
NOISE = 1.0

RAW_LEVELS, RAW_ROWS = 300, 12_000
FREQUENCIES = {
    "equal": np.ones(RAW_LEVELS),
    "a long tail": np.where(np.arange(RAW_LEVELS) < 20, 10.0, 0.5),
    "Zipf": 1 / np.arange(1, RAW_LEVELS + 1),
}
CHANNELS = (1, 6, 12)
DISTANCES = ("l1", "l2", "linf")
RAW_SEEDS = 10

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CategoryUnits:
    """Numeric features, a category and curves of units."""

    numbers: FloatArray  # (n, N_NUMERIC)
    codes: NDArray[np.int64]  # (n,)
    curves: FloatArray  # (n, n_doses)
    truth: FloatArray  # (n, n_doses)


@dataclass(frozen=True, slots=True)
class Way:
    """A way of giving the category to a forest."""

    table: Callable[[CategoryUnits, int], FloatArray]
    options: dict[str, list[int]]


def with_codes(units: CategoryUnits, n_levels: int) -> FloatArray:
    return np.column_stack([units.numbers, units.codes])


def with_one_hot(units: CategoryUnits, n_levels: int) -> FloatArray:
    return np.hstack([units.numbers, np.eye(n_levels)[units.codes]])


def without(units: CategoryUnits, n_levels: int) -> FloatArray:
    return units.numbers


WAYS = {
    "native categories": Way(with_codes, {"categorical_features": [N_NUMERIC]}),
    "one-hot columns": Way(with_one_hot, {}),
    "codes as numbers": Way(with_codes, {}),
    "without the column": Way(without, {}),
}


def draw(n_rows: int, n_levels: int, seed: int) -> tuple[CategoryUnits, CategoryUnits]:
    """Training units and new ones of the same levels."""
    rng = np.random.default_rng(seed)
    shapes = np.stack([DOSES, DOSES**2, np.sin(2 * np.pi * DOSES)])
    level_curves = rng.normal(size=(n_levels, 3)) @ shapes
    shares = rng.dirichlet(np.full(n_levels, 2.0))

    def units(n: int) -> CategoryUnits:
        numbers = rng.normal(size=(n, N_NUMERIC))
        codes = rng.choice(n_levels, size=n, p=shares)
        slope = 1 + 0.5 * (numbers[:, 1] > 0)
        truth = slope[:, None] * level_curves[codes] + numbers[:, :1] * DOSES
        return CategoryUnits(numbers, codes, truth + NOISE * rng.normal(size=truth.shape), truth)

    return units(n_rows), units(n_rows // 4)


def measure(
    way: Way, training: CategoryUnits, new: CategoryUnits, n_levels: int, n_trees: int
) -> FloatArray:
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


def raw_levels(frequency: str, n_channels: int, seed: int) -> tuple[NDArray[np.int64], FloatArray]:
    """Levels, each at least once, and curves that are noise around two shapes."""
    rng = np.random.default_rng(seed)
    shares = FREQUENCIES[frequency] / FREQUENCIES[frequency].sum()
    drawn = rng.choice(RAW_LEVELS, size=RAW_ROWS - RAW_LEVELS, p=shares)
    codes = np.concatenate([np.arange(RAW_LEVELS), drawn])
    curves = rng.normal(size=(RAW_LEVELS, 2)) @ rng.normal(size=(2, n_channels))
    return codes, curves[codes] + 2 * rng.normal(size=(RAW_ROWS, n_channels))


def target_gain(
    codes: NDArray[np.int64], y: FloatArray, distance: str, target: FloatArray
) -> float:
    """Largest gain of the cuts of the levels in the order of their means of a target."""
    counts = np.bincount(codes)
    sums = np.stack([np.bincount(codes, column) for column in y.T], axis=1)
    order = np.argsort(np.bincount(codes, target) / counts)
    left, n_left = np.cumsum(sums[order], axis=0)[:-1], np.cumsum(counts[order])[:-1]
    n_right = len(codes) - n_left
    means = left / n_left[:, None], (sums.sum(axis=0) - left) / n_right[:, None]
    distances = CURVE_DISTANCES[distance].function(*means, np.ones(y.shape[1]))
    return float((n_left * n_right / len(codes) * distances).max())


def gain_ratio(frequency: str, n_channels: int, distance: str, seed: int) -> float:
    """Gain of the first split over that of the best target order."""
    codes, y = raw_levels(frequency, n_channels, seed)
    settings = {"max_depth": 1, "min_node_size": 1, "honesty": "none", "sample_fraction": 1.0}
    forest = CurveForest(1, distance=distance, categorical_features=[0], random_state=0, **settings)
    gain = forest.fit(codes[:, None], y).forest_.gains[0]
    return float(gain / max(target_gain(codes, y, distance, t) for t in (*y.T, y.mean(axis=1))))


def gains_text() -> tuple[str, bool]:
    """Table of gains over those of target orders, and whether none is below 1."""
    lines = [
        f"{RAW_ROWS:,} rows, {RAW_LEVELS} raw levels: gain of the first split over that of the "
        "best cut in the order of\nthe mean outcome, over all doses or at one; least and mean "
        "ratio over frequencies\n("
        f"{', '.join(FREQUENCIES)}) and {RAW_SEEDS} draws\n",
        "| distance | doses | least | mean |\n|---|---|---|---|",
    ]
    least = np.inf
    for distance in DISTANCES:
        for n_channels in CHANNELS:
            cases = [
                (f, n_channels, distance, seed) for f in FREQUENCIES for seed in range(RAW_SEEDS)
            ]
            ratios = np.array([gain_ratio(*case) for case in cases])
            least = min(least, ratios.min())
            row = f"{ratios.min():.4f} | {ratios.mean():.4f}"
            lines.append(f"| {distance} | {n_channels} | {row} |")
    ahead = bool(least >= 1 - 1e-6)  # curves are rounded to 24 bits
    verdict = "No target order splits" if ahead else "Some target order SPLITS"
    return "\n".join([*lines, f"\n{verdict} raw levels better."]), ahead


def errors_text(given: argparse.Namespace) -> tuple[str, bool]:
    """Table of errors and times, and whether native categories are ahead in both."""
    results = {name: np.zeros(3) for name in WAYS}
    for seed in range(given.seeds):
        training, new = draw(given.rows, given.levels, seed)
        for name, way in WAYS.items():
            costs = measure(way, training, new, given.levels, given.trees)
            results[name] += costs / given.seeds
    lines = [
        f"{given.rows:,} rows, {given.levels} levels, {N_NUMERIC} numeric features, "
        f"{len(DOSES)} doses, {given.trees} trees, mean of {given.seeds} draws\n",
        "| forest | error (rms) | fit, CPU s | predict, CPU s |\n|---|---|---|---|",
    ]
    for name, (error, fit, predict) in results.items():
        lines.append(f"| {name} | {error:.3f} | {fit:.2f} | {predict:.3f} |")
    native, one_hot = results["native categories"], results["one-hot columns"]
    ahead = bool((native[:2] < one_hot[:2]).all())
    lines.append(f"\nNative categories {'are' if ahead else 'are NOT'} ahead in error and time.")
    return "\n".join(lines), ahead


def main() -> int:
    parser = argparse.ArgumentParser(description="Native categories beside other ways.")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--levels", type=int, default=30)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    options = read_options(parser)
    (errors, ahead), (gains, no_worse) = errors_text(options), gains_text()
    text = f"# Categories\n\n{errors}\n\n{gains}\n"
    print(text)
    write_files(options, {"categories.md": text})
    return 0 if ahead and no_worse else 1


if __name__ == "__main__":
    raise SystemExit(main())
