"""Translating the stream events of a response to chunks of OpenAI's Chat Completions."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import orjson

from backend.conversations.domain.item_bodies import BETWEEN_MESSAGES
from backend.turns.domain.chat_completion import (
    Addresses,
    Said,
    completion_usage,
    finish_reason,
    said_in,
    url_citations,
)
from backend.turns.domain.response_events import TERMINAL_TYPES, LoggedEvent
from backend.turns.domain.response_object import ResponseBody, report_in
from shared.models.events import ErrorReport
from shared.models.values import JsonObject, JsonValue

DELTA_FIELDS = {
    "response.output_text.delta": "content",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_content",
}
"""The field of a chunk's delta that takes the text of an event. `reasoning_content` is not OpenAI's own, who show no
reasoning here; it is the field in which other servers send it, and from which clients read it."""


@dataclass(slots=True)
class _SentCall:
    """A call as far as chunks have brought it: its place among the calls, and the length of its arguments."""

    place: int
    characters: int = 0


class ChunkProjection:
    """Builds the chunks of one stream; each method returns the JSON texts of new ones.

    `ended` is the response once its terminal event has been fed. `failure` is set where the stream ends with an error.
    """

    def __init__(self, *, includes_usage: bool) -> None:
        self._includes_usage = includes_usage
        self._head = b""
        self._tail = b',"usage":null}' if includes_usage else b"}"
        self._lengths = dict.fromkeys(DELTA_FIELDS.values(), 0)
        self._around: dict[str, tuple[bytes, bytes]] = {}
        self._places: dict[str, tuple[JsonValue, JsonValue]] = {}
        self._calls: dict[JsonValue, _SentCall] = {}
        self._calls_by_id: dict[JsonValue, _SentCall] = {}
        self.ended: ResponseBody | None = None
        self.failure: ErrorReport | None = None

    def feed(self, events: Iterable[LoggedEvent]) -> list[bytes]:
        """Translate events; those that a client of Chat Completions does not see give no chunk.

        The terminal event gives none yet: `finish` does, which has to know the addresses of the documents.
        """
        chunks: list[bytes] = []
        for event in events:
            field = DELTA_FIELDS.get(event.type)
            if field is not None:
                chunks.append(self._text(field, orjson.loads(event.body)))
            elif event.type == "response.output_item.added":
                chunks += self._call(orjson.loads(event.body))
            elif event.type == "response.function_call_arguments.delta":
                chunks.append(self._arguments(orjson.loads(event.body)))
            else:
                chunks += self._stage(event)
        return chunks

    @property
    def said(self) -> Said:
        """What the whole turn said; nothing before its end."""
        return said_in(self.ended["output"] if self.ended is not None else [])

    def finish(self, said: Said, addresses: Addresses) -> list[bytes]:
        """Build the last chunks: what no event has brought, the citations, why the answer ended, and the usage.

        An answer that failed has only the first of these: its error follows.
        """
        if self.ended is None:
            return []
        texts = {"content": said.content, "refusal": said.refusal, "reasoning_content": said.reasoning}
        rests = {field: text[self._lengths[field] :] for field, text in texts.items()}
        chunks = [self._chunk({field: rest}) for field, rest in rests.items() if rest]
        chunks += [chunk for call in said.calls for chunk in self._rest_of(call)]
        return chunks if self.failure is not None else [*chunks, *self._ending(self.ended, said, addresses)]

    def _ending(self, ended: ResponseBody, said: Said, addresses: Addresses) -> list[bytes]:
        annotations, usage = url_citations(said, addresses), completion_usage(ended)
        noted = [self._chunk({"content": "", "annotations": annotations})] if annotations else []
        used = [self._head + b'[],"usage":' + orjson.dumps(usage) + b"}"] if self._includes_usage and usage else []
        return [*noted, self._chunk({}, finish_reason(ended, said)), *used]

    def _stage(self, event: LoggedEvent) -> list[bytes]:
        """Translate an event about the response as a whole."""
        if event.type == "response.created":
            return [self._opened(orjson.loads(event.body)["response"])]
        if event.type == "error":
            self.failure = _report(orjson.loads(event.body))
        elif event.type in TERMINAL_TYPES:
            self.ended = orjson.loads(event.body)["response"]
            self.failure = self.failure or report_in(self.ended or {})
        return []

    def _opened(self, body: ResponseBody) -> bytes:
        head: JsonObject = {
            "id": body["id"],
            "object": "chat.completion.chunk",
            "created": body["created_at"],
            "model": body["model"],
            "service_tier": "default",
            "system_fingerprint": None,
        }
        self._head = orjson.dumps(head)[:-1] + b',"choices":'
        self._around = {field: self._halves(field) for field in self._lengths}
        return self._chunk({"role": "assistant", "content": "", "refusal": None})

    def _text(self, field: str, event: JsonObject) -> bytes:
        """Build the chunk of a delta; the first one of a further message begins with what stands between messages."""
        text = str(event["delta"])
        place = (event["output_index"], event["content_index"])
        before = self._places.get(field)
        if before != place:
            self._places[field] = place
            text = text if before is None else BETWEEN_MESSAGES + text
        self._lengths[field] += len(text)
        before_text, after_text = self._around[field]
        return before_text + orjson.dumps(text) + after_text

    def _halves(self, field: str) -> tuple[bytes, bytes]:
        """Return what stands around the text of each chunk with this field, so that only the text is encoded anew."""
        before_text, _, after_text = self._chunk({field: ""}).rpartition(b'""')
        return before_text, after_text

    def _call(self, event: JsonObject) -> list[bytes]:
        """Build the chunk that announces a call, whose arguments follow."""
        item = cast(JsonObject, event["item"])
        if item["type"] != "function_call":
            return []
        self._calls[event["output_index"]] = call = _SentCall(len(self._calls_by_id))
        return [self._called(call, item["call_id"], item["name"])]

    def _arguments(self, event: JsonObject) -> bytes:
        return self._piece(self._calls[event["output_index"]], str(event["delta"]))

    def _rest_of(self, whole: JsonObject) -> list[bytes]:
        """Build the chunks of what no event has brought of a call."""
        function = cast("dict[str, str]", whole["function"])
        sent = self._calls_by_id.get(whole["id"])
        call = sent or _SentCall(len(self._calls_by_id))
        head = [] if sent else [self._called(call, whole["id"], function["name"])]
        rest = function["arguments"][call.characters :]
        return [*head, self._piece(call, rest)] if rest else head

    def _called(self, call: _SentCall, call_id: JsonValue, name: JsonValue) -> bytes:
        self._calls_by_id[call_id] = call
        function: JsonObject = {"name": name, "arguments": ""}
        return self._chunk(
            {"tool_calls": [{"index": call.place, "id": call_id, "type": "function", "function": function}]}
        )

    def _piece(self, call: _SentCall, piece: str) -> bytes:
        call.characters += len(piece)
        return self._chunk({"tool_calls": [{"index": call.place, "function": {"arguments": piece}}]})

    def _chunk(self, delta: JsonObject, reason: str | None = None) -> bytes:
        ending = b',"logprobs":null,"finish_reason":%b}]' % orjson.dumps(reason)
        return b"".join((self._head, b'[{"index":0,"delta":', orjson.dumps(delta), ending, self._tail))


def _report(event: JsonObject) -> ErrorReport:
    nested = event["error"]
    found: JsonObject = nested if isinstance(nested, dict) else {}
    return ErrorReport.model_validate({**found, "retryable": False})
