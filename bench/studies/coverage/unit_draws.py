"""Units' effects with intervals, on one draw of a population that stays the same."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.designs import DESIGNS, Simulation
from bench.studies.tasks import Record
from doseforest.base.dtypes import FloatArray
from doseforest.baselines.econml_forest import dose_splines, load_causal_forest
from doseforest.datasets.simulation import observe
from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest

POPULATION_SEED, UNITS_SEED = 300, 5
N_UNITS = 100
DIGITS = 5  # that records keep
COVERAGE = 0.95


@dataclass(frozen=True, slots=True)
class Question:
    """Doses and baselines of a design."""

    doses: tuple[float, ...]
    baselines: dict[str, float]


WAVES = Question((1.0, 3.0, 5.0, 7.0, 9.0), {"interior": 5.0, "edge": 0.5})


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A draw of a population, and units whose effects are asked for in every draw."""

    data: Simulation  # of the population, not the drawn rows
    units: FloatArray  # (N_UNITS, n_features)
    X: FloatArray
    dose: FloatArray
    y: FloatArray

    @classmethod
    def of(cls, design: str, n: int, seed: int) -> Sample:
        """Draw n rows."""
        data = DESIGNS[design].draw(n=100, seed=POPULATION_SEED)
        rows = observe(data.population, n, np.random.default_rng([POPULATION_SEED, seed]))
        return cls(data, data.draw_units(N_UNITS, seed=UNITS_SEED), *rows)

    def truth(self, doses: FloatArray, baseline: float) -> FloatArray:
        """Exact effects of the units."""
        exact: FloatArray = self.data.mean(doses, self.units)
        return exact - self.data.mean([baseline], self.units)


def our_intervals(sample: Sample, question: Question, seed: int) -> dict[str, Record]:
    """Intervals of a forest whose answers are left uncorrected: they do not depend on it."""
    forest = GeneralizedCausalForest(
        correction="none",
        inference="bags",
        baseline=question.baselines["interior"],
        random_state=seed,
        n_jobs=1,
    ).fit(sample.X, sample.y, treatment=sample.dose)
    found = {}
    for name, baseline in question.baselines.items():
        doses = np.array([dose for dose in question.doses if dose != baseline])
        answer = forest.intervals.effect(sample.units, None, baseline, doses=doses)
        truth = sample.truth(doses, baseline)
        low, high = answer.interval(COVERAGE)
        band_low, band_high = answer.band(COVERAGE)
        together = ((band_low <= truth) & (truth <= band_high)).all(axis=1)
        found[name] = _record(answer.values, answer.standard_errors, low, high, truth) | {
            "together": float(together.mean())
        }
    return found


def econml_intervals(sample: Sample, question: Question, seed: int) -> dict[str, Record]:
    """Intervals of EconML's causal forest on splines of the dose, its bags of its own choice."""
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

    splines = dose_splines(sample.dose[:, None], n_knots=4)
    forest = load_causal_forest()(
        model_y=HistGradientBoostingRegressor(
            max_iter=200, learning_rate=0.05, max_leaf_nodes=8, random_state=seed
        ),
        model_t=RandomForestRegressor(100, min_samples_leaf=5, random_state=seed),
        treatment_featurizer=splines,
        n_estimators=1000,
        random_state=seed,
        n_jobs=1,
    ).fit(sample.y, sample.dose[:, None], X=sample.X)
    found = {}
    for name, baseline in question.baselines.items():
        doses = np.array([dose for dose in question.doses if dose != baseline])
        answers = [
            forest.effect_inference(sample.units, T0=baseline, T1=float(dose)) for dose in doses
        ]
        estimate = np.stack([own.point_estimate.ravel() for own in answers], axis=1)
        error = np.stack([own.stderr.ravel() for own in answers], axis=1)
        ends = [own.conf_int(alpha=1 - COVERAGE) for own in answers]
        low, high = (np.stack([end[side].ravel() for end in ends], axis=1) for side in (0, 1))
        found[name] = _record(estimate, error, low, high, sample.truth(doses, baseline))
    return found


def measured(design: str, n: int, question: Question, method: str, seed: int) -> Record:
    """Estimates, standard errors and what is covered, of one draw."""
    sample = Sample.of(design, n, seed)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overlap, which a section of its own looks at
        intervals = econml_intervals if method == "econml" else our_intervals
        found: dict[str, Any] = intervals(sample, question, seed)
    return found | {"seconds": round(time.perf_counter() - start, 1)}


def _record(
    estimate: FloatArray, error: FloatArray, low: FloatArray, high: FloatArray, truth: FloatArray
) -> Record:
    """Numbers of a draw, units and doses in one row."""
    covered = (low <= truth) & (truth <= high)
    return {
        "miss": (estimate - truth).round(DIGITS).ravel().tolist(),
        "error": error.round(DIGITS).ravel().tolist(),
        "covered": covered.astype(int).ravel().tolist(),
        "width": float((high - low).mean()),
    }


def summarised(draws: list[Record]) -> dict[str, float]:
    """What the draws of one case and one baseline amount to.

    Examples
    --------
    >>> draw = {"error": [1.0, 1.0], "covered": [1, 0], "width": 4.0}
    >>> found = summarised([draw | {"miss": [1.0, 2.0]}, draw | {"miss": [-1.0, 4.0]}])
    >>> [round(found[name], 2) for name in ("coverage", "worst_tenth", "error_ratio", "bias")]
    [0.5, 0.1, 0.71, 1.87]
    """
    covered = np.array([own["covered"] for own in draws], np.float64)
    miss, error = (np.array([own[name] for own in draws]) for name in ("miss", "error"))
    deviation = miss.std(axis=0, ddof=1)
    # The mean square of mean misses has noise in it, which is taken off.
    bias = (miss.mean(axis=0) ** 2).mean() - (deviation**2).mean() / len(draws)
    found = {
        "coverage": float(covered.mean()),
        "worst_tenth": float(np.quantile(covered.mean(axis=0), 0.1)),
        "error_ratio": float(error.mean() / deviation.mean()),
        "deviation": float(np.sqrt((deviation**2).mean())),
        "bias": float(np.sqrt(max(bias, 0.0))),
        "width": float(np.mean([own["width"] for own in draws])),
    }
    if all("together" in own for own in draws):
        found["together"] = float(np.mean([own["together"] for own in draws]))
    return found
