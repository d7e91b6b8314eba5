"""Several models that answer one request: what each has said, and in which order it comes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from backend.openai_api.domain.response_events import LoggedEvent
from backend.openai_api.domain.response_object import Ending, ResponseBody
from backend.openai_api.domain.response_projection import ResponseProjection
from backend.turns.domain.joined_output import JoinedProjection
from backend.turns.domain.lanes import Lane, lane_body
from shared.models.events import ExecutionEvent
from tests.unit.backend.openai_api.projecting import endings, steps
from tests.unit.backend.turns.samples import counting_ids, fresh_body, request

LANES = [Lane(model=name, response_id=f"resp_{name}", conversation_id=f"conv_{name}") for name in ("a", "b", "c")]
scripts = st.lists(st.tuples(st.lists(steps, max_size=12), endings), min_size=2, max_size=3)
BOTH = ["demo-model", "vendor/large"]


class Said(NamedTuple):
    """What one lane has said: its events, where those of each step end, and its response at the end."""

    events: Sequence[LoggedEvent]
    ends: Sequence[int]
    body: ResponseBody


def joined(count: int) -> JoinedProjection:
    lanes = [lane_body(lane, None) for lane in LANES[:count]]
    return JoinedProjection({**fresh_body(request()), "lanes": lanes}, with_results=True)


def said(script: Sequence[ExecutionEvent], ending: Ending, new_id: Any) -> Said:
    made = ResponseProjection(fresh_body(request()), new_id, with_results=True)
    events, ends = made.start(), [0]
    for step in script:
        ends.append(len(events))
        events += made.feed(step)
    body, last = made.finish(ending, 1_700_000_009)
    return Said([*events, *last], [*ends, len(events), len(events) + len(last)], body)


def lanes_of(played: Sequence[tuple[Sequence[ExecutionEvent], Ending]]) -> list[Said]:
    new_id = counting_ids()
    return [said(script, ending, new_id) for script, ending in played]


def in_some_order(lanes: Sequence[Said], data: st.DataObject) -> list[tuple[int, LoggedEvent]]:
    """Return the events of all lanes in an order that one process may find them in."""
    places = [place for place, lane in enumerate(lanes) for _ in lane.events]
    left = [iter(lane.events) for lane in lanes]
    return [(place, next(left[place])) for place in data.draw(st.permutations(places))]


def texts(body: dict[str, Any]) -> dict[str, str]:
    """Return what each model has said, by its name."""
    said: dict[str, str] = {}
    for item in body["output"]:
        if item["type"] == "message":
            text = "".join(part["text"] for part in item["content"])
            said[item["model"]] = said.get(item["model"], "") + text
    return said


def statuses(body: dict[str, Any]) -> list[str]:
    return [lane["status"] for lane in body["lanes"]]


def streamed(lanes: Sequence[Said], data: st.DataObject) -> tuple[JoinedProjection, list[LoggedEvent]]:
    """Join the events of lanes in some order, to where all have ended."""
    made = joined(len(lanes))
    events = made.start()
    for place, event in in_some_order(lanes, data):
        events += made.feed(place, [event])
        if event is lanes[place].events[-1]:
            events += made.end_lane(place, lanes[place].body)
    return made, events
