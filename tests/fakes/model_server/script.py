"""What the fake model server is told to answer, and what it recorded."""

from collections import deque
from enum import StrEnum
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")


class ScriptedCall(_Value):
    """A tool call of a reply; without `call_id` one is made up, the same for the same position."""

    name: str
    arguments: str = "{}"
    call_id: str | None = None


class Fault(StrEnum):
    """What goes wrong after `fault_after` deltas."""

    NONE = "none"
    CUT = "cut"  # the connection is closed in the middle of the body
    END = "end"  # the body ends properly, with neither finish reason nor [DONE]
    STALL = "stall"  # nothing more comes until the client leaves
    STALL_WITH_COMMENTS = "stall_with_comments"  # only comments come until the client leaves
    GARBAGE = "garbage"  # bytes that are no frame, then the end
    ENDLESS = "endless"  # the last delta again and again without a pause


class Reply(_Value):
    """What one request gets. `text`, `reasoning` and `refusal` are deltas: each one is a frame.

    With `logprobs` each text is one token of which its log probability is told.
    `usage` None makes one up from the sizes; `fault_after` None means after all deltas.
    `cache_diagnostics` is what it says of its cache; an empty object stands for a null.
    `frames_per_write` joins frames into one write, as a busy provider's network does.
    """

    text: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    refusal: tuple[str, ...] = ()
    tool_calls: tuple[ScriptedCall, ...] = ()
    logprobs: bool = False
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    cache_diagnostics: dict[str, Any] | None = None
    first_pause_seconds: float = 0
    pause_seconds: float = 0
    frames_per_write: int = Field(default=1, ge=1)
    ignore_stream: bool = False
    status: int = 200
    headers: dict[str, str] = {}
    body: str | None = None
    raw: tuple[bytes, ...] | None = None
    fault: Fault = Fault.NONE
    fault_after: int | None = None
    hold_after: int | None = None
    holds: bool = False
    repeat: bool = False


class RecordedRequest(_Value):
    """A request as it came: header names in lower case, the body untouched."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    received_at: float

    @property
    def json_body(self) -> Any:
        """The body, parsed."""
        return orjson.loads(self.body)


class ConnectionRecord(_Value):
    """A connection and when the client closed it, in monotonic seconds."""

    number: int
    opened_at: float
    closed_at: float | None


class Script:
    """Replies waiting to be used, in order, some only for requests that hold a text."""

    def __init__(self) -> None:
        self._conditional: list[tuple[bytes, deque[Reply]]] = []
        self._plain: deque[Reply] = deque()

    def add(self, replies: tuple[Reply, ...], when: str | None) -> None:
        """Append replies."""
        if when is None:
            self._plain.extend(replies)
        else:
            self._conditional.append((when.encode(), deque(replies)))

    def clear(self) -> None:
        """Forget all."""
        self._conditional.clear()
        self._plain.clear()

    def next(self, request: RecordedRequest) -> Reply | None:
        """Take the reply for a request; None when nothing fits."""
        for when, replies in self._conditional:
            if replies and when in request.body:
                return _take(replies)
        return _take(self._plain) if self._plain else None


def _take(replies: deque[Reply]) -> Reply:
    return replies[0] if replies[0].repeat else replies.popleft()
