"""What an experiment has found so far: arms compared by cells, as they were assigned.

Rows are added up within cells by the database, so that a result takes as long as there are cells.
What the same cells did in the weeks before takes variance out of the comparison.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, and_, case, func, select

from doseforest.pricing.experiments.ab_result import ABResult
from doseforest.pricing.experiments.compare import compare_arms
from doseforest.pricing.experiments.sample_ratio import SampleRatioCheck, check_sample_ratio
from doseforest.pricing.service.online_experiments.experiment_catalog import StoredExperiment
from doseforest.pricing.service.storage.service_tables import decisions, outcomes

WEEKS_BEFORE = 4
WEEK = 7 * 86_400_000  # milliseconds


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """Every arm against the first one."""

    cells: dict[str, int]
    decisions: dict[str, int]
    with_outcome: dict[str, int]
    mixed_cells: int  # in several arms, which a sticky assignment never does
    sample_ratio: SampleRatioCheck | None
    comparisons: list[ABResult]
    problems: list[str]


def experiment_result(
    connection: Connection, own: StoredExperiment, metric: str, cost_metric: str | None
) -> ExperimentResult:
    """Compare the arms of an experiment; decisions without an outcome count as 0."""
    table = _by_cell(connection, own, metric, cost_metric)
    arms = list(own.shares)
    counts = {arm: sum(row.arm == arm for row in table) for arm in arms}
    seen: dict[str, set[str]] = {}
    for row in table:
        seen.setdefault(row.cell, set()).add(row.arm)
    mixed = sum(len(each) > 1 for each in seen.values())
    comparisons, problems = [], []
    before = _before(connection, own, metric)
    for arm in arms[1:]:
        try:
            comparisons.append(_compared(table, own, arm, metric, cost_metric, before))
        except ValueError as error:
            problems.append(f"{arm}: {error}")
    return ExperimentResult(
        cells=counts,
        decisions={arm: sum(row.n for row in table if row.arm == arm) for arm in arms},
        with_outcome={arm: sum(row.reported for row in table if row.arm == arm) for arm in arms},
        mixed_cells=mixed,
        sample_ratio=check_sample_ratio(counts, own.shares) if sum(counts.values()) else None,
        comparisons=comparisons,
        problems=problems,
    )


def _by_cell(
    connection: Connection, own: StoredExperiment, metric: str, cost_metric: str | None
) -> list[Any]:
    """Sums within cells and arms: decisions, outcomes, how many were reported, costs."""
    outcome, spent = outcomes.alias("outcome"), outcomes.alias("spent")
    joined = decisions.outerjoin(outcome, _is(outcome, metric))
    cost: Any = func.sum(0.0)
    if cost_metric is not None:
        joined = joined.outerjoin(spent, _is(spent, cost_metric))
        cost = func.coalesce(func.sum(spent.c.value), 0.0)
    query = (
        select(
            decisions.c.cell,
            decisions.c.arm,
            func.count().label("n"),
            func.coalesce(func.sum(outcome.c.value), 0.0).label("total"),
            func.sum(case((outcome.c.value.is_(None), 0), else_=1)).label("reported"),
            cost.label("cost"),
        )
        .select_from(joined)
        .where(decisions.c.experiment_id == own.id)
        .group_by(decisions.c.cell, decisions.c.arm)
        .order_by(decisions.c.cell, decisions.c.arm)
    )
    return list(connection.execute(query))


def _before(
    connection: Connection, own: StoredExperiment, metric: str
) -> dict[str, tuple[float, float]]:
    """Outcomes and decisions of every cell in the weeks before the experiment."""
    outcome = outcomes.alias("outcome")
    query = (
        select(decisions.c.cell, func.coalesce(func.sum(outcome.c.value), 0.0), func.count())
        .select_from(decisions.outerjoin(outcome, _is(outcome, metric)))
        .where(
            decisions.c.at < own.started_at,
            decisions.c.at >= own.started_at - WEEKS_BEFORE * WEEK,
        )
        .group_by(decisions.c.cell)
    )
    return {cell: (float(total), float(n)) for cell, total, n in connection.execute(query)}


def _is(outcome: Any, metric: str) -> Any:
    return and_(outcome.c.decision_id == decisions.c.id, outcome.c.metric == metric)


def _compared(
    table: list[Any],
    own: StoredExperiment,
    arm: str,
    metric: str,
    cost_metric: str | None,
    before: dict[str, tuple[float, float]],
) -> ABResult:
    control = own.arms[0]["name"]
    rows = [row for row in table if row.arm in (control, arm)]
    if not rows:
        raise ValueError("nothing was decided yet.")
    shares = {name: own.shares[name] for name in (control, arm)}
    total = sum(shares.values())
    known = np.array([before.get(row.cell, (0.0, 0.0)) for row in rows])
    with warnings.catch_warnings():  # the check of the ratio is part of the answer
        warnings.simplefilter("ignore")
        return compare_arms(
            np.array([row.total for row in rows], np.float64),
            np.array([row.arm for row in rows]),
            control=control,
            denominator=np.array([row.n for row in rows], np.float64),
            covariates=known if known.any() else None,
            cost=np.array([row.cost for row in rows], np.float64) if cost_metric else None,
            shares={name: share / total for name, share in shares.items()},
            metric=f"{metric} of a decision",
        )
