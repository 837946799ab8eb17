"""Errors as answers: a code, a sentence, the request's id; never what was sent."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException

from doseforest.pricing.service.deciding import CannotDecideError
from doseforest.pricing.service.logs import log_error
from doseforest.pricing.service.registry.policy_catalog import UnknownPolicyError
from doseforest.pricing.service.registry.policy_files import PolicyFileError
from doseforest.pricing.service.storage.databases import StorageUnavailableError

RETRY_SECONDS = 1


class ErrorDetail(BaseModel):
    """What is wrong."""

    code: str = Field(examples=["invalid_request"])
    message: str = Field(examples=["units.0.unit: Field required"])
    request_id: str


class ErrorAnswer(BaseModel):
    """The answer to a request that was refused or could not be served."""

    error: ErrorDetail


class ServiceError(Exception):
    """A refusal with a status, a code for programs and a sentence for people."""

    def __init__(
        self, status: int, code: str, message: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers = headers or {}


CODES = {
    400: "invalid_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": text}
    for status, text in {
        400: "The body is not JSON",
        401: "No valid key",
        403: "The key's role may not do this",
        404: "There is no such thing",
        409: "It contradicts what is there",
        413: "Too large",
        422: "The request breaks a rule, which the answer names",
        429: "Too many requests; Retry-After says when to ask again",
        503: "It cannot be stored or decided now; ask again",
    }.items()
}


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What an endpoint may answer beside success."""
    return {status: RESPONSES[status] for status in (400, 401, 403, 413, 422, 429, 503, *statuses)}


def answer(request: Request, error: ServiceError) -> JSONResponse:
    """An error as JSON."""
    request_id = request.scope.get("request_id", "")
    detail = {"code": error.code, "message": error.message, "request_id": request_id}
    return JSONResponse({"error": detail}, error.status, headers=error.headers)


def unavailable(message: str) -> ServiceError:
    """Nothing is promised, and asking again may help."""
    headers = {"Retry-After": str(RETRY_SECONDS)}
    return ServiceError(503, "unavailable", message, headers)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceError)
    return answer(request, error)


def _place(parts: tuple[Any, ...], kind: str) -> str:
    """Where a rule is broken, without names that the client made up.

    >>> _place(("body", "units", 0, "features", "name of ann", "str"), "string_too_long")
    'units.0.features.*'
    >>> _place(("body", "secret"), "extra_forbidden")
    '*'
    """
    known = [str(part) for part in parts if part != "body"]
    if "features" in known:
        known[known.index("features") + 1 :] = ["*"] if known[-1] != "features" else []
    elif kind == "extra_forbidden":
        known[-1:] = ["*"]
    return ".".join(known)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    broken = [
        f"{_place(each['loc'], each['type']) or 'body'}: {each['msg']}"
        for each in error.errors()[:5]
    ]
    text = "; ".join(broken).encode("utf-8", "replace").decode()
    return answer(request, ServiceError(422, "invalid_request", text[:1000]))


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = CODES.get(error.status_code, "refused")
    headers = dict(error.headers or {})
    return answer(request, ServiceError(error.status_code, code, str(error.detail), headers))


async def _storage(request: Request, error: Exception) -> JSONResponse:
    request.app.state.service.metrics.storage_failures.inc()
    log_error("storage failed", error.__cause__ or error, request_id=request.scope["request_id"])
    text = "The database does not answer. Nothing is promised: send the request again."
    return answer(request, unavailable(text))


async def _cannot_decide(request: Request, error: Exception) -> JSONResponse:
    refusal = unavailable(str(error))
    return answer(request, ServiceError(503, "no_policy", str(error), refusal.headers))


async def _unknown(request: Request, error: Exception) -> JSONResponse:
    return answer(request, ServiceError(404, "not_found", str(error)))


async def _bad_file(request: Request, error: Exception) -> JSONResponse:
    return answer(request, ServiceError(409, "refused_policy", str(error)))


def unexpected(request: Request) -> JSONResponse:
    """The answer where something is wrong with the service itself."""
    return answer(request, ServiceError(500, "internal", "Something went wrong; it was logged."))


HANDLERS = {
    ServiceError: _refused,
    RequestValidationError: _invalid,
    HTTPException: _http,
    StorageUnavailableError: _storage,
    OperationalError: _storage,
    InterfaceError: _storage,
    PoolTimeoutError: _storage,
    CannotDecideError: _cannot_decide,
    UnknownPolicyError: _unknown,
    PolicyFileError: _bad_file,
}


def add_error_handlers(app: FastAPI) -> None:
    """Let every error answer in the same form."""
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
