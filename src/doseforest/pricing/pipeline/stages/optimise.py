"""Doses are planned under the budget and the supply, and their prices are learned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.plain_json import write_json
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import given_doses
from doseforest.evaluation.predicted_curves import predicted_curves
from doseforest.policy import Plan, budget_path, optimize_doses
from doseforest.policy.artifact.unit_columns import CheckedUnits
from doseforest.pricing.pipeline import roles
from doseforest.pricing.pipeline.pipeline_models import load_model
from doseforest.pricing.pipeline.planned_policies import (
    choice_of_doses,
    cost_rule,
    policy_of,
    read_selection,
)
from doseforest.pricing.pipeline.problems import PipelineError
from doseforest.pricing.pipeline.roles import baseline_of
from doseforest.pricing.pipeline.row_tables import read_table, write_table
from doseforest.pricing.pipeline.spending import cost_shares, held_out_spend, spend_of_dose
from doseforest.pricing.pipeline.steps import HELD_OUT, TRAINING, UNITS, plan_file

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import PipelineConfig
    from doseforest.pricing.pipeline.steps import Step

PATH_POINTS = 61
DOSES = "optimise/doses.parquet"


def run(step: Step, config: PipelineConfig, drafts: Path) -> dict[str, Any]:
    """Plan for the units with the selected model, and with those that it is compared with."""
    train, held_out, units = (
        read_table(config.workspace / name) for name in (TRAINING, HELD_OUT, UNITS)
    )
    roles.check_columns(units, config, planned=True)
    selected = read_selection(config)["selected"]
    doses, shares = choice_of_doses(train, config), cost_shares(train, config)
    budget = config.optimise.budget or spend_of_dose(held_out, config, shares)
    metrics: dict[str, Any] = {"budget per unit": budget}
    for name in config.train.models:
        described: dict[str, Any] = {}
        if name == selected or name in config.optimise.compare:
            model = load_model(name, config)
            plan, described = _planned(model, units, held_out, doses, shares, budget, config)
            metrics[f"{name}, gain per unit"] = described["predicted gain"]
            if name == selected:
                write_table(_dose_table(units, plan, config), drafts / Path(DOSES).name)
        write_json(drafts / Path(plan_file(name)).name, described)
    return metrics


def _planned(
    model: Any,
    units: Any,
    held_out: Any,
    doses: FloatArray,
    shares: list[float],
    budget: float,
    config: PipelineConfig,
) -> tuple[Plan, dict[str, Any]]:
    """The plan of a model, and all that is kept of it."""
    curves = np.maximum(predicted_curves(model, roles.features(units, config), doses), 0.0)
    value = curves * roles.amounts(units, config.optimise.value)[:, None]
    cost = _costs(units, curves, doses, shares, config)
    limits = _supplies(units, curves, config)
    plan = optimize_doses(value, cost, budget * len(units), doses=doses, **limits)
    cells = (
        []
        if plan.by_cell is None
        else list(zip(plan.by_cell.labels.tolist(), plan.by_cell.prices.tolist(), strict=True))
    )
    described = {
        "doses": doses.tolist(),
        "cost shares": shares,
        "budget": budget,
        "price": plan.shadow_price.budget,
        "cell prices": cells,
        "cells at their limit": sum(price > 0 for _, price in cells),
        "units": len(units),
        "predicted value": plan.value / len(units),
        "predicted gain": (plan.value - float(value[:, _baseline(doses, config)].sum()))
        / len(units),
        "predicted cost": plan.cost / len(units),
        "gap": plan.gap / len(units),
        "mean dose": Doses.of(plan.dose).table.mean(axis=0).tolist(),
        "shares of doses": (np.bincount(plan.dose_index, minlength=len(doses)) / len(units))
        .round(6)
        .tolist(),
        "path": _path(value, cost, doses, _baseline(doses, config)),
        "curves": _curves(curves),
    }
    described["held-out"] = held_out_spend(policy_of(model, described, config), held_out, config)
    return plan, described


def _costs(
    units: Any, curves: FloatArray, doses: FloatArray, shares: list[float], config: PipelineConfig
) -> FloatArray:
    """Expected cost of every dose for every unit, by the rule that the policy will have."""
    rule = cost_rule(shares, config)
    columns = {name: units[name].to_numpy() for name in rule.columns()}
    own = CheckedUnits(len(units), columns, np.zeros(len(units), bool))
    return np.broadcast_to(rule.line(own, given_doses(doses).values).at(curves), curves.shape)


def _supplies(units: Any, curves: FloatArray, config: PipelineConfig) -> dict[str, Any]:
    """Limits of cells, none of them below what is asked for without any discount."""
    own = config.optimise
    if own.cell is None or own.supply is None:
        return {}
    labels, place = np.unique(units[own.cell].to_numpy(), return_inverse=True)
    supply = np.zeros(len(labels))
    np.maximum.at(supply, place, roles.amounts(units, own.supply))
    least = np.bincount(place, curves.min(axis=1), len(labels))
    caps = np.maximum(own.fill * supply, least * (1 + 1e-9))
    by_label = dict(zip(labels.tolist(), caps.tolist(), strict=True))
    return {"cells": units[own.cell].to_numpy(), "supply": by_label, "demand": curves}


def _path(
    value: FloatArray, cost: FloatArray, doses: FloatArray, baseline: int
) -> dict[str, list[float]]:
    """Gain against budget, per unit, at some points; supplies left aside."""
    path = budget_path(value, cost, doses=doses)
    n_units, start = len(value), float(value[:, baseline].sum())
    budgets = np.linspace(path.budgets[0], path.budgets[-1], PATH_POINTS)
    gains = (path.bound(budgets) - start) / n_units
    return {"budgets": (budgets / n_units).tolist(), "gains": gains.tolist()}


def _curves(curves: FloatArray) -> list[list[float]]:
    """Mean curves of the units by fifths of their effect: how much they differ."""
    effect = curves.max(axis=1) - curves[:, 0]
    fifths = np.array_split(np.argsort(effect, kind="stable"), 5)
    return [curves[part].mean(axis=0).round(6).tolist() for part in fifths]


def _baseline(doses: FloatArray, config: PipelineConfig) -> int:
    rows = doses.reshape(len(doses), -1)
    same = (rows == np.atleast_1d(baseline_of(config))).all(axis=1)
    if not same.any():
        raise PipelineError(
            f"[optimise] baseline must be one of the doses. Got {baseline_of(config)} instead."
        )
    return int(np.argmax(same))


def _dose_table(units: Any, plan: Plan, config: PipelineConfig) -> Any:
    """Units with their planned doses."""
    frame = units.copy()
    for place, name in enumerate(config.columns.treatment):
        frame[f"planned_{name}"] = Doses.of(plan.dose).table[:, place]
    frame["planned_value"], frame["planned_cost"] = plan.unit_values, plan.unit_costs
    return frame
