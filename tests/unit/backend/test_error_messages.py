"""Messages of errors: each begins with its field, and says what would be right, since many clients show no more."""

import re
from collections.abc import Iterator
from typing import Any, cast

import httpx2
import pytest
from fastapi import FastAPI

from tests.fakes.http_api import FakeHouse

Schema = dict[str, Any]
SAYS_WHAT_IS_RIGHT = re.compile(r"\b(must|use|give|add|leave|choose|take|name|shorten|required)\b")
WRONG_VALUES: tuple[Any, ...] = ({"nope": {}}, [[None]], 10**18, "", True, None, "\U0001f600" * 300)
WORDS = {"title", "default", "description", "examples"}
"""What a schema says of a field for people alone."""

NO_TURN = {"model": "gpt-nope"}
"""A right value, with which no turn begins."""

BASES = {
    "/v1/responses/compact": {"input": "Hi"},
    "/v1/responses": NO_TURN,
    "/v1/responses/input_tokens": NO_TURN,
    "/v1/chat/completions": {**NO_TURN, "messages": [{"role": "user", "content": "Hi"}]},
    "/v1/vector_stores/{vector_store_id}/file_batches": {"file_ids": ["file-nope"]},
}


@pytest.fixture
def house() -> FakeHouse:
    """What is not known is refused by its name."""
    return FakeHouse(strict_requests=True)


def check(answer: httpx2.Response, field: str) -> None:
    error = answer.json()["error"]
    assert error["param"] is not None, error
    assert error["param"].startswith(field), error
    assert error["message"].startswith(f"{error['param']}: "), error
    said = error["message"].removeprefix(f"{error['param']}: ")
    assert SAYS_WHAT_IS_RIGHT.search(said), error


def operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema", {})
            # Documents, which may be JSON too, and messages of MCP have no fields of ours.
            if "properties" in resolved(schema, document) and not path.startswith("/internal"):
                yield method.upper(), path, schema


def resolved(schema: Schema, document: Schema) -> Schema:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def least(schema: Schema, document: Schema) -> Any:
    """Make a small value that fits a schema."""
    schema = resolved(schema, document)
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            return least(schema[choice][0], document)
    if "const" in schema or "enum" in schema:
        return schema.get("const", cast(list[Any], schema.get("enum", [None]))[0])
    if schema.get("type") == "array":
        return [least(schema["items"], document)] * schema.get("minItems", 0)
    if schema.get("type") == "object":
        fields = schema.get("properties", {})
        return {name: least(fields[name], document) for name in schema.get("required", ())}
    return {"integer": 1, "number": 1.0, "boolean": True}.get(schema.get("type", ""), "x")


async def test_every_field_of_every_body_is_named_with_what_would_be_right(
    app: FastAPI, admin: httpx2.AsyncClient, house: FakeHouse
) -> None:
    async with house.turns.registry:
        await walk(app, admin)


async def walk(app: FastAPI, admin: httpx2.AsyncClient) -> None:
    document = app.openapi()
    refused: dict[str, int] = {}
    for method, path, given in operations(document):
        schema = resolved(given, document)
        body = {**least(schema, document), **BASES.get(path, {})}
        address = path.replace("{name}", "helper").replace("{user_id}", "ada")
        for name, field in schema["properties"].items():
            if resolved(field, document).get("title") and not set(field) - WORDS:
                continue  # any value is right
            for wrong in WRONG_VALUES:
                answer = await admin.request(method, address, json={**body, name: wrong})
                if answer.status_code == 400:
                    check(answer, name)
                    refused[f"{method} {path} {name}"] = 1
            assert f"{method} {path} {name}" in refused, (method, path, name)
        # what a model takes decides which members are known
        known = {"model": "demo-model"} if "model" in body else {}
        check(await admin.request(method, address, json={**body, **known, "nope": 1}), "nope")
        for name in schema.get("required", ()):
            without = {key: value for key, value in body.items() if key != name}
            check(await admin.request(method, address, json=without), name)
    assert len(refused) > 100


RESPONSES_SAY: list[tuple[Any, str]] = [
    (
        {"input": [{"role": "user", "content": "a"}, {"type": "foo"}]},
        "input[1].type: 'foo' is not supported; use message, function_call, custom_tool_call, function_call_output,",
    ),
    ({"input": "a", "tools": [{"type": "magic"}]}, "tools[0].type: 'magic' is not supported; use function,"),
    ({"input": "a", "tools": [{}]}, "tools[0].type: this field is required; give the type"),
    (
        {"input": "a", "tool_choice": {"type": "x"}},
        "tool_choice.type: 'x' is not supported; use function, custom, file",
    ),
    ({"input": "a", "temperature": 9}, "temperature: must be at most 2."),
    ({"input": "a", "model": "gpt-nope"}, "model: The model 'gpt-nope' does not exist; use one of 'demo-model', '"),
    ({"input": [{"type": "reasoning", "summary": []}]}, "input: There is no message to answer; add a message"),
    ({"input": "a", "store": False, "background": True}, "store: A turn in the background must be stored; leave"),
    (
        {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
        "input[0].call_id: No function call waits under 'c'; use the id of a call",
    ),
    ({"input": "a", "tool_choice": "required"}, "tool_choice: There are no tools of which one could be called;"),
    ({"input": "a", "prompt": {"id": "x"}}, "prompt: this field is not supported; leave it out."),
]


@pytest.mark.parametrize(("body", "message"), RESPONSES_SAY)
async def test_what_responses_say(user: httpx2.AsyncClient, body: Any, message: str) -> None:
    said = (await user.post("/v1/responses", json=body)).json()["error"]["message"]
    assert said.startswith(message), said


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"messages": [{"role": "user"}]}, "messages[0].content: "),
        ({"messages": [{"role": "user", "content": [{"type": "x"}]}]}, "messages[0].content[0].type: 'x' is not supp"),
        ({"messages": [{"role": "assistant"}]}, "messages[0].content: This field is required; give the text"),
        ({"functions": []}, "functions: This field is deprecated and not supported; use 'tools'."),
        ({"tools": [{"type": "x"}]}, "tools[0].type: 'x' is not supported; use function, custom, file"),
        ({"tool_choice": "required"}, "tool_choice: There are no tools"),
        ({"top_logprobs": 2}, "top_logprobs: These come with 'logprobs': true; give that, or leave this field out."),
        (
            {"tools": [{"type": "function", "function": {"name": "a"}}] * 2},
            "tools[1].function.name: The function 'a' is given twice; each must have",
        ),
        ({"messages": [{"role": "tool", "tool_call_id": "c", "content": "x"}]}, "messages[0].tool_call_id: No functi"),
    ],
)
async def test_what_chat_completions_say(user: httpx2.AsyncClient, fields: Any, message: str) -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}], **fields}
    said = (await user.post("/v1/chat/completions", json=body)).json()["error"]["message"]
    assert said.startswith(message), said


async def test_a_wrong_value_is_repeated_in_part_only(user: httpx2.AsyncClient) -> None:
    answer = await user.post("/v1/responses", json={"input": [{"type": "x" * 10_000}]})
    assert len(answer.json()["error"]["message"]) < 300
