"""Events that are rebuilt continue those that were shown, whatever was shown and lost."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backend.conversations.domain.responses import ItemBody
from backend.openai_api.domain.response_events import LoggedEvent, encode_event
from backend.openai_api.domain.response_object import Ending, build_ending
from backend.openai_api.domain.shown_output import MOST_REBUILT, ShownOutput
from shared.models.events import ExecutionEvent, FinishReason, TextDelta
from shared.models.values import objects_in
from tests.examples import examples
from tests.fakes.openai_types import check_event
from tests.unit.backend.openai_api.projecting import endings, play, steps
from tests.unit.backend.turns.samples import USAGE, decoded, projection

OPENAI_ONLY = (b"file_search", b"file_citation", b"mcp_call")


def shown_of(events: Sequence[Mapping[str, Any]]) -> ShownOutput:
    shown = ShownOutput()
    shown.feed(encode_event(event) for event in events)
    return shown


def told_in(events: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Join the deltas of each part."""
    told: dict[str, str] = {}
    for event in events:
        if "delta" in event:
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
    rest = shown_of(before).rest_until(len(events) - 1, body)
    assert rest is not None
    rebuilt = decoded(list(rest))
    assert [event["sequence_number"] for event in (*before, *rebuilt)] == list(range(len(events) - 1))
    assert told_in([*before, *rebuilt]) == told_in(events)
    output: Sequence[ItemBody] = objects_in(body["output"])
    assert sorted(closed_in([*before, *rebuilt])) == sorted(str(item["id"]) for item in output)
    for event in rest:
        check_event(event.body, open_responses=not any(word in event.body for word in OPENAI_ONLY))


def test_a_lost_text_comes_in_as_many_deltas_as_were_lost() -> None:
    events, body = play(
        [TextDelta(text=text) for text in ("One", " and", " two", ".")], build_ending(FinishReason.STOP, USAGE)
    )
    rest = shown_of(events[:5]).rest_until(len(events) - 1, body)
    assert rest is not None
    deltas = [event["delta"] for event in decoded(list(rest)) if event["type"].endswith(".delta")]
    assert (len(deltas), "".join(deltas)) == (3, " and two.")


def test_a_number_far_above_all_others_is_not_filled_up_to() -> None:
    events, body = play([TextDelta(text="One")], build_ending(FinishReason.STOP, USAGE))
    assert shown_of(events[:3]).rest_until(len(events) + MOST_REBUILT, body) is None
    assert shown_of(events[:3]).rest_until(3, body) is None
