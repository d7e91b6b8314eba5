"""What an input list means."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.conversations.domain.conversation_log import find_pending_calls, history
from backend.conversations.domain.input_items import MAX_ITEMS, InputItem
from backend.conversations.domain.item_bodies import input_bodies
from backend.conversations.domain.turn_input import ParsedInput, read_given_history, read_items, read_string
from backend.prompt.domain.turn_entries import EntryStamp, build_given_entries, place_entries
from shared.errors import InvalidRequest
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
from tests.fakes.openai_types import check_item
from tests.fakes.parsed_requests import parse_turn_request
from tests.unit.backend.conversations.samples import parse_items
from tests.unit.backend.turns.samples import counting_ids

USER = {"role": "user", "content": "Hi"}
ANSWER = {"role": "assistant", "content": "Hello"}
SYSTEM = {"role": "system", "content": "Be kind."}


REASONING: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": []}


def call(call_id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "weather", "arguments": "{}"}


def output(call_id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": f"of {call_id}"}


def items(*raw: dict[str, Any]) -> list[InputItem]:
    return parse_items(list(raw), "input")


def read(*raw: dict[str, Any], pending: tuple[str, ...] = ()) -> ParsedInput:
    return read_items(items(*raw), pending)


def test_the_last_user_message_is_the_current_one() -> None:
    found = read(SYSTEM, USER, ANSWER, {"role": "user", "content": "Again"})
    assert found == ParsedInput(
        instructions=("Be kind.",),
        history=(UserMessage(content="Hi"), AssistantMessage(text="Hello")),
        current="Again",
        ends=(2, 3),
    )


def test_parts_stay_parts() -> None:
    image = {"type": "input_image", "image_url": "https://a.example/b.png"}
    found = read({"role": "user", "content": [{"type": "input_text", "text": "See"}, image]})
    assert found.current == (
        TextPart(text="See"),
        ImagePart(url="https://a.example/b.png", detail=ImageDetail.AUTO),
    )


def test_thinking_and_searches_are_left_out() -> None:
    thinking: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": []}
    search: dict[str, Any] = {"type": "file_search_call", "id": "fs_1", "queries": [], "status": "completed"}
    assert read(thinking, SYSTEM, USER, search).current == "Hi"


def test_calls_join_the_message_before_them() -> None:
    found = read(USER, ANSWER, call("a"), call("b"), output("b"), output("a"))
    calls = tuple(ToolCall(call_id=name, name="weather", arguments="{}") for name in "ab")
    assert found.current is None
    assert found.history == (
        UserMessage(content="Hi"),
        AssistantMessage(text="Hello", tool_calls=calls),
        ToolMessage(call_id="b", content="of b"),
        ToolMessage(call_id="a", content="of a"),
    )


def test_hundreds_of_calls_are_one_message_and_their_results_stand_in_its_order() -> None:
    names = [str(number) for number in range(900)]
    found = read(USER, *map(call, names), *map(output, reversed(names)))
    said = found.history[1]
    assert isinstance(said, AssistantMessage)
    assert [made.call_id for made in said.tool_calls] == names
    stamp = EntryStamp(turn_id="resp_1", epoch=0, sent_at=datetime(2026, 1, 1, tzinfo=UTC), time_zone="UTC")
    sent = history(place_entries(build_given_entries(found, stamp), 0, None))
    assert [result.call_id for result in sent if isinstance(result, ToolMessage)] == names


def test_a_list_without_end_is_refused_whole() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_items([USER] * (MAX_ITEMS + 1), "items")
    assert caught.value.param == "items"
    with pytest.raises(InvalidRequest) as caught:
        parse_turn_request(orjson.dumps({"input": [USER] * (MAX_ITEMS + 1)}))
    assert caught.value.param == "input"
    assert len(parse_items([USER] * MAX_ITEMS, "items")) == MAX_ITEMS


def test_an_error_names_a_few_of_the_calls_without_output() -> None:
    with pytest.raises(InvalidRequest, match="'0', '1', '2', '3', '4'; add"):
        read(USER, *(call(str(number)) for number in range(100)))


def test_outputs_answer_calls_of_the_log() -> None:
    assert read(output("a"), USER, pending=("a",)).current == "Hi"
    assert read(output("a"), pending=("a",)).current is None


def test_a_system_message_in_the_history_stands_where_it_was_given() -> None:
    found = read(SYSTEM, USER, {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]}, USER)
    assert (found.instructions, found.current) == (("Be kind.",), "Hi")
    assert found.history == (UserMessage(content="Hi"), SystemMessage(content="Be brief."))
    assert found.ends == (2, 3)


@pytest.mark.parametrize("last", [[USER, ANSWER], [USER, SYSTEM], [USER, ANSWER, SYSTEM], [ANSWER], [SYSTEM]])
def test_an_input_may_end_with_any_message(last: list[dict[str, Any]]) -> None:
    found = read(SYSTEM, *last)
    assert found.current is None
    assert len(found.history) == len([item for item in last if last != [SYSTEM]])
    assert not found.order


def test_outputs_behind_other_messages_are_read_behind_their_calls() -> None:
    found = read(USER, call("a"), call("b"), USER, output("b"), ANSWER, output("a"), USER)
    assert [message.role for message in found.history] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert (found.order, found.ends) == ((0, 1, 2, 6, 4, 3, 5, 7), (1, 3, 4, 5, 6, 7))
    assert read(USER, output("a"), pending=("a",)).current == "Hi"
    apart = read(call("a"), USER, call("a"), USER, output("a"), output("a"), USER)
    assert [message.role for message in apart.messages] == ["assistant", "tool", "user"] * 2 + ["user"]


def test_calls_belong_to_the_message_before_them_and_searches_to_none() -> None:
    search = {"type": "file_search_call", "queries": ["fox"], "status": "completed"}
    found = read(USER, search, ANSWER, call("a"), call("b"), output("b"), output("a"), USER)
    assert [message.role for message in found.history] == ["user", "assistant", "tool", "tool"]
    assert found.ends == (1, 5, 6, 7)
    assert found.behind(2).history == found.history[2:]


@pytest.mark.parametrize(
    ("raw", "pending", "param"),
    [
        ([REASONING], (), "input"),
        ([USER], ("a",), "input[0]"),
        ([output("b")], ("a",), "input[0].call_id"),
        ([output("a")], ("a", "b"), "input"),
        ([call("a"), USER], (), "input[1]"),
        ([call("a"), output("a"), output("a")], (), "input[2].call_id"),
        ([call("a"), call("a")], (), "input[1].call_id"),
        ([call("a")], (), "input"),
    ],
)
def test_what_may_not_stand_there_is_named(raw: list[dict[str, Any]], pending: tuple[str, ...], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(*raw, pending=pending)
    assert caught.value.param == param


def test_a_plain_text_does_not_answer_calls() -> None:
    assert read_string("Hi", ()).current == "Hi"
    with pytest.raises(InvalidRequest, match="'a'"):
        read_string("Hi", ("a",))


def test_history_without_a_turn_may_leave_calls_open() -> None:
    found = read_given_history(items(USER, call("a")), ())
    assert find_pending_calls(found.history) == ("a",)


def test_wrong_items_of_a_conversation_are_named_by_their_place() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_items([USER, {"role": "user", "content": 5}], "items")
    assert caught.value.param == "items[1].content"


@given(st.lists(st.sampled_from([USER, ANSWER, call("a"), call("b"), output("a"), output("b")]), max_size=10))
def test_whatever_is_accepted_answers_every_call_in_its_place(raw: list[dict[str, Any]]) -> None:
    try:
        found = read(*raw)
    except InvalidRequest:
        return
    assert find_pending_calls(found.history) == ()
    for before, message in zip(found.history, found.history[1:], strict=False):
        if isinstance(message, ToolMessage):
            assert isinstance(before, AssistantMessage | ToolMessage)
        elif isinstance(before, AssistantMessage):
            assert not before.tool_calls


def test_items_are_shown_in_the_clients_types() -> None:
    image = {"type": "input_image", "image_url": "https://a.example/b.png", "detail": "low"}
    shown = input_bodies(
        items(
            SYSTEM,
            {"role": "user", "content": [image]},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            ANSWER,
            call("a"),
            output("a"),
            {**output("a"), "output": [{"type": "input_text", "text": "x"}]},
        ),
        counting_ids(),
    )
    for body in shown:
        check_item(body)
    assert len({str(body["id"]) for body in shown}) == 7
