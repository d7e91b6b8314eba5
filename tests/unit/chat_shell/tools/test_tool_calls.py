"""Arguments as models write them."""

import json

import pytest
from hypothesis import given

from chat_shell.tools.domain.tool_calls import ArgumentsRejected, decode_arguments
from shared.models.values import JsonObject
from shared.prompts.tool_results import ARGUMENTS_NO_JSON, ARGUMENTS_NO_OBJECT
from tests.strategies import json_objects


@given(json_objects().filter(lambda each: "\\u0000" not in json.dumps(each)))
def test_objects_are_read_also_when_encoded_twice(arguments: JsonObject):
    text = json.dumps(arguments)
    assert decode_arguments(text) == arguments
    assert decode_arguments(json.dumps(text)) == arguments


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_blank_arguments_are_an_empty_object(blank: str):
    assert decode_arguments(blank) == {}


@pytest.mark.parametrize("broken", ['{"a": ', "query", '"{"', "[" * 100_000, '{"a": "\\ud800"}', '{"a": "\\u0000"}'])
def test_what_is_no_json_is_refused(broken: str):
    with pytest.raises(ArgumentsRejected) as caught:
        decode_arguments(broken)
    assert caught.value.message == ARGUMENTS_NO_JSON


def test_text_about_a_nul_is_no_nul():
    assert decode_arguments('{"a": "\\\\u0000"}') == {"a": "\\u0000"}


@pytest.mark.parametrize("other", ["[]", "1", "null", '"\\"text\\""'])
def test_what_is_no_object_is_refused(other: str):
    with pytest.raises(ArgumentsRejected) as caught:
        decode_arguments(other)
    assert caught.value.message == ARGUMENTS_NO_OBJECT
