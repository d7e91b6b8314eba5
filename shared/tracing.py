"""Spans of the work of both services; without a tracer, which an operator's setting chooses, nothing is measured.

Names and attributes of spans hold ids, counts and names that an operator has given, and never text of users, of models
or of documents.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from enum import StrEnum
from types import TracebackType
from typing import Any, Protocol, TypeVar

Attributes = Mapping[str, str | int | float | bool]
TRACEPARENT = "traceparent"
"""The header, and the key of gRPC metadata, of the W3C recommendation "Trace Context", section 3.2."""

QUIET_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})


class SpanKind(StrEnum):
    """Where a span stands: inside of a service, at its server, or on the way to another one."""

    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"


class WorkSpan(Protocol):
    """A piece of work with a beginning and an end."""

    @property
    def traceparent(self) -> str:
        """The value of the header that makes a span of another service a child of this one."""
        ...

    def name(self, name: str) -> None:
        """Give it another name."""
        ...

    def set(self, attributes: Attributes) -> None:
        """Add attributes."""
        ...

    def fail(self, kind: str) -> None:
        """Say that the work failed, with the class of the error and nothing that it says."""
        ...

    def end(self) -> None:
        """End it."""
        ...


class Tracer(Protocol):
    """Makes spans."""

    def begin(self, name: str, kind: SpanKind, parent: WorkSpan | str | None, attributes: Attributes) -> WorkSpan:
        """Begin a span under a parent: a span of this process, or the header that another one has sent."""
        ...


class NoSpan:
    """A span that nobody looks at."""

    traceparent = ""

    def name(self, name: str) -> None:
        """Name nothing."""

    def set(self, attributes: Attributes) -> None:
        """Set nothing."""

    def fail(self, kind: str) -> None:
        """Fail nothing."""

    def end(self) -> None:
        """End nothing."""


NO_SPAN = NoSpan()
NO_ATTRIBUTES: Attributes = {}
_current: ContextVar[WorkSpan | None] = ContextVar("span", default=None)


class _Chosen:
    """The tracer of this process."""

    tracer: Tracer | None = None


def choose_tracer(tracer: Tracer | None) -> None:
    """Have spans made by this tracer from now on; None ends tracing."""
    _Chosen.tracer = tracer


def is_tracing() -> bool:
    """Whether spans are made."""
    return _Chosen.tracer is not None


def current_span() -> WorkSpan:
    """Return the span of the work that calls; attributes can be added to it."""
    return _current.get() or NO_SPAN


def trace_headers() -> dict[str, str]:
    """Return the header that tells another service of the current span; nothing where there is none."""
    span = _current.get()
    return {TRACEPARENT: span.traceparent} if span is not None and span.traceparent else {}


def current_trace_id() -> str | None:
    """Return the id of the trace that the calling work belongs to."""
    parts = (_current.get() or NO_SPAN).traceparent.split("-")
    return parts[1] if len(parts) > 1 else None


class _Traced:
    """The block around a piece of work."""

    def __init__(self, name: str, kind: SpanKind, remote_parent: str | None, attributes: Attributes) -> None:
        self._asked = name, kind, remote_parent, attributes
        self._before: WorkSpan | None = None
        self._span: WorkSpan = NO_SPAN

    def __enter__(self) -> WorkSpan:
        tracer = _Chosen.tracer
        if tracer is not None:
            name, kind, remote_parent, attributes = self._asked
            self._before = _current.get()
            self._span = tracer.begin(name, kind, remote_parent or self._before, attributes)
            _current.set(self._span)
        return self._span

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._span is NO_SPAN:
            return
        if kind is not None:
            self._span.fail(kind.__name__)
        # Not by a token: a generator that is closed from outside ends in another context than it began in.
        _current.set(self._before)
        self._span.end()


_NOT_TRACED = nullcontext(NO_SPAN)


def span_of(
    name: str,
    attributes: Attributes = NO_ATTRIBUTES,
    kind: SpanKind = SpanKind.INTERNAL,
    remote_parent: str | None = None,
) -> AbstractContextManager[WorkSpan, None]:
    """Trace the work of the `with` block, under the current span or that of another service."""
    return _Traced(name, kind, remote_parent, attributes)


def inner_span_of(name: str, attributes: Attributes = NO_ATTRIBUTES) -> AbstractContextManager[WorkSpan, None]:
    """Trace the work of the block where it belongs to traced work; alone it would be a trace that nobody looks for."""
    return span_of(name, attributes) if _current.get() is not None else _NOT_TRACED


class OutgoingRequest(Protocol):
    """A request of an HTTP client, as its library tells of it before the request is sent."""

    @property
    def method(self) -> str:
        """The method."""
        ...

    @property
    def url(self) -> Any:
        """The address, with its host and its path."""
        ...

    @property
    def headers(self) -> Any:
        """The headers, which may be changed."""
        ...


class AnswerHead(Protocol):
    """The beginning of the answer to such a request."""

    @property
    def status(self) -> int:
        """The status."""
        ...


Sent = TypeVar("Sent", bound=OutgoingRequest)
Answered = TypeVar("Answered", bound=AnswerHead)


async def trace_request(request: Sent, send: Callable[[Sent], Awaitable[Answered]]) -> Answered:
    """Send a request to another service, in a span of which that is told, until its answer begins.

    The address stands in the span without its query. Clients call this as their middleware; with the library's hooks a
    request took 25 µs more, whether or not a span was made.
    """
    address = {"server.address": str(request.url.host), "url.path": str(request.url.path)}
    attributes = {"http.request.method": request.method, **address}
    with span_of(f"{request.method} {request.url.path}", attributes, SpanKind.CLIENT) as span:
        if span.traceparent:
            request.headers[TRACEPARENT] = span.traceparent
        answer = await send(request)
        span.set({"http.response.status_code": answer.status})
        return answer


def request_tracing() -> tuple[Callable[..., Awaitable[Any]], ...]:
    """Return what traces the requests of an HTTP client, as its middlewares; nothing where nothing is traced."""
    return (trace_request,) if is_tracing() else ()


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
AsgiSend = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Any, AsgiSend], Awaitable[None]]


class TracedRequests:
    """ASGI middleware: a span for each request, under that of who sent it; its name has no id of the address in it."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Any, send: AsgiSend) -> None:
        """Serve one connection."""
        if _Chosen.tracer is None or scope["type"] != "http" or scope["path"] in QUIET_PATHS:
            await self._app(scope, receive, send)
            return
        method = scope["method"]
        given = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"traceparent"), None)
        with span_of(method, {"http.request.method": method}, SpanKind.SERVER, given) as span:

            async def send_and_note(message: Message) -> None:
                if message["type"] == "http.response.start":
                    route = getattr(scope.get("route"), "path", "unknown")
                    span.name(f"{method} {route}")
                    span.set({"http.route": route, "http.response.status_code": message["status"]})
                await send(message)

            await self._app(scope, receive, send_and_note)
