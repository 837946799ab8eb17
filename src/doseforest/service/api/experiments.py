"""Experiments over HTTP: start, stop, results, and the table to learn from."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator
from typing import Annotated, Literal, TypeVar

from fastapi import Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from sqlalchemy import Connection

from doseforest.service.api.access import guarded_router
from doseforest.service.api.errors import ServiceError, responses
from doseforest.service.api.experiment_models import (
    ExperimentAnswer,
    ExperimentRequest,
    ExperimentsAnswer,
    ResultAnswer,
    experiment_answer,
    result_answer,
)
from doseforest.service.api.outcomes import OUTCOME
from doseforest.service.api.state import Service, service_of, written
from doseforest.service.experiments import catalog
from doseforest.service.experiments.training_table import Wanted, csv_blocks, write_parquet
from doseforest.service.logs import log

reading = guarded_router("report", "experiments")
router = guarded_router("admin", "experiments")

Found = TypeVar("Found")
ExperimentId = Annotated[int, Path(ge=1, le=2**31 - 1)]
Metric = Annotated[str, Query(pattern=r"^[A-Za-z0-9_.-]{1,40}$")]
Time = Annotated[int, Query(ge=0, le=2**62, description="Milliseconds since 1970.")]


@reading.get("/experiments", response_model=ExperimentsAnswer)
async def experiments(request: Request) -> ExperimentsAnswer:
    """All experiments."""
    found = await _read(service_of(request), catalog.list_experiments)
    return ExperimentsAnswer(experiments=[experiment_answer(own) for own in found])


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
    return experiment_answer(
        await _read(service, lambda own: catalog.find_experiment(own, experiment_id))
    )


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
    return experiment_answer(
        await _read(service, lambda own: catalog.find_experiment(own, experiment_id))
    )


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
