"""Spans by OpenTelemetry, exported as the standard `OTEL_…` variables say; imported where these ask for it."""

from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from shared.tracing import TRACEPARENT, Attributes, SpanKind, WorkSpan

_KINDS = {
    SpanKind.INTERNAL: trace.SpanKind.INTERNAL,
    SpanKind.SERVER: trace.SpanKind.SERVER,
    SpanKind.CLIENT: trace.SpanKind.CLIENT,
}
_PROPAGATOR = TraceContextTextMapPropagator()


class OpenTelemetrySpan:
    """Implements `shared.tracing.Span`."""

    def __init__(self, span: trace.Span) -> None:
        self.inner = span
        ids = span.get_span_context()
        # Written here, as the library takes ten times as long for it by its carriers, and it is asked for often.
        self.traceparent = f"00-{ids.trace_id:032x}-{ids.span_id:016x}-{ids.trace_flags:02x}" if ids.is_valid else ""

    def name(self, name: str) -> None:
        """Give it another name."""
        self.inner.update_name(name)

    def set(self, attributes: Attributes) -> None:
        """Add attributes."""
        self.inner.set_attributes(dict(attributes))

    def fail(self, kind: str) -> None:
        """Say that the work failed."""
        self.inner.set_status(trace.StatusCode.ERROR)
        self.inner.set_attribute("error.type", kind)

    def end(self) -> None:
        """End it."""
        self.inner.end()


class OpenTelemetryTracer:
    """Implements `shared.tracing.Tracer`; spans are exported in batches, by a thread of the library."""

    def __init__(self, service: str, environ: Mapping[str, str]) -> None:
        named = {} if environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: service}
        # The library reads its variables itself: sampler, attributes, address, headers and time-outs of the export.
        self._provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("ballast")

    def begin(self, name: str, kind: SpanKind, parent: WorkSpan | str | None, attributes: Attributes) -> WorkSpan:
        """Begin a span; a malformed header of another service counts as none."""
        context = None
        if isinstance(parent, str):
            context = _PROPAGATOR.extract({TRACEPARENT: parent})
        elif isinstance(parent, OpenTelemetrySpan):
            context = trace.set_span_in_context(parent.inner)
        return OpenTelemetrySpan(self._tracer.start_span(name, context, _KINDS[kind], dict(attributes)))

    def close(self) -> None:
        """Export what is left; it blocks, for some seconds at most."""
        self._provider.shutdown()
