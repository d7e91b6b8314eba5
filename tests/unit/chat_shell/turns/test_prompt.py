"""Which messages a turn sends, and in which order."""

import pytest

from chat_shell.turns.domain.prompt import build_messages, join_blocks, prompt_of
from shared.errors import InvalidRequest
from shared.models.execution import DynamicBlock
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
from tests.fakes.model_requests import execution_request

CURRENT = UserMessage(content="And now?")
HISTORY = (UserMessage(content="Hello"), AssistantMessage(text="Hi"))
SUFFIX = "\n\n<time>2026-11-22 09:30 Europe/Berlin</time>"


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
    assert prompt_of(request) == (
        SystemMessage(content="Be brief."),
        UserMessage(content="Bases: A\n\nsecond\n\nthird"),
        UserMessage(content="How long is the notice period?" + SUFFIX),
    )


def test_the_suffix_is_a_last_part_where_the_message_has_parts():
    image = ImagePart(url="https://example.com/a.png", detail=ImageDetail.AUTO)
    current = prompt_of(execution_request(prompt=(TextPart(text="What is it?"), image)))[-1]
    assert current == UserMessage(content=(TextPart(text="What is it?"), image, TextPart(text=SUFFIX)))


def test_a_turn_that_continues_from_results_has_neither_context_nor_suffix():
    history = (
        AssistantMessage(text="", tool_calls=(ToolCall(call_id="c", name="f", arguments="{}"),)),
        ToolMessage(call_id="c", content="42"),
    )
    request = execution_request(history=history, prompt=None, kb_meta_prompt="Bases: A")
    assert prompt_of(request) == (SystemMessage(content="Be brief."), *history)


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "America", "../etc"])
def test_an_unknown_time_zone_is_the_callers_mistake(name: str):
    with pytest.raises(InvalidRequest) as caught:
        prompt_of(execution_request(time_zone=name))
    assert caught.value.param == "time_zone"
