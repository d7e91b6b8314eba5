"""A collector of OpenTelemetry traces over OTLP/HTTP that keeps what it is sent."""

import gzip
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True)
class CollectedSpan:
    """A span as it was exported."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    began_at: int
    attributes: dict[str, Any]


@dataclass
class Collector:
    """What was exported; `bodies` are the messages as they were sent, decompressed."""

    url: str
    bodies: list[bytes] = field(default_factory=list[bytes])

    @property
    def spans(self) -> list[CollectedSpan]:
        """All spans, in the order of their export."""
        return [span for body in self.bodies for span in _spans_in(body)]


@contextmanager
def collecting() -> Generator[Collector]:
    """Collect on a free port while the block runs."""
    collector = Collector("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            is_compressed = self.headers.get("content-encoding") == "gzip"
            collector.bodies.append(gzip.decompress(body) if is_compressed else body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def _spans_in(body: bytes) -> list[CollectedSpan]:
    found: list[CollectedSpan] = []
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _attributes(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
                found.append(
                    CollectedSpan(service, span.name, *ids, span.start_time_unix_nano, _attributes(span.attributes))
                )
    return found


def _attributes(listed: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in listed}


if __name__ == "__main__":
    with collecting() as running:
        print(running.url, flush=True)  # noqa: T201 -- the address, for whoever has started this process
        sys.stdin.read()
