"""The field that an error names is the field that the caller has to change."""

from typing import Annotated, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from backend.foundation.http.validation import InvalidField, most_telling, render_path


class Text(BaseModel):
    type: Literal["text"]
    text: str


class Image(BaseModel):
    type: Literal["image"]
    url: str


class Message(BaseModel, extra="forbid"):
    role: str
    content: str | list[Annotated[Text | Image, Field(discriminator="type")]]


BODY = TypeAdapter(dict[Literal["input"], list[Message]])


def _complaint(body: object) -> InvalidField:
    try:
        BODY.validate_python(body)
    except ValidationError as error:
        return most_telling([{**found, "loc": ("body", *found["loc"])} for found in error.errors()], body)
    raise AssertionError("the body is valid")


def test_the_member_of_a_union_that_got_furthest_is_meant() -> None:
    body = {"input": [{"role": "user", "content": "x"}, {"role": "user", "content": [{"type": "text", "text": 5}]}]}
    assert _complaint(body).param == "input[1].content[0].text"


def test_a_missing_field_is_named_with_its_place() -> None:
    found = _complaint({"input": [{"role": "user", "content": [{"type": "image"}]}]})
    assert found == InvalidField("input[0].content[0].url", "Missing required field 'input[0].content[0].url'.")


def test_an_unknown_field_is_named() -> None:
    assert _complaint({"input": [{"role": "user", "content": "x", "colour": 1}]}).param == "input[0].colour"


def test_an_unknown_type_is_named() -> None:
    assert _complaint({"input": [{"role": "u", "content": [{"type": "odour"}]}]}).param == "input[0].content[0].type"


@pytest.mark.parametrize("loc", [("query", "include[]"), ("query", "include[]", 1), ("path", "include[]", "a-tag")])
def test_query_and_path_fields_are_named_as_they_were_written(loc: tuple[str | int, ...]) -> None:
    error = {"type": "int_parsing", "loc": loc, "msg": "no number"}
    assert most_telling([error], None) == InvalidField("include[]", "Invalid value for 'include[]': no number.")


def test_a_missing_body_has_no_name() -> None:
    error = {"type": "missing", "loc": ("body",), "msg": "Field required"}
    assert most_telling([error], None) == InvalidField(None, "Missing required field 'body'.")


ODD_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["input", "content", "x"]), inner),
    max_leaves=5,
)


@given(ODD_VALUES)
@settings(max_examples=50)
def test_no_body_is_too_odd_to_complain_about(body: object) -> None:
    try:
        BODY.validate_python(body)
    except ValidationError as error:
        found = most_telling([{**each, "loc": ("body", *each["loc"])} for each in error.errors()], body)
        assert found.message


def test_paths_read_like_code() -> None:
    assert render_path(["input", 2, "content", 0, "text"]) == "input[2].content[0].text"
    assert render_path([]) == ""
