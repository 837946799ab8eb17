"""Policies of planned models: a model with its rules and the prices of its plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.policy.artifact.dose_policy import DosePolicy
from doseforest.policy.artifact.part_prices import PartPrices
from doseforest.policy.artifact.value_rules import AmountRule, DiscountCost, Response
from doseforest.pricing.pipeline import roles
from doseforest.pricing.pipeline.problems import PipelineError
from doseforest.pricing.pipeline.roles import baseline_of
from doseforest.pricing.pipeline.steps import SELECTION, plan_file

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import PipelineConfig

MOST_DOSES = 64  # that a plan chooses from without being told


def choice_of_doses(frame: Any, config: PipelineConfig) -> FloatArray:
    """Doses that plans choose from: those of the configuration, or the observed levels."""
    if config.optimise.doses is not None:
        return np.asarray(config.optimise.doses, np.float64)
    levels: FloatArray = np.unique(roles.treatment(frame, config), axis=0)
    if len(levels) > MOST_DOSES:
        raise PipelineError(
            f"[optimise] doses must be given for a treatment of more than {MOST_DOSES} levels. "
            f"Got {len(levels)} instead."
        )
    return levels


def cost_rule(shares: list[float], config: PipelineConfig) -> AmountRule:
    """What a dose costs: its share of the price of an order, for each component."""
    price = config.optimise.price
    if price is None:
        raise PipelineError("[optimise] price must be given.")
    rules = [DiscountCost(price, share, place) for place, share in enumerate(shares)]
    total: AmountRule = rules[0]
    for rule in rules[1:]:
        total = total + rule
    return total


def policy_of(model: Any, plan: dict[str, Any], config: PipelineConfig) -> DosePolicy:
    """The policy of a model at the prices of its plan."""
    own, names = config.optimise, config.columns.treatment
    cells = None
    if own.cell is not None:
        cells = PartPrices(own.cell, dict(plan["cell prices"]), unseen=0.0)
    return DosePolicy(
        model,
        np.asarray(plan["doses"], np.float64),
        value=Response(own.value),
        cost=cost_rule(plan["cost shares"], config),
        budget_price=plan["price"],
        cell_prices=cells,
        baseline=baseline_of(config),
        support=None,
        components=names if len(names) > 1 else None,
    )


def read_plan(name: str, config: PipelineConfig) -> dict[str, Any]:
    """The plan of a model, empty where it has none."""
    text = (config.workspace / plan_file(name)).read_text(encoding="utf-8")
    plan: dict[str, Any] = json.loads(text)
    return plan


def read_selection(config: PipelineConfig) -> dict[str, Any]:
    """What the selection said."""
    text = (config.workspace / SELECTION).read_text(encoding="utf-8")
    result: dict[str, Any] = json.loads(text)
    return result
