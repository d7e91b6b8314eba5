"""Answers that hold what no value can hold: the text is kept, the call ends well, and what was left out is said."""

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_shell.models.anthropic_messages.assembler import MessageAssembler
from chat_shell.models.chat_completions.assembler import AnswerAssembler
from chat_shell.models.ports import CallFragment, LogprobsFragment, ModelAnswerEnd, ModelFragment, TextFragment
from chat_shell.models.responses.assembler import ResponseAssembler
from chat_shell.models.transport.assembling import FrameAssembler
from chat_shell.models.transport.frames import LeftOut
from chat_shell.models.transport.streaming import AnswerReader
from shared.errors import ModelError, ModelProtocolViolated
from shared.models.events import (
    FunctionCallDelta,
    FunctionCallRequested,
    ModelCallFinished,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from shared.wire import event_to_proto
from tests.examples import examples

Frames = list[dict[str, Any]]


def chat(text: str, arguments: str, call_id: str, count: Any) -> Frames:
    """A chat completion; each place of a value is a text that the test replaces."""
    call = {"index": 0, "id": call_id, "function": {"name": "look", "arguments": arguments}}
    return [
        {"choices": [{"delta": {"reasoning_content": text, "content": None}}]},
        {"choices": [{"delta": {"content": text}}]},
        {"choices": [{"delta": {"tool_calls": [call]}}]},
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": count, "completion_tokens": 2}},
    ]


def responses(text: str, arguments: str, call_id: str, count: Any) -> Frames:
    """The events of a Responses stream."""
    call = {"type": "function_call", "call_id": call_id, "name": "look", "arguments": arguments}
    kept = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": text}]}
    whole: dict[str, Any] = {"status": "completed", "output": [], "usage": {"input_tokens": count, "output_tokens": 2}}
    return [
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": text},
        {"type": "response.output_item.done", "output_index": 0, "item": kept},
        {"type": "response.output_text.delta", "output_index": 1, "delta": text},
        {"type": "response.output_item.done", "output_index": 2, "item": call},
        {"type": "response.completed", "response": whole},
    ]


def messages(text: str, arguments: str, call_id: str, count: Any) -> Frames:
    """The events of a Messages stream."""
    tool: dict[str, Any] = {"type": "tool_use", "id": call_id, "name": "look", "input": {}}
    return [
        {"type": "message_start", "message": {"usage": {"input_tokens": count, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": tool},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": arguments}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]


Api = tuple[Callable[[], FrameAssembler], Callable[[str, str, str, Any], Frames]]
APIS: dict[str, Api] = {
    "chat_completions": (AnswerAssembler, chat),
    "responses": (ResponseAssembler, responses),
    "anthropic_messages": (MessageAssembler, messages),
}


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> Api:
    """Each API with what reads its answers."""
    return APIS[request.param]


def read(assembler: FrameAssembler, frames: list[bytes]) -> list[ModelFragment]:
    """Read a stream of which each frame comes by itself."""
    reader = AnswerReader(assembler)
    found = [part for frame in frames for part in reader.feed(b"data: " + frame + b"\n\n")]
    return [*found, *reader.end()]


def encoded(frames: Frames, raw: bytes = b"") -> list[bytes]:
    """Encode frames; the text `RAW`, without its quotes where it is a number, becomes these bytes."""
    return [orjson.dumps(frame).replace(b'"NUMBER"', raw).replace(b"RAW", raw) for frame in frames]


def ended(fragments: list[ModelFragment]) -> tuple[str, ModelAnswerEnd]:
    end = fragments[-1]
    assert isinstance(end, ModelAnswerEnd)
    written = list(map(_written, fragments[:-1]))
    assert all(written)
    return "".join(fragment.text for fragment in fragments if isinstance(fragment, TextFragment)), end


def _written(fragment: ModelFragment) -> bytes:
    """Write a fragment as the wire does, which carries no half of a character."""
    assert not isinstance(fragment, ModelAnswerEnd | LogprobsFragment)
    if isinstance(fragment, CallFragment):
        delta = FunctionCallDelta(call_id=fragment.call_id, name=fragment.name, arguments=fragment.arguments)
        return event_to_proto(delta).SerializeToString()
    kinds = {"TextFragment": TextDelta, "ReasoningFragment": ReasoningDelta, "RefusalFragment": RefusalDelta}
    return event_to_proto(kinds[type(fragment).__name__](text=fragment.text)).SerializeToString()


@pytest.mark.parametrize("raw", [rb"\ud83d", rb"\ude00", rb"\ud83d\ud83d", rb"\u0000", b"\xff", rb"\ude00\ud83d"])
def test_characters_that_are_none(api: Api, raw: bytes):
    assembler, frames = api
    text, end = ended(read(assembler(), encoded(frames("aRAWb", '{"q":"RAW"}', "cRAWd", 7), raw)))

    assert text[0] + text[-1] == "ab"
    assert set(text[1:-1]) == {"\ufffd"}
    [call] = end.tool_calls
    assert "\ufffd" in call.call_id
    assert "\ufffd" in call.arguments
    assert end.usage.input_tokens == 7
    assert end.left_out == (LeftOut.CHARACTERS,)
    assert event_to_proto(FunctionCallRequested(**call.model_dump())).SerializeToString()


def test_the_halves_of_a_character_in_two_frames(api: Api):
    assembler, frames = api
    first, second = (encoded(frames("RAW", "RAW", "c", 7), half) for half in (rb"x\ud83d", rb"\ude00y"))
    doubled = [frame for pair in zip(first, second, strict=True) for frame in dict.fromkeys(pair)]
    text, end = ended(read(assembler(), doubled))

    assert text == "x😀y"
    assert end.left_out == ()
    if assembler is not ResponseAssembler:  # it reads the arguments of a call from one frame
        assert end.tool_calls[0].arguments == "x😀y"


def test_half_a_character_at_the_end_is_said(api: Api):
    assembler, frames = api
    text, end = ended(read(assembler(), encoded(frames("aRAW", "{}", "c", 7), rb"\ud83d")))

    assert text == "a"
    assert end.left_out == (LeftOut.CHARACTERS,)


@pytest.mark.parametrize(
    "raw", [b"1e400", b"-1e400", b"NaN", b"-1", b'"7"', b"true", b"1e18", b"[]", b"0.5", b"9" * 5000]
)
def test_counts_that_are_none(api: Api, raw: bytes):
    assembler, frames = api
    text, end = ended(read(assembler(), encoded(frames("said", "{}", "c", "NUMBER"), raw)))

    assert text == "said"
    assert end.usage.input_tokens is None
    assert end.usage.output_tokens == 2
    assert end.left_out == (LeftOut.COUNTS,)


@pytest.mark.parametrize("raw", [b"null", b"7", b"7.0"])
def test_counts_that_are_some(api: Api, raw: bytes):
    assembler, frames = api
    _, end = ended(read(assembler(), encoded(frames("said", "{}", "c", "NUMBER"), raw)))

    assert end.left_out == ()


@pytest.mark.parametrize("usage", ["many", 7, True, [1]])
def test_usage_that_is_no_object(usage: Any):
    frames = [
        {"choices": [{"delta": None}]},
        {"choices": [None]},
        {"choices": [{"delta": {"content": "said"}, "finish_reason": "stop"}], "usage": usage},
    ]
    text, end = ended(read(AnswerAssembler(), encoded(frames)))

    assert text == "said"
    assert end.left_out == (LeftOut.COUNTS,)


def test_an_answer_that_is_not_streamed():
    body = (
        rb'{"choices":[{"message":{"content":"a\u0000b\ud83d"},"finish_reason":"new"}],"usage":{"prompt_tokens":1e400}}'
    )
    reader = AnswerReader(AnswerAssembler())
    text, end = ended([*reader.feed(body), *reader.end()])

    assert text == "a\ufffdb"
    assert end.left_out == (LeftOut.CHARACTERS, LeftOut.COUNTS)


def test_what_is_nested_too_deeply_is_no_answer():
    with pytest.raises(ModelError):
        read(AnswerAssembler(), [b'{"choices":' + b"[" * 100_000])
    with pytest.raises(ModelError):
        read(AnswerAssembler(), [b'{"n":NaN,"choices":' + b"[" * 900 + b"]" * 900 + b"}"])


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the places of all values in a frame."""
    yield path
    inner: Any = ()
    if isinstance(value, dict | list):
        inner = cast(Any, value).items() if isinstance(value, dict) else enumerate(cast(Any, value))
    for name, each in inner:
        yield from paths(each, (*path, name))


def replaced(value: Any, path: tuple[str | int, ...], other: Any) -> Any:
    """Return a frame with another value at a place."""
    if not path:
        return other
    copy = value.copy()
    copy[path[0]] = replaced(copy[path[0]], path[1:], other)
    return copy


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 7, -1, 0.5, 1e300, "", "x", "\0", [], [7], ["x"], {}, {"x": 1}, [[]], "x" * 3000]
)


@examples(300)
@given(api=st.sampled_from(sorted(APIS)), data=st.data())
def test_any_value_at_any_place_gives_an_answer_or_a_known_error(api: str, data: st.DataObject):
    assembler, make = APIS[api]
    frames = make("said", "{}", "c", 7)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(frames) - 1))
        place = data.draw(st.sampled_from(sorted(paths(frames[at]), key=str)))
        frames[at] = replaced(frames[at], place, data.draw(ODD))
    try:
        _, end = ended(read(assembler(), encoded(frames)))
    except ModelError:
        return
    finished = ModelCallFinished(call=1, finish_reason=end.finish_reason, usage=end.usage, left_out=end.left_out)
    assert event_to_proto(finished).SerializeToString()


def test_a_broken_frame_leaves_nothing_for_the_cycle_collector() -> None:
    broken: weakref.ref[ModelError] | None = None
    gc.disable()
    try:
        try:
            list(AnswerAssembler().feed([b'{"choices":[{"delta":{"content":"a"}}]}', b"{"]))
        except ModelProtocolViolated as error:
            broken = weakref.ref(error)
        assert broken is not None and broken() is None
    finally:
        gc.enable()
