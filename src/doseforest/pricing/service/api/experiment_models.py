"""What requests and answers about experiments look like."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy import Connection

from doseforest.pricing.experiments.ab_result import ABResult
from doseforest.pricing.experiments.increments import Increment
from doseforest.pricing.service.api.decision_models import TEXT, Strict
from doseforest.pricing.service.api.policy_endpoints import time_text
from doseforest.pricing.service.online_experiments import experiment_catalog
from doseforest.pricing.service.online_experiments.running_results import experiment_result


class ArmRequest(Strict):
    """A policy and its share of the cells."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,40}$")
    version: int = Field(ge=1, le=2**31 - 1)
    share: float = Field(gt=0, lt=1, allow_inf_nan=False)


class ExperimentRequest(Strict):
    """An experiment; the first arm is the control."""

    name: str = Field(min_length=1, max_length=100, pattern=TEXT)
    arms: list[ArmRequest] = Field(min_length=2, max_length=20)


class ExperimentAnswer(BaseModel):
    """An experiment."""

    id: int
    name: str
    arms: list[ArmRequest]
    started_at: str
    stopped_at: str | None


class ExperimentsAnswer(BaseModel):
    """All experiments, the newest first."""

    experiments: list[ExperimentAnswer]


class IncrementAnswer(BaseModel):
    """A difference between two arms, with its 95 % interval."""

    control: float
    treatment: float
    absolute: float
    low: float
    high: float
    relative: float | None
    relative_low: float | None
    relative_high: float | None
    p_value: float


class ComparisonAnswer(BaseModel):
    """One arm against the control."""

    control: str
    treatment: str
    outcome: IncrementAnswer = Field(description="Per decision, adjusted by the weeks before.")
    spend: IncrementAnswer | None = Field(description="Per cell.")
    variance_reduction: float


class RatioAnswer(BaseModel):
    """Whether the arms have the cells that were planned."""

    holds: bool
    p_value: float
    text: str


class ResultAnswer(BaseModel):
    """What an experiment has found so far."""

    experiment: ExperimentAnswer
    metric: str
    cells: dict[str, int]
    decisions: dict[str, int]
    with_outcome: dict[str, int]
    mixed_cells: int
    sample_ratio: RatioAnswer | None
    comparisons: list[ComparisonAnswer]
    problems: list[str]


def experiment_answer(own: experiment_catalog.StoredExperiment) -> ExperimentAnswer:
    """An experiment as it is answered; its salt stays here."""
    return ExperimentAnswer(
        id=own.id,
        name=own.name,
        arms=[ArmRequest(**arm) for arm in own.arms],
        started_at=time_text(own.started_at),
        stopped_at=None if own.stopped_at is None else time_text(own.stopped_at),
    )


def result_answer(
    connection: Connection,
    own: experiment_catalog.StoredExperiment,
    metric: str,
    cost_metric: str | None,
) -> ResultAnswer:
    """The result of an experiment as it is answered."""
    result = experiment_result(connection, own, metric, cost_metric)
    ratio = result.sample_ratio
    return ResultAnswer(
        experiment=experiment_answer(own),
        metric=metric,
        cells=result.cells,
        decisions=result.decisions,
        with_outcome=result.with_outcome,
        mixed_cells=result.mixed_cells,
        sample_ratio=None
        if ratio is None
        else RatioAnswer(holds=ratio.holds, p_value=ratio.p_value, text=str(ratio)),
        comparisons=[_comparison(one) for one in result.comparisons],
        problems=result.problems,
    )


def _comparison(own: ABResult) -> ComparisonAnswer:
    return ComparisonAnswer(
        control=own.control,
        treatment=own.treatment,
        outcome=_increment(own.increment),
        spend=None if own.spend is None else _increment(own.spend),
        variance_reduction=own.variance_reduction,
    )


def _increment(own: Increment) -> IncrementAnswer:
    low, high = own.interval()
    relative: dict[str, Any] = dict.fromkeys(("relative", "relative_low", "relative_high"))
    if own.control:
        ends = own.relative_interval()
        relative = {"relative": own.relative, "relative_low": ends[0], "relative_high": ends[1]}
    return IncrementAnswer(
        control=own.control,
        treatment=own.treatment,
        absolute=own.absolute,
        low=low,
        high=high,
        p_value=own.p_value,
        **relative,
    )
