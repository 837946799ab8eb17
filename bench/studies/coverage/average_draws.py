"""Whether intervals of averages cover: average curves, shifts of the dose, average derivatives.

Outcome models here are cheap and no forest corrects them, so that hundreds of draws are feasible:
what is judged are the doubly robust averages on top, with outcome models that are good or not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from bench.designs import DESIGNS, Simulation
from bench.designs.paper_designs import PublishedDesign
from doseforest.base.dtypes import FloatArray
from doseforest.base.estimates import Estimate
from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest

FIRST_SEED = 300
TRUTH_SEED = 1_000_000  # on top of the draw's
TRUTH_UNITS = 100_000
SLOPE_STEP = 1e-4
N_BAND = 15  # doses of a uniform band
COVERAGE = 0.95
CHANGES = ("shift", "derivative", "average curve")
COVERAGE_DESIGNS = {
    **DESIGNS,
    # A unit could have had any dose, though nearly all of the range hardly ever.
    "polynomial_normal": PublishedDesign("polynomial", noise="normal"),
}
AVERAGE_AT = {"colangelo_lee_2": 0.0}  # dose of the published coverage; else the median dose

Record = dict[str, Any]


def with_products(table: FloatArray) -> FloatArray:
    """[X, T] with powers of the dose up to the third, and X times the dose."""
    X, dose = table[:, :-1], table[:, -1:]
    return np.hstack([X, dose, dose**2, dose**3, X * dose])


OUTCOME_MODELS: dict[str, Callable[[], Any]] = {
    "line": LinearRegression,  # wrong wherever the curve bends
    "products": lambda: make_pipeline(
        FunctionTransformer(with_products), StandardScaler(), Ridge(1.0)
    ),
    "boosting": lambda: HistGradientBoostingRegressor(max_iter=100, max_leaf_nodes=8),
}


@dataclass(frozen=True, slots=True)
class Coverage:
    """How intervals did over draws."""

    draws: int
    coverage: float
    error_ratio: float  # mean standard error over the standard deviation of the errors
    bias: float
    deviation: float  # standard deviation of the errors

    def __str__(self) -> str:
        return (
            f"coverage {self.coverage:.1%}, standard error / deviation {self.error_ratio:.2f}, "
            f"bias {self.bias:.4f} ({self.deviation:.4f}), {self.draws} draws"
        )


def cheap_forest(outcome_model: Any = "products", density: Any = "entropy") -> Any:
    """A forest whose outcome model is cheap and left as it is."""
    model = OUTCOME_MODELS[outcome_model]() if isinstance(outcome_model, str) else outcome_model
    return GeneralizedCausalForest(
        correction="none", outcome_model=model, density=density, random_state=0, n_jobs=1
    )


def draw_changes(
    design: str, n: int, seed: int, *, outcome_model: Any = "products", delta: float = 1.0
) -> Record:
    """A shift by `delta`, the average derivative, and the average curve, corrected for bias."""
    data = COVERAGE_DESIGNS[design].draw(n=n, seed=seed)
    forest = _fitted(cheap_forest(outcome_model), data)
    shift, slope = change_truths(data, delta, TRUTH_SEED + seed)
    curve = _curve_record(forest, data, design, seed, bias_correction=True)
    return {
        "shift": _record(forest.average.shift_effect(delta), shift),
        "derivative": _record(forest.average.derivative(), slope),
        "average curve": {**curve["curve"], "band": curve["band"]},
    }


def draw_curve(
    design: str,
    n: int,
    seed: int,
    *,
    outcome_model: Any = "products",
    density: Any = "entropy",
    bias_correction: bool = False,
) -> Record:
    """Error of the average curve at one dose, and whether its band covers all doses, one draw."""
    data = COVERAGE_DESIGNS[design].draw(n=n, seed=seed)
    forest = _fitted(cheap_forest(outcome_model, density), data)
    return _curve_record(forest, data, design, seed, bias_correction=bias_correction)


def _curve_record(
    forest: Any, data: Simulation, design: str, seed: int, *, bias_correction: bool
) -> Record:
    place = AVERAGE_AT.get(design, float(np.median(data.treatment)))
    doses = np.append(np.linspace(data.doses[0], data.doses[-1], N_BAND), place)
    exact = population_average(data, doses, TRUTH_SEED + seed)
    found = forest.average_dose_response(doses, bias_correction=bias_correction)
    low, high = found.band()
    at_place = found.at(-1)
    return {
        "curve": _record(at_place, exact[-1]),
        "band": bool(((low <= exact) & (exact <= high)).all()),
    }


def _record(found: Estimate, exact: float) -> Record:
    low, high = found.interval(COVERAGE)
    return {
        "error": float(found.value - exact),
        "standard_error": float(found.standard_error),
        "covered": bool(low <= exact <= high),
    }


def change_coverage(design: str, n: int, draws: int, **options: Any) -> dict[str, Coverage]:
    """Coverage of shift and derivative over draws with the seeds from 300 on."""
    records = [draw_changes(design, n, FIRST_SEED + k, **options) for k in range(draws)]
    return {name: summarised([own[name] for own in records]) for name in CHANGES}


def curve_coverage(design: str, n: int, draws: int, **options: Any) -> tuple[Coverage, float]:
    """Coverage of the average curve at one dose, and of its uniform band, over draws."""
    records = [draw_curve(design, n, FIRST_SEED + k, **options) for k in range(draws)]
    bands = float(np.mean([record["band"] for record in records]))
    return summarised([record["curve"] for record in records]), bands


def summarised(records: list[Record]) -> Coverage:
    """What the errors of draws amount to.

    >>> errors = (-1.0, 1.0, 3.0, -3.0)
    >>> print(summarised(
    ...     [{"error": e, "standard_error": 1.0, "covered": abs(e) < 1.96} for e in errors]))
    coverage 50.0%, standard error / deviation 0.39, bias 0.0000 (2.5820), 4 draws
    """
    errors = np.array([record["error"] for record in records])
    scales = np.array([record["standard_error"] for record in records])
    deviation = float(errors.std(ddof=1))
    return Coverage(
        draws=len(errors),
        coverage=float(np.mean([record["covered"] for record in records])),
        error_ratio=float(scales.mean() / deviation),
        bias=float(errors.mean()),
        deviation=deviation,
    )


def change_truths(data: Simulation, delta: float, seed: int) -> tuple[float, float]:
    """E[mu(T + delta, X)] - E[mu(T, X)], held to the drawn doses, and E[d mu(T, X) / dt]."""
    population, rng = data.population, np.random.default_rng(seed)
    X = population.draw_units(TRUTH_UNITS, rng)
    dose = np.clip(population.assign(X, rng), *data.support)
    moved = np.clip(dose + delta, *data.support)
    table = np.stack([dose, moved, dose - SLOPE_STEP, dose + SLOPE_STEP], axis=1)
    means = population.mean(table, X).mean(axis=0)
    return float(means[1] - means[0]), float((means[3] - means[2]) / (2 * SLOPE_STEP))


def population_average(data: Simulation, doses: Any, seed: int) -> FloatArray:
    """Average curve of the population, by a large sample."""
    X = data.population.draw_units(TRUTH_UNITS, np.random.default_rng(seed))
    means = [data.population.mean(np.full((len(X), 1), dose), X).mean() for dose in doses]
    return np.array(means)


def _fitted(forest: Any, data: Simulation) -> Any:
    with warnings.catch_warnings():  # poor overlap is the point of some designs
        warnings.simplefilter("ignore")
        return forest.fit(data.X, data.y, treatment=data.treatment)
