"""Who asks: the key of a request, its role, and how fast it may ask."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer

from doseforest.pricing.service.api.error_answers import ServiceError, responses
from doseforest.pricing.service.api.state import service_of
from doseforest.pricing.service.security.api_keys import ApiKey, find_key

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

bearer = HTTPBearer(
    auto_error=False, scheme_name="key", description="A key of `doseforest keys create`."
)


def guarded_router(role: str, tag: str) -> APIRouter:
    """Routes for keys with a role; what others send is not even read."""

    class Guarded(APIRoute):
        def get_route_handler(self) -> Handler:
            handle = super().get_route_handler()

            async def guarded(request: Request) -> Response:
                request.scope["key"] = check_access(request, role)
                return await handle(request)

            return guarded

    return APIRouter(
        prefix="/v1",
        route_class=Guarded,
        dependencies=[Security(bearer)],  # for the OpenAPI page
        responses=responses(),
        tags=[tag],
    )


def check_access(request: Request, role: str) -> ApiKey:
    """The key, or a refusal that is the same whatever is wrong with a key."""
    service = service_of(request)
    key = find_key(service.live.current.keys, request.headers.get("authorization"))
    if key is None:
        raise ServiceError(
            401,
            "unauthorised",
            "A valid key is needed, as in: Authorization: Bearer df_...",
            {"WWW-Authenticate": "Bearer"},
        )
    note(request, key=key.id)
    if not key.may(role):
        raise ServiceError(403, "forbidden", f"This needs a key with the role {role!r}.")
    seconds = service.rates.wait(key.id)
    if seconds > 0:
        headers = {"Retry-After": str(math.ceil(seconds))}
        raise ServiceError(429, "too_many", "This key asks too fast.", headers)
    return key


def key_of(request: Request) -> ApiKey:
    """The key that a guarded route has checked."""
    key: ApiKey = request.scope["key"]
    return key


def note(request: Request, **fields: Any) -> None:
    """Fields of the request's line in the log."""
    request.scope.setdefault("noted", {}).update(fields)
