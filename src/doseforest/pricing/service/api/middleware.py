"""Around every request: an id, limits, safe headers, a line in the log, counts."""

from __future__ import annotations

import re
import secrets
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from doseforest.pricing.service.api.error_answers import unexpected
from doseforest.pricing.service.draining import draining
from doseforest.pricing.service.logs import log, log_error

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
SAFE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
POLICY_UPLOAD = "/v1/policies"


class Envelope:
    """Pure ASGI, as it runs for every request."""

    def __init__(self, app: ASGIApp, max_body: int, max_policy: int) -> None:
        self._app = app
        self._max_body, self._max_policy = max_body, max_policy
        self._safe = [(k.lower().encode(), v.encode()) for k, v in SAFE_HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if REQUEST_ID.fullmatch(given) else secrets.token_hex(12)
        scope["request_id"] = request_id
        status = 0  # of what was answered

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *self._safe]
                own = MutableHeaders(raw=message["headers"])
                own["X-Request-ID"] = request_id
                if draining.begun:
                    own["Connection"] = "close"
            await send(message)

        try:
            await self._app(scope, self._limited(scope, headers, receive), send_on)
        except Exception as error:
            log_error("unexpected error", error, request_id=request_id)
            if status:  # half an answer is out: the server cuts it off
                raise
            await unexpected(Request(scope))(scope, receive, send_on)
        finally:
            self._note(scope, status, time.perf_counter() - began)

    def _limited(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        """A body of at most so many bytes, whatever its length claims to be."""
        is_upload = scope["path"] == POLICY_UPLOAD and scope["method"] == "POST"
        most = self._max_policy if is_upload else self._max_body
        announced = headers.get("content-length", "0")
        got = 0

        async def receive_on() -> Message:
            nonlocal got
            if announced.isdecimal() and int(announced[:20]) > most:
                raise too_large(most)
            message = await receive()
            got += len(message.get("body", b""))
            if got > most:
                raise too_large(most)
            return message

        return receive_on

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")  # as declared: paths may hold anything
        service = getattr(scope["app"].state, "service", None)
        if service is not None:
            service.metrics.requests.labels(scope["method"][:8], route, str(status)).inc()
            service.metrics.seconds.labels(route).observe(seconds)
        log(
            "request",
            request_id=scope["request_id"],
            method=scope["method"][:8],
            route=route,
            status=status,
            milliseconds=round(seconds * 1000, 2),
            **scope.get("noted", {}),
        )


def too_large(most: int) -> HTTPException:
    """The refusal of a body; the rest of it is not read."""
    return HTTPException(413, f"A request may have {most} bytes.", {"Connection": "close"})
