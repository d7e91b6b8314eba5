"""Joining the stream events and output items of lanes to those of one response.

Each item of a lane becomes an item of the joined response, marked with the model and the response that it comes from.
Items take their places in the order in which they are announced.
"""

from collections.abc import Iterable, Sequence
from typing import cast

import orjson

from backend.conversations.domain.responses import ItemBody, ResponseStatus
from backend.openai_api.domain.response_events import (
    TERMINAL_EVENTS,
    LoggedEvent,
    UnnumberedEvent,
    encode_event,
    error_event,
)
from backend.openai_api.domain.response_object import (
    Ending,
    ResponseBody,
    build_created_body,
    build_ended_body,
    build_failure,
    read_left_out,
    report_in,
    show_body,
    with_left_out,
)
from backend.openai_api.domain.shown_output import ShownOutput
from backend.turns.domain.lanes import Lane, lane_body, lanes_in
from shared.models.events import ErrorReport, Usage, add_usage
from shared.models.values import JsonObject, objects_in

OF_WHOLE_RESPONSE = frozenset({"response.created", "response.in_progress", "error", *TERMINAL_EVENTS.values()})
"""Events of a lane that are about no item; the joined response has its own."""

DELETED = ErrorReport(
    type="NotFound",
    code="server_error",
    message="The response of this model was deleted.",
    param=None,
    retryable=False,
)


class _LaneOutput:
    """What was shown of a lane: its items, their places in the joined response, and its response once it has ended.

    The next `known_count` events about items were joined before.
    """

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.shown = ShownOutput()
        self.places: list[int] = []
        self.known_count = 0
        self.ended: ResponseBody | None = None

    def mark(self, item: ItemBody) -> ItemBody:
        """Return an item with the model and the response that it comes from."""
        return {**item, "model": self.lane.model, "response_id": self.lane.response_id}

    def item(self, place: int) -> ItemBody:
        """Return an item as the joined response has it; an open one is incomplete."""
        item = self.shown.items[place]
        return self.mark(item if isinstance(item, dict) else item.body("incomplete"))

    def output(self) -> list[ItemBody]:
        """Return the items as the lane's own response has them."""
        return [item if isinstance(item, dict) else item.body("incomplete") for item in self.shown.items]


class JoinedProjection:
    """Builds the events and items of a joined response; each method returns the new events.

    Lanes are named by their places in the response.
    """

    def __init__(self, body: ResponseBody, *, with_results: bool) -> None:
        self._body = body
        self._with_results = with_results
        self._lanes = [_LaneOutput(lane) for lane in lanes_in(body)]
        self._order: list[tuple[_LaneOutput, int]] = []
        self._next_number = 0

    @property
    def last_number(self) -> int:
        """The number of the newest event, -1 before the first."""
        return self._next_number - 1

    @property
    def has_ended(self) -> bool:
        """Whether all lanes have ended."""
        return all(lane.ended is not None for lane in self._lanes)

    def continue_at(self, number: int) -> None:
        """Let the next event have this number."""
        self._next_number = number

    def restore(self, events: Iterable[LoggedEvent]) -> None:
        """Continue behind events that another process has sent, the first ones included."""
        by_response = {lane.lane.response_id: lane for lane in self._lanes}
        for logged in events:
            self._next_number = logged.sequence_number + 1
            if logged.type in OF_WHOLE_RESPONSE:
                continue
            event: JsonObject = orjson.loads(logged.body)
            if logged.type == "response.output_item.added":
                lane = by_response[str(cast(JsonObject, event["item"])["response_id"])]
                self._take_place(lane)
            lane, place = self._order[cast(int, event["output_index"])]
            lane.known_count += 1
            lane.shown.feed((encode_event({**event, "output_index": place, "sequence_number": lane.known_count}),))

    def start(self) -> list[LoggedEvent]:
        """Build the first events; `response.created` has number 0."""
        return [self._number({"type": "response.created", "response": self._body}), self._in_progress()]

    def feed(self, place: int, events: Iterable[LoggedEvent]) -> list[LoggedEvent]:
        """Join events of a lane; those of the whole response, and those that were joined before, give none."""
        lane = self._lanes[place]
        joined: list[LoggedEvent] = []
        for logged in events:
            if logged.type in OF_WHOLE_RESPONSE:
                continue
            if lane.known_count:
                lane.known_count -= 1
                continue
            lane.shown.feed((logged,))
            joined.append(self._join(lane, logged))
        return joined

    def end_lane(self, place: int, ended: ResponseBody | None) -> list[LoggedEvent]:
        """Take the response with which a lane has ended, None where it was deleted.

        The events show what is still missing of its items, then the lanes as they are, unless this was the last one.
        """
        lane = self._lanes[place]
        lane.ended = ended or {**build_created_body(self._body), "output": lane.output(), **_DELETED_END}
        events = [self._join(lane, each) for each in lane.shown.catch_up(objects_in(lane.ended["output"]))]
        return events if self.has_ended else [*events, self._in_progress()]

    def output(self) -> list[ItemBody]:
        """Build the bodies of the items so far; open ones are incomplete."""
        return [lane.item(place) for lane, place in self._order]

    def build_ending(self, *, is_cancelled: bool) -> Ending:
        """Work out how the response ends, once all lanes have."""
        return build_joined_ending([lane.ended or {} for lane in self._lanes], is_cancelled=is_cancelled)

    def finish(self, ending: Ending, now_seconds: int) -> tuple[ResponseBody, list[LoggedEvent]]:
        """End the response; return it as it is to be stored, and the last events."""
        left_out = dict.fromkeys(what for lane in self._lanes for what in read_left_out(lane.ended or {}))
        body = build_ended_body(with_left_out(self._with_lanes(), left_out), self.output(), ending, now_seconds)
        events = [self._number(error_event(ending.error))] if ending.error is not None else []
        shown = show_body(body, with_results=self._with_results)
        events.append(self._number({"type": TERMINAL_EVENTS[ending.status], "response": shown}))
        return body, events

    def _join(self, lane: _LaneOutput, logged: LoggedEvent) -> LoggedEvent:
        event: JsonObject = orjson.loads(logged.body)
        if logged.type == "response.output_item.added":
            self._take_place(lane)
        event["output_index"] = lane.places[cast(int, event["output_index"])]
        if "item" in event:
            event["item"] = lane.mark(cast(JsonObject, event["item"]))
        return self._number(event)

    def _take_place(self, lane: _LaneOutput) -> None:
        self._order.append((lane, len(lane.places)))
        lane.places.append(len(self._order) - 1)

    def _with_lanes(self) -> ResponseBody:
        return {**self._body, "lanes": [lane_body(lane.lane, lane.ended) for lane in self._lanes]}

    def _in_progress(self) -> LoggedEvent:
        return self._number({"type": "response.in_progress", "response": self._with_lanes()})

    def _number(self, event: UnnumberedEvent) -> LoggedEvent:
        event["sequence_number"] = self._next_number
        self._next_number += 1
        return encode_event(event)


_DELETED_END: JsonObject = {
    "status": ResponseStatus.FAILED.value,
    "error": {"code": DELETED.code, "message": DELETED.message, "type": DELETED.type},
}


def build_joined_ending(lanes: Sequence[ResponseBody], *, is_cancelled: bool) -> Ending:
    """Work out how a joined response ends: as the most successful of its lanes, and failed only if all have failed."""
    usage = usage_of(lanes)
    statuses = [str(lane["status"]) for lane in lanes]
    if is_cancelled:
        return Ending(status=ResponseStatus.CANCELLED, usage=usage)
    if ResponseStatus.COMPLETED.value in statuses:
        return Ending(status=ResponseStatus.COMPLETED, usage=usage)
    if ResponseStatus.INCOMPLETE.value in statuses:
        details = cast(
            "dict[str, str]", lanes[statuses.index(ResponseStatus.INCOMPLETE.value)]["incomplete_details"] or {}
        )
        return Ending(status=ResponseStatus.INCOMPLETE, incomplete_reason=details.get("reason"), usage=usage)
    if ResponseStatus.CANCELLED.value in statuses:
        return Ending(status=ResponseStatus.CANCELLED, usage=usage)
    return build_failure(report_in(lanes[0]) or DELETED, usage)


def usage_of(lanes: Sequence[ResponseBody]) -> Usage:
    """Add up what the lanes have used; a lane whose provider reported nothing adds nothing."""
    known = [cast(JsonObject, lane["usage"]) for lane in lanes if lane.get("usage") is not None]
    total = _usage(known[0]) if known else Usage()
    for usage in known[1:]:
        total = add_usage(total, _usage(usage))
    return total


def _usage(body: JsonObject) -> Usage:
    read, written = (cast("dict[str, int]", body[f"{name}_tokens_details"]) for name in ("input", "output"))
    return Usage(
        input_tokens=cast(int, body["input_tokens"]),
        cached_tokens=read["cached_tokens"],
        cache_write_tokens=read["cache_write_tokens"],
        output_tokens=cast(int, body["output_tokens"]),
        reasoning_tokens=written["reasoning_tokens"],
    )
