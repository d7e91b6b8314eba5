"""Events that are rebuilt continue those that were shown, whatever was shown and lost."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backend.conversations.domain.responses import ItemBody
from backend.openai_api.domain.response_events import LoggedEvent, encode_event
from backend.openai_api.domain.response_object import Ending
from backend.openai_api.domain.shown_output import ShownOutput
from shared.models.events import ExecutionEvent
from shared.models.values import objects_in
from tests.examples import examples
from tests.fakes.openai_types import check_event
from tests.unit.backend.openai_api.projecting import endings, play, steps
from tests.unit.backend.turns.samples import decoded, projection

OPENAI_ONLY = (b"file_search", b"file_citation", b"mcp_call")


def shown_of(events: Sequence[Mapping[str, Any]]) -> ShownOutput:
    shown = ShownOutput()
    shown.feed(encode_event(event) for event in events)
    return shown


def told_in(events: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Join the deltas of each part."""
    told: dict[str, str] = {}
    for event in events:
        if event.get("delta"):
            place = f"{event['item_id']} {event.get('content_index')}"
            told[place] = told.get(place, "") + event["delta"]
    return told


def begun(script: Sequence[ExecutionEvent]) -> list[LoggedEvent]:
    made = projection()
    return [*made.start(), *(event for step in script for event in made.feed(step))]


def closed_in(events: Sequence[Mapping[str, Any]]) -> list[str]:
    return [event["item"]["id"] for event in events if event["type"] == "response.output_item.done"]


@examples(60)
@given(st.lists(steps, max_size=25), endings, st.integers(0, 25))
def test_any_last_events_can_be_rebuilt(script: list[ExecutionEvent], ending: Ending, kept: int) -> None:
    """Events are appended, and lost, as those of one step together."""
    events, body = play(script, ending)
    before = events[: len(begun(script[:kept]))]
    output: Sequence[ItemBody] = objects_in(body["output"])
    rest = shown_of(before).catch_up(output)
    rebuilt = decoded(list(rest))
    assert [event["sequence_number"] for event in rebuilt] == list(range(len(before), len(before) + len(rest)))
    assert told_in([*before, *rebuilt]) == told_in(events)
    assert sorted(closed_in([*before, *rebuilt])) == sorted(str(item["id"]) for item in output)
    for event in rest:
        check_event(event.body, open_responses=not any(word in event.body for word in OPENAI_ONLY))
