"""Experiments over HTTP: start, stop, results, and the table to learn from."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from doseforest.experiments.increments import Increment
from doseforest.experiments.result import ABResult
from doseforest.service.api.access import guarded_router
from doseforest.service.api.decision_models import TEXT, Strict
from doseforest.service.api.errors import ServiceError, responses
from doseforest.service.api.outcomes import OUTCOME
from doseforest.service.api.policies import time_text
from doseforest.service.api.state import Service, service_of, written
from doseforest.service.experiments import catalog
from doseforest.service.experiments.results import experiment_result
from doseforest.service.experiments.training_table import Wanted, csv_blocks, write_parquet
from doseforest.service.logs import log

reading = guarded_router("report", "experiments")
router = guarded_router("admin", "experiments")

Found = TypeVar("Found")
ExperimentId = Annotated[int, Path(ge=1, le=2**31 - 1)]
Metric = Annotated[str, Query(pattern=r"^[A-Za-z0-9_.-]{1,40}$")]
Time = Annotated[int, Query(ge=0, le=2**62, description="Milliseconds since 1970.")]


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


@reading.get("/experiments", response_model=ExperimentsAnswer)
async def experiments(request: Request) -> ExperimentsAnswer:
    """All experiments."""
    found = await _read(service_of(request), catalog.list_experiments)
    return ExperimentsAnswer(experiments=[_answer(own) for own in found])


@router.post(
    "/experiments",
    response_model=ExperimentAnswer,
    status_code=201,
    responses=responses(404, 409),
)
async def start(request: Request, sent: ExperimentRequest) -> ExperimentAnswer:
    """Start an experiment: cells are assigned to its arms, and stay there."""
    service = service_of(request)
    arms = [arm.model_dump() for arm in sent.arms]

    def check_files(connection: Connection) -> None:
        for arm in sent.arms:
            service.live.check(connection, arm.version)

    await _read(service, check_files)
    experiment_id = await _changed(
        service, lambda own: catalog.start_experiment(own, sent.name, arms)
    )
    log("experiment started", experiment=experiment_id)
    return _answer(await _read(service, lambda own: catalog.find_experiment(own, experiment_id)))


@router.post(
    "/experiments/{experiment_id}/stop",
    response_model=ExperimentAnswer,
    responses=responses(404, 409),
)
async def stop(request: Request, experiment_id: ExperimentId) -> ExperimentAnswer:
    """Stop an experiment; the active policy decides on everybody again."""
    service = service_of(request)
    await _changed(service, lambda own: catalog.stop_experiment(own, experiment_id))
    log("experiment stopped", experiment=experiment_id)
    return _answer(await _read(service, lambda own: catalog.find_experiment(own, experiment_id)))


@reading.get(
    "/experiments/{experiment_id}/result",
    response_model=ResultAnswer,
    responses=responses(404),
)
async def result(
    request: Request,
    experiment_id: ExperimentId,
    metric: Metric = OUTCOME,
    cost_metric: Metric | None = None,
) -> ResultAnswer:
    """Arms against the first one, by cells: increments with intervals, and the sample ratio.

    Decisions whose outcome nobody reported count as 0.
    """

    def found(connection: Connection) -> ResultAnswer:
        own = catalog.find_experiment(connection, experiment_id)
        return result_answer(connection, own, metric, cost_metric)

    return await _read(service_of(request), found)


@reading.get(
    "/training-table",
    response_class=Response,
    responses={
        200: {
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                "application/vnd.apache.parquet": {
                    "schema": {"type": "string", "format": "binary"}
                },
            }
        },
        **responses(409),
    },
)
async def training_table(
    request: Request,
    format: Literal["csv", "parquet"] = "csv",
    metric: Metric = OUTCOME,
    experiment_id: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    since: Time = 0,
    until: Time = 2**62,
    fallbacks: bool = False,
) -> Response:
    """Decisions with features, outcomes and propensities, to learn from."""
    service = service_of(request)
    wanted = Wanted(metric, experiment_id, since, until, fallbacks)
    if format == "parquet":
        content = await asyncio.to_thread(_parquet, service, wanted)
        return Response(content, media_type="application/vnd.apache.parquet")
    await _read(service, lambda own: None)  # a database that is gone is told before the answer

    def blocks() -> Iterator[bytes]:
        with service.database.reading.connect() as connection:
            yield from csv_blocks(connection, wanted)

    return StreamingResponse(blocks(), media_type="text/csv")


def _parquet(service: Service, wanted: Wanted) -> bytes:
    target = io.BytesIO()
    try:
        with service.database.reading.connect() as connection:
            write_parquet(connection, wanted, target)
    except ImportError as error:
        text = "Parquet needs pyarrow on the server: pip install 'doseforest[data]'."
        raise ServiceError(409, "no_parquet", text) from error
    return target.getvalue()


async def _read(service: Service, find: Callable[[Connection], Found]) -> Found:
    def read() -> Found:
        with service.database.reading.connect() as connection:
            return find(connection)

    try:
        return await asyncio.to_thread(read)
    except catalog.UnknownExperimentError as error:
        raise ServiceError(404, "not_found", str(error)) from error


async def _changed(service: Service, change: Callable[[Connection], Found]) -> Found:
    """Write a change, then serve it."""
    try:
        found = await written(service.writer.run(change))
    except catalog.UnknownExperimentError as error:
        raise ServiceError(404, "not_found", str(error)) from error
    except catalog.ExperimentError as error:
        raise ServiceError(409, "refused_experiment", str(error)) from error
    await asyncio.to_thread(service.live.refresh)
    service.note()
    return found


def _answer(own: catalog.StoredExperiment) -> ExperimentAnswer:
    return ExperimentAnswer(
        id=own.id,
        name=own.name,
        arms=[ArmRequest(**arm) for arm in own.arms],
        started_at=time_text(own.started_at),
        stopped_at=None if own.stopped_at is None else time_text(own.stopped_at),
    )


def result_answer(
    connection: Connection, own: catalog.StoredExperiment, metric: str, cost_metric: str | None
) -> ResultAnswer:
    """The result of an experiment as it is answered."""
    found = experiment_result(connection, own, metric, cost_metric)
    ratio = found.sample_ratio
    return ResultAnswer(
        experiment=_answer(own),
        metric=metric,
        cells=found.cells,
        decisions=found.decisions,
        with_outcome=found.with_outcome,
        mixed_cells=found.mixed_cells,
        sample_ratio=None
        if ratio is None
        else RatioAnswer(holds=ratio.holds, p_value=ratio.p_value, text=str(ratio)),
        comparisons=[_comparison(one) for one in found.comparisons],
        problems=found.problems,
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
