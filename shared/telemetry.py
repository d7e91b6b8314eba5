"""Names that operators grep for, one spelling for both services; docs/debugging.md walks along them."""

from enum import StrEnum


class LogEvent(StrEnum):
    """Log events that are promised."""

    LLM_REQUEST = "LLM_REQUEST"
    LLM_RESPONSE = "LLM_RESPONSE"
    TURN_STARTED = "Turn started"
    TURN_FINISHED = "Turn finished"
    EPOCH_STARTED = "Epoch started"


def trace_id_of(request_id: str) -> str:
    """Return the trace id that goes with a request id: its last 32 characters.

    Our own request ids end in 32 hexadecimal digits, which is a trace id of the W3C recommendation
    "Trace Context", section 3.2.2.3; a caller's own id is kept as it is.
    """
    return request_id[-32:]
