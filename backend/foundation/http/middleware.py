"""Plain ASGI middleware: request ids, the access log and its counters, unexpected errors, checks of addresses."""

from time import perf_counter

import structlog
from prometheus_client import Counter, Gauge, Histogram
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.foundation.http.errors import GENERIC_MESSAGE, error_response, route_of
from shared.errors import BallastError, InternalError, InvalidRequest
from shared.ids import REQUEST_ID, IdPrefix, new_id
from shared.telemetry import LogEvent, origin_of, trace_id_of

CLIENT_CLOSED_REQUEST = 499
"""The status that nginx logs when the client has left before the answer began; no client reads it."""

KEY_ID = "key_id"
TURN_ID = "turn_id"
STATE_IDS = (KEY_ID, "conversation_id", TURN_ID)
"""Where the state of a request holds the id of its caller's key and those of its turn, once they are known."""

RESPONSE_HEADER = "x-ballast-response-id"
"""Names the response that an answer is about, in whichever API's words: an id for `/v1/responses/{id}`."""

STEER_HEADER = "x-ballast-steer-id"
"""Names the response that a message becomes which comes too late to enter the running turn."""

IGNORED_HEADER = "x-ballast-ignored"
"""Names what of a request was passed over."""

IGNORED = "ignored"
"""Where the state of a request holds what that header says, as what is written as a text when the answer begins."""

SEND_ON = "send_on"
"""Where that state holds what sends the messages behind the first one of an answer.

Of what answers pass through on their way out only the access log looks at those; a stream has thousands of them.
"""

ANSWER_HEADERS = "answer_headers"
"""Where that state holds what tells further headers, once the answer begins: what they say is true at that moment."""

QUIET_ROUTES = frozenset({"/healthz", "/readyz", "/metrics"})
KNOWN_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
requests_total = Counter("ballast_http_requests_total", "Requests by route", ("method", "route", "status"))
request_seconds = Histogram(
    "ballast_http_request_seconds",
    "Requests by route, from their beginning to the end of their answer",
    ("method", "route"),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600),
)
bodies_held = Gauge("ballast_http_body_bytes", "Bytes of request bodies held now")
bodies_most = Gauge("ballast_http_body_bytes_most", "Bytes of request bodies that may be held")
log: structlog.stdlib.BoundLogger = structlog.get_logger()


class RequestIds:
    """Gives each request an id, the caller's own where it sent a usable one, and puts it on every log line.

    The answer names the request and, where it is about a response, that response.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if REQUEST_ID.fullmatch(given) else new_id(IdPrefix.REQUEST)
        scope.setdefault("state", {}).update({"request_id": request_id, SEND_ON: send})

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                if TURN_ID in scope["state"]:
                    headers[RESPONSE_HEADER] = scope["state"][TURN_ID]
                if ignored := str(scope["state"].get(IGNORED) or ""):
                    headers[IGNORED_HEADER] = ignored
                if ANSWER_HEADERS in scope["state"]:
                    headers.update(await scope["state"][ANSWER_HEADERS]())
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id, trace_id=trace_id_of(request_id)):
            await self._app(scope, receive, send_with_id)


class AccessLog:
    """Counts requests by method, route and status, and logs a line about each when its answer has ended.

    Neither an id in an address nor a query becomes a label or stands in the line; the key is named by its id. Checks
    of health and scrapes of metrics are logged only where they fail.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        access = _Access(scope, receive, send)
        scope["state"][SEND_ON] = access.send
        try:
            await self._app(scope, access.receive, access.send)
        finally:
            del scope["state"][SEND_ON]  # which holds the request: none is left for the cycle collector
            access.log()


class _Access:
    """What the log line says of one request."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._start = send
        self._send_on = scope.setdefault("state", {}).get(SEND_ON, send)
        self._began_at = perf_counter()
        self._status = CLIENT_CLOSED_REQUEST
        self._received_bytes = 0
        self._sent_bytes = 0

    async def receive(self) -> Message:
        message = await self._receive()
        self._received_bytes += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            requests_total.labels(self._method, route_of(self._scope), self._status).inc()
            await self._start(message)
        else:
            self._sent_bytes += len(message.get("body", b""))
            await self._send_on(message)

    def log(self) -> None:
        route = route_of(self._scope)
        request_seconds.labels(self._method, route).observe(perf_counter() - self._began_at)
        if route in QUIET_ROUTES and self._status < 400:
            return
        log.info(
            LogEvent.HTTP_REQUEST,
            method=self._method,
            route=route,
            status=self._status,
            duration_ms=round((perf_counter() - self._began_at) * 1000, 1),
            received_bytes=self._received_bytes,
            sent_bytes=self._sent_bytes,
            **{name: self._scope["state"][name] for name in STATE_IDS if name in self._scope["state"]},
        )

    @property
    def _method(self) -> str:
        return self._scope["method"] if self._scope["method"] in KNOWN_METHODS else "other"


class LastCatch:
    """Answers 500 to unexpected exceptions and logs where they came from; the answer tells nothing of them."""

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
        except Exception as error:
            told = to_known_error(scope, error)
            if started:
                raise
            begun = bool(scope.get("state", {}).get("turn_begun"))
            await error_response(told, turn_begun=begun)(scope, receive, send)


def to_known_error(scope: Scope, error: BaseException) -> BallastError:
    """Return an error as a client may be told of it; an unexpected one is logged, and nothing of it is told."""
    if isinstance(error, BallastError):
        return error
    log.error("Unexpected error", method=scope["method"], route=route_of(scope), **origin_of(error))
    return InternalError(GENERIC_MESSAGE)


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
