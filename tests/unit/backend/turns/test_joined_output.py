"""Events and items of lanes, joined in any order in which they come, and by as many processes as it takes."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.conversations.domain.responses import ResponseStatus
from backend.openai_api.domain.response_object import Ending, ResponseBody, build_ending, build_failure
from backend.turns.domain.joined_output import build_joined_ending
from shared.models.events import ErrorReport, ExecutionEvent, FinishReason, Usage
from shared.models.values import objects_in
from tests.examples import examples
from tests.fakes.openai_types import check_joined_event
from tests.unit.backend.openai_api.projecting import rebuilt
from tests.unit.backend.turns.joining import LANES, Said, in_some_order, joined, lanes_of, said, scripts, streamed
from tests.unit.backend.turns.samples import USAGE, counting_ids, decoded

REPORT = ErrorReport(type="ModelUnavailable", code="server_error", message="503", param=None, retryable=True)


@examples(60)
@given(scripts, st.data())
def test_lanes_make_one_valid_stream_in_any_order(
    played: list[tuple[list[ExecutionEvent], Ending]], data: st.DataObject
) -> None:
    lanes = lanes_of(played)
    made, events = streamed(lanes, data)
    body, last = made.finish(made.build_ending(is_cancelled=False), 1_700_000_009)
    shown = decoded([*events, *last])
    assert [event["sequence_number"] for event in shown] == list(range(len(shown)))
    assert rebuilt(shown) == body["output"] == made.output()
    check_lanes(body, lanes)
    if not any("file_" in event.type or b"file_" in event.body for event in events):
        for event in events:
            check_joined_event(event.body)


@examples(60)
@given(scripts, st.data())
def test_another_process_goes_on_behind_any_event(
    played: list[tuple[list[ExecutionEvent], Ending]], data: st.DataObject
) -> None:
    lanes = lanes_of(played)
    first = joined(len(lanes))
    events = first.start()
    order = in_some_order(lanes, data)
    for place, event in order:
        events += first.feed(place, [event])
        if event is lanes[place].events[-1] and data.draw(st.booleans()):
            events += first.end_lane(place, lanes[place].body)
    kept = events[: data.draw(st.integers(2, len(events)))]
    second = joined(len(lanes))
    second.restore(kept)
    for place, lane in data.draw(st.permutations(list(enumerate(lanes)))):
        kept += second.feed(place, lane.events)
        kept += second.end_lane(place, lane.body)
    body, last = second.finish(second.build_ending(is_cancelled=False), 1_700_000_009)
    shown = decoded([*kept, *last])
    assert [event["sequence_number"] for event in shown] == list(range(len(shown)))
    assert rebuilt(shown) == body["output"]
    check_lanes(body, lanes)


@examples(40)
@given(scripts, st.data())
def test_what_events_of_a_lane_did_not_show_its_end_does(
    played: list[tuple[list[ExecutionEvent], Ending]], data: st.DataObject
) -> None:
    """Events are appended, and lost, as those of one step together."""
    lanes = lanes_of(played)
    made = joined(len(lanes))
    events = made.start()
    for place, lane in enumerate(lanes):
        events += made.feed(place, lane.events[: data.draw(st.sampled_from(lane.ends))])
        events += made.end_lane(place, lane.body)
    body, last = made.finish(made.build_ending(is_cancelled=False), 1_700_000_009)
    announced = [event["item"]["id"] for event in decoded(events) if event["type"] == "response.output_item.done"]
    assert sorted(announced) == sorted(str(item["id"]) for item in objects_in(body["output"]))
    check_lanes(body, lanes)
    assert decoded(last)[-1]["response"] == body


def check_lanes(body: ResponseBody, lanes: Sequence[Said]) -> None:
    """Check that each lane's items are those of its own response, in their order, and marked."""
    output = objects_in(body["output"])
    for lane, own in zip(LANES, lanes, strict=False):
        found = [item for item in output if item["response_id"] == lane.response_id]
        marks = {"model": lane.model, "response_id": lane.response_id}
        assert found == [{**item, **marks} for item in objects_in(own.body["output"])]
    assert [lane["status"] for lane in objects_in(body["lanes"])] == [own.body["status"] for own in lanes]


def ended(status: str, **fields: Any) -> ResponseBody:
    return {"status": status, "usage": None, "error": None, "incomplete_details": None, **fields}


CUT = ended("incomplete", incomplete_details={"reason": "max_output_tokens"})
FAILED = ended("failed", error={"code": "server_error", "message": "503", "type": "ModelUnavailable"})


@pytest.mark.parametrize(
    ("lanes", "expected"),
    [
        ([FAILED, ended("completed")], Ending(status=ResponseStatus.COMPLETED)),
        ([CUT, ended("completed")], Ending(status=ResponseStatus.COMPLETED)),
        ([FAILED, CUT], build_ending(FinishReason.LENGTH, Usage())),
        ([FAILED, ended("incomplete")], Ending(status=ResponseStatus.INCOMPLETE)),
        ([FAILED, ended("cancelled")], Ending(status=ResponseStatus.CANCELLED)),
        ([FAILED, FAILED], build_failure(REPORT.model_copy(update={"retryable": False}), Usage())),
    ],
)
def test_a_joined_response_ends_as_the_most_successful_of_its_lanes(
    lanes: list[ResponseBody], expected: Ending
) -> None:
    assert build_joined_ending(lanes, is_cancelled=False) == expected
    assert build_joined_ending(lanes, is_cancelled=True).status is ResponseStatus.CANCELLED


def test_usage_is_the_sum_of_the_lanes() -> None:
    told = said([], build_ending(FinishReason.STOP, USAGE), counting_ids()).body
    usage = build_joined_ending([told, ended("failed"), told], is_cancelled=False).usage
    assert usage == Usage(input_tokens=22, cached_tokens=8, cache_write_tokens=0, output_tokens=14, reasoning_tokens=4)
