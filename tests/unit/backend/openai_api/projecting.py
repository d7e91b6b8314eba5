"""Any events of a turn, and what strict clients make of both APIs' forms of them."""

from collections.abc import Sequence
from typing import Any

import orjson
from hypothesis import strategies as st

from backend.conversations.domain.responses import ResponseStatus
from backend.openai_api.domain.chat_chunks import ChunkProjection
from backend.openai_api.domain.chat_completion import choices_in, completion_body
from backend.openai_api.domain.response_events import LoggedEvent
from backend.openai_api.domain.response_object import Ending, build_ending, build_failure
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
from tests.fakes.openai_types import check_chunk, check_completion
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
    st.builds(build_ending, st.sampled_from(FinishReason), st.just(USAGE)),
    st.just(Ending(status=ResponseStatus.CANCELLED)),
    st.just(build_failure(ErrorReport(type="T", code="server_error", message="m", param=None, retryable=False), USAGE)),
)
ADDRESSES = {"doc_1": "http://b/v1/knowledge_bases/kb_1/documents/a.md"}


def play(script: Sequence[ExecutionEvent], ending: Ending) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    made = projection()
    events = made.start()
    for step in script:
        events.extend(made.feed(step))
    body, last = made.finish(ending, 1_700_000_009)
    return decoded([*events, *last]), body


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


def chunks_of(events: Sequence[LoggedEvent], *, includes_usage: bool = True) -> tuple[list[Any], ChunkProjection]:
    made = ChunkProjection(includes_usage=includes_usage)
    chunks = [chunk for event in events for chunk in made.feed([event])]
    chunks += made.finish(ADDRESSES)
    return [check_chunk(chunk) for chunk in chunks], made


def joined(chunks: Sequence[Any]) -> dict[str, Any]:
    """Put chunks together as a client does."""
    message: dict[str, Any] = {
        "content": "",
        "refusal": "",
        "reasoning_content": "",
        "annotations": [],
        "tool_calls": [],
    }
    for chunk in chunks:
        for choice in chunk["choices"]:
            for key, value in choice["delta"].items():
                if key == "tool_calls":
                    add_calls(message["tool_calls"], value)
                    continue
                message[key] = message[key] + value if key in message and value is not None else message.get(key, value)
    return message


def add_calls(calls: list[dict[str, Any]], pieces: list[dict[str, Any]]) -> None:
    """Add pieces of calls to the calls so far, as a client does."""
    for piece in pieces:
        if piece["index"] == len(calls):
            calls.append({**piece, "function": dict(piece["function"])})
        else:
            calls[piece["index"]]["function"]["arguments"] += piece["function"]["arguments"]


def whole(body: dict[str, Any]) -> dict[str, Any]:
    made = orjson.loads(orjson.dumps(completion_body(body, choices_in(body), ADDRESSES)))
    check_completion(made)
    return made
