"""One experiment: models learn from it, and their policies meet riders whose answers are known."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from bench.studies.result_keys import digest_of_arrays
from bench.studies.tasks import Record
from doseforest.base.dtypes import FloatArray
from doseforest.baselines import boosting, xgboost_trees
from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest
from doseforest.pricing.market import (
    LEVELS,
    Experiment,
    Marketplace,
    Traffic,
    draw_experiment,
    oracle_plan,
)
from doseforest.pricing.market.market_draws import seed_of
from doseforest.pricing.market.traffic import FEATURES
from doseforest.pricing.pipeline.linear_demand import LinearDemand
from doseforest.pricing.pipeline.market_source import price_of_spend

GCF, CF, BOOSTED, OUTCOME = "GCF", "CF", "boosting", "GCF's outcome model"
NOTHING, FLAT, EXACT, ORACLE = "no discount", "flat discount", "exact curves", "oracle"
LIKE = 0.12  # the budget is what this discount for everybody costs
TEST_USE = 7  # of the seed: riders of the test are others than those of the experiment
DAYS = 7


@dataclass(frozen=True, slots=True)
class MarketEffort:
    """How much work a part is."""

    n_train: int = 10_000
    n_trees: int = 400  # of our forest
    n_cf_trees: int = 200
    outcome_model: Any = "stack"
    cells_apart: tuple[int, int] = (29, 55)  # every so many cells are tested: one option, two;
    # they share no factor with the 24 hours of a pair of zones, so that all hours turn up
    n_jobs: int = 1

    @property
    def state(self) -> tuple[Any, ...]:
        """What results depend on."""
        return self.n_train, self.n_trees, self.n_cf_trees, self.outcome_model, self.cells_apart


def measure(regime: str, options: int, seed: int, effort: MarketEffort) -> list[Record]:
    """Requests, orders and cost of every policy at the same budget."""
    market = Marketplace(regime, options)
    rows = draw_experiment(market, effort.n_train, seed)
    cells = np.arange(0, market.n_cells, effort.cells_apart[options - 1])
    traffic = market.draw_traffic(days=DAYS, cells=cells, seed=seed_of(seed, TEST_USE))
    grid = _grid(options)
    about = {"design": part_name(regime, options), "seed": seed, "n": effort.n_train}
    flat = market.expected(traffic, LIKE if options == 1 else (LIKE, LIKE))
    budget = float(flat.cost.mean())
    found = [
        _record(NOTHING, market.expected(traffic, 0.0 if options == 1 else (0.0, 0.0))),
        _record(FLAT, flat),
    ]
    best = oracle_plan(market, traffic, budget * len(traffic))
    found.append(_record(ORACLE, market.expected(traffic, best)))
    exact, costs = _exact(market, traffic, grid)
    found.append(_tested(EXACT, market, traffic, grid, exact, costs, budget))
    shares = _cost_shares(rows)
    per_request = np.outer(traffic.X[:, FEATURES.index("fare")], _plain(grid) @ shares)
    for name, (model, seconds) in _fitted(rows, seed, effort).items():
        curves = np.asarray(model.dose_response(traffic.X, grid), np.float64)
        own = _tested(name, market, traffic, grid, curves, curves * per_request, budget)
        error = (curves - curves[:, :1]) - (exact - exact[:, :1])
        found.append(own | {"rms": float(np.sqrt(np.mean(error**2))), "fit_seconds": seconds})
    return [about | own for own in found]


@cache
def digest_of_market(regime: str, options: int) -> str:
    """Digest of a little of the market and of what a part asks of it, without any forest of ours.

    It differs when draws, expectations, the oracle, lines of demand or budget prices have changed.
    """
    market = Marketplace(regime, options)
    rows = draw_experiment(market, 300, 0)
    cells = np.arange(0, market.n_cells, market.n_cells // 4)
    traffic = market.draw_traffic(days=1, cells=cells, seed=seed_of(0, TEST_USE))
    flat = market.expected(traffic, LIKE if options == 1 else (LIKE, LIKE))
    best = oracle_plan(market, traffic, float(flat.cost.sum()))
    demand = LinearDemand(40, random_state=0, n_jobs=1)
    demand.fit(rows.X, rows.requested, treatment=rows.treatment)
    curves = demand.dose_response(traffic.X[:50], _grid(options))
    price = price_of_spend(lambda price: 1 / (1 + price), 0.25)
    drawn = rows.X, rows.treatment, rows.propensity, rows.requested, rows.cost, traffic.X
    found = flat.orders, flat.requests, flat.cost, best, curves, np.array(price)
    return digest_of_arrays(*drawn, *(np.round(own, 9) for own in found))


def part_name(regime: str, options: int) -> str:
    """Name of a part.

    >>> part_name("mixed", 1), part_name("mixed", 2)
    ('mixed', 'mixed-dual')
    """
    return regime if options == 1 else f"{regime}-dual"


def booster_name() -> str:
    """What the boosted trees are."""
    return "scikit-learn's boosting" if find_spec("xgboost") is None else "XGBoost"


def _fitted(rows: Experiment, seed: int, effort: MarketEffort) -> dict[str, tuple[Any, float]]:
    """The models, each with the seconds of its fit."""
    single = rows.treatment.ndim == 1
    boosted = (
        boosting(300, random_state=seed)
        if find_spec("xgboost") is None
        else xgboost_trees(random_state=seed, n_jobs=effort.n_jobs)
    )
    forest = GeneralizedCausalForest(
        effort.n_trees,
        density=rows.propensity if single else "none",
        outcome_model=effort.outcome_model,
        baseline=0.0 if single else (0.0, 0.0),
        random_state=seed,
        n_jobs=effort.n_jobs,
        progress=False,
    )
    linear = LinearDemand(effort.n_cf_trees, random_state=seed, n_jobs=effort.n_jobs)
    found: dict[str, tuple[Any, float]] = {}
    for name, model in ((BOOSTED, boosted), (CF, linear), (GCF, forest)):
        start = time.perf_counter()
        model.fit(rows.X, rows.requested, treatment=rows.treatment)
        found[name] = (model, round(time.perf_counter() - start, 2))
    found[OUTCOME] = (forest.outcome_model_, found[GCF][1])
    return found


def _tested(
    name: str,
    market: Marketplace,
    traffic: Traffic,
    grid: FloatArray,
    gains: FloatArray,
    costs: FloatArray,
    budget: float,
) -> Record:
    """What becomes of a policy whose price makes it cost the budget, as the market has it."""

    def doses(price: float) -> FloatArray:
        chosen: FloatArray = grid[np.argmax(gains - price * costs, axis=1)]
        return chosen

    def spend(price: float) -> float:
        return float(market.expected(traffic, doses(price)).cost.mean())

    price = price_of_spend(spend, budget)
    return _record(name, market.expected(traffic, doses(price))) | {"price": price}


def _record(name: str, expected: Any) -> Record:
    return {
        "row": name,
        "orders": float(expected.orders.mean()),
        "requests": float(expected.requests.mean()),
        "cost": float(expected.cost.mean()),
    }


def _exact(
    market: Marketplace, traffic: Traffic, grid: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Exact probabilities of a request at each dose, and what the discounts then cost."""
    table = np.broadcast_to(grid, (len(traffic), *grid.shape))
    chosen = market.option_probabilities(traffic.X, table)  # (n_views, n_doses, n_options)
    paid = market.fares(traffic.X)[:, None, :] * _plain(grid)[None]
    return chosen.sum(axis=2), (chosen * paid).sum(axis=2)


def _cost_shares(rows: Experiment) -> FloatArray:
    """Share of the fare that each discount costs per request, by least squares of what was paid."""
    doses = rows.treatment.reshape(len(rows), -1)
    design = doses * (rows.X[:, FEATURES.index("fare")] * rows.requested)[:, None]
    found = np.linalg.lstsq(design, rows.cost, rcond=None)[0]
    return found.astype(np.float64)


def _grid(options: int) -> FloatArray:
    """Discounts to choose from, (n_doses,) or (n_doses, 2)."""
    levels = np.array(LEVELS)
    if options == 1:
        return levels
    pairs = np.stack(np.meshgrid(levels, levels, indexing="ij"), axis=-1)
    return pairs.reshape(-1, 2)


def _plain(grid: FloatArray) -> FloatArray:
    return grid.reshape(len(grid), -1)
