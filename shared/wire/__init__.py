"""The contract's values as protobuf messages, and back, without loss.

Pure functions. Reading refuses what is missing or malformed with `InvalidRequest`, whose `param` is the
path in the value, such as `knowledge.bases[0].access_mode`; fields that are not known yet are ignored, so
that the two services may be of different releases. An access mode that is missing is restricted.
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

__all__ = [
    "card_from_proto",
    "card_to_proto",
    "event_from_proto",
    "event_to_proto",
    "report_from_proto",
    "report_to_proto",
    "request_from_proto",
    "request_to_proto",
]
