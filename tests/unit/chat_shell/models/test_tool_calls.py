"""Tool calls, as servers really stream them."""

from typing import Any

import pytest

from chat_shell.models.chat_completions.assembler import MAX_CHARACTERS, ToolCallAssembler
from chat_shell.models.ports import CallFragment
from chat_shell.models.transport.frames import LeftOut
from shared.errors import ModelProtocolViolated


def collected(*deltas: dict[str, Any]) -> list[tuple[str, str, str]]:
    assembler = ToolCallAssembler(set(), lambda _: None)
    for delta in deltas:
        assembler.feed([delta])
    return [(call.call_id, call.name, call.arguments) for call in assembler.calls()]


def delta(index: int | None, call_id: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    fields = {"index": index, "id": call_id, "function": function}
    return {key: value for key, value in fields.items() if value is not None}


TWO = [("a", "look", '{"x":1}'), ("b", "find", "{}")]


def test_as_openai_sends_them():
    assert (
        collected(
            delta(0, "a", "look", ""),
            delta(0, None, None, '{"x"'),
            delta(0, None, None, ":1}"),
            delta(1, "b", "find", ""),
            delta(1, None, None, "{}"),
        )
        == TWO
    )


def test_each_delta_is_told_with_what_is_known_of_its_call():
    pieces = list[CallFragment]()
    assembler = ToolCallAssembler(set(), pieces.append)
    assembler.feed([delta(0, None, "look", ""), delta(1, "b", "find", "{")])
    assembler.feed([delta(0, "a", None, '{"x"'), delta(1, None, None, "}"), delta(0, None, None, ":1}")])

    assert [(piece.place, piece.call_id, piece.name, piece.arguments) for piece in pieces] == [
        (0, "", "look", ""),
        (1, "b", "find", "{"),
        (0, "a", "look", '{"x"'),
        (1, "b", "find", "}"),
        (0, "a", "look", ":1}"),
    ]


def test_calls_without_an_end_are_refused():
    piece = delta(0, None, None, "x" * (MAX_CHARACTERS // 2 - 1))
    assembler = ToolCallAssembler(set(), lambda _: None)
    for _ in range(2):
        assembler.feed([piece])
    with pytest.raises(ModelProtocolViolated):
        assembler.feed([delta(0, None, None, "")])


def test_interleaved():
    assert (
        collected(
            delta(0, "a", "look", '{"x"'),
            delta(1, "b", "find", "{"),
            delta(0, None, None, ":1}"),
            delta(1, None, None, "}"),
        )
        == TWO
    )


def test_without_an_index():
    assert (
        collected(delta(None, "a", "look", '{"x"'), delta(None, None, None, ":1}"), delta(None, "b", "find", "{}"))
        == TWO
    )


def test_without_index_and_id():
    assert collected(
        delta(None, None, "look", '{"x":'), delta(None, None, None, "1}"), delta(None, None, "look", "{}")
    ) == [
        ("", "look", '{"x":1}'),
        ("", "look", "{}"),
    ]


def test_the_same_index_for_each():
    assert collected(delta(0, "a", "look", '{"x":1}'), delta(0, "b", "find", "{}")) == TWO


def test_a_name_that_is_sent_again():
    assert (
        collected(
            delta(0, "a", "look", '{"x"'),
            delta(0, "a", "look", ":1}"),
            delta(None, "b", "find", "{"),
            delta(None, "b", "find", "}"),
        )
        == TWO
    )


def test_a_new_id_with_each_delta():
    assert collected(delta(0, "a", "look", '{"x"'), delta(0, "other", None, ":1}"), delta(1, "b", "find", "{}")) == TWO


def test_arguments_that_are_an_object_already_or_nothing():
    assert collected(delta(0, "a", "look", {"x": 1}), delta(1, "b", "find", None)) == TWO


@pytest.mark.parametrize(
    "nameless", [delta(0, "a", None, "{}"), {"function": 7}, {"function": "look"}, {"function": ["look"]}, 7, None]
)
def test_what_is_no_call_is_left_out_and_said(nameless: Any):
    left_out = set[LeftOut]()
    assembler = ToolCallAssembler(left_out, lambda _: None)
    assembler.feed([nameless, delta(1, "b", "find", "{}")])

    assert [call.name for call in assembler.calls()] == ["find"]
    assert left_out == {LeftOut.CALLS}
