"""Translating the stream events of a response to chunks of OpenAI's Chat Completions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import orjson

from backend.conversations.domain.item_bodies import BETWEEN_MESSAGES
from backend.openai_api.domain.chat_completion import (
    CALLED,
    Addresses,
    Choice,
    Said,
    choices_in,
    completion_usage,
    failure_in,
    finish_reason,
    logprobs_body,
    url_citations,
)
from backend.openai_api.domain.response_events import TERMINAL_TYPES, LoggedEvent
from backend.openai_api.domain.response_object import ResponseBody
from shared.models.events import ErrorReport
from shared.models.values import JsonObject, JsonValue, objects_in

DELTA_FIELDS = {
    "response.output_text.delta": "content",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_content",
}
"""The field of a chunk's delta that takes the text of an event. `reasoning_content` is not OpenAI's own, who show no
reasoning here; it is the field in which other servers send it, and from which clients read it."""

_CALL_DELTAS = frozenset({"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"})


@dataclass(slots=True)
class _SentCall:
    """A call as far as chunks have brought it: its place among the calls, its kind, and the length of its text."""

    place: int
    kind: str
    text: str
    characters: int = 0


class ChunkProjection:
    """Builds the chunks of one stream; each method returns the JSON texts of new ones.

    `choices` are the answers once the terminal event has been fed. `failure` is set where an error ends the stream.
    """

    def __init__(self, *, includes_usage: bool) -> None:
        self._includes_usage = includes_usage
        self._head = b""
        self._tail = b',"usage":null}' if includes_usage else b"}"
        self._chunks: list[_ChoiceChunks] = []
        self._by_lane: dict[JsonValue, _ChoiceChunks] = {}
        self._by_item: dict[JsonValue, _ChoiceChunks] = {}
        self._usage: JsonObject | None = None
        self.choices: tuple[Choice, ...] = ()
        self.failure: ErrorReport | None = None

    def feed(self, events: Iterable[LoggedEvent]) -> list[bytes]:
        """Translate events; those that a client of Chat Completions does not see give no chunk.

        The terminal event gives none yet: `finish` does, which has to know the addresses of the documents.
        """
        chunks: list[bytes] = []
        for event in events:
            field = DELTA_FIELDS.get(event.type)
            if field is not None:
                shown = orjson.loads(event.body)
                chunks.append(self._by_item[shown["output_index"]].text(field, shown))
            elif event.type == "response.output_item.added":
                chunks += self._announce(orjson.loads(event.body))
            elif event.type in _CALL_DELTAS:
                shown = orjson.loads(event.body)
                chunks.append(self._by_item[shown["output_index"]].arguments(shown))
            else:
                chunks += self._stage(event)
        return chunks

    def finish(self, addresses: Addresses) -> list[bytes]:
        """Build the last chunks: what no event has brought, the citations, why each answer ended, and the usage.

        Of an answer that failed there is only the first of these: its error follows.
        """
        ended = list(zip(self._chunks, self.choices, strict=True))
        rests = [chunk for chunks, choice in ended for chunk in chunks.rest(choice.said)]
        if self.failure is not None:
            return rests
        endings = [chunk for chunks, choice in ended for chunk in chunks.build_ending(choice, addresses)]
        shows_usage = self._includes_usage and self._usage is not None
        used = [self._head + b'[],"usage":' + orjson.dumps(self._usage) + b"}"] if shows_usage else []
        return [*rests, *endings, *used]

    def _stage(self, event: LoggedEvent) -> list[bytes]:
        """Translate an event about the response as a whole."""
        if event.type == "response.created":
            return self._open(orjson.loads(event.body)["response"])
        if event.type == "error":
            self.failure = _report(orjson.loads(event.body))
        elif event.type in TERMINAL_TYPES:
            body: ResponseBody = orjson.loads(event.body)["response"]
            self.choices, self._usage = choices_in(body), completion_usage(body)
            self.failure = self.failure or failure_in(self.choices)
        return []

    def _open(self, body: ResponseBody) -> list[bytes]:
        head: JsonObject = {
            "id": body["id"],
            "object": "chat.completion.chunk",
            "created": body["created_at"],
            "model": body["model"],
            "service_tier": "default",
            "system_fingerprint": None,
        }
        self._head = orjson.dumps(head)[:-1] + b',"choices":'
        lanes = [lane["response_id"] for lane in objects_in(body.get("lanes") or [])] or [None]
        self._chunks = [_ChoiceChunks(self._head, index, self._tail) for index in range(len(lanes))]
        self._by_lane = dict(zip(lanes, self._chunks, strict=True))
        return [chunks.build_opening() for chunks in self._chunks]

    def _announce(self, event: JsonObject) -> list[bytes]:
        """Note whose answer an item belongs to; only the items of joined responses name their lane."""
        item = cast(JsonObject, event["item"])
        self._by_item[event["output_index"]] = chunks = self._by_lane[item.get("response_id")]
        return [chunks.call(event["output_index"], item)] if item["type"] in CALLED else []


class _ChoiceChunks:
    """Builds the chunks of one answer; `head` and `tail` stand around the choices of each chunk."""

    def __init__(self, head: bytes, index: int, tail: bytes) -> None:
        self._before = head + b'[{"index":%d,"delta":' % index
        self._tail = tail
        self._lengths = dict.fromkeys(DELTA_FIELDS.values(), 0)
        self._logprobs_count = 0
        self._around = {field: self._halves(field) for field in self._lengths}
        self._places: dict[str, tuple[JsonValue, JsonValue]] = {}
        self._calls: dict[JsonValue, _SentCall] = {}
        self._sent: list[_SentCall] = []

    def build_opening(self) -> bytes:
        """Build the first chunk."""
        return self._chunk({"role": "assistant", "content": "", "refusal": None})

    def text(self, field: str, event: JsonObject) -> bytes:
        """Build the chunk of a delta; the first one of a further message begins with what stands between messages."""
        text = str(event["delta"])
        place = (event["output_index"], event["content_index"])
        before = self._places.get(field)
        if before != place:
            self._places[field] = place
            text = text if before is None else BETWEEN_MESSAGES + text
        self._lengths[field] += len(text)
        logprobs = event.get("logprobs")
        if logprobs:
            return self._chunk({field: text}, logprobs=objects_in(logprobs))
        before_text, after_text = self._around[field]
        return before_text + orjson.dumps(text) + after_text

    def call(self, output_index: JsonValue, item: JsonObject) -> bytes:
        """Build the chunk that announces a call, whose arguments follow."""
        announced = self._call(CALLED[item["type"]], item["call_id"], item["name"])
        self._calls[output_index] = self._sent[-1]
        return announced

    def arguments(self, event: JsonObject) -> bytes:
        """Build the chunk of a piece of a call's arguments."""
        return self._piece(self._calls[event["output_index"]], str(event["delta"]))

    def rest(self, said: Said) -> list[bytes]:
        """Build the chunks of what no event has brought."""
        texts = {"content": said.content, "refusal": said.refusal, "reasoning_content": said.reasoning}
        rests = {field: text[self._lengths[field] :] for field, text in texts.items()}
        chunks = [self._chunk({field: rest}) for field, rest in rests.items() if rest]
        if logprobs := said.logprobs[self._logprobs_count :]:
            chunks.append(self._chunk({"content": ""}, logprobs=logprobs))
        return [*chunks, *(chunk for place, call in enumerate(said.calls) for chunk in self._rest_of(place, call))]

    def build_ending(self, choice: Choice, addresses: Addresses) -> list[bytes]:
        """Build the chunks of the citations, and of why the answer ended."""
        annotations = url_citations(choice.said, addresses)
        noted = [self._chunk({"content": "", "annotations": annotations})] if annotations else []
        return [*noted, self._chunk({}, finish_reason(choice))]

    def _halves(self, field: str) -> tuple[bytes, bytes]:
        """Return what stands around the text of each chunk with this field, so that only the text is encoded anew."""
        before_text, _, after_text = self._chunk({field: ""}).rpartition(b'""')
        return before_text, after_text

    def _rest_of(self, place: int, whole: JsonObject) -> list[bytes]:
        """Build the chunks of what no event has brought of a call."""
        kind, text = form = next(each for each in CALLED.values() if each[0] == whole["type"])
        called = cast("dict[str, str]", whole[kind])
        head = [self._call(form, whole["id"], called["name"])] if place == len(self._sent) else []
        call = self._sent[place]
        rest = called[text][call.characters :]
        return [*head, self._piece(call, rest)] if rest else head

    def _call(self, form: tuple[str, str], call_id: JsonValue, name: JsonValue) -> bytes:
        call = _SentCall(len(self._sent), *form)
        self._sent.append(call)
        called: JsonObject = {"name": name, call.text: ""}
        return self._chunk({"tool_calls": [{"index": call.place, "id": call_id, "type": call.kind, call.kind: called}]})

    def _piece(self, call: _SentCall, piece: str) -> bytes:
        call.characters += len(piece)
        return self._chunk({"tool_calls": [{"index": call.place, call.kind: {call.text: piece}}]})

    def _chunk(self, delta: JsonObject, reason: str | None = None, logprobs: Sequence[JsonObject] = ()) -> bytes:
        self._logprobs_count += len(logprobs)
        told = orjson.dumps(logprobs_body(logprobs))
        ending = b',"logprobs":%b,"finish_reason":%b}]' % (told, orjson.dumps(reason))
        return b"".join((self._before, orjson.dumps(delta), ending, self._tail))


def _report(event: JsonObject) -> ErrorReport:
    nested = event["error"]
    found: JsonObject = nested if isinstance(nested, dict) else {}
    return ErrorReport.model_validate({**found, "retryable": False})
