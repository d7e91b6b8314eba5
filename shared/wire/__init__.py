"""Convert the values that both services exchange to protobuf messages, and back, without loss.

All functions are pure. Reading a value that is missing or malformed raises `InvalidRequest`, whose `param` is the path
of the value, such as `knowledge.bases[0].access_mode`. Unknown fields are ignored, so that the two services may be of
different releases. A missing access mode is read as restricted.
"""

from shared.wire.events import (
    card_from_proto,
    card_to_proto,
    event_from_proto,
    event_to_proto,
    report_from_proto,
    report_to_proto,
)
from shared.wire.request import request_from_proto, request_to_proto
from shared.wire.single_tools import (
    tool_call_from_proto,
    tool_call_to_proto,
    tool_result_from_proto,
    tool_result_to_proto,
)
from shared.wire.tools import offered_from_proto, offered_to_proto

__all__ = [
    "card_from_proto",
    "card_to_proto",
    "event_from_proto",
    "event_to_proto",
    "offered_from_proto",
    "offered_to_proto",
    "report_from_proto",
    "report_to_proto",
    "request_from_proto",
    "request_to_proto",
    "tool_call_from_proto",
    "tool_call_to_proto",
    "tool_result_from_proto",
    "tool_result_to_proto",
]
