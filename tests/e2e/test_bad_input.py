"""Wrong words get a 4xx that names the field, whoever says them and however: never a 500, never a model call."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import orjson
import pytest

from tests.e2e.pair import ADMIN_KEY, SERVICE_TOKEN, Pair, lone_backend
from tests.e2e.turns import Body, bare_client, new_base, new_conversation, turn
from tests.fakes.model_server import FakeModelControl
from tests.servers.services import Launch

pytestmark = pytest.mark.combination

USER: Body = {"role": "user", "content": "Hi"}
PNG = "data:image/png;base64,iVBORw0KGgo="
MAX_BODY_BYTES = 65_536


def message(content: object) -> Body:
    return {"input": [{"role": "user", "content": content}]}


def tool(**fields: object) -> Body:
    return {"input": "Hi", "tools": [{"type": "function", "name": "look", **fields}]}


MALFORMED: list[tuple[Body, str | None]] = [
    ({}, "input"),
    ({"input": None}, "input"),
    ({"input": 7}, "input"),
    ({"input": []}, "input"),
    ({"input": ["Hi"]}, "input[0]"),
    ({"input": [USER, {"role": "wizard", "content": "x"}]}, "input[1].role"),
    ({"input": [{"role": "user"}]}, "input[0].content"),
    ({"input": [{"content": "x"}]}, "input[0].role"),
    (message([]), "input[0].content"),
    (message([{"type": "input_text"}]), "input[0].content[0].text"),
    (message([{"type": "input_audio"}]), "input[0].content[0].type"),
    (message([{"type": "input_text", "text": 7}]), "input[0].content[0].text"),
    (message([{"type": "input_image", "image_url": "file:///etc/passwd"}]), "input[0].content[0].image_url"),
    (message([{"type": "input_image", "image_url": PNG, "detail": "all"}]), "input[0].content[0].detail"),
    ({"input": [{"type": "function_call_output", "call_id": "no", "output": "x"}]}, "input[0].call_id"),
    ({"input": [{"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}]}, "input"),
    ({"input": "Hi", "model": 7}, "model"),
    ({"input": "Hi", "temperature": 9}, "temperature"),
    ({"input": "Hi", "temperature": "hot"}, "temperature"),
    ({"input": "Hi", "top_p": -1}, "top_p"),
    ({"input": "Hi", "max_output_tokens": 0}, "max_output_tokens"),
    ({"input": "Hi", "max_output_tokens": 10**30}, "max_output_tokens"),
    ({"input": "Hi", "max_output_tokens": 1.5}, "max_output_tokens"),
    ({"input": "Hi", "stream": "yes"}, "stream"),
    ({"input": "Hi", "store": 0}, "store"),
    ({"input": "Hi", "metadata": {"a": 1}}, "metadata.a"),
    ({"input": "Hi", "metadata": {"a": "x" * 513}}, "metadata.a"),
    ({"input": "Hi", "metadata": {str(number): "x" for number in range(17)}}, "metadata"),
    ({"input": "Hi", "tools": {}}, "tools"),
    ({"input": "Hi", "tools": [{"type": "file_search"}]}, "tools[0].vector_store_ids"),
    ({"input": "Hi", "tools": [{"type": "file_search", "vector_store_ids": []}]}, "tools[0].vector_store_ids"),
    (tool(name="two words"), "tools[0].name"),
    (tool(name="knowledge_base_search"), "tools[0].name"),
    (tool(parameters="{}"), "tools[0].parameters"),
    (tool(parameters={"properties": {"n": {"maximum": 2**64}}}), "tools[0].parameters.properties.n.maximum"),
    ({"input": "Hi", "tool_choice": "maybe"}, "tool_choice"),
    ({"input": "Hi", "tool_choice": {"type": "function", "name": "look"}}, "tool_choice.name"),
    ({"input": "Hi", "include": ["everything"]}, "include[0]"),
    ({"input": "Hi", "reasoning": {"effort": "heroic"}}, "reasoning.effort"),
    ({"input": "Hi", "text": {"format": {"type": "yaml"}}}, "text.format.type"),
    ({"input": "Hi", "conversation": {"name": "x"}}, "conversation.id"),
    ({"input": "Hi", "conversation": "c", "previous_response_id": "r"}, "previous_response_id"),
    ({"input": "Hi", "background": True, "store": False}, "store"),
]

NO_JSON_OBJECT = {
    "empty": b"",
    "a word": b"hello",
    "a list": b"[]",
    "null": b"null",
    "cut": b'{"input": "Hi"',
    "NaN": b'{"input": "Hi", "temperature": NaN}',
    "invalid UTF-8": b'{"input": "\xff\xfe"}',
    "overlong UTF-8": b'{"input": "\xc0\x80"}',
    "a surrogate in UTF-8": b'{"input": "\xed\xa0\x80"}',
    "a lone surrogate": b'{"input": "\\ud800"}',
    "reversed surrogates": b'{"input": "\\udc00\\ud800"}',
    "NUL": b'{"input": "a\\u0000b"}',
    "NUL in a key": b'{"input": "Hi", "metadata": {"\\u0000": "x"}}',
    "deep lists": b'{"input": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "deep objects": b'{"input": "Hi", "metadata": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
    "a huge number": b'{"input": "Hi", "top_logprobs": ' + b"9" * 5_000 + b"}",
    "a huge exponent": b'{"input": "Hi", "temperature": 1e999}',
    "a byte order mark": b'\xef\xbb\xbf{"input": 1}',
}


def assert_refused(answer: httpx2.Response, status: int = 400) -> Body:
    """Check status and shape of a refusal; return its error."""
    assert answer.status_code == status, answer.text
    error: Body = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    assert answer.headers["x-request-id"]
    return error


@pytest.mark.parametrize(("body", "param"), MALFORMED)
async def test_a_malformed_turn_is_refused_with_its_field(
    small_pair: Pair, small_model: FakeModelControl, body: Body, param: str
) -> None:
    async with bare_client(small_pair, "clumsy") as client:
        assert assert_refused(await client.post("/v1/responses", json=body))["param"] == param
        streamed = await client.post("/v1/responses", json={"stream": True, **body})
        assert assert_refused(streamed)["param"] == param
    assert await small_model.requests() == []


@pytest.mark.parametrize("name", NO_JSON_OBJECT)
async def test_a_body_that_cannot_be_read_is_refused(
    small_pair: Pair, small_model: FakeModelControl, name: str
) -> None:
    async with bare_client(small_pair, "clumsy") as client:
        conversation = await new_conversation(client)
        for path in ("/v1/responses", f"/v1/conversations/{conversation}", "/v1/knowledge_bases"):
            answer = await client.post(path, content=NO_JSON_OBJECT[name], headers={"content-type": "application/json"})
            assert_refused(answer)
    assert await small_model.requests() == []


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/xml", "x"]
)
async def test_a_body_of_another_type_is_refused(small_pair: Pair, content_type: str) -> None:
    async with bare_client(small_pair, "clumsy") as client:
        for path in ("/v1/responses", "/v1/conversations", "/v1/knowledge_bases"):
            body = orjson.dumps({"input": "Hi", "name": "x"})
            assert_refused(await client.post(path, content=body, headers={"content-type": content_type}))


async def test_unknown_models_conversations_responses_and_bases_are_not_found(
    small_pair: Pair, small_model: FakeModelControl
) -> None:
    cases: list[tuple[Body, str, str]] = [
        ({"model": "no-such-model"}, "model", "model_not_found"),
        ({"conversation": "conv_0"}, "conversation", "not_found"),
        ({"previous_response_id": "resp_0"}, "previous_response_id", "not_found"),
        (
            {"tools": [{"type": "file_search", "vector_store_ids": ["kb_0"]}]},
            "tools[0].vector_store_ids[0]",
            "not_found",
        ),
    ]
    async with bare_client(small_pair, "clumsy") as client:
        for body, param, code in cases:
            error = assert_refused(await client.post("/v1/responses", json={"input": "Hi", **body}), 404)
            assert (error["param"], error["code"]) == (param, code)
        assert_refused(await client.get("/v1/models/no-such-model"), 404)
    assert await small_model.requests() == []


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer wrong", "Basic d3Jvbmc=", f"Bearer {SERVICE_TOKEN}"])
async def test_without_the_right_key_every_server_is_closed(small_pair: Pair, header: str | None) -> None:
    routes = [
        ("POST", "/v1/responses"),
        ("GET", "/v1/responses/resp_0"),
        ("POST", "/v1/responses/resp_0/cancel"),
        ("GET", "/v1/conversations/conv_0/items"),
        ("GET", "/v1/models"),
        ("GET", "/v1/knowledge_bases"),
        ("PUT", "/v1/knowledge_bases/kb_0/documents/a.md"),
        ("POST", "/v1/api_keys"),
    ]
    headers = {} if header is None else {"authorization": header}
    async with httpx2.AsyncClient(
        base_url=small_pair.backend_url, headers=headers, timeout=60, trust_env=False, verify=False
    ) as client:
        for method, path in routes:
            answer = await client.request(method, path, json={"input": "Hi"} if method != "GET" else None)
            error = assert_refused(answer, 401)
            assert (error["type"], error["code"]) == ("authentication_error", "invalid_api_key")
            assert answer.headers["www-authenticate"] == "Bearer"
        internal = 400 if header == f"Bearer {SERVICE_TOKEN}" else 401
        for path in ("search", "documents", "read"):
            assert_refused(await client.post(f"/internal/v1/knowledge/{path}", json={}), internal)


async def test_a_revoked_key_and_a_users_key_for_administrators(small_pair: Pair) -> None:
    with small_pair.http(ADMIN_KEY) as admin:
        made = admin.post("/v1/api_keys", json={"user_id": "gone"}).json()
        with small_pair.http(made["key"]) as gone:
            assert gone.get("/v1/models").status_code == 200
            assert admin.delete(f"/v1/api_keys/{made['id']}").status_code == 200
            assert_refused(gone.get("/v1/models"), 401)
        assert_refused(admin.get(f"/v1/api_keys/{made['id']}"), 404)
    with small_pair.http(small_pair.key("clumsy")) as client:
        for method, path in (("POST", ""), ("GET", ""), ("GET", "/key_0"), ("DELETE", "/key_0")):
            answer = client.request(method, f"/v1/api_keys{path}", json={"user_id": "x"} if method == "POST" else None)
            assert_refused(answer, 403)


async def test_everything_of_somebody_else_is_not_found(pair: Pair, model: FakeModelControl) -> None:
    async with bare_client(pair, "owner") as owner, bare_client(pair, "stranger") as stranger:
        base = await new_base(owner, "Private", note="secret words")
        response = await turn(owner, "Hi", tools=[{"type": "file_search", "vector_store_ids": [base]}])
        conversation = response["conversation"]["id"]
        path = f"/v1/conversations/{conversation}"
        item = (await owner.get(f"{path}/items")).json()["last_id"]
        requests: list[tuple[str, str, Any]] = [
            ("GET", f"/v1/responses/{response['id']}", None),
            ("GET", f"/v1/responses/{response['id']}?stream=true", None),
            ("GET", f"/v1/responses/{response['id']}/input_items", None),
            ("POST", f"/v1/responses/{response['id']}/cancel", None),
            ("DELETE", f"/v1/responses/{response['id']}", None),
            ("POST", "/v1/responses", {"input": "Hi", "previous_response_id": response["id"]}),
            ("POST", "/v1/responses", {"input": "Hi", "conversation": conversation}),
            ("POST", "/v1/responses", {"input": "Hi", "tools": [{"type": "file_search", "vector_store_ids": [base]}]}),
            ("GET", path, None),
            ("POST", path, {"metadata": {}}),
            ("DELETE", path, None),
            ("GET", f"{path}/items", None),
            ("POST", f"{path}/items", {"items": [USER]}),
            ("GET", f"{path}/items/{item}", None),
            ("GET", f"/v1/knowledge_bases/{base}", None),
            ("PATCH", f"/v1/knowledge_bases/{base}", {"name": "Mine"}),
            ("DELETE", f"/v1/knowledge_bases/{base}", None),
            ("GET", f"/v1/knowledge_bases/{base}/documents", None),
            ("GET", f"/v1/knowledge_bases/{base}/documents/note.md", None),
            ("PUT", f"/v1/knowledge_bases/{base}/documents/note.md", {}),
            ("DELETE", f"/v1/knowledge_bases/{base}/documents/note.md", None),
            ("GET", f"/v1/knowledge_bases/{base}/members", None),
            ("PUT", f"/v1/knowledge_bases/{base}/members/stranger", {"role": "owner"}),
            ("DELETE", f"/v1/knowledge_bases/{base}/members/owner", None),
            ("POST", f"/v1/knowledge_bases/{base}/search", {"query": "secret"}),
        ]
        for method, address, body in requests:
            answer = await stranger.request(method, address, json=body)
            assert_refused(answer, 404)
            assert "secret words" not in answer.text
        assert (await owner.get(f"/v1/responses/{response['id']}")).json() == response
        assert (await owner.get(f"/v1/knowledge_bases/{base}/documents/note.md")).text == "secret words"
    assert len(await model.requests()) == 1


async def test_deleting_an_item_before_the_last_is_never_done(small_pair: Pair, small_model: FakeModelControl) -> None:
    async with bare_client(small_pair, "clumsy") as client:
        items = f"/v1/conversations/{(await turn(client, 'Hi'))['conversation']['id']}/items"
        first = (await client.get(items, params={"order": "asc"})).json()["data"][0]["id"]
        assert_refused(await client.delete(f"{items}/{first}"), 405)


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "limit=x", "limit=" + "9" * 500, "order=sideways", "after=msg_0", "include[]=x"]
)
async def test_wrong_pages_are_refused(small_pair: Pair, query: str) -> None:
    async with bare_client(small_pair, "clumsy") as client:
        path = f"/v1/conversations/{await new_conversation(client)}/items?{query}"
        assert_refused(await client.get(path), 404 if query == "after=msg_0" else 400)


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "9" * 400])
async def test_wrong_event_numbers_are_refused(small_pair: Pair, small_model: FakeModelControl, after: str) -> None:
    async with bare_client(small_pair, "clumsy") as client:
        response = await turn(client, "Hi")
        answer = await client.get(f"/v1/responses/{response['id']}?stream=true&starting_after={after}")
        assert assert_refused(answer)["param"] == "starting_after"


@pytest.fixture(scope="module")
def narrow_backend(launch_for_module: Launch, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A backend that takes small bodies only."""
    directory = tmp_path_factory.mktemp("narrow")
    return lone_backend(launch_for_module, directory, BACKEND_MAX_BODY_BYTES=str(MAX_BODY_BYTES))


@pytest.mark.parametrize("length", [MAX_BODY_BYTES + 1, 50 * MAX_BODY_BYTES])
@pytest.mark.parametrize("is_announced", [True, False])
async def test_a_body_over_the_limit_is_too_large(narrow_backend: Pair, length: int, is_announced: bool) -> None:
    async with bare_client(narrow_backend, "verbose") as client:
        base = f"/v1/knowledge_bases/{await new_base(client, 'Base')}/documents/long.md"
        for method, path in (("POST", "/v1/responses"), ("POST", "/v1/conversations"), ("PUT", base)):
            content = b" " * length if is_announced else pieces(length)
            answer = await client.request(method, path, content=content, headers={"content-type": "application/json"})
            assert assert_refused(answer, 413)["code"] == "payload_too_large"
        assert (await client.get("/v1/conversations/conv_0")).status_code == 404


async def test_a_body_at_the_limit_is_taken(narrow_backend: Pair) -> None:
    body = orjson.dumps({"metadata": {}})
    async with bare_client(narrow_backend, "verbose") as client:
        padded = body + b" " * (MAX_BODY_BYTES - len(body))
        answer = await client.post("/v1/conversations", content=padded, headers={"content-type": "application/json"})
        assert answer.status_code == 201


async def pieces(length: int) -> AsyncIterator[bytes]:
    for start in range(0, length, 4096):
        yield b" " * min(4096, length - start)
