"""A request that is sent twice is done once: its stored answer is given again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Header, Request, Response
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from doseforest.pricing.service.api.access import key_of
from doseforest.pricing.service.api.error_answers import ServiceError
from doseforest.pricing.service.api.state import Service, service_of, written
from doseforest.pricing.service.storage.service_tables import answers, now
from doseforest.pricing.service.storage.writer import Inserts

TOKEN = r"^[A-Za-z0-9._:-]{1,100}$"
IdempotencyKey = Annotated[
    str | None,
    Header(
        pattern=TOKEN,
        description="Of your choice, such as a UUID: the same request sent again with the same "
        "one is not done again, and gets the same answer.",
    ),
]
Made = tuple[bytes, Inserts, Callable[[], None]]  # the answer, its rows, what to do once stored
INSERT_ANSWER = answers.insert()


@dataclass(frozen=True, slots=True)
class Token:
    """An idempotency key, whose it is, and of what request."""

    key_id: str
    token: str
    fingerprint: str


async def answered_once(
    request: Request, token: str | None, make: Callable[[], Awaitable[Made]]
) -> Response:
    """Make an answer and store its rows, unless this was done before."""
    service = service_of(request)
    if token is None:
        body, inserts, stored = await make()
        await written(service.writer.insert(inserts))
        stored()
        return json_response(body)
    own = Token(key_of(request).id, token, await _fingerprint(request))
    place = (own.key_id, own.token)
    while place in service.underway:  # the same request, a moment ago
        await asyncio.wait([service.underway[place]])
    service.underway[place] = asyncio.get_running_loop().create_future()
    try:
        return await _first_or_again(service, own, make)
    finally:
        service.underway.pop(place).set_result(None)


async def _first_or_again(
    service: Service, own: Token, make: Callable[[], Awaitable[Made]]
) -> Response:
    result = await asyncio.to_thread(_stored_answer, service, own)
    if result is None:
        body, inserts, stored = await make()
        row = {
            "key_id": own.key_id,
            "token": own.token,
            "fingerprint": own.fingerprint,
            "body": body.decode(),
            "at": now(),
        }
        try:
            await written(service.writer.insert([(INSERT_ANSWER, [row]), *inserts]))
        except IntegrityError:
            result = await asyncio.to_thread(_stored_answer, service, own)
            if result is None:  # it was something else
                raise
        else:
            stored()
            return json_response(body)
    service.metrics.replays.inc()
    return json_response(result, {"Idempotency-Replayed": "true"})


def _stored_answer(service: Service, own: Token) -> bytes | None:
    wanted = select(answers.c.fingerprint, answers.c.body).where(
        answers.c.key_id == own.key_id, answers.c.token == own.token
    )
    with service.database.reading.connect() as connection:
        row = connection.execute(wanted).first()
    if row is None:
        return None
    if row.fingerprint != own.fingerprint:
        raise ServiceError(
            409, "other_request", "This idempotency key was used for another request."
        )
    body: str = row.body
    return body.encode()


async def _fingerprint(request: Request) -> str:
    body = await request.body()
    return hashlib.sha256(request.url.path.encode() + b"\n" + body).hexdigest()


def json_response(body: bytes, headers: dict[str, str] | None = None) -> Response:
    """JSON that is written already."""
    return Response(body, headers=headers, media_type="application/json")
