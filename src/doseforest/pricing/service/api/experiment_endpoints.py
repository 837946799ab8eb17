"""Experiments over HTTP: start, stop, results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Path, Query, Request
from sqlalchemy import Connection

from doseforest.pricing.service.api.access import guarded_router
from doseforest.pricing.service.api.error_answers import ServiceError, responses
from doseforest.pricing.service.api.experiment_models import (
    ExperimentAnswer,
    ExperimentRequest,
    ExperimentsAnswer,
    ResultAnswer,
    experiment_answer,
    result_answer,
)
from doseforest.pricing.service.api.outcome_endpoints import OUTCOME
from doseforest.pricing.service.api.state import Service, service_of, written
from doseforest.pricing.service.logs import log
from doseforest.pricing.service.online_experiments import experiment_catalog

reading = guarded_router("report", "experiments")
router = guarded_router("admin", "experiments")

Found = TypeVar("Found")
ExperimentId = Annotated[int, Path(ge=1, le=2**31 - 1)]
Metric = Annotated[str, Query(pattern=r"^[A-Za-z0-9_.-]{1,40}$")]


@reading.get("/experiments", response_model=ExperimentsAnswer)
async def experiments(request: Request) -> ExperimentsAnswer:
    """All experiments."""
    result = await _read(service_of(request), experiment_catalog.list_experiments)
    return ExperimentsAnswer(experiments=[experiment_answer(each) for each in result])


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
        service, lambda value: experiment_catalog.start_experiment(value, sent.name, arms)
    )
    log("experiment started", experiment=experiment_id)
    return experiment_answer(
        await _read(service, lambda value: experiment_catalog.find_experiment(value, experiment_id))
    )


@router.post(
    "/experiments/{experiment_id}/stop",
    response_model=ExperimentAnswer,
    responses=responses(404, 409),
)
async def stop(request: Request, experiment_id: ExperimentId) -> ExperimentAnswer:
    """Stop an experiment; the active policy decides on everybody again."""
    service = service_of(request)
    await _changed(service, lambda value: experiment_catalog.stop_experiment(value, experiment_id))
    log("experiment stopped", experiment=experiment_id)
    return experiment_answer(
        await _read(service, lambda value: experiment_catalog.find_experiment(value, experiment_id))
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
        own = experiment_catalog.find_experiment(connection, experiment_id)
        return result_answer(connection, own, metric, cost_metric)

    return await _read(service_of(request), found)


async def _read(service: Service, find: Callable[[Connection], Found]) -> Found:
    def read() -> Found:
        with service.database.reading.connect() as connection:
            return find(connection)

    try:
        return await asyncio.to_thread(read)
    except experiment_catalog.UnknownExperimentError as error:
        raise ServiceError(404, "not_found", str(error)) from error


async def _changed(service: Service, change: Callable[[Connection], Found]) -> Found:
    """Write a change, then serve it."""
    try:
        result = await written(service.writer.run(change))
    except experiment_catalog.UnknownExperimentError as error:
        raise ServiceError(404, "not_found", str(error)) from error
    except experiment_catalog.ExperimentError as error:
        raise ServiceError(409, "refused_experiment", str(error)) from error
    await asyncio.to_thread(service.live.refresh)
    service.note()
    return result
