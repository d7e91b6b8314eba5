"""Tracing, whose library is imported where the operator's `OTEL_…` variables ask for traces."""

from collections.abc import Generator, Mapping, MutableMapping
from contextlib import contextmanager

from shared.environment import WrongSetting
from shared.outgoing import is_web_address
from shared.tracing import choose_tracer

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
HTTP_PROTOBUF = "http/protobuf"


def wants_traces(environ: Mapping[str, str]) -> bool:
    """Return whether an address for traces is set, and nothing switches them off.

    Raises:
        WrongSetting: they are to be sent to what is no address, or in a way that is not offered.
    """
    is_off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none"
    if is_off or not any(environ.get(name) for name in ENDPOINTS):
        return False
    exporter = environ.get("OTEL_TRACES_EXPORTER") or "otlp"
    if exporter != "otlp":
        raise WrongSetting("OTEL_TRACES_EXPORTER: must be otlp or none")
    for name in ENDPOINTS:
        if (address := environ.get(name)) and not is_web_address(address):
            raise WrongSetting(f"{name}: must be an http or https address")
    for name in PROTOCOLS:
        if environ.get(name, HTTP_PROTOBUF) not in ("", HTTP_PROTOBUF):
            raise WrongSetting(f"{name}: must be {HTTP_PROTOBUF}, the only protocol by which traces are sent")
    return True


@contextmanager
def tracing(service: str, environ: Mapping[str, str]) -> Generator[None]:
    """Trace what the block does, where that is asked for; at its end what is left is exported, for seconds at most.

    Raises:
        WrongSetting: traces are to be sent to what is no address, or in a way that is not offered.
    """
    if not wants_traces(environ):
        yield
        return
    from shared.open_telemetry import OpenTelemetryTracer

    tracer = OpenTelemetryTracer(service, environ)
    choose_tracer(tracer)
    try:
        yield
    finally:
        choose_tracer(None)
        tracer.close()


_FORK_SUPPORT = "GRPC_ENABLE_FORK_SUPPORT"


def let_grpc_ignore_children(environ: MutableMapping[str, str]) -> None:
    """Switch off what gRPC does at each fork, unless the operator wants it; before gRPC is imported.

    A child of ours becomes another program at once and never calls gRPC. All the same gRPC halts its threads before a
    fork, which waits for those that do not halt, and starts them in the child as well, where they may crash before it
    comes to its program. Where a call runs gRPC only writes that it cannot, among log lines that are JSON. uvloop forks
    at each start of a child, and Python where the child gets another user.
    """
    environ.setdefault(_FORK_SUPPORT, "0")
