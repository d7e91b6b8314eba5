"""Spans: whose child each is, and what is made of them without a tracer."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field

import pytest
from yarl import URL

from shared.chosen import wants_traces
from shared.environment import WrongSetting
from shared.tracing import (
    NO_SPAN,
    Attributes,
    NoSpan,
    SpanKind,
    WorkSpan,
    choose_tracer,
    current_span,
    current_trace_id,
    request_tracing,
    span_of,
    trace_headers,
    trace_request,
)


class NamedSpan(NoSpan):
    """A span that knows its parent."""

    def __init__(self, name: str, parent: str) -> None:
        self.path = f"{parent}/{name}"
        self.traceparent = f"00-{self.path}-1-01"
        self.failure = ""
        self.has_ended = False
        self.attributes: dict[str, str | int | float | bool] = {}

    def set(self, attributes: Attributes) -> None:
        self.attributes.update(attributes)

    def fail(self, kind: str) -> None:
        self.failure = kind

    def end(self) -> None:
        self.has_ended = True


class NotingTracer:
    """A `Tracer` that keeps its spans."""

    def __init__(self) -> None:
        self.spans: list[NamedSpan] = []

    def begin(self, name: str, kind: SpanKind, parent: WorkSpan | str | None, attributes: Attributes) -> WorkSpan:
        above = parent.path if isinstance(parent, NamedSpan) else str(parent or "")
        self.spans.append(NamedSpan(name, above))
        self.spans[-1].set(attributes)
        return self.spans[-1]


@pytest.fixture
def tracer() -> Iterator[NotingTracer]:
    tracer = NotingTracer()
    choose_tracer(tracer)
    yield tracer
    choose_tracer(None)


def test_without_a_tracer_nothing_is_made() -> None:
    with span_of("turn") as span:
        assert span is current_span() is NO_SPAN
        assert request_tracing() == ()
        assert trace_headers() == {}
        assert current_trace_id() is None


async def test_spans_stand_below_those_around_them(tracer: NotingTracer) -> None:
    async def tool(name: str) -> None:
        with span_of(name), span_of("request", kind=SpanKind.CLIENT):
            pass

    with span_of("turn", remote_parent="caller"):
        assert current_trace_id() == "caller/turn"
        await asyncio.gather(tool("a"), tool("b"))
    paths = {span.path for span in tracer.spans}
    below = {f"caller/turn/{name}{rest}" for name in "ab" for rest in ("", "/request")}
    assert paths == {"caller/turn", *below}
    assert all(span.has_ended for span in tracer.spans)
    assert current_span() is NO_SPAN


async def test_what_fails_or_is_left_ends_its_span(tracer: NotingTracer) -> None:
    async def numbers() -> AsyncGenerator[int]:
        with span_of("numbers"):
            yield 1
            yield 2

    with span_of("around"):
        async with aclosing(numbers()) as stream:
            async for _ in stream:
                break
    with pytest.raises(KeyError), span_of("broken"):
        raise KeyError("what it says is not told")
    assert [(span.path, span.failure, span.has_ended) for span in tracer.spans] == [
        ("/around", "", True),
        ("/around/numbers", "GeneratorExit", True),
        ("/broken", "KeyError", True),
    ]
    assert current_span() is NO_SPAN


@dataclass
class Asked:
    """A request as a client makes it."""

    url: URL
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class Answered:
    """The beginning of its answer."""

    status: int


async def test_a_request_is_a_span_that_the_other_service_is_told_of(tracer: NotingTracer) -> None:
    asked = Asked(URL("http://model:8080/v1/chat?key=secret"))

    async def answer(request: Asked) -> Answered:
        assert request.headers == {"traceparent": tracer.spans[-1].traceparent}
        return Answered(404)

    async def leave(_request: Asked) -> Answered:
        raise ConnectionResetError("what it says is not told")

    with span_of("turn"):
        assert (await trace_request(asked, answer)).status == 404
        with pytest.raises(ConnectionResetError):
            await trace_request(asked, leave)
    _, *requests = tracer.spans
    assert [(span.path, span.failure, span.has_ended) for span in requests] == [
        ("/turn/POST /v1/chat", "", True),
        ("/turn/POST /v1/chat", "ConnectionResetError", True),
    ]
    address = {"http.request.method": "POST", "server.address": "model", "url.path": "/v1/chat"}
    assert [span.attributes for span in requests] == [{**address, "http.response.status_code": 404}, address]


HERE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, False),
        (HERE, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({**HERE, "OTEL_SDK_DISABLED": "true"}, False),
        ({**HERE, "OTEL_TRACES_EXPORTER": "none"}, False),
        ({**HERE, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, True),
    ],
)
def test_the_standard_variables_decide(environ: dict[str, str], wanted: bool) -> None:
    assert wants_traces(environ) is wanted


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_TRACES_EXPORTER", "console"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://[collector"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
    ],
)
def test_what_is_not_offered_is_named(name: str, value: str) -> None:
    with pytest.raises(WrongSetting, match=name):
        wants_traces({**HERE, name: value})
