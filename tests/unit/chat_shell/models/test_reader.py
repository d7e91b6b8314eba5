"""The body of an answer into fragments."""

from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_shell.models.chat_completions.assembler import AnswerAssembler, WeighedAnswerAssembler
from chat_shell.models.ports import (
    CallFragment,
    ModelAnswerEnd,
    ModelFragment,
    ReasoningFragment,
    RefusalFragment,
    TextFragment,
)
from chat_shell.models.transport.streaming import AnswerReader
from shared.errors import (
    ModelContextOverflow,
    ModelError,
    ModelProtocolViolated,
    ModelQuotaExhausted,
    ModelRateLimited,
    ModelStreamCut,
    ModelUnavailable,
)
from shared.models.canonical import read_reasoning
from shared.models.events import FinishReason, Usage
from shared.models.messages import ToolCall

DONE = b"data: [DONE]\n\n"


def frame(delta: Any = None, reason: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None and reason is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    return b"data: " + orjson.dumps({"choices": choices, **more}) + b"\n\n"


def text(said: str) -> bytes:
    return frame({"content": said})


def read(*reads: bytes) -> list[ModelFragment]:
    reader = AnswerReader(AnswerAssembler())
    return [fragment for received in reads for fragment in reader.feed(received)] + reader.end()


def end(reason: FinishReason = FinishReason.STOP, *calls: ToolCall, usage: Usage | None = None) -> ModelAnswerEnd:
    return ModelAnswerEnd(tool_calls=calls, finish_reason=reason, usage=usage or Usage())


STOP = frame({}, "stop")


def test_one_fragment_for_all_text_of_one_read():
    assert read(text("a") + text("b"), text("c") + STOP + DONE) == [
        TextFragment(text="ab"),
        TextFragment(text="c"),
        end(),
    ]


def test_runs_keep_their_order():
    body = frame({"reasoning_content": "hm"}) + frame({"reasoning": "m"}) + text("a") + text("b")
    body += frame({"refusal": "no"}) + text("c") + STOP + DONE

    assert read(body) == [
        ReasoningFragment(text="hmm"),
        TextFragment(text="ab"),
        RefusalFragment(text="no"),
        TextFragment(text="c"),
        end(),
    ]


def test_thinking_under_two_names_comes_once():
    assert read(frame({"reasoning_content": "hm", "reasoning": "hm"}) + text("a") + STOP) == [
        ReasoningFragment(text="hm"),
        TextFragment(text="a"),
        end(),
    ]


CALLED = frame({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}}]})


@pytest.mark.parametrize("kind", [AnswerAssembler, WeighedAnswerAssembler])
@pytest.mark.parametrize(
    ("received", "follows_results", "kept"),
    [
        (CALLED, False, {"reasoning_content": "hm!", "reasoning": "m"}),
        (text("a"), True, {"reasoning_content": "hm!", "reasoning": "m"}),
        (text("a"), False, {}),
    ],
)
def test_reasoning_is_kept_in_loops_of_tools(
    kind: type[AnswerAssembler], received: bytes, follows_results: bool, kept: dict[str, str]
):
    thought = frame({"reasoning_content": "hm", "reasoning": "hm"}) + frame({"reasoning_content": "!"})
    reader = AnswerReader(kind(follows_results=follows_results))
    *_, last = [*reader.feed(thought + frame({"reasoning": "m"}) + received + STOP + DONE), *reader.end()]
    assert isinstance(last, ModelAnswerEnd)
    assert last.reasoning == read_reasoning(kept)


def test_content_in_parts():
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}]
    assert read(frame({"content": parts}) + STOP) == [ReasoningFragment(text="hm"), TextFragment(text="a"), end()]


def test_frames_without_words():
    body = frame({"role": "assistant", "content": None}) + frame() + b"data:\n\n" + frame({"content": ""})
    assert read(body + text("a") + STOP + DONE) == [TextFragment(text="a"), end()]


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", FinishReason.STOP),
        ("length", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
        ("tool_calls", FinishReason.STOP),
        ("eos", FinishReason.STOP),
        ("SAFETY", FinishReason.CONTENT_FILTER),
    ],
)
def test_finish_reasons(word: str, reason: FinishReason):
    assert read(text("a") + frame({}, word) + DONE)[-1] == end(reason)


@pytest.mark.parametrize("word", ["tool_calls", "stop", "function_call"])
def test_tool_calls(word: str):
    call = {"index": 0, "id": "c", "function": {"name": "look", "arguments": "{}"}}
    assert read(frame({"tool_calls": [call]}) + frame({}, word) + DONE) == [
        CallFragment(place=0, call_id="c", name="look", arguments="{}"),
        end(FinishReason.TOOL_CALLS, ToolCall(call_id="c", name="look", arguments="{}")),
    ]


def test_the_older_function_call():
    body = frame({"function_call": {"name": "look", "arguments": "{"}}) + frame({"function_call": {"arguments": "}"}})
    assert read(body + frame({}, "function_call")) == [
        *(CallFragment(place=0, call_id="", name="look", arguments=piece) for piece in ("{", "}")),
        end(FinishReason.TOOL_CALLS, ToolCall(call_id="", name="look", arguments="{}")),
    ]


def test_usage_in_a_frame_of_its_own_and_with_choices():
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    known = end(usage=Usage(input_tokens=3, output_tokens=1))
    assert read(text("a") + STOP + frame(usage=usage) + DONE)[-1] == known
    assert (
        read(frame({"content": "a"}, usage={"prompt_tokens": 3}) + frame({}, "stop", usage=usage) + DONE)[-1] == known
    )


def test_the_end_mark_alone_ends_an_answer_and_so_does_the_reason_alone():
    assert read(text("a") + DONE) == [TextFragment(text="a"), end()]
    assert read(text("a") + STOP) == [TextFragment(text="a"), end()]


def test_nothing_counts_after_the_end_mark():
    assert read(text("a") + STOP + DONE + b"data: {garbage\n\n") == [TextFragment(text="a"), end()]


def test_an_answer_that_is_not_streamed():
    message = {"role": "assistant", "content": "a", "tool_calls": [{"id": "c", "function": {"name": "look"}}]}
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    body = orjson.dumps({"choices": choices, "usage": {"prompt_tokens": 3}})

    assert read(b"\n ", body[:20], body[20:]) == [
        TextFragment(text="a"),
        CallFragment(place=0, call_id="c", name="look", arguments=""),
        end(
            FinishReason.TOOL_CALLS,
            ToolCall(call_id="c", name="look", arguments="{}"),
            usage=Usage(input_tokens=3),
        ),
    ]


@pytest.mark.parametrize(
    "reads",
    [
        (b"<html>busy</html>",),
        (b"{nonsense",),
        (b"[1, 2]",),
        (b'{"answer": 42}',),
        (b"hello\nworld\n",),
        (b"data: {nonsense}\n\n",),
        (b"data: 7\n\n",),
        (b'data: {"choices": {}, "x": 1}\n\n', STOP),
        (b'data: {"choices": [7]}\n\n',),
        (b'data: {"choices": [{"delta": "a"}]}\n\n',),
        (b'data: {"choices": [{"delta": {"content": 7}}]}\n\n',),
        (b'data: {"choices": [{"delta": {"tool_calls": {"a": 1}}}]}\n\n', STOP),
        (STOP + DONE,),
        (DONE,),
    ],
)
def test_garbage_and_empty_answers(reads: tuple[bytes, ...]):
    with pytest.raises(ModelProtocolViolated):
        read(*reads)


@pytest.mark.parametrize("body", [b"", text("a"), text("a") + b'data: {"cho', frame({"role": "assistant"})])
def test_a_body_that_ends_before_the_answer(body: bytes):
    with pytest.raises(ModelStreamCut):
        read(body)


def test_reasons_that_are_failures():
    with pytest.raises(ModelStreamCut):
        read(text("a") + frame({}, "abort") + DONE)
    with pytest.raises(ModelUnavailable):
        read(text("a") + frame({}, "error") + DONE)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"error": {"message": "overloaded", "type": "server_error", "code": None}}, ModelUnavailable),
        ({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, ModelRateLimited),
        ({"error": {"message": "pay", "code": "insufficient_quota"}}, ModelQuotaExhausted),
        ({"error": {"message": "This model's maximum context length is 8", "code": 400}}, ModelContextOverflow),
        ({"object": "error", "message": "boom", "code": 500}, ModelUnavailable),
        ({"error": "boom"}, ModelUnavailable),
    ],
)
def test_an_error_inside_an_answer(error: dict[str, Any], kind: type[Exception]):
    with pytest.raises(kind):
        read(text("a") + b"data: " + orjson.dumps(error) + b"\n\n")


def test_an_error_object_in_place_of_a_stream():
    with pytest.raises(ModelRateLimited):
        read(orjson.dumps({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}))


@given(st.lists(st.integers(0, 3000), max_size=10))
def test_any_split_says_the_same(cuts: list[int]):
    body = frame({"reasoning": "hm"}) + b"".join(text(word) for word in ("Grüß ", "Gott, ", "世界")) + STOP + DONE
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]

    fragments = read(*(body[a:b] for a, b in pairwise(edges)))

    assert fragments[0] == ReasoningFragment(text="hm")
    assert "".join(part.text for part in fragments[1:] if isinstance(part, TextFragment)) == "Grüß Gott, 世界"
    assert fragments[-1] == end()


@pytest.mark.parametrize("broken", [b"data: {this is no frame\xff\n\n", frame(error={"message": "x", "code": "500"})])
def test_what_came_before_a_broken_frame_of_the_same_read_is_kept(broken: bytes):
    said: list[ModelFragment] = []
    with pytest.raises(ModelError):
        for fragment in AnswerReader(AnswerAssembler()).feed(text("a") + text("b") + broken + text("c")):
            said.append(fragment)  # noqa: PERF402 -- what came before the error must be there
    assert said == [TextFragment(text="ab")]
