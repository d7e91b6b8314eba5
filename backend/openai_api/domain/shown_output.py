"""The output that clients have seen of a response, read from its events; and events rebuilt from stored output."""

from collections.abc import Iterable, Sequence
from typing import cast

import orjson

from backend.conversations.domain.responses import ItemBody
from backend.openai_api.domain.output_items import (
    ItemStatus,
    OpenCall,
    OpenCustomCall,
    OpenSearch,
    OpenServedCall,
    OpenText,
    PartKind,
    compaction_events,
    show_call,
)
from backend.openai_api.domain.response_events import LoggedEvent, UnnumberedEvent, encode_event
from shared.models.events import ServedCallFinished
from shared.models.values import JsonObject, objects_in

OpenItem = OpenText | OpenSearch | OpenServedCall | OpenCall

_DELTAS: dict[str, PartKind] = {
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_text",
}
_READ = frozenset({*_DELTAS, f"{OpenCall.text_event}.delta", f"{OpenCustomCall.text_event}.delta"})


class ShownOutput:
    """The output items as the events of a response have shown them so far, and the number of the next event.

    `known` are items that were stored: their bodies hold search results, which events may leave out.
    """

    def __init__(self, known: Sequence[ItemBody] = ()) -> None:
        self.items: list[ItemBody | OpenItem] = []
        self.next_number = 0
        self._known = {item["id"]: item for item in known}

    @property
    def message(self) -> OpenText | None:
        """The message that is still open."""
        return self._open("message")

    @property
    def reasoning(self) -> OpenText | None:
        """The reasoning that is still open."""
        return self._open("reasoning")

    @property
    def searches(self) -> tuple[OpenSearch, ...]:
        """The searches that are still open."""
        return tuple(item for item in self.items if isinstance(item, OpenSearch))

    @property
    def served_calls(self) -> tuple[OpenServedCall, ...]:
        """The calls of tool servers that are still open."""
        return tuple(item for item in self.items if isinstance(item, OpenServedCall))

    @property
    def calls(self) -> tuple[OpenCall, ...]:
        """The calls of the client's functions that are still open."""
        return tuple(item for item in self.items if isinstance(item, OpenCall))

    def feed(self, events: Iterable[LoggedEvent]) -> None:
        """Read events, which continue the ones before."""
        for logged in events:
            self.next_number = logged.sequence_number + 1
            if logged.type.startswith("response.output") or logged.type in _READ:
                self._read(logged.type, orjson.loads(logged.body))

    def catch_up(self, output: Sequence[ItemBody]) -> tuple[LoggedEvent, ...]:
        """Take items that were stored and closed; return the events that show clients what they miss of them."""
        missing: list[UnnumberedEvent] = []
        for place, item in enumerate(output):
            shown = self.items[place] if place < len(self.items) else None
            if shown is None:
                missing += _events_of(item, place)
            elif not isinstance(shown, dict):
                missing += _rest_of(item, shown)
        first = self.next_number
        self.take(output, first + len(missing))
        return tuple(encode_event({**event, "sequence_number": first + n}) for n, event in enumerate(missing))

    def take(self, output: Sequence[ItemBody], next_number: int) -> None:
        """Take the stored items as they are, where there are no events to read."""
        self.items = list(output)
        self.next_number = next_number

    def _open(self, kind: str) -> OpenText | None:
        texts = (item for item in reversed(self.items) if isinstance(item, OpenText))
        return next((text for text in texts if text.kind == kind), None)

    def _read(self, kind: str, event: JsonObject) -> None:
        match kind:
            case "response.output_item.added":
                self.items.append(_open(cast(JsonObject, event["item"]), len(self.items)))
            case "response.output_item.done":
                body = cast(JsonObject, event["item"])
                known = self._known.get(body["id"])
                # The stored body of an item that was stored while it was open is not the last one.
                is_same = known is not None and known.get("status") == body.get("status")
                self.items[self._place(event)] = known if known is not None and is_same else body
            case "response.output_text.annotation.added":
                item = self.items[self._place(event)]
                if isinstance(item, OpenText):
                    item.restore_annotations([*item.annotations, cast(JsonObject, event["annotation"])])
            case _:
                item = self.items[self._place(event)] if "delta" in event else None
                if isinstance(item, OpenText):
                    item.add(_DELTAS[kind], str(event["delta"]), objects_in(event.get("logprobs") or []))
                elif isinstance(item, OpenCall):
                    item.add(str(event["delta"]))

    def _place(self, event: JsonObject) -> int:
        return cast(int, event["output_index"])


def _open(item: JsonObject, place: int) -> ItemBody | OpenItem:
    item_id = str(item["id"])
    match item["type"]:
        case "message":
            return OpenText("message", item_id, place)
        case "reasoning":
            return OpenText("reasoning", item_id, place)
        case "file_search_call":
            return OpenSearch(item_id, place, tuple(cast("list[str]", item["queries"])))
        case "compaction":
            return item
        case "mcp_call":
            return show_call(item, place)
        case OpenCustomCall.item_type:
            return OpenCustomCall(item_id, place, str(item["call_id"]), str(item["name"]))
        case _:
            return OpenCall(item_id, place, str(item["call_id"]), str(item["name"]))


def _events_of(item: ItemBody, place: int) -> list[UnnumberedEvent]:
    """Build all events of a closed item."""
    opened = _open(item, place)
    if not isinstance(opened, dict):
        return [*opened.announce(), *_rest_of(item, opened)]
    return compaction_events(place, item)


def _rest_of(item: ItemBody, shown: OpenItem) -> list[UnnumberedEvent]:
    """Build the events that show the rest of a closed item."""
    status = cast(ItemStatus, item["status"])
    if isinstance(shown, OpenServedCall):
        shown.end(_result_in(item))
        return shown.finish(status)
    if isinstance(shown, OpenSearch):
        return shown.finish(status, with_results=False)
    if isinstance(shown, OpenCall):
        rest = str(item[shown.text_field]).removeprefix(shown.text)
        return [*(shown.add(rest) if rest else []), *shown.finish(status)]
    said = iter(shown.texts)
    events: list[UnnumberedEvent] = []
    for part in objects_in(item["content"]):
        text = str(part.get("text") or part.get("refusal") or "")
        rest = text.removeprefix(next(said, ""))
        events += shown.add(cast(PartKind, part["type"]), rest) if rest else []
        shown.restore_annotations(objects_in(part.get("annotations") or []))
        shown.restore_logprobs(objects_in(part.get("logprobs") or []))
    return [*events, *shown.finish(status)]


def _result_in(item: ItemBody) -> ServedCallFinished:
    """Return what the item of a call says of its result."""
    error = cast("JsonObject | None", item["error"])
    output = item["output"] if error is None else error["content"]
    return ServedCallFinished(call_id="", output=str(output or ""), failed=error is not None)
