"""The table to learn from, over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from typing import IO, Annotated, Literal

from fastapi import Query, Request
from fastapi.responses import Response, StreamingResponse

from doseforest.pricing.service.api.access import guarded_router
from doseforest.pricing.service.api.error_answers import ServiceError, responses, unavailable
from doseforest.pricing.service.api.experiment_endpoints import Metric
from doseforest.pricing.service.api.outcome_endpoints import OUTCOME
from doseforest.pricing.service.api.state import Service, service_of
from doseforest.pricing.service.online_experiments.training_table import Wanted, write_table

router = guarded_router("report", "experiments")

MEDIA_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
CONTENT = {
    MEDIA_TYPES["csv"]: {"schema": {"type": "string"}},
    MEDIA_TYPES["parquet"]: {"schema": {"type": "string", "format": "binary"}},
}
BYTES_AT_A_TIME = 1 << 18
Time = Annotated[int, Query(ge=0, le=2**62, description="Milliseconds since 1970.")]


@router.get(
    "/training-table",
    response_class=Response,
    responses={200: {"content": CONTENT}, **responses(409)},
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
    if service.exporting.locked():
        raise unavailable("Other exports are underway.")
    async with service.exporting:
        table = await asyncio.to_thread(_written, service, wanted, format)
    length = {"Content-Length": str(table.tell())}
    return StreamingResponse(_blocks(table), media_type=MEDIA_TYPES[format], headers=length)


def _written(service: Service, wanted: Wanted, format: str) -> IO[bytes]:
    """The table in a file without a name: however slowly it is sent, no connection is kept."""
    try:
        with contextlib.ExitStack() as stack:
            table = stack.enter_context(tempfile.TemporaryFile())
            with service.database.reading.connect() as connection:
                write_table(connection, wanted, format, table)
            stack.pop_all()  # whoever sends the file closes it
    except ImportError as error:
        text = "Parquet needs pyarrow on the server: pip install 'doseforest[data]'."
        raise ServiceError(409, "no_parquet", text) from error
    except OSError as error:
        raise unavailable("There is no room for the export.") from error
    return table


def _blocks(table: IO[bytes]) -> Iterator[bytes]:
    with table:
        table.seek(0)
        while block := table.read(BYTES_AT_A_TIME):
            yield block
