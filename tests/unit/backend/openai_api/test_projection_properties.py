"""The projection over any script: always valid, gapless, and blind to how text was split."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from backend.openai_api.domain.response_object import Ending, build_ending
from shared.models.coalescing import coalesce
from shared.models.events import (
    CitationAdded,
    ExecutionEvent,
    FinishReason,
    ReasoningDelta,
    RefusalDelta,
    SearchStarted,
    ServedCallStarted,
    TextDelta,
)
from tests.examples import examples
from tests.fakes.openai_types import check_event, check_response
from tests.unit.backend.openai_api.projecting import endings, play, rebuilt, steps
from tests.unit.backend.turns.samples import USAGE, projection


@examples(40)
@given(st.lists(steps, max_size=25), endings)
def test_any_script_makes_a_valid_stream(script: list[ExecutionEvent], ending: Ending) -> None:
    made = projection()
    events = made.start()
    for step in script:
        events.extend(made.feed(step))
    body, last = made.finish(ending, 1_700_000_009)
    events.extend(last)
    knows = not any(isinstance(step, SearchStarted | CitationAdded | ServedCallStarted) for step in script)
    for event in events:
        check_event(event.body, open_responses=knows)
    check_response(body, open_responses=knows)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    terminal = {"response.completed", "response.incomplete", "response.failed"}
    assert [event.type for event in events if event.type in terminal] == [events[-1].type]


@examples(100)
@given(st.lists(steps, max_size=25), endings)
def test_items_are_announced_once_filled_in_order_and_end_as_they_are_stored(
    script: list[ExecutionEvent], ending: Ending
) -> None:
    events, body = play(script, ending)
    assert rebuilt(events) == body["output"]
    for place, item in enumerate(body["output"]):
        told = [event["delta"] for event in events if event.get("output_index") == place and "delta" in event]
        assert item.get("arguments", "".join(told)) == "".join(told)


@examples(100)
@given(st.lists(steps, max_size=15), st.data())
def test_how_text_is_split_changes_nothing(script: list[ExecutionEvent], data: st.DataObject) -> None:
    split: list[ExecutionEvent] = []
    for step in script:
        if isinstance(step, TextDelta | ReasoningDelta | RefusalDelta):
            cut = data.draw(st.integers(0, len(step.text)))
            split.append(step.model_copy(update={"text": step.text[:cut]}))
            split.append(step.model_copy(update={"text": step.text[cut:]}))
        else:
            split.append(step)
    ending = build_ending(FinishReason.STOP, USAGE)
    assert play(split, ending)[1] == play(script, ending)[1]


@examples(100)
@given(st.lists(steps, max_size=25))
def test_joining_deltas_changes_nothing(script: list[ExecutionEvent]) -> None:
    ending = build_ending(FinishReason.STOP, USAGE)
    joined = list(coalesce(script))
    assert play(joined, ending)[1] == play(script, ending)[1]
    assert not any(isinstance(a, TextDelta) and isinstance(b, TextDelta) for a, b in pairwise(joined))
