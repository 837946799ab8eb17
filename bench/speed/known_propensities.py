"""Known propensities beside estimated ones, on designs whose assignment is known.

Usage: ``python -m bench.speed.known_propensities [--draws N] [--rows N]``. Prints Markdown and
writes it to ``known.md`` in the folder ``--out``, after each block of rows. The seeds are none of
those that the accuracy study judges by.

The outcome model is a line, which leaves work to both; ``--models stack`` is the default one.

Three assignments of the same waves: doses random for all, random within two strata with densities
of their own, and random for half of the rows beside half whose dose follows the covariates.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression

from bench.designs import DESIGNS, Simulation
from bench.speed.speed_files import read_options, write_files
from bench.studies.provenance import commit
from doseforest import GeneralizedCausalForest
from doseforest.evaluation import effect_errors, paired_difference, simulation_mean
from doseforest.nuisance.treatment import Strata

FIRST_SEED = 300
HIGHEST = 10.0
MODELS: dict[str, Any] = {"line": LinearRegression(), "stack": "stack"}
NUMBERS = {"rms": "rms of unit effects", "adrf": "rms of the average curve"}

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PropensityTrial:
    """Rows, and what each way of treating the assignment is given."""

    simulation: Simulation
    densities: Mapping[str, Any]


def flat(X: FloatArray, doses: FloatArray) -> FloatArray:
    return np.full(doses.shape, 1 / HIGHEST)


def in_strata(X: FloatArray, doses: FloatArray) -> FloatArray:
    """Low doses likelier where x4 is low, 2 (1 - t) on [0, 1] before scaling, high ones else."""
    share = doses / HIGHEST
    return np.asarray(2 * np.where(X[:, 3:4] > 0, share, 1 - share) / HIGHEST)


def randomised(n: int, seed: int) -> PropensityTrial:
    simulation = DESIGNS["randomised"].draw(n=n, seed=seed)
    return PropensityTrial(simulation, {"estimated": "auto", "known": flat})


def stratified(n: int, seed: int) -> PropensityTrial:
    simulation = DESIGNS["randomised"].draw(n=n, seed=seed)
    shares = np.random.default_rng(seed + 10**6).beta(2, 1, n)
    high = simulation.X[:, 3] > 0
    drawn = treated(simulation, HIGHEST * np.where(high, shares, 1 - shares), seed)
    ways = {"estimated": "auto", "known": in_strata, "strata": Strata(high)}
    return PropensityTrial(drawn, ways)


def half_observed(n: int, seed: int) -> PropensityTrial:
    simulation = DESIGNS["confounded"].draw(n=n, seed=seed)
    tried = np.arange(n) % 2 == 0
    doses = np.random.default_rng(seed + 10**6).uniform(0, HIGHEST, n)
    drawn = treated(simulation, np.where(tried, doses, simulation.treatment), seed)
    labels = np.where(tried, 1.0, np.nan)
    return PropensityTrial(drawn, {"estimated": "auto", "known of half": Strata(labels)})


def treated(simulation: Simulation, treatment: FloatArray, seed: int) -> Simulation:
    y = simulation.draw_outcomes(treatment[:, None], seed=seed + 2 * 10**6)[:, 0]
    return replace(simulation, treatment=treatment, y=y)


TRIALS: dict[str, Callable[[int, int], PropensityTrial]] = {
    "random for all": randomised,
    "random within strata": stratified,
    "random for half": half_observed,
}


def errors_of(trial: PropensityTrial, density: Any, model: Any, seed: int) -> dict[str, float]:
    simulation = trial.simulation
    forest = GeneralizedCausalForest(
        n_trees=100, outcome_model=model, density=density, random_state=seed, n_jobs=1
    )
    forest.fit(simulation.X, simulation.y, treatment=simulation.treatment)
    average = forest.average_dose_response(simulation.doses)
    gap = average.values - simulation.average()
    rms = effect_errors(forest, simulation).rms
    return {"rms": rms, "adrf": float(np.sqrt(np.mean(gap**2)))}


def measured(name: str, model: str, n: int, seeds: range) -> list[str]:
    """Rows of the table: one for each way, with paired differences from the first."""
    found: dict[str, list[dict[str, float]]] = {}
    for seed in seeds:
        trial = TRIALS[name](n, seed)
        for way, density in trial.densities.items():
            found.setdefault(way, []).append(errors_of(trial, density, MODELS[model], seed))
    lines = []
    first = next(iter(found))
    for way, records in found.items():
        cells = []
        for number in NUMBERS:
            own = [record[number] for record in records]
            cells.append(f"{simulation_mean(own).value:.3f}")
            if way == first:
                cells.append("")
                continue
            gap = paired_difference(own, [record[number] for record in found[first]])
            cells.append(f"{gap.value:+.3f} ({gap.standard_error:.3f})")
        lines.append(f"| {name} | {model} | {way} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["line"])
    parser.add_argument("--trials", nargs="+", choices=TRIALS, default=list(TRIALS))
    options = read_options(parser)
    seeds = range(FIRST_SEED, FIRST_SEED + options.draws)
    start = time.process_time()
    head = " | ".join(f"{title} | less estimated" for title in NUMBERS.values())
    lines = [
        "# Known propensities",
        "",
        f"Commit {commit()}. {options.draws} draws (seeds {seeds[0]} to {seeds[-1]}) of "
        f"{options.rows} rows, 100 trees; differences are paired, with their standard errors.",
        "",
        f"| assignment | outcome model | density | {head} |",
        "|---" * 7 + "|",
    ]
    for model in options.models:
        for name in options.trials:
            rows = measured(name, model, options.rows, seeds)
            print("\n".join(rows), flush=True)
            lines += rows
            foot = ["", f"{time.process_time() - start:.0f} seconds of CPU."]
            write_files(options, {"known.md": "\n".join(lines + foot) + "\n"})


if __name__ == "__main__":
    main()
