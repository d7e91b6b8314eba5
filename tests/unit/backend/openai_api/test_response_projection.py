"""What a client sees of a turn."""

from collections.abc import Sequence
from typing import Any

import orjson

from backend.conversations.domain.responses import ResponseStatus
from backend.openai_api.domain.response_events import LoggedEvent, encode_event
from backend.openai_api.domain.response_object import (
    Ending,
    ResponseBody,
    build_created_body,
    build_ending,
    build_failure,
)
from backend.openai_api.domain.response_projection import ResponseProjection
from backend.openai_api.domain.shown_output import ShownOutput
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
    SearchResult,
    SearchStarted,
    ServedCallFinished,
    ServedCallStarted,
    TextDelta,
    Usage,
)
from shared.models.values import Place
from tests.fakes.json_paths import at
from tests.fakes.openai_types import check_event, check_response
from tests.unit.backend.turns.samples import USAGE, decoded, projection

HIT = SearchResult(number=1, file_id="doc_1", filename="handbook.md", score=0.5, text="Whales sleep.")
DONE = ModelCallFinished(call=1, finish_reason=FinishReason.STOP, usage=USAGE)


def played(
    script: Sequence[ExecutionEvent], ending: Ending, made: ResponseProjection | None = None
) -> tuple[list[dict[str, Any]], ResponseBody]:
    """Play a script; every event and the response are checked against the types."""
    made = made or projection()
    events: list[LoggedEvent] = made.start()
    for step in script:
        events.extend(made.feed(step))
    body, last = made.finish(ending, 1_700_000_009)
    events.extend(last)
    open_responses = not any(isinstance(step, SearchStarted | CitationAdded | ServedCallStarted) for step in script)
    for event in events:
        check_event(event.body, open_responses=open_responses)
    check_response(body, open_responses=open_responses)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    return decoded(events), body


def types_of(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def test_what_was_left_out_stands_beside_the_callers_metadata() -> None:
    twice = DONE.model_copy(update={"left_out": ("a", "b" * 600)})
    script = [TextDelta(text="Hello"), DONE, twice, twice]
    events, body = played(script, build_ending(FinishReason.STOP, USAGE), projection(metadata={"mine": "1"}))

    said = {"mine": "1", "ballast_left_out": f"a; {'b' * 509}"}
    assert body["metadata"] == said
    assert events[-1]["response"]["metadata"] == said
    assert events[0]["response"]["metadata"] == build_created_body(body)["metadata"] == {"mine": "1"}


def test_metadata_without_a_place_stay_the_callers() -> None:
    given = {str(number): "x" for number in range(16)}
    script = [TextDelta(text="Hello"), DONE.model_copy(update={"left_out": ("a",)})]
    _, body = played(script, build_ending(FinishReason.STOP, USAGE), projection(metadata=given))

    assert body["metadata"] == given


def test_a_plain_answer_is_announced_from_the_outside_in() -> None:
    events, body = played(
        [ModelCallStarted(call=1), TextDelta(text="Hel"), TextDelta(text="lo"), DONE],
        build_ending(FinishReason.STOP, USAGE),
    )
    assert types_of(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert body["status"] == "completed"
    assert body["completed_at"] == 1_700_000_009
    assert at(body, "output")[0]["content"][0]["text"] == "Hello"
    assert events[-1]["response"] == body
    assert at(body, "usage")["total_tokens"] == 18
    assert at(body, "usage")["input_tokens_details"] == {"cached_tokens": 4, "cache_write_tokens": 0}


def test_a_further_delta_is_encoded_like_the_first() -> None:
    made = projection()
    *_, first = made.feed(TextDelta(text="The"))
    for text in (' "sea"\n', "\u4e09 \\ \x00", " "):
        (event,) = made.feed(TextDelta(text=text))
        body = orjson.loads(event.body)
        assert body == orjson.loads(first.body) | {"delta": text, "sequence_number": event.sequence_number}
        assert event == encode_event(body) and list(body) == list(orjson.loads(first.body))
    assert event.sequence_number == first.sequence_number + 3


def test_unknown_usage_is_not_shown_as_zero() -> None:
    _, body = played([TextDelta(text="x"), DONE], build_ending(FinishReason.STOP, Usage()))
    assert body["usage"] is None


def test_thinking_comes_as_an_item_of_its_own_and_ends_where_the_answer_begins() -> None:
    events, body = played(
        [ReasoningDelta(text="Hm"), ReasoningDelta(text="."), TextDelta(text="Yes"), DONE],
        build_ending(FinishReason.STOP, USAGE),
    )
    assert [item["type"] for item in at(body, "output")] == ["reasoning", "message"]
    assert at(body, "output")[0]["content"] == [{"type": "reasoning_text", "text": "Hm."}]
    kinds = types_of(events)
    assert kinds.index("reasoning_text.done") < kinds.index("output_text.delta")


def test_a_refusal_is_a_part_of_its_own() -> None:
    events, body = played(
        [TextDelta(text="Well, "), RefusalDelta(text="no"), RefusalDelta(text=".")],
        build_ending(FinishReason.STOP, USAGE),
    )
    parts = at(body, "output")[0]["content"]
    assert [part["type"] for part in parts] == ["output_text", "refusal"]
    assert parts[1]["refusal"] == "no."
    assert "refusal.done" in types_of(events)


def test_a_search_shows_its_results_to_a_reader_who_asks() -> None:
    script = [SearchStarted(call_id="c1", queries=("whales",)), searched(), TextDelta(text="They do."), DONE]
    events, body = played(script, build_ending(FinishReason.STOP, USAGE))
    kinds = types_of(events)
    first = kinds.index("output_item.added")
    assert kinds[first : first + 5] == [
        "output_item.added",
        "file_search_call.in_progress",
        "file_search_call.searching",
        "file_search_call.completed",
        "output_item.done",
    ]
    assert at(body, "output")[0]["results"][0]["filename"] == "handbook.md"
    assert events[first + 4]["item"]["results"] == at(body, "output")[0]["results"]


def test_a_search_hides_its_results_from_others_but_keeps_them() -> None:
    script = [SearchStarted(call_id="c1", queries=("whales",)), searched()]
    events, body = played(script, build_ending(FinishReason.STOP, USAGE), projection(with_results=False))
    assert "Whales sleep" not in str(events)
    assert at(body, "output")[0]["results"][0]["text"] == "Whales sleep."


def test_a_failed_search_is_not_called_completed() -> None:
    script = [SearchStarted(call_id="c1", queries=()), SearchFinished(call_id="c1", failed=True, results=())]
    events, body = played(script, build_ending(FinishReason.STOP, USAGE))
    assert at(body, "output")[0]["status"] == "failed"
    assert "file_search_call.completed" not in types_of(events)


def test_citations_are_annotations_at_their_place() -> None:
    cited = CitationAdded(number=1, file_id="doc_1", filename="handbook.md", index=10)
    events, body = played([TextDelta(text="They sleep [1]."), cited, DONE], build_ending(FinishReason.STOP, USAGE))
    added = next(event for event in events if event["type"].endswith("annotation.added"))
    annotation = {"type": "file_citation", "file_id": "doc_1", "filename": "handbook.md", "index": 10}
    assert added["annotation"] == annotation
    assert added["annotation_index"] == 0
    assert at(body, "output")[0]["content"][0]["annotations"] == [annotation]


def test_a_citation_and_a_result_say_where_the_passage_stands_if_that_is_known() -> None:
    cited = CitationAdded(number=1, file_id="doc_1", filename="a.pdf", index=1, place=Place(page=7))
    hit = SearchResult(
        number=1, file_id="doc_1", filename="a.csv", score=1, text="t", place=Place(sheet="Q1", rows=(2, 9))
    )
    script = [SearchStarted(call_id="c1", queries=()), SearchFinished(call_id="c1", failed=False, results=(hit,))]
    _, body = played([*script, TextDelta(text="T [1]"), cited, DONE], build_ending(FinishReason.STOP, USAGE))
    search, message = at(body, "output")
    assert search["results"][0]["place"] == {"sheet": "Q1", "rows": [2, 9]}
    assert message["content"][0]["annotations"][0]["place"] == {"page": 7}


def test_a_function_call_ends_a_turn_that_is_complete() -> None:
    call = FunctionCallRequested(call_id="call_1", name="weather", arguments='{"city":"Rome"}')
    events, body = played(
        [ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE), call],
        build_ending(FinishReason.TOOL_CALLS, USAGE),
    )
    assert body["status"] == "completed"
    assert at(body, "output")[0]["arguments"] == '{"city":"Rome"}'
    assert events[2]["item"]["arguments"] == ""
    assert types_of(events)[2:6] == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]


PIECES = [
    FunctionCallDelta(call_id="call_1", name="weather", arguments=piece) for piece in ('{"city":', ' "Rome', '"}')
]


def test_a_function_call_comes_in_the_pieces_of_the_model() -> None:
    whole = FunctionCallRequested(call_id="call_1", name="weather", arguments='{"city": "Rome"}')
    called = ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE)
    events, body = played([*PIECES, called, whole], build_ending(FinishReason.TOOL_CALLS, USAGE))
    assert [event["delta"] for event in events if event["type"].endswith(".delta")] == ['{"city":', ' "Rome', '"}']
    assert types_of(events)[2:8] == [
        "output_item.added",
        *["function_call_arguments.delta"] * 3,
        "function_call_arguments.done",
        "output_item.done",
    ]
    [item] = at(body, "output")
    assert (item["status"], item["arguments"], item["call_id"]) == ("completed", whole.arguments, "call_1")


def test_what_a_client_has_got_of_a_call_is_never_contradicted() -> None:
    other = FunctionCallRequested(call_id="call_1", name="weather", arguments='{"city": "Bonn"}')
    events, body = played([*PIECES, other], build_ending(FinishReason.TOOL_CALLS, USAGE))
    done = next(event for event in events if event["type"].endswith("arguments.done"))
    assert done["arguments"] == at(body, "output")[0]["arguments"] == '{"city": "Rome"}'


def test_a_call_that_is_cut_off_stays_incomplete_with_what_was_said_of_it() -> None:
    cut = ModelCallFinished(call=1, finish_reason=FinishReason.LENGTH, usage=USAGE)
    events, body = played([*PIECES[:2], cut], build_ending(FinishReason.LENGTH, USAGE))
    [item] = at(body, "output")
    assert (item["status"], item["arguments"]) == ("incomplete", '{"city": "Rome')
    assert "function_call_arguments.done" not in types_of(events)
    assert body["status"] == "incomplete"


def test_another_process_goes_on_in_the_middle_of_a_call() -> None:
    made = projection()
    events = [*made.start(), *(event for piece in PIECES[:2] for event in made.feed(piece))]
    shown = ShownOutput()
    shown.feed(events)
    later = projection()
    later.restore(shown)
    body, rest = later.finish(build_ending(FinishReason.LENGTH, USAGE), 1_700_000_009)
    assert at(body, "output")[0]["arguments"] == '{"city": "Rome'
    assert types_of(decoded(rest)) == ["output_item.done", "incomplete"]
    assert rest[0].sequence_number == events[-1].sequence_number + 1


def test_each_model_call_speaks_in_a_message_of_its_own() -> None:
    script = [TextDelta(text="Let me see. "), DONE, ModelCallStarted(call=2), TextDelta(text="Yes."), DONE]
    _, body = played(script, build_ending(FinishReason.STOP, USAGE))
    assert [item["content"][0]["text"] for item in at(body, "output")] == ["Let me see. ", "Yes."]
    assert len({item["id"] for item in at(body, "output")}) == 2


def test_an_answer_cut_at_the_limit_is_incomplete() -> None:
    cut = ModelCallFinished(call=1, finish_reason=FinishReason.LENGTH, usage=USAGE)
    events, body = played([TextDelta(text="And so"), cut], build_ending(FinishReason.LENGTH, USAGE))
    assert body["incomplete_details"] == {"reason": "max_output_tokens"}
    assert at(body, "output")[0]["status"] == "incomplete"
    assert events[-1]["type"] == "response.incomplete"


def test_a_filtered_answer_is_incomplete() -> None:
    _, body = played([], build_ending(FinishReason.CONTENT_FILTER, USAGE))
    assert body["incomplete_details"] == {"reason": "content_filter"}


def test_a_failure_keeps_what_was_said_and_is_told_in_both_forms() -> None:
    report = ErrorReport(type="ModelStalled", code="server_error", message="It stalled.", param=None, retryable=True)
    events, body = played(
        [SearchStarted(call_id="c1", queries=("q",)), TextDelta(text="Half")], build_failure(report, Usage())
    )
    assert [item["status"] for item in at(body, "output")] == ["incomplete", "incomplete"]
    assert body["error"] == {"code": "server_error", "message": "It stalled.", "type": "ModelStalled"}
    error = events[-2]
    assert (error["type"], error["message"], error["error"]["type"]) == ("error", "It stalled.", "ModelStalled")
    assert events[-1]["type"] == "response.failed"


def test_a_code_outside_of_openais_list_becomes_server_error() -> None:
    report = ErrorReport(type="InternalError", code="odd", message="m", param=None, retryable=False)
    _, body = played([], build_failure(report, Usage()))
    assert at(body, "error")["code"] == "server_error"


def test_a_cancelled_turn_ends_with_incomplete_and_no_details() -> None:
    events, body = played([TextDelta(text="Half")], Ending(status=ResponseStatus.CANCELLED))
    assert (body["status"], body["incomplete_details"], body["error"]) == ("cancelled", None, None)
    assert events[-1]["type"] == "response.incomplete"


def test_a_snapshot_shows_open_items_as_incomplete() -> None:
    made = projection()
    made.start()
    made.feed(TextDelta(text="Half"))
    assert made.output()[0]["status"] == "incomplete"
    assert at(made.output()[0], "content", 0, "text") == "Half"
    assert made.last_number == 4


def searched() -> SearchFinished:
    return SearchFinished(call_id="c1", failed=False, results=(HIT,))


CALLED = ServedCallStarted(call_id="c1", server="jira", tool="search", arguments='{"jql": "x"}')


def test_a_call_of_a_tool_server_is_shown_in_openais_form() -> None:
    ended = ServedCallFinished(call_id="c1", output="Two issues.", failed=False)
    events, body = played([CALLED, ended, TextDelta(text="Two."), DONE], build_ending(FinishReason.STOP, USAGE))
    assert types_of(events)[2:8] == [
        "output_item.added",
        "mcp_call.in_progress",
        "mcp_call_arguments.delta",
        "mcp_call_arguments.done",
        "mcp_call.completed",
        "output_item.done",
    ]
    item = at(body, "output")[0]
    assert (item["type"], item["server_label"], item["name"]) == ("mcp_call", "jira", "search")
    assert (item["arguments"], item["output"], item["status"]) == ('{"jql": "x"}', "Two issues.", "completed")


def test_a_failed_call_of_a_tool_server_says_what_the_model_reads() -> None:
    ended = ServedCallFinished(call_id="c1", output="Away.", failed=True)
    events, body = played([CALLED, ended, DONE], build_ending(FinishReason.STOP, USAGE))
    item = at(body, "output")[0]
    assert "mcp_call.failed" in types_of(events)
    assert (item["status"], item["output"]) == ("failed", None)
    assert item["error"] == {"type": "mcp_tool_execution_error", "content": "Away."}


def test_a_call_that_is_cancelled_is_incomplete() -> None:
    _, body = played([CALLED], Ending(status=ResponseStatus.CANCELLED))
    assert at(body, "output")[0]["status"] == "incomplete"
