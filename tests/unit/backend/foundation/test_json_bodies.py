"""Whatever stands in a body, the answer is a 400 that says what is wrong, never a 500."""

import httpx2
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.fakes.http_api import FakeHouse, client_of

JSON = {"content-type": "application/json"}
NASTY = {
    "invalid UTF-8": b'{"metadata": {"a": "\xff"}}',
    "no JSON": b"{nope",
    "a lone surrogate": b'{"metadata": {"a": "\\ud800"}}',
    "a lone surrogate as key": b'{"metadata": {"\\udfff": "a"}}',
    "NUL in a value": b'{"metadata": {"a": "x\\u0000y"}}',
    "NUL in a key": b'{"metadata": {"\\u0000": "y"}}',
    "not a number": b'{"metadata": NaN}',
    "a huge number": b'{"metadata": ' + b"9" * 6000 + b"}",
    "a number beyond 64 bits": b'{"metadata": 18446744073709551616}',
    "deep arrays": b'{"items": ' + b"[" * 40_000 + b"]" * 40_000 + b"}",
    "arrays as deep as the parser goes": b'{"items": ' + b"[" * 1000 + b"]" * 1000 + b"}",
    "deep objects": b'{"metadata": ' + b'{"a":' * 200 + b"1" + b"}" * 201,
    "an array": b"[]",
    "a string": b'"items"',
    "null": b"null",
    "a number": b"1",
    "two values": b"{} {}",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"metadata": {}}'.encode("utf-16"),
}


@pytest.mark.parametrize("name", NASTY)
async def test_a_nasty_body_is_the_callers_mistake(user: httpx2.AsyncClient, name: str) -> None:
    answer = await user.post("/v1/conversations", content=NASTY[name], headers=JSON)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ";"])
async def test_another_media_type_is_named(user: httpx2.AsyncClient, media_type: str) -> None:
    answer = await user.post("/v1/conversations", content=b"{}", headers={"content-type": media_type})
    assert answer.status_code == 400
    assert "Content-Type" in answer.json()["error"]["message"]


@pytest.mark.parametrize("media_type", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
async def test_json_is_json_however_written(user: httpx2.AsyncClient, media_type: str) -> None:
    answer = await user.post("/v1/conversations", content=b"{}", headers={"content-type": media_type})
    assert answer.status_code == 201


async def test_no_media_type_counts_as_json(user: httpx2.AsyncClient) -> None:
    answer = await user.post("/v1/conversations", content=b'{"metadata": {"a": "b"}}')
    assert (answer.status_code, answer.json()["metadata"]) == (201, {"a": "b"})


async def test_the_place_of_a_nul_is_named(user: httpx2.AsyncClient) -> None:
    body = b'{"items": [{"role": "user", "content": [{"type": "input_text", "text": "a\\u0000"}]}]}'
    answer = await user.post("/v1/conversations", content=body, headers=JSON)
    assert answer.json()["error"]["param"] == "items[0].content[0].text"


async def test_the_place_of_a_number_beyond_64_bits_is_named(user: httpx2.AsyncClient) -> None:
    body = b'{"name": "Sums", "topics": ["a", {"b": [1, -9223372036854775809]}], "summary": 1e30}'
    answer = await user.post("/v1/knowledge_bases", content=body, headers=JSON)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "topics[1].b[1]"


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["message", "function_call", "function_call_output", "reasoning"]) | JSON_VALUES,
        "role": st.sampled_from(["user", "assistant", "system"]) | JSON_VALUES,
        "content": st.text() | st.lists(st.fixed_dictionaries({"type": st.text(), "text": JSON_VALUES})) | JSON_VALUES,
        "call_id": st.text(max_size=3) | JSON_VALUES,
        "name": st.sampled_from(["f", "g"]) | JSON_VALUES,
        "arguments": st.text(max_size=3) | JSON_VALUES,
        "output": st.text(max_size=3) | JSON_VALUES,
    },
)

HOUSE = FakeHouse()
APP = HOUSE.app()


@given(body=st.fixed_dictionaries({"items": st.lists(ITEMS, max_size=3) | JSON_VALUES}) | JSON_VALUES)
@examples(60)
async def test_any_json_is_taken_or_refused(body: object) -> None:
    async with client_of(APP, await HOUSE.key()) as client:
        answer = await client.post("/v1/conversations", content=orjson.dumps(body), headers=JSON)
    assert answer.status_code in (201, 400)
    if answer.status_code == 400:
        assert answer.json()["error"]["message"]
