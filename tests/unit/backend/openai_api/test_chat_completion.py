"""Chat completions and their chunks: strictly what OpenAI's types say, and the same answer both ways."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.conversations.domain.responses import ResponseStatus
from backend.openai_api.domain.response_events import LoggedEvent, build_created_event, terminal_event
from backend.openai_api.domain.response_object import Ending, build_ending, build_failure, build_interruption
from shared.models.events import (
    CitationAdded,
    ErrorReport,
    ExecutionEvent,
    FinishReason,
    FunctionCallDelta,
    FunctionCallRequested,
    ModelCallFinished,
    ModelCallStarted,
    ReasoningDelta,
    RefusalDelta,
    SearchFinished,
    SearchStarted,
    TextDelta,
    Usage,
)
from shared.models.values import Place
from tests.examples import examples
from tests.unit.backend.openai_api.projecting import ADDRESSES, chunks_of, endings, joined, steps, whole
from tests.unit.backend.turns.samples import USAGE, projection

DONE = build_ending(FinishReason.STOP, USAGE)
REPORT = ErrorReport(type="ModelStalled", code="server_error", message="Silence.", param=None, retryable=True)


def play(script: Iterable[ExecutionEvent], ending: Ending) -> tuple[list[LoggedEvent], dict[str, Any]]:
    made = projection()
    events = made.start()
    for step in script:
        events += made.feed(step)
    body, last = made.finish(ending, 1_700_000_009)
    return [*events, *last], body


@examples(100)
@given(st.lists(steps, max_size=25), endings)
def test_any_script_says_the_same_in_chunks_and_as_a_whole(script: list[ExecutionEvent], ending: Ending) -> None:
    events, body = play(script, ending)
    chunks, made = chunks_of(events)
    assert (made.failure is not None) == (ending.status is ResponseStatus.FAILED)
    if made.failure is not None:
        assert not any(choice["finish_reason"] for chunk in chunks for choice in chunk["choices"])
        return
    completion = whole(body)
    [choice], said = completion["choices"], joined(chunks)
    message = choice["message"]
    assert said["role"] == "assistant"
    assert said["content"] == (message["content"] or "")
    assert said["refusal"] == (message["refusal"] or "")
    assert said["reasoning_content"] == message.get("reasoning_content", "")
    assert said["annotations"] == message["annotations"]
    calls = [{key: value for key, value in call.items() if key != "index"} for call in said["tool_calls"]]
    assert calls == message.get("tool_calls", [])
    assert [call["index"] for call in said["tool_calls"]] == list(range(len(calls)))
    reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    assert reasons == [None] * (len(reasons) - 1) + [choice["finish_reason"]]
    assert {chunk["id"] for chunk in chunks} == {completion["id"]}
    assert [chunk["usage"] for chunk in chunks if chunk["usage"]] == (
        [completion["usage"]] if completion["usage"] else []
    )


@examples(50)
@given(st.lists(steps, max_size=25), endings, st.data())
def test_what_the_events_do_not_bring_the_end_does(
    script: list[ExecutionEvent], ending: Ending, data: st.DataObject
) -> None:
    """A replay after the events are gone has the first and the last one only; others break off anywhere."""
    events, body = play(script, ending)
    kept = data.draw(st.integers(1, len(events)))
    end = terminal_event(ending.status, body, events[-1].sequence_number, with_results=False)
    cut = [build_created_event(body), *events[1:kept]]
    cut = cut if cut[-1].type == end.type else [*cut, end]
    (all_of_it, made), (shortened, cut_short) = chunks_of(events), chunks_of(cut)
    assert joined(shortened) == joined(all_of_it)
    assert (made.failure is None) == (cut_short.failure is None)


def cited(index: int, file_id: str = "doc_1", place: Place | None = None) -> CitationAdded:
    return CitationAdded(number=1, file_id=file_id, filename="a.md", index=index, place=place)


def test_what_was_said_around_a_search_is_one_text_with_citations_in_it() -> None:
    script: list[ExecutionEvent] = [
        ModelCallStarted(call=1),
        TextDelta(text="Let me look [1]"),
        cited(12),
        ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
        SearchStarted(call_id="s", queries=("q",)),
        SearchFinished(call_id="s", failed=False, results=()),
        ModelCallStarted(call=2),
        TextDelta(text="It is "),
        TextDelta(text="red [1] or blue [1]."),
        cited(10),
        cited(22, "doc_gone"),
        ModelCallFinished(call=2, finish_reason=FinishReason.STOP, usage=USAGE),
    ]
    events, body = play(script, DONE)
    message = whole(body)["choices"][0]["message"]
    assert message["content"] == "Let me look [1]\n\nIt is red [1] or blue [1]."
    assert "tool_calls" not in message
    spans = [note["url_citation"] for note in message["annotations"]]
    assert [message["content"][span["start_index"] : span["end_index"]] for span in spans] == ["[1]", "[1]"]
    assert [span["start_index"] for span in spans] == [12, 27]
    assert {(span["title"], span["url"]) for span in spans} == {("a.md", ADDRESSES["doc_1"])}
    chunks, _ = chunks_of(events)
    *_, noted, last, usage = chunks
    assert noted["choices"][0]["delta"] == {"content": "", "annotations": message["annotations"]}
    assert last["choices"][0] == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}
    assert usage["choices"] == []


def test_the_title_of_a_citation_says_where_the_passage_stands() -> None:
    place = Place(page=7)
    _, body = play([ModelCallStarted(call=1), TextDelta(text="T [1]"), cited(2, place=place)], DONE)
    (note,) = whole(body)["choices"][0]["message"]["annotations"]
    assert (note["url_citation"]["title"], note["url_citation"]["place"]) == ("a.md, p. 7", {"page": 7})


def test_calls_come_with_their_places() -> None:
    calls = [FunctionCallRequested(call_id=f"c{n}", name="weather", arguments=f'{{"n": {n}}}') for n in (1, 2)]
    events, body = play([ReasoningDelta(text="Hm."), *calls], DONE)
    message = whole(body)["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == (None, "Hm.")
    assert message["tool_calls"][1] == {
        "id": "c2",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"n": 2}'},
    }
    assert whole(body)["choices"][0]["finish_reason"] == "tool_calls"
    deltas = [choice["delta"] for chunk in chunks_of(events)[0] for choice in chunk["choices"]]
    assert [call["index"] for delta in deltas for call in delta.get("tool_calls", ())] == [0, 0, 1, 1]


def test_calls_come_in_the_pieces_of_the_model() -> None:
    pieces = [("a", '{"n"'), ("b", "{"), ("a", ": 1}"), ("b", "}")]
    deltas = [FunctionCallDelta(call_id=one, name="weather", arguments=piece) for one, piece in pieces]
    calls = [FunctionCallRequested(call_id=one, name="weather", arguments=text) for one, text in said_by(pieces)]
    events, body = play([*deltas, *calls], DONE)
    chunks = [
        (call["index"], call.get("id"), call["function"]["arguments"])
        for chunk in chunks_of(events)[0]
        for choice in chunk["choices"]
        for call in choice["delta"].get("tool_calls", ())
    ]
    assert chunks == [(0, "a", ""), (0, None, '{"n"'), (1, "b", ""), (1, None, "{"), (0, None, ": 1}"), (1, None, "}")]
    told = whole(body)["choices"][0]["message"]["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in told] == said_by(pieces)


def said_by(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(one, "".join(piece for of, piece in pieces if of == one)) for one in dict(pieces)]


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (DONE, "stop"),
        (build_ending(FinishReason.LENGTH, USAGE), "length"),
        (build_ending(FinishReason.CONTENT_FILTER, USAGE), "content_filter"),
        (Ending(status=ResponseStatus.CANCELLED), "length"),
        (build_interruption(USAGE), "length"),
    ],
)
def test_why_an_answer_ended(ending: Ending, reason: str) -> None:
    _, body = play([TextDelta(text="Half")], ending)
    assert whole(body)["choices"][0]["finish_reason"] == reason


def test_a_refusal_is_no_content() -> None:
    events, body = play([RefusalDelta(text="I will "), RefusalDelta(text="not.")], DONE)
    message = whole(body)["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, "I will not.")
    assert joined(chunks_of(events)[0])["refusal"] == "I will not."


def test_usage_is_told_as_far_as_it_is_known() -> None:
    events, body = play([TextDelta(text="Hi")], DONE)
    assert whole(body)["usage"] == {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    assert not any("usage" in chunk for chunk in chunks_of(events, includes_usage=False)[0])
    events, body = play([TextDelta(text="Hi")], build_ending(FinishReason.STOP, Usage()))
    assert whole(body)["usage"] is None
    assert [chunk["usage"] for chunk in chunks_of(events)[0]] == [None, None, None]


def test_a_failure_keeps_what_was_said_before_it() -> None:
    events, _ = play([TextDelta(text="Half")], build_failure(REPORT, USAGE))
    chunks, made = chunks_of(events)
    assert joined(chunks)["content"] == "Half"
    assert made.failure is not None
    assert (made.failure.type, made.failure.message) == ("ModelStalled", "Silence.")
