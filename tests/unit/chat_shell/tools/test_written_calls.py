"""Calls that are written as text: which answers are, and what of them is held back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_shell.tools.domain.written_calls import (
    MAX_HELD_CHARACTERS,
    MAX_WRITTEN_CALLS,
    TextOfCalls,
    has_written_call,
    read_written_calls,
)
from shared.models.messages import AssistantMessage, UserMessage
from tests.examples import examples
from tests.fakes.model_scripted import call
from tests.unit.counted_calls import calls_made

NAMES = ("search", "clock")
SEARCH = '{"name": "search", "arguments": {"query": "fox"}}'
CLOCK = '{"name":"clock","parameters":{}}'

CALLS: dict[str, tuple[str, list[tuple[str, object]]]] = {
    "tagged": (f"<tool_call>{SEARCH}</tool_call>", [("search", {"query": "fox"})]),
    "tagged, on lines": (f"\n<tool_call>\n{SEARCH}\n</tool_call>\n", [("search", {"query": "fox"})]),
    "tagged, without an end": (f"<tool_call>\n{SEARCH}", [("search", {"query": "fox"})]),
    "two tagged": (
        f"<tool_call>{SEARCH}</tool_call>\n<tool_call>{CLOCK}</tool_call>",
        [("search", {"query": "fox"}), ("clock", {})],
    ),
    "fenced": (f"```json\n{SEARCH}\n```", [("search", {"query": "fox"})]),
    "fenced without a language": (f"```\n{CLOCK}\n```", [("clock", {})]),
    "fenced list": (f"```json\n[{SEARCH}, {CLOCK}]\n```", [("search", {"query": "fox"}), ("clock", {})]),
    "fenced, arguments first": ('```json\n{"arguments": {"a": 1}, "name": "clock"}\n```', [("clock", {"a": 1})]),
    "fenced, encoded twice": ('```json\n{"name": "clock", "arguments": "{\\"a\\": 1}"}\n```', [("clock", {"a": 1})]),
    "fenced with a fence inside": (
        '```json\n{"name": "search", "arguments": {"query": "```"}}\n```',
        [("search", {"query": "```"})],
    ),
    "function": ('<function=search>{"query": "fox"}</function>', [("search", {"query": "fox"})]),
    "function without arguments": ("<function=clock></function>", [("clock", {})]),
    "function with parameters": (
        "<tool_call>\n<function=search>\n<parameter=query>\nred\nfox\n</parameter>\n</function>\n</tool_call>",
        [("search", {"query": "red\nfox"})],
    ),
}
WORDS = {
    "plain": "The fox is red.",
    "empty": "",
    "blank": " \n",
    "a call behind words": f"Let me look. <tool_call>{SEARCH}</tool_call>",
    "words behind a call": f"<tool_call>{SEARCH}</tool_call> Done.",
    "words between calls": f"<tool_call>{SEARCH}</tool_call> and <tool_call>{CLOCK}</tool_call>",
    "a tool that was not offered": '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
    "a function that was not offered": "<function=rm>{}</function>",
    "one of two was not offered": f'```json\n[{SEARCH}, {{"name": "rm", "arguments": {{}}}}]\n```',
    "no JSON": "<tool_call>search</tool_call>",
    "cut": '<tool_call>{"name": "search", "arguments": {"que',
    "other JSON": '```json\n{"name": "Ada", "age": 36}\n```',
    "a list of numbers": "```json\n[1, 2]\n```",
    "words behind a fence": f"```json\n{SEARCH}\n```\nThat is how.",
    "another language": f"```python\n{SEARCH}\n```",
    "arguments that are no object": '<tool_call>{"name": "search", "arguments": [1]}</tool_call>',
    "half of a surrogate pair": '<tool_call>{"name": "search", "arguments": {"query": "\\ud800"}}</tool_call>',
    "too deep": '<tool_call>{"name":"search","arguments":' + "[" * 20_000,
    "too many": f"<tool_call>{CLOCK}</tool_call>" * (MAX_WRITTEN_CALLS + 1),
}


def told(text: str) -> list[tuple[str, object]]:
    return [(one.name, json.loads(one.arguments)) for one in read_written_calls(text, NAMES)]


def shown(text: str, size: int) -> tuple[str, str, int]:
    """Return what is shown while the text comes, what at its end, and how many calls there are."""
    held = TextOfCalls(NAMES)
    before = "".join(held.feed(text[at : at + size]) for at in range(0, len(text), size))
    calls = held.take_calls()
    return before, held.release(), len(calls)


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_a_call_is_read_and_nothing_of_it_shown(kind: str, size: int):
    text, expected = CALLS[kind]
    assert told(text) == expected
    assert shown(text, size) == ("", "", len(expected))


@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_everything_else_is_text(kind: str, size: int):
    text = WORDS[kind]
    assert told(text) == []
    before, behind, calls = shown(text, size)
    assert (before + behind, calls) == (text, 0)


@pytest.mark.parametrize(
    ("text", "held_characters"),
    [("The fox", 0), ("<think>", 2), ("`inline` code", 1), ("```python\nx", 3), ('```json\n{"name": "Ada"', 18)],
)
def test_no_more_is_held_back_than_may_begin_a_call(text: str, held_characters: int):
    held = TextOfCalls(NAMES)
    outputs = [held.feed(character) for character in text]
    assert outputs.index(next(filter(None, outputs))) == held_characters
    assert "".join(outputs) == text


def test_a_very_long_answer_is_shown():
    text = '<tool_call>{"name": "search", "arguments": {"query": "' + "x" * MAX_HELD_CHARACTERS
    before, behind, _ = shown(text, 1_000)
    assert before + behind == text
    assert before


def test_without_tools_nothing_is_held_back():
    assert TextOfCalls(()).feed("<tool_call>") == "<tool_call>"


@given(
    st.lists(
        st.sampled_from([SEARCH, CLOCK, "<tool_call>", "</tool_call>", "```", "json", "\n", "<function=clock>", "x"])
    ),
    st.integers(1, 9),
)
@examples(500, few=100)
def test_the_split_makes_no_difference(parts: list[str], size: int):
    text = "".join(parts)
    before, behind, calls = shown(text, size)
    whole_before, whole_behind, whole_calls = shown(text, len(text) + 1)
    assert (before + behind, calls) == (whole_before + whole_behind, whole_calls)
    assert calls == len(read_written_calls(text, NAMES))


@pytest.mark.parametrize("unit", [" ", "<tool_call>", "x", "```", f"<tool_call>{CLOCK}</tool_call>\n"])
def test_work_grows_with_the_text_and_no_faster(unit: str):
    def work(count: int) -> int:
        return calls_made(lambda: shown(unit * count, 7))

    assert work(2_000) <= 2.1 * work(1_000) + 3_000


def test_a_turn_knows_its_written_calls():
    said = AssistantMessage(text="", tool_calls=read_written_calls(CALLS["two tagged"][0], NAMES))
    assert [one.call_id for one in said.tool_calls] == ["call_written_1", "call_written_2"]
    assert has_written_call((UserMessage(content="Hi"), said))
    assert not has_written_call((AssistantMessage(text="", tool_calls=(call("clock", "{}", "call_1"),)),))
