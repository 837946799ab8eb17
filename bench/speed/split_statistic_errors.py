"""Split statistics at work: slopes against effects, and scores as a linear causal forest.

Usage: ``python -m bench.speed.split_statistic_errors [--seeds 3]``. Prints Markdown and writes it
to ``split_statistics.md`` in the folder ``--out``.

- On a smooth convex design, how often trees that compare slopes of dose-response curves (PDRF)
  split on the variables of trees that compare effects theta(t) = mu(t) - mu(0).
- On the paper's three designs, errors of the baseline `LinearCausalForest`, which is made of
  `SplitByScores` and `RidgeMoments`, beside EconML's with the same nuisances where it is installed.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import KFold

from bench.designs import DESIGNS
from bench.speed.speed_files import read_options, write_files
from doseforest import CurveForest
from doseforest.base.dtypes import LEAF, FloatArray
from doseforest.baselines import EconMLForest, LinearCausalForest
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.doses.smoothing.kernel_channels import kernel_channels
from doseforest.doses.smoothing.kernel_weights import scaled_kernel
from doseforest.engine import SplitByMeanSlopes, SplitByRatioSlopes
from doseforest.evaluation.effect_errors import effect_errors

FIRST_SEED = 1000
# Errors of EconML's CausalForestDML with a linear treatment on these designs, rms and mae.
KNOWN_ERRORS = {
    "polynomial": (15.03, 13.49),
    "sinusoidal": (5.07, 4.01),
    "exponential": (4.02, 3.24),
}
MOST_EXCESS = 1.10  # of the known errors
# How far x1 changes the bend, where x0 changes the slope by 3.
BEND_STEPS = {"in a clear order": 2.0, "of about the same size": 3.2}


# Slopes against effects


@dataclass(frozen=True, slots=True)
class ConvexSample:
    """Rows of a smooth convex design with a randomised dose."""

    X: FloatArray  # (n, 10)
    dose: FloatArray  # (n,), uniform on [0, 1]
    y: FloatArray  # (n,)


def draw_convex(n: int, seed: int, bend_step: float) -> ConvexSample:
    """Convex curves a t + b t^2, a by x0 and b by x1; a level by x2; seven idle features."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 10))
    dose = rng.uniform(size=n)
    slope = 1.0 + 3.0 * (X[:, 0] > 0)
    bend = 1.0 + bend_step * (X[:, 1] > 0)
    mean = slope * dose + bend * dose**2 + 0.5 * X[:, 2]
    return ConvexSample(X, dose, mean + rng.normal(size=n) / 2)


def robust_curves(sample: ConvexSample, grid: FloatArray, width: float) -> FloatArray:
    """Doubly robust curves, the dose being uniform on [0, 1]: its density is 1."""
    table = np.column_stack([sample.X, sample.dose])
    fitted = np.empty((len(table), len(grid)))
    for train, test in KFold(5, shuffle=True, random_state=0).split(table):
        model = HistGradientBoostingRegressor(max_iter=100, learning_rate=0.08, random_state=0)
        model.fit(table[train], sample.y[train])
        for k, dose in enumerate(grid):
            at_dose = table[test].copy()
            at_dose[:, -1] = dose
            fitted[test, k] = model.predict(at_dose)
    kernel = scaled_kernel(sample.dose, grid, width, "gaussian")
    mass = kernel / kernel.mean(axis=0)
    return fitted + mass * (sample.y[:, None] - fitted)


def split_features(forest: CurveForest) -> FloatArray:
    """Features of the three splits of each tree of depth 2, (n_trees, 3); -1 for a leaf."""
    finished = forest.forest_
    nodes = finished.nodes
    features = np.where(nodes["flags"] & LEAF, -1, nodes["feature"].astype(int))
    rows = []
    for root in finished.roots:
        left = int(nodes["left"][root])
        below = (left, left + 1) if features[root] >= 0 else (root, root)
        rows.append([features[root], *(features[node] for node in below)])
    return np.array(rows)


def slopes_against_effects(n: int, seeds: range) -> str:
    lines = [
        "## Slopes against effects",
        "",
        f"{len(seeds)} draws of {n} rows, 100 trees of depth 2 each, compared with the trees on "
        "the same rows that split by effects. Where two variables matter about equally for the "
        "effect, slopes may well prefer the other one: bends weigh more in them.",
        "",
        "| effects | trees by | same variable at the root | below it | on those of the effect |",
        "|---|---|---|---|---|",
    ]
    for kind, bend_step in BEND_STEPS.items():
        for name, shares in agreement(n, seeds, bend_step).items():
            first, second, active = np.mean(shares, axis=0)
            lines.append(f"| {kind} | {name} | {first:.1%} | {second:.1%} | {active:.1%} |")
    return "\n".join(lines)


def agreement(n: int, seeds: range, bend_step: float) -> dict[str, list[FloatArray]]:
    """Shares of the trees that split as those by effects do, by name and draw."""
    grid = np.linspace(0.05, 0.95, 10)
    agreed: dict[str, list[FloatArray]] = {}
    for seed in seeds:
        sample = draw_convex(n, seed, bend_step)
        width = 2.0 * rule_of_thumb(sample.dose, "gaussian")
        curves = robust_curves(sample, grid, width)
        smooth = kernel_channels(sample.dose, sample.y, grid, width, "gaussian", derivative=True)
        start = robust_curves(sample, np.zeros(1), width)

        def grown(y: FloatArray, statistic: Any = None, own: ConvexSample = sample) -> FloatArray:
            forest = CurveForest(
                100,
                statistic=statistic,
                max_depth=2,
                min_node_size=100,
                honesty="none",
                n_jobs=1,
                random_state=0,
            )
            return split_features(forest.fit(own.X, y, doses=grid))

        by_effects = grown(curves - start)
        others = {
            "slopes of doubly robust curves": grown(curves, SplitByMeanSlopes()),
            "PDRF, closed form": grown(smooth, SplitByRatioSlopes()),
            "PDRF, differences": grown(smooth[:, :20], SplitByRatioSlopes(derivative=False)),
        }
        for name, features in others.items():
            same = [
                features[:, 0] == by_effects[:, 0],
                features[:, 1:] == by_effects[:, 1:],
                np.isin(features, [0, 1]),
            ]
            agreed.setdefault(name, []).append(np.array([part.mean() for part in same]))
    return agreed


# Scores as a linear causal forest


def nuisance(seed: int) -> RandomForestRegressor:
    return RandomForestRegressor(
        100, min_samples_leaf=5, max_features=1 / 3, random_state=seed, n_jobs=1
    )


def our_forest(seed: int) -> LinearCausalForest:
    return LinearCausalForest(
        outcome_model=nuisance(seed), treatment_model=nuisance(seed), random_state=seed
    )


def econml_forest(seed: int) -> EconMLForest:
    return EconMLForest.linear(
        outcome_model=nuisance(seed), treatment_model=nuisance(seed), random_state=seed
    )


FORESTS = {"LinearCausalForest": our_forest, "EconML CausalForestDML": econml_forest}


def linear_causal_forests(seeds: range) -> str:
    peers = find_spec("econml") is not None
    names = [name for name in FORESTS if peers or name == "LinearCausalForest"]
    lines = [
        "## Scores as a linear causal forest",
        "",
        f"Mean rms / mae of tau(x) t over {len(seeds)} draws of 1,000 rows, on 1,000 new units; "
        "seconds of CPU are those of the fit, with the same random forests as nuisances.",
        "",
        "| design | model | rms | mae | known | CPU seconds | at most 10 % above |",
        "|---|---|---|---|---|---|---|",
    ]
    for design, known in KNOWN_ERRORS.items():
        for name in names:
            measured = []
            for seed in seeds:
                simulation = DESIGNS[design].draw(n=1000, seed=seed)
                start = time.process_time()
                model = FORESTS[name](seed)
                model.fit(simulation.X, simulation.y, treatment=simulation.treatment)
                seconds = time.process_time() - start
                units = simulation.draw_units(1000, seed=seed + 10**6)
                errors = effect_errors(model, simulation, X=units)
                measured.append((errors.rms, errors.mae, seconds))
            rms, mae, seconds = np.mean(measured, axis=0)
            close = rms <= MOST_EXCESS * known[0] and mae <= MOST_EXCESS * known[1]
            lines.append(
                f"| {design} | {name} | {rms:.2f} | {mae:.2f} | {known[0]} / {known[1]} "
                f"| {seconds:.2f} | {'yes' if close else 'NO'} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="draws of each design")
    options = read_options(parser)
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    report = "\n\n".join(
        ["# Split statistics", slopes_against_effects(4000, seeds), linear_causal_forests(seeds)]
    )
    print(report)
    write_files(options, {"split_statistics.md": report + "\n"})


if __name__ == "__main__":
    main()
