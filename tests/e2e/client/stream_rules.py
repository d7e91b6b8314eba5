"""The rules of a stream of events, frame by frame and event by event."""

from typing import Any

import orjson

from tests.e2e.client.answers import speaks_open_responses
from tests.fakes.openai_types import check_chunk, check_event

DONE_FRAME = b"data: [DONE]"
TERMINAL = ("response.completed", "response.incomplete", "response.failed")
Event = dict[str, Any]


def events_in(body: bytes) -> list[Event]:
    """Read the whole frames of a stream; comments and `[DONE]` are left out."""
    return [orjson.loads(data) for data in _event_bodies(body)]


def check_stream(body: bytes, *, is_whole: bool, first_number: int) -> None:
    """Check a stream that begins behind some event; one that the client left is checked as far as it came."""
    if is_whole:
        assert body.endswith(DONE_FRAME + b"\n\n")
    events = events_in(body)
    if not _stands_for_lost_events(events):
        assert [event["sequence_number"] for event in events] == list(range(first_number, first_number + len(events)))
        if first_number == 0:
            _check_from_the_beginning(events)
    responses = [event["response"] for event in events if "response" in event]
    open_responses = all(speaks_open_responses(response) for response in responses)
    for data in _event_bodies(body):
        check_event(data, open_responses=open_responses)
    assert not any(event["type"] in TERMINAL for event in events[:-1])
    if is_whole and events:
        assert events[-1]["type"] in TERMINAL


def check_chunks(body: bytes, *, is_whole: bool) -> None:
    """Check a stream of chat completion chunks: frames of data alone, one message, one end or an error."""
    datas = [frame for frame in body.split(b"\n\n")[:-1] if not frame.startswith(b":")]
    assert all(data.startswith(b"data: ") for data in datas)
    if is_whole:
        assert datas.pop() == DONE_FRAME
    texts = [data.removeprefix(b"data: ") for data in datas]
    errors = [orjson.loads(text)["error"] for text in texts if text.startswith(b'{"error"')]
    assert all(set(error) == {"message", "type", "param", "code"} for error in errors)
    chunks = [check_chunk(text) for text in texts if not text.startswith(b'{"error"')]
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert [choice["delta"].get("role") for choice in choices] == ["assistant", *[None] * (len(choices) - 1)]
    if is_whole:
        assert len(errors) + sum(choice["finish_reason"] is not None for choice in choices) == 1
        assert not errors or texts[-1].startswith(b'{"error"')


def _stands_for_lost_events(events: list[Event]) -> bool:
    """Tell a replay whose events are no longer kept: the first event and the last, or the last alone."""
    types = [event["type"] for event in events]
    return types[-1:] != [] and types[-1] in TERMINAL and types[:-1] in ([], ["response.created"])


def _check_from_the_beginning(events: list[Event]) -> None:
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"][: len(events)]
    _Assembly().check(events)


def _event_bodies(body: bytes) -> list[bytes]:
    frames = body.split(b"\n\n")[:-1]
    if frames and frames[-1] == DONE_FRAME:
        frames.pop()
    return [_event_body(frame) for frame in frames if not frame.startswith(b":")]


def _event_body(frame: bytes) -> bytes:
    """Take a frame apart, which is exactly two lines: `event:` as the type says, then `data:`."""
    event_line, payload_line = frame.split(b"\n")
    data = payload_line.removeprefix(b"data: ")
    assert data != payload_line
    assert event_line == b"event: " + orjson.loads(data)["type"].encode()
    return data


class _Assembly:
    """Puts the response together from the events alone, and compares it with what the last event says."""

    def __init__(self) -> None:
        self._open: dict[int, Event] = {}
        self._done: dict[int, Event] = {}
        self._parts: dict[tuple[int, int], Event] = {}

    def check(self, events: list[Event]) -> None:
        for event in events:
            match event["type"].removeprefix("response.").split("."):
                case ["output_item", "added"]:
                    self._add_item(event)
                case ["output_item", "done"]:
                    self._finish_item(event)
                case ["content_part", "added"]:
                    self._add_part(event)
                case ["content_part", "done"]:
                    assert self._parts[_place(event)] == event["part"]
                case [*_, "delta" | "done" | "added" | "in_progress" | "searching" | "completed"] if "item_id" in event:
                    self._feed(event)
                case _:
                    pass
        if events and events[-1]["type"] in TERMINAL:
            assert not self._open
            assert events[-1]["response"]["output"] == [self._done[index] for index in sorted(self._done)]
            assert sorted(self._done) == list(range(len(self._done)))

    def _add_item(self, event: Event) -> None:
        index = event["output_index"]
        assert index not in self._open
        assert index not in self._done
        assert event["item"]["status"] == "in_progress"
        self._open[index] = event["item"]

    def _finish_item(self, event: Event) -> None:
        index, item = event["output_index"], event["item"]
        opened = self._open.pop(index)
        assert (opened["id"], opened["type"]) == (item["id"], item["type"])
        parts = [self._parts[place] for place in sorted(self._parts) if place[0] == index]
        assert (item.get("content") or []) == parts
        self._done[index] = item

    def _add_part(self, event: Event) -> None:
        assert _place(event) not in self._parts
        self._parts[_place(event)] = {**event["part"]}

    def _feed(self, event: Event) -> None:
        """Follow an item's own events, all of which lie between its beginning and its end."""
        assert self._open[event["output_index"]]["id"] == event["item_id"]
        if "content_index" not in event:
            return
        part = self._parts[_place(event)]
        key = "refusal" if part["type"] == "refusal" else "text"
        if "delta" in event:
            assert event["delta"]
            part[key] += event["delta"]
        elif "annotation" in event:
            assert event["annotation_index"] == len(part["annotations"])
            part["annotations"] = [*part["annotations"], event["annotation"]]
        else:
            assert part[key] == event[key]


def _place(event: Event) -> tuple[int, int]:
    return event["output_index"], event["content_index"]
