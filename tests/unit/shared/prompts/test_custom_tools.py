"""The input that arguments of a custom tool's call hold, whole and piece by piece."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.models.values import JsonObject
from shared.prompts.custom_tools import InputReader, arguments_of, custom_format, custom_tool, input_of
from tests.examples import examples

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=80)
ARGUMENTS = st.one_of(
    st.text(st.sampled_from('{"input": \\u00dDd83c\n}x'), max_size=90),
    TEXTS.map(lambda text: json.dumps({"input": text})),
    TEXTS.map(lambda text: json.dumps({"input": text})[:-3]),
)


def read(pieces: list[str]) -> str:
    reader = InputReader()
    return "".join([reader.read(piece) for piece in pieces]) + reader.rest()


@examples(200)
@given(TEXTS)
def test_an_input_is_read_as_it_was_written(text: str) -> None:
    for written in (arguments_of(text), json.dumps({"input": text}), f' {{\n"input" : {json.dumps(text)} }}'):
        assert input_of(written) == text


@examples(200)
@given(ARGUMENTS, st.lists(st.integers(1, 9), max_size=60))
def test_how_arguments_are_cut_changes_nothing(arguments: str, lengths: list[int]) -> None:
    pieces: list[str] = []
    for length in lengths:
        pieces.append(arguments[sum(map(len, pieces)) :][:length])
    pieces.append(arguments[sum(map(len, pieces)) :])
    assert read(pieces) == input_of(arguments)


@pytest.mark.parametrize("arguments", ["", "{}", "ls -l", '{"command": "ls"}', '{"input": 5}', '["input"]', "x" * 200])
def test_arguments_that_name_no_input_are_the_input(arguments: str) -> None:
    assert input_of(arguments) == arguments


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"input": "a", "more": 1}', "a"),
        ('{"input": "one\ntwo"}', "one\ntwo"),
        (r'{"input": "\d+ \u12 \/"}', r"\d+ \u12 /"),
        (r'{"input": "half \ud83d"}', "half \ufffd"),
        (r'{"input": "nothing \u0000"}', "nothing \ufffd"),
        (r'{"input": "cut \ud83d\u', "cut "),
    ],
)
def test_what_models_write_wrongly_is_read_as_it_is_meant(arguments: str, said: str) -> None:
    assert input_of(arguments) == read(list(arguments)) == said


def test_pieces_are_told_as_soon_as_they_are_known() -> None:
    reader = InputReader()
    pieces = ['{"in', 'put": "one', " two\\", "n\\ud83d", '\\ude00"', "}"]
    assert [reader.read(piece) for piece in pieces] == ["", "one", " two", "\n", "😀", ""]


@pytest.mark.parametrize(
    "given",
    [
        {"type": "text"},
        {"type": "grammar", "syntax": "lark", "definition": 'start: "a"\n'},
        {"type": "grammar", "syntax": "regex", "definition": ""},
    ],
)
def test_the_schema_says_which_format_it_stands_for(given: JsonObject) -> None:
    assert custom_format(custom_tool("patch", "Patches.", given).parameters) == given


def test_functions_are_no_custom_tools() -> None:
    own = custom_tool("patch", None, {"type": "text"}).parameters or {}
    described = {"type": "string", "description": "The text."}
    for parameters in (None, {}, {**own, "strict": True}, {**own, "properties": {"input": described}}):
        assert custom_format(parameters) is None
