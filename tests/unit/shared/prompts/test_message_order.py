"""Which messages a turn sends, and in which order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import InvalidRequest
from shared.models.execution import DynamicBlock, ExecutionRequest, Purpose
from shared.models.messages import (
    AssistantMessage,
    ImageDetail,
    ImagePart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from shared.prompts.message_order import (
    build_messages,
    context_index,
    context_of_request,
    join_blocks,
    messages_of_request,
    system_messages,
    with_time_suffix,
)
from tests.fakes.model_requests import execution_request
from tests.strategies import execution_requests, zones

CURRENT = UserMessage(content="And now?")
HISTORY = (UserMessage(content="Hello"), AssistantMessage(text="Hi"))
SUFFIX = "\n\n<time>2026-11-22 09:30 Europe/Berlin</time>"


@st.composite
def requests(draw: st.DrawFn) -> ExecutionRequest:
    return draw(execution_requests()).model_copy(update={"time_zone": draw(zones)})


def test_order_is_system_history_context_current():
    assert build_messages("S", HISTORY, "K", CURRENT) == (
        SystemMessage(content="S"),
        *HISTORY,
        UserMessage(content="K"),
        CURRENT,
    )


@pytest.mark.parametrize("nothing", [None, "", " ", "\n\t ", "\u3000"])
def test_an_empty_context_adds_no_message(nothing: str | None):
    assert build_messages("S", HISTORY, nothing, CURRENT) == (SystemMessage(content="S"), *HISTORY, CURRENT)


def test_an_empty_system_prompt_and_no_current_message_add_nothing():
    assert build_messages("", HISTORY, None, None) == HISTORY
    assert build_messages("", (), None, None) == ()


@pytest.mark.parametrize(
    ("blocks", "joined"),
    [
        (("", "a", "", "b", ""), "a\n\nb"),
        (("", None, " \n"), ""),
        ((), ""),
        ((" a ", "\n", "b\n"), " a \n\nb\n"),
    ],
)
def test_blocks_are_joined_by_a_blank_line(blocks: tuple[str | None, ...], joined: str):
    assert join_blocks(blocks) == joined


def test_context_is_one_message_of_metadata_and_blocks_in_order():
    request = execution_request(
        kb_meta_prompt="Bases: A",
        dynamic_blocks=(DynamicBlock(name="b", text="second"), DynamicBlock(name="a", text="third")),
    )
    assert messages_of_request(request) == (
        SystemMessage(content="Be brief."),
        UserMessage(content="Bases: A\n\nsecond\n\nthird"),
        UserMessage(content="How long is the notice period?" + SUFFIX),
    )


def test_the_suffix_is_a_last_part_where_the_message_has_parts():
    image = ImagePart(url="https://example.com/a.png", detail=ImageDetail.AUTO)
    current = messages_of_request(execution_request(prompt=(TextPart(text="What is it?"), image)))[-1]
    assert current == UserMessage(content=(TextPart(text="What is it?"), image, TextPart(text=SUFFIX)))


def test_a_turn_that_continues_from_results_has_neither_context_nor_suffix():
    history = (
        AssistantMessage(text="", tool_calls=(ToolCall(call_id="c", name="f", arguments="{}"),)),
        ToolMessage(call_id="c", content="42"),
    )
    request = execution_request(history=history, prompt=None, kb_meta_prompt="Bases: A")
    assert messages_of_request(request) == (SystemMessage(content="Be brief."), *history)


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "America", "../etc"])
def test_an_unknown_time_zone_is_the_callers_mistake(name: str):
    with pytest.raises(InvalidRequest) as caught:
        messages_of_request(execution_request(time_zone=name))
    assert caught.value.param == "time_zone"


@given(requests())
def test_a_turn_sends_system_history_context_and_current_message_in_this_order(request: ExecutionRequest):
    messages = messages_of_request(request)
    begin = len(system_messages(request.system_prompt))
    end = begin + len(request.history)
    assert messages[:begin] == system_messages(request.system_prompt)
    assert messages[begin:end] == request.history
    context = context_of_request(request)
    said = (UserMessage(content=context),) if context else ()
    assert messages[end : end + len(said)] == said
    assert len(messages) == end + len(said) + (request.prompt is not None)
    if request.prompt is not None:
        is_answer = request.purpose is Purpose.ANSWER
        current = with_time_suffix(request.prompt, request.sent_at, request.time_zone) if is_answer else request.prompt
        assert messages[-1] == UserMessage(content=current)


@given(requests())
def test_the_context_stands_at_the_index_that_is_told_and_no_blank_part_makes_a_message(request: ExecutionRequest):
    messages, context = messages_of_request(request), context_of_request(request)
    parts = (request.kb_meta_prompt, *(block.text for block in request.dynamic_blocks))
    assert bool(context) == (request.prompt is not None and any(part.strip() for part in parts))
    if context:
        assert messages[context_index(request)] == UserMessage(content=context)
    assert bool(system_messages(request.system_prompt)) == bool(request.system_prompt)
