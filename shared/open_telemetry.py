"""Spans for OpenTelemetry, exported as the standard `OTEL_…` variables say; imported where these ask for it.

Spans are values of our own, and encoded here: those of the SDK take five times as long to make, to end and to encode.
Its sampler, batches, resource and sender are in use, so that its variables mean what they mean everywhere.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from random import getrandbits
from time import time_ns
from typing import cast

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as EncodedResource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from shared.tracing import TRACEPARENT, Attributes, SpanKind, WorkSpan

_KINDS = {
    SpanKind.INTERNAL: (trace.SpanKind.INTERNAL, Span.SPAN_KIND_INTERNAL),
    SpanKind.SERVER: (trace.SpanKind.SERVER, Span.SPAN_KIND_SERVER),
    SpanKind.CLIENT: (trace.SpanKind.CLIENT, Span.SPAN_KIND_CLIENT),
}
_PROPAGATOR = TraceContextTextMapPropagator()
_SCOPE = InstrumentationScope(name="ballast")
_FAILED = Status(code=Status.STATUS_CODE_ERROR)
_PAIRS_KEPT = 4096
"""Attributes that stay encoded: most spans say again what others said, and an id takes the place of an older one."""

_KEPT_CHARACTERS = 256
"""Longer values are encoded each time, so that what is kept is bounded in bytes as well: some MiB."""

_SAMPLED = trace.SpanContext(1, 1, is_remote=False, trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED))


class LightSpan:
    """Implements `shared.tracing.WorkSpan`; what a sampler has left out is not exported, and tells others so."""

    __slots__ = (
        "_batches",
        "attributes",
        "began_at",
        "ended_at",
        "has_failed",
        "kind",
        "parent_id",
        "span_id",
        "title",
        "trace_id",
    )
    context = _SAMPLED
    """What the batches of the SDK look at: a span that comes there is sampled."""

    def __init__(
        self,
        title: str,
        kind: SpanKind,
        ids: tuple[int, int],
        attributes: Attributes,
        batches: BatchSpanProcessor | None,
    ) -> None:
        self.title = title
        self.kind = kind
        self.trace_id, self.parent_id = ids
        self.span_id = getrandbits(64) or 1
        self.attributes = dict(attributes)
        self.has_failed = False
        self.began_at = time_ns()
        self.ended_at = 0
        self._batches = batches

    @property
    def is_sampled(self) -> bool:
        """Whether it is exported at its end."""
        return self._batches is not None

    @property
    def traceparent(self) -> str:
        """The value of the header that makes a span of another service a child of this one."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-0{int(self.is_sampled)}"

    def name(self, name: str) -> None:
        """Give it another name."""
        self.title = name

    def set(self, attributes: Attributes) -> None:
        """Add attributes, unless it has ended: another thread may read it then."""
        if not self.ended_at:
            self.attributes.update(attributes)

    def fail(self, kind: str) -> None:
        """Say that the work failed."""
        self.set({"error.type": kind})
        self.has_failed = True

    def end(self) -> None:
        """End it, and put it into the next batch."""
        if self.ended_at:
            return
        self.ended_at = time_ns()
        if self._batches is not None:
            self._batches.on_end(cast(ReadableSpan, self))

    def encode(self, add: Callable[..., Span]) -> None:
        """Add it to a message of OTLP; a message is made where it stays, because to copy one costs as much."""
        add(
            trace_id=self.trace_id.to_bytes(16, "big"),
            span_id=self.span_id.to_bytes(8, "big"),
            parent_span_id=self.parent_id.to_bytes(8, "big") if self.parent_id else b"",
            name=self.title,
            kind=_KINDS[self.kind][1],
            start_time_unix_nano=self.began_at,
            end_time_unix_nano=self.ended_at,
            attributes=_encode(self.attributes),
            status=_FAILED if self.has_failed else None,
        )


class LightExporter(OTLPSpanExporter):
    """Sends batches of light spans to the place that the variables name, as the library sends its own."""

    def __init__(self, resource: Resource) -> None:
        super().__init__()
        named = {name: value for name, value in resource.attributes.items() if isinstance(value, str | int | float)}
        self._resource = EncodedResource(attributes=_encode(named))

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Encode a batch and send it; a failure loses the batch."""
        request = ExportTraceServiceRequest()
        of_service = request.resource_spans.add(resource=self._resource)
        add = of_service.scope_spans.add(scope=_SCOPE).spans.add
        for span in cast(Sequence[LightSpan], spans):
            span.encode(add)
        body = request.SerializeToString()
        return SpanExportResult.SUCCESS if self._client.export(body).success else SpanExportResult.FAILURE


class OpenTelemetryTracer:
    """Implements `shared.tracing.Tracer`; spans are exported in batches, by a thread of the library."""

    def __init__(self, service: str, environ: Mapping[str, str]) -> None:
        named = {} if environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: service}
        # The library reads its variables itself: sampler, resource, batches, address, headers and time-outs.
        provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
        self._sampler = provider.sampler
        self._batches = BatchSpanProcessor(LightExporter(provider.resource))

    def begin(self, name: str, kind: SpanKind, parent: WorkSpan | str | None, attributes: Attributes) -> WorkSpan:
        """Begin a span; a malformed header of another service counts as none.

        What begins a trace here, or continues that of another service, is sampled or not with all that is below it.
        """
        if isinstance(parent, LightSpan):
            batches = self._batches if parent.is_sampled else None
            return LightSpan(name, kind, (parent.trace_id, parent.span_id), attributes, batches)
        context = _PROPAGATOR.extract({TRACEPARENT: parent}) if isinstance(parent, str) else None
        above = trace.get_current_span(context).get_span_context()
        ids = (above.trace_id, above.span_id) if above.is_valid else (getrandbits(128) or 1, 0)
        answer = self._sampler.should_sample(context, ids[0], name, _KINDS[kind][0], dict(attributes))
        return LightSpan(name, kind, ids, attributes, self._batches if answer.decision.is_sampled() else None)

    def close(self) -> None:
        """Export what is left; it blocks, for some seconds at most."""
        self._batches.shutdown()


def _encode(attributes: Attributes) -> list[KeyValue]:
    return [
        _pair(key, value) if isinstance(value, str) and len(value) > _KEPT_CHARACTERS else kept_pair(key, value)
        for key, value in attributes.items()
    ]


def _pair(key: str, value: str | int | float | bool) -> KeyValue:
    """Encode an attribute."""
    pair = KeyValue(key=key)
    match value:
        case bool():
            pair.value.bool_value = value
        case str():
            pair.value.string_value = value
        case int():
            pair.value.int_value = value
        case float():
            pair.value.double_value = value
    return pair


kept_pair = lru_cache(_PAIRS_KEPT, typed=True)(_pair)
"""Encode an attribute, or remember it encoded; `typed`, because 1 and True are equal."""
