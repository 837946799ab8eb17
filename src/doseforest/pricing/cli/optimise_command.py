"""`doseforest optimise`: doses for units within a budget, and the policy that gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from doseforest.doses.dose_values import Doses
from doseforest.pricing.cli import table_options
from doseforest.pricing.cli.error_lines import told
from doseforest.pricing.cli.model_commands import features_of, load_curves
from doseforest.pricing.cli.table_options import RoleTable, answer, one_dose, read_doses
from doseforest.pricing.pipeline.row_tables import write_table


@told
def optimise(
    model: table_options.Model,
    units: table_options.Rows,
    price: Annotated[
        str, typer.Option(help="Column, or a number: what a dose is a share of, per outcome.")
    ],
    budget: Annotated[float, typer.Option(min=0, help="For all units together.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where the doses of the units go.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="Where the policy for new units goes, a .dose file.")
    ] = None,
    value: Annotated[
        str, typer.Option(help="Column, or a number: what one outcome is worth.")
    ] = "1",
    share: Annotated[
        float, typer.Option(help="What one unit of dose is of the price; 0.01 for per cent.")
    ] = 1.0,
    doses: table_options.Doses = None,
    baseline: Annotated[str | None, typer.Option(help="A dose; by default the forest's.")] = None,
    cell: Annotated[str | None, typer.Option(help="Column of cells that have a supply.")] = None,
    supply: Annotated[str | None, typer.Option(help="Column of each cell's supply.")] = None,
    json: table_options.Json = False,
) -> None:
    """Choose the dose of every unit, of largest total value within the budget.

    Example: doseforest optimise model.dose tomorrow.parquet --price fare --budget 5000
    --doses 0,0.1,0.2 -o plan.parquet --policy policy.dose
    """
    from doseforest.policy import DiscountCost, DosePolicy, Response, optimize_doses

    forest, table = load_curves(model), RoleTable(units)
    grid = read_doses(doses)
    asked = np.asarray(Doses.of(forest.doses).plain) if grid is None else grid
    if asked.ndim == 2:
        cost: Any = DiscountCost(_amount(price), share, 0)
        for place in range(1, asked.shape[1]):
            cost = cost + DiscountCost(_amount(price), share, place)
    else:
        cost = DiscountCost(_amount(price), share)
    draft = DosePolicy(
        forest,
        asked,
        value=Response(_amount(value)),
        cost=cost,
        baseline=one_dose(baseline),
        support=None,
    )
    frame = table.frame
    for name in (each for each in (price, value) if isinstance(_amount(each), str)):
        table_options.column(frame, name, "--price and --value")
    weighed = draft.alternatives(features_of(forest, frame), frame)
    limits = _supply(frame, cell, supply, weighed.response)
    plan = optimize_doses(
        weighed.adjusted_value, np.maximum(weighed.cost, 0.0), budget, doses=asked, **limits
    )
    start = float(weighed.value[:, weighed.baseline].sum())
    if out is not None:
        given = Doses.of(plan.dose).table
        planned = frame.copy()
        for place in range(given.shape[1]):
            planned["dose" if given.shape[1] == 1 else f"dose_{place}"] = given[:, place]
        planned["expected_value"], planned["expected_cost"] = plan.unit_values, plan.unit_costs
        write_table(planned, out)
    if policy is not None:
        draft.at_prices(plan, cell_column=cell, unseen="baseline" if cell is None else 0.0).save(
            policy
        )
    result = {
        "units": len(frame),
        "value": plan.value,
        "gain": plan.value - start,
        "cost": plan.cost,
        "budget": budget,
        "gap": plan.gap,
        "shadow_price": plan.shadow_price.budget,
        "units_by_dose": dict(zip(map(str, asked.tolist()), plan.counts().tolist(), strict=True)),
        "doses": None if out is None else str(out),
        "policy": None if policy is None else str(policy),
    }
    written = ", ".join(str(each) for each in (out, policy) if each is not None)
    text = f"{plan}\ngain over the baseline {plan.value - start:.6g}"
    answer(result, json, text + (f"\nWrote {written}." if written else ""))


def _amount(text: str) -> float | str:
    """A number, or the name of a column."""
    try:
        return float(text)
    except ValueError:
        return text


def _supply(frame: Any, cell: str | None, supply: str | None, demand: Any) -> dict[str, Any]:
    if cell is None and supply is None:
        return {}
    if cell is None or supply is None:
        raise ValueError("--cell and --supply must be given together.")
    labels = table_options.column(frame, cell, "--cell")
    amounts = table_options.column(frame, supply, "--supply").astype(float)
    places, own = np.unique(labels, return_inverse=True)
    caps = np.zeros(len(places))
    np.maximum.at(caps, own, amounts)
    by_label = dict(zip(places.tolist(), caps.tolist(), strict=True))
    return {"cells": labels, "supply": by_label, "demand": np.maximum(demand, 0.0)}
