"""The field that an error names is the field that the caller has to change."""

from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from shared.errors import InvalidRequest, UnsupportedValue
from shared.models.invalid_fields import Complaint, place_of, refusal_among, refusal_of
from tests.examples import examples


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


def _complaint(body: object) -> InvalidRequest:
    try:
        BODY.validate_python(body)
    except ValidationError as error:
        found = [Complaint(each["type"], each["loc"], each["msg"]) for each in error.errors()]
        return refusal_among(found, given=body)
    raise AssertionError("the body is valid")


def test_the_member_of_a_union_that_got_furthest_is_meant() -> None:
    body = {"input": [{"role": "user", "content": "x"}, {"role": "user", "content": [{"type": "text", "text": 5}]}]}
    assert _complaint(body).param == "input[1].content[0].text"


def test_a_missing_field_is_named_with_its_place() -> None:
    found = _complaint({"input": [{"role": "user", "content": [{"type": "image"}]}]})
    assert found.param == "input[0].content[0].url"
    assert found.message.startswith(f"{found.param}: this field is required")


def test_an_unknown_field_is_named() -> None:
    assert _complaint({"input": [{"role": "user", "content": "x", "colour": 1}]}).param == "input[0].colour"


def test_an_unknown_type_is_named() -> None:
    found = _complaint({"input": [{"role": "u", "content": [{"type": "odour"}]}]})
    assert (type(found), found.param) == (InvalidRequest, "input[0].content[0].type")


def test_an_unknown_type_is_unsupported_where_the_caller_says_so() -> None:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(Annotated[Text | Image, Field(discriminator="type")]).validate_python({"type": "odour"})
    found = refusal_of(raised.value, "part", tells_unsupported=True)
    assert (type(found), found.param) == (UnsupportedValue, "part.type")
    assert type(refusal_of(raised.value, "part")) is InvalidRequest


def test_the_first_of_two_independent_mistakes_is_named() -> None:
    with pytest.raises(ValidationError) as raised:
        Message.model_validate({"role": 5, "content": "x", "colour": {"deep": 1}})
    assert refusal_of(raised.value).param == "role"


def test_the_root_stands_before_the_path() -> None:
    complaint = Complaint("value_error", (2, "size"), "Input should be a number")
    found = refusal_among([complaint], "items", [1, 2, {"size": "x"}])
    assert (found.param, found.message) == (
        "items[2].size",
        "items[2].size: must be a number.",
    )


def test_a_validator_may_name_the_field() -> None:
    found = refusal_among([Complaint("value_error", ("knowledge",), "Value error, ticket: is required")])
    assert (found.param, found.message) == ("knowledge.ticket", "knowledge.ticket: is required.")


def test_a_missing_body_has_no_name() -> None:
    found = refusal_among([Complaint("missing", (), "Field required")])
    assert (found.param, found.message) == (None, "body: this field is required; add it.")


ODD_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["input", "content", "x"]), inner),
    max_leaves=5,
)


@given(ODD_VALUES)
@examples(50)
def test_no_body_is_too_odd_to_complain_about(body: object) -> None:
    try:
        BODY.validate_python(body)
    except ValidationError as error:
        assert refusal_of(error, given=body).message


def test_paths_read_like_code() -> None:
    assert place_of("", ["input", 2, "content", 0, "text"]) == "input[2].content[0].text"
    assert place_of("", []) == ""


class Function(BaseModel):
    type: Literal["function"]
    name: str


class Bounded(BaseModel):
    names: list[str] = Field(default=["x"], min_length=1, max_length=2)
    count: int = Field(default=3, ge=3)


def test_a_key_that_is_called_like_its_type_is_not_taken_for_the_path() -> None:
    tools = TypeAdapter(list[Annotated[Function | Image, Field(discriminator="type")]])
    given = [{"type": "function", "function": {"name": "x"}}]
    with pytest.raises(ValidationError) as raised:
        tools.validate_python(given)
    found = refusal_of(raised.value, "tools", given)
    assert found.param == "tools[0].name"
    assert found.message.startswith(f"{found.param}: this field is required")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"names": []}, "names: has too few elements; use at least 1."),
        ({"names": ["a", "b", "c"]}, "names: has too many elements; use at most 2."),
        ({"count": "many"}, "count: must be a whole number."),
        ({"count": 2}, "count: must be at least 3."),
    ],
)
def test_bounds_are_told_in_plain_words(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Bounded.model_validate(given)
    assert refusal_of(raised.value).message == message
