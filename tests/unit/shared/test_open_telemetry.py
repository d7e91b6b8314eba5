"""Spans as they are exported."""

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span, Status

from shared.open_telemetry import LightSpan, kept_pair
from shared.tracing import NO_ATTRIBUTES, SpanKind

TRACE_ID, PARENT_ID = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331


def exported(*spans: LightSpan) -> list[Span]:
    """Return what a collector reads of these spans."""
    message = ScopeSpans()
    for span in spans:
        span.encode(message.spans.add)
    return list(ScopeSpans.FromString(message.SerializeToString()).spans)


def span_under(parent_id: int) -> LightSpan:
    return LightSpan("search", SpanKind.CLIENT, (TRACE_ID, parent_id), NO_ATTRIBUTES, None)


def test_a_span_is_exported_whole() -> None:
    span = span_under(PARENT_ID)
    span.name("read_whole")
    span.fail("KeyError")
    span.end()
    (seen,) = exported(span)
    assert (seen.name, seen.kind, seen.status.code) == (
        "read_whole",
        Span.SPAN_KIND_CLIENT,
        Status.STATUS_CODE_ERROR,
    )
    assert span.traceparent == f"00-{seen.trace_id.hex()}-{seen.span_id.hex()}-00"
    assert (int.from_bytes(seen.trace_id), int.from_bytes(seen.parent_span_id)) == (TRACE_ID, PARENT_ID)
    assert 0 < seen.start_time_unix_nano <= seen.end_time_unix_nano
    assert [(pair.key, pair.value.string_value) for pair in seen.attributes] == [("error.type", "KeyError")]


def test_the_first_span_of_a_trace_has_no_parent() -> None:
    (seen,) = exported(span_under(0))
    assert seen.parent_span_id == b""
    assert not seen.HasField("status")


@pytest.mark.parametrize("order", [1, -1])
def test_equal_values_of_other_types_stay_what_they_are(order: int) -> None:
    values = [(1, AnyValue(int_value=1)), (True, AnyValue(bool_value=True)), (1.0, AnyValue(double_value=1))]
    values += [(0, AnyValue(int_value=0)), (False, AnyValue(bool_value=False)), ("1", AnyValue(string_value="1"))]
    spans = [span_under(PARENT_ID) for _ in values]
    for span, (value, _) in zip(spans, values[::order], strict=True):
        span.set({f"same key {order}": value})
    assert [seen.attributes[0].value for seen in exported(*spans)] == [value for _, value in values[::order]]


def test_long_values_are_exported_and_not_kept() -> None:
    span = span_under(PARENT_ID)
    span.set({"url.path": "/" * 65_536, "http.request.method": "GET"})
    kept_pair.cache_clear()
    (seen,) = exported(span)
    assert [len(pair.value.string_value) for pair in seen.attributes] == [65_536, 3]
    assert kept_pair.cache_info().currsize == 1


def test_what_has_ended_changes_no_more() -> None:
    span = span_under(PARENT_ID)
    span.end()
    ended_at = span.ended_at
    span.set({"late": 1})
    span.end()
    (seen,) = exported(span)
    assert (len(seen.attributes), seen.end_time_unix_nano) == (0, ended_at)
