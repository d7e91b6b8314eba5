"""The projection over any script: always valid, gapless, and blind to how text was split."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backend.conversations.domain.responses import ResponseStatus
from backend.openai_api.domain.response_object import Ending, failed, finished
from shared.models.coalescing import coalesced
from shared.models.events import (
    CitationAdded,
    ErrorReport,
    ExecutionEvent,
    FinishReason,
    FunctionCallDelta,
    FunctionCallRequested,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    ReasoningDelta,
    RefusalDelta,
    SearchFinished,
    SearchResult,
    SearchStarted,
    ServedCallFinished,
    ServedCallStarted,
    TextDelta,
)
from shared.models.messages import AssistantMessage
from tests.examples import examples
from tests.fakes.openai_types import check_event, check_response
from tests.unit.backend.turns.samples import USAGE, decoded, projection

texts = st.text(st.characters(codec="utf-8"), max_size=12)
call_ids = st.sampled_from(["a", "b", "c"])
hits = st.builds(
    SearchResult, number=st.integers(1, 9), file_id=texts, filename=texts, score=st.floats(0, 1), text=texts
)
steps: st.SearchStrategy[ExecutionEvent] = st.one_of(
    st.builds(TextDelta, text=texts),
    st.builds(ReasoningDelta, text=texts),
    st.builds(RefusalDelta, text=texts),
    st.builds(CitationAdded, number=st.integers(1, 9), file_id=texts, filename=texts, index=st.integers(0, 40)),
    st.builds(ModelCallStarted, call=st.integers(1, 3)),
    st.builds(
        ModelCallFinished, call=st.integers(1, 3), finish_reason=st.sampled_from(FinishReason), usage=st.just(USAGE)
    ),
    st.builds(SearchStarted, call_id=call_ids, queries=st.tuples(texts)),
    st.builds(SearchFinished, call_id=call_ids, failed=st.booleans(), results=st.tuples(hits)),
    st.builds(ServedCallStarted, call_id=call_ids, server=texts, tool=texts, arguments=texts),
    st.builds(ServedCallFinished, call_id=call_ids, output=texts, failed=st.booleans()),
    st.builds(FunctionCallDelta, call_id=call_ids, name=st.just("f"), arguments=texts),
    st.builds(FunctionCallRequested, call_id=call_ids, name=st.just("f"), arguments=texts),
    st.just(MessagesAdded(messages=(AssistantMessage(text="x"),))),
)
endings = st.one_of(
    st.builds(finished, st.sampled_from(FinishReason), st.just(USAGE)),
    st.just(Ending(status=ResponseStatus.CANCELLED)),
    st.just(failed(ErrorReport(type="T", code="server_error", message="m", param=None, retryable=False), USAGE)),
)


def play(script: Sequence[ExecutionEvent], ending: Ending) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    made = projection()
    events = made.start()
    for step in script:
        events.extend(made.feed(step))
    body, last = made.finish(ending, 1_700_000_009)
    return decoded([*events, *last]), body


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
    ending = finished(FinishReason.STOP, USAGE)
    assert play(split, ending)[1] == play(script, ending)[1]


@examples(100)
@given(st.lists(steps, max_size=25))
def test_joining_deltas_changes_nothing(script: list[ExecutionEvent]) -> None:
    ending = finished(FinishReason.STOP, USAGE)
    joined = list(coalesced(script))
    assert play(joined, ending)[1] == play(script, ending)[1]
    assert not any(isinstance(a, TextDelta) and isinstance(b, TextDelta) for a, b in pairwise(joined))


def rebuilt(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the output together as a strict client would; anything out of order fails here."""
    opened: dict[int, str] = {}
    texts_by_part: dict[tuple[int, int], str] = {}
    done: dict[int, dict[str, Any]] = {}
    for event in events:
        index: int = event.get("output_index", -1)
        match event["type"].removeprefix("response."):
            case "output_item.added":
                assert index == len(opened)
                opened[index] = event["item"]["id"]
                texts_by_part[index, -1] = ""
            case "content_part.added":
                assert opened[index] == event["item_id"]
                texts_by_part[index, event["content_index"]] = ""
            case "output_text.delta" | "refusal.delta" | "reasoning_text.delta" | "function_call_arguments.delta":
                texts_by_part[index, event.get("content_index", -1)] += event["delta"]
            case "output_text.done" | "reasoning_text.done":
                assert texts_by_part[index, event["content_index"]] == event["text"]
            case "function_call_arguments.done":
                assert texts_by_part[index, -1] == event["arguments"]
            case "output_item.done":
                assert index not in done
                assert opened[index] == event["item"]["id"]
                done[index] = event["item"]
            case _:
                pass
    assert sorted(done) == sorted(opened)
    return [done[index] for index in sorted(done)]
