"""Plain ASGI middleware: request ids, access counters, unexpected errors, checks of addresses and of body sizes."""

import structlog
from prometheus_client import Counter
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.foundation.http.errors import GENERIC_MESSAGE, error_response
from shared.errors import BallastError, InternalError, InvalidRequest, PayloadTooLarge
from shared.ids import REQUEST_ID, IdPrefix, new_id
from shared.telemetry import trace_id_of

KNOWN_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
requests_total = Counter("ballast_http_requests_total", "Requests by route", ("method", "route", "status"))
log: structlog.stdlib.BoundLogger = structlog.get_logger()


class RequestIds:
    """Gives each request an id, the caller's own where it sent a usable one, and puts it on every log line."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if REQUEST_ID.fullmatch(given) else new_id(IdPrefix.REQUEST)
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id, trace_id=trace_id_of(request_id)):
            await self._app(scope, receive, send_with_id)


class AccessCounters:
    """Counts requests by method, route and status; ids in addresses never become labels."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_and_count(message: Message) -> None:
            if message["type"] == "http.response.start":
                method = scope["method"] if scope["method"] in KNOWN_METHODS else "other"
                requests_total.labels(method, _route_of(scope), message["status"]).inc()
            await send(message)

        await self._app(scope, receive, send_and_count)


class LastCatch:
    """Answers 500 to unexpected exceptions and logs their traceback; the answer reveals nothing of the exception."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection.

        Raises:
            Exception: an unexpected exception after the response had begun; the server then drops the
                connection, the only signal that can still reach the client.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_and_note(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except ClientDisconnect:
            return
        except Exception:
            log.exception("Unexpected error", method=scope["method"], route=_route_of(scope))
            if started:
                raise
            begun = bool(scope.get("state", {}).get("turn_begun"))
            await error_response(InternalError(GENERIC_MESSAGE), turn_begun=begun)(scope, receive, send)


class BodyLimit:
    """Answers 413 to a body over the limit, whether its length was announced or not.

    The rest of such a body is not read; the server discards it as it comes.
    """

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and _exceeds(announced, self._max_body_bytes):
            await error_response(self._complaint())(scope, receive, send)
            return
        await _LimitedExchange(self._complaint(), self._max_body_bytes, receive, send).run(self._app, scope)

    def _complaint(self) -> PayloadTooLarge:
        return PayloadTooLarge(f"The body is larger than {self._max_body_bytes} bytes.")


class _LimitedExchange:
    """One request with a limited body: beyond the limit, a 413 replaces the answer of the application."""

    def __init__(self, complaint: PayloadTooLarge, max_body_bytes: int, receive: Receive, send: Send) -> None:
        self._complaint = complaint
        self._left_bytes = max_body_bytes
        self._receive = receive
        self._send = send
        self._started = False

    async def run(self, app: ASGIApp, scope: Scope) -> None:
        try:
            await app(scope, self._counting_receive, self._checking_send)
        except PayloadTooLarge as error:
            if error is not self._complaint:
                raise
        if self._left_bytes < 0 and not self._started:
            await error_response(self._complaint)(scope, self._receive, self._send)

    async def _counting_receive(self) -> Message:
        message = await self._receive()
        self._left_bytes -= len(message.get("body", b""))
        if self._left_bytes < 0:
            raise self._complaint
        return message

    async def _checking_send(self, message: Message) -> None:
        if self._left_bytes < 0 and not self._started:
            return
        self._started = True
        await self._send(message)


class CleanAddress:
    """Answers 400 to an address with U+0000 in it: no id contains it, and PostgreSQL refuses it in text."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http" and ("\0" in scope["path"] or _has_nul(scope["query_string"])):
            error: BallastError = InvalidRequest("The address must not contain the character U+0000.")
            await error_response(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _has_nul(query: bytes) -> bool:
    return b"\0" in query or b"%00" in query


def _exceeds(announced: str, limit_bytes: int) -> bool:
    """Compare by length first, because Python refuses to convert numbers of thousands of digits."""
    digits = announced.lstrip("0")
    return len(digits) > len(str(limit_bytes)) or int(digits or "0") > limit_bytes


def _route_of(scope: Scope) -> str:
    """Return the route's template, such as `/v1/responses/{response_id}`."""
    return str(getattr(scope.get("route"), "path", "none"))
