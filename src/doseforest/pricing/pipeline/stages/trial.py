"""The published policy against another one: in the marketplace, or by a table of results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import IntArray
from doseforest.base.plain_json import write_json
from doseforest.policy import load_policy
from doseforest.pricing.experiments import ABResult, MarketTest, compare_arms, run_ab_test
from doseforest.pricing.experiments.market_trial import TRIALS as TEST_USE
from doseforest.pricing.market.market_draws import seed_of
from doseforest.pricing.pipeline import roles
from doseforest.pricing.pipeline.model_names import TITLES
from doseforest.pricing.pipeline.pipeline_models import load_model
from doseforest.pricing.pipeline.planned_policies import policy_of, read_plan, read_selection
from doseforest.pricing.pipeline.problems import PipelineError
from doseforest.pricing.pipeline.row_tables import read_table
from doseforest.pricing.pipeline.steps import POLICY, RESULT

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import PipelineConfig, TrialSection
    from doseforest.pricing.pipeline.steps import Step

PACING_CELLS = 250  # about so many take part in the pacing
PACING_USE = 3  # of the seed


def run(step: Step, config: PipelineConfig, drafts: Path) -> dict[str, Any]:
    """Write what the test found."""
    result = TRIALS[config.test.kind](config)
    write_json(drafts / Path(RESULT).name, result, indent=1)
    orders = result["results"][result["main"]]
    return {"relative": orders["relative"], "interval": orders["relative interval"]}


def in_marketplace(config: PipelineConfig) -> dict[str, Any]:
    """Both policies side by side in the cells that a hash gives them, at the same spend."""
    from doseforest.pricing.market import FEATURES
    from doseforest.pricing.pipeline.market_source import MarketPolicy, market_of, spread_cells

    own, market, seed = config.test, market_of(config.collect), config.pipeline.seed
    selected = read_selection(config)["selected"]
    control = _control(config, selected)
    budget = read_plan(selected, config)["budget"]
    names = tuple(config.columns.features or ())
    names = names or tuple(name for name in FEATURES if name not in config.columns.exclude)
    rival = policy_of(load_model(control, config), read_plan(control, config), config)
    views = {"days": _test_days(own), "cells": spread_cells(market, PACING_CELLS)}
    pilot = market.draw_traffic(**views, seed=seed_of(seed, PACING_USE))
    arms, paced = {}, {}
    for title, policy in (
        (TITLES[control], rival),
        (TITLES[selected], load_policy(config.workspace / POLICY)),
    ):
        served = MarketPolicy(policy, names)  # type: ignore[arg-type]
        arms[title], spend = served.paced(market, pilot, budget)
        paced[title] = {"price": arms[title].policy.budget_price, "spend": spend}
    some = None
    if own.cells is not None:
        some = spread_cells(market, own.cells)
    test = run_ab_test(
        market,
        arms,
        days=own.days,
        days_before=own.days_before,
        cells=some,
        salt=own.salt,
        seed=seed,
    )
    return {
        "kind": "marketplace",
        "main": "orders",
        "control": TITLES[control],
        "treatment": TITLES[selected],
        "budget": budget,
        "paced": paced,
        "cells": len(test.cells),
        "days": own.days,
        "results": {name: _plain(result) for name, result in test.results.items()},
        "truth": {
            name: {"absolute": truth.absolute, "relative": truth.relative}
            for name, truth in test.truths.items()
        },
        "extra orders": _extra_orders(market, test, own, seed),
        "sample ratio": str(test.orders.sample_ratio),
    }


def from_results(config: PipelineConfig) -> dict[str, Any]:
    """The arms of a finished experiment, as a table has them."""
    own = config.test
    frame = read_table(config.path(str(own.path)))
    for name in (own.arm, own.outcome, own.unit, own.cost, *own.covariates):
        if name is not None and name not in frame.columns:
            raise PipelineError(f"[test] {own.path} has no column {name!r}.")
    arms = frame[own.arm].astype(str).to_numpy()
    control = own.control or "control"
    result = compare_arms(
        roles.amounts(frame, own.outcome),
        arms,
        control=control,
        units=None if own.unit is None else frame[own.unit].to_numpy(),
        covariates=frame[list(own.covariates)].to_numpy() if own.covariates else None,
        cost=None if own.cost is None else roles.amounts(frame, own.cost),
        metric=str(own.outcome),
    )
    return {
        "kind": "results",
        "main": result.metric,
        "control": result.control,
        "treatment": result.treatment,
        "results": {result.metric: _plain(result)},
        "sample ratio": str(result.sample_ratio),
    }


def _extra_orders(market: Any, test: MarketTest, own: TrialSection, seed: int) -> dict[str, Any]:
    """The increment as a share of the orders that the control's discounts bring.

    Most orders come without any discount, and both arms have them. The simulator knows how many.
    """
    views = {"days": _test_days(own), "cells": test.cells, "seed": seed_of(seed, TEST_USE)}
    traffic = market.draw_traffic(**views)
    nothing = float(market.expected(traffic, 0.0).orders.sum()) / (len(test.cells) * own.days)
    truth, result = test.true_increment, test.orders.increment
    brought = truth.control - nothing
    return {
        "without discounts": nothing,
        "brought by control": brought,
        "relative": result.absolute / brought,
        "relative interval": [end / brought for end in result.interval()],
        "truth": truth.absolute / brought,
    }


TRIALS = {"marketplace": in_marketplace, "results": from_results}


def _test_days(own: TrialSection) -> IntArray:
    """Days of the test. Pacing has other riders on the same days: weekends are not like weeks."""
    return np.arange(own.days_before, own.days_before + own.days)


def _control(config: PipelineConfig, selected: str) -> str:
    if config.test.control is not None and config.test.control != selected:
        return config.test.control
    others = [name for name in config.optimise.compare if name != selected]
    if not others:
        raise PipelineError(
            f"[optimise] compare must name a model beside {selected!r}, which was selected: the "
            "test needs another one for its control arm."
        )
    return others[0]


def _plain(result: ABResult) -> dict[str, Any]:
    own = result.increment
    spend = result.spend
    return {
        "control": own.control,
        "treatment": own.treatment,
        "absolute": own.absolute,
        "interval": list(own.interval()),
        "relative": own.relative,
        "relative interval": list(own.relative_interval()),
        "p_value": own.p_value,
        "units": list(result.n_units),
        "variance reduction": result.variance_reduction,
        "spend": None if spend is None else spend.relative,
        "spend interval": None if spend is None else list(spend.relative_interval()),
    }
