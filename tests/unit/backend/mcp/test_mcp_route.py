"""`POST /mcp` as HTTP: who may call, what is refused before the protocol, and that nothing is kept between calls."""

import httpx2
import pytest

from backend.identity.domain import KeyRole
from tests.fakes.http_api import BASE_URL, client_of
from tests.fakes.mcp_client import HANDSHAKE, message, post
from tests.unit.backend.conftest import Members

NEWEST = "2026-07-28"


def initialize(version: str):
    return message("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "t", "version": "1"})


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_handshake_is_answered_in_its_version_without_a_session(user: httpx2.AsyncClient, version: str):
    answer = await post(user, initialize(version))
    assert answer.status_code == 200
    assert answer.json()["result"]["protocolVersion"] == version
    assert answer.json()["result"]["capabilities"].keys() >= {"tools", "resources"}
    assert "mcp-session-id" not in answer.headers
    assert (await post(user, {"jsonrpc": "2.0", "method": "notifications/initialized"})).status_code == 202


async def test_no_handshake_and_no_session_is_needed(user: httpx2.AsyncClient):
    for headers in ({}, {"mcp_session_id": "of-a-replica-that-died"}):
        answer = await post(user, message("tools/list", 7), **headers)
        assert answer.json()["id"] == 7
        assert len(answer.json()["result"]["tools"]) == 4


async def test_an_unknown_version_is_refused(user: httpx2.AsyncClient):
    answer = await post(user, message("tools/list"), mcp_protocol_version="1999-01-01")
    assert answer.status_code == 400
    assert "protocolVersion" in answer.json()["error"]["message"]


@pytest.mark.parametrize("accept", ["application/json", "*/*", "application/json, text/event-stream", "application/*"])
async def test_the_answer_is_json_for_who_takes_it(user: httpx2.AsyncClient, accept: str):
    answer = await post(user, message("ping"), accept=accept)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_the_answer_is_an_event_for_who_takes_nothing_else(user: httpx2.AsyncClient):
    answer = await post(user, message("ping"), accept="text/event-stream")
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.text == 'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'


async def test_another_form_is_not_acceptable(user: httpx2.AsyncClient):
    answer = await post(user, message("ping"), accept="text/html")
    assert answer.status_code == 406
    assert "Accept" in answer.json()["error"]["message"]


async def test_who_has_no_key_is_unauthenticated(stranger: httpx2.AsyncClient):
    answer = await post(stranger, message("tools/list"))
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["code"] == "invalid_api_key"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_there_are_no_streams_of_the_server_and_no_sessions_to_end(user: httpx2.AsyncClient, method: str):
    answer = await user.request(method, "/mcp")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


async def test_pages_of_other_origins_are_refused(members: Members):
    answer = await post(members.reader, message("ping"), origin="http://evil.example")
    assert answer.status_code == 403
    assert answer.json()["error"]["param"] == "Origin"
    assert (await post(members.reader, message("ping"), origin=BASE_URL)).status_code == 403
    members.house.origins = ("https://app.example",)
    members.rebuild()
    assert (await post(members.reader, message("ping"), origin="https://app.example")).status_code == 200
    assert (await post(members.reader, message("ping"), origin="https://app.example.evil")).status_code == 403
    assert (await post(members.reader, message("ping"))).status_code == 200


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "not valid JSON"),
        (b"", "not valid JSON"),
        (b"[]", "JSON object"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a\\u0000"}}', "U+0000"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "\\ud800"}}', "not valid JSON"),
        (b'{"jsonrpc": "2.0", "id": 99999999999999999999999, "method": "ping"}', "64 bits"),
    ],
)
async def test_what_is_no_message_is_a_parse_error(user: httpx2.AsyncClient, body: bytes, told: str):
    answer = await user.post("/mcp", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32700
    assert told in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "jsonrpc"),
        ({"id": 1, "method": "ping"}, "jsonrpc"),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, "jsonrpc"),
        ({"jsonrpc": "2.0", "id": 1}, "method"),
        ({"jsonrpc": "2.0", "id": 1, "method": 7}, "method"),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, "id"),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, "id"),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, "id"),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, "params"),
    ],
)
@pytest.mark.parametrize("version", [HANDSHAKE, NEWEST])
async def test_what_is_no_request_is_refused_by_its_field(
    user: httpx2.AsyncClient, body: object, named: str, version: str
):
    answer = await post(user, body, mcp_protocol_version=version)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32600
    assert answer.json()["error"]["message"].startswith(f"{named}: ")


async def test_bounds_hold_before_anything_is_parsed(user: httpx2.AsyncClient):
    many = await post(user, message("tools/call", name="search_knowledge", arguments={"query": [0] * 2_000}))
    assert many.status_code == 400
    assert many.json()["error"]["type"] == "invalid_request_error"
    deep = "[" * 500 + "]" * 500
    nested = f'{{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {{"a": {deep}}}}}'
    assert (await user.post("/mcp", content=nested, headers={"content-type": "application/json"})).status_code == 400
    large = await post(user, message("ping", a="x" * 100_000))
    assert large.status_code == 413


async def test_another_media_type_is_refused(user: httpx2.AsyncClient):
    answer = await user.post("/mcp", content=b"<a/>", headers={"content-type": "application/xml"})
    assert answer.status_code == 400
    assert "application/json" in answer.json()["error"]["message"]


async def test_a_service_key_acts_for_a_user(members: Members):
    service = await members.house.key("any", role=KeyRole.SERVICE)
    listing = message("tools/call", name="list_knowledge_bases", arguments={})
    async with client_of(members.app, service) as nobody:
        assert (await post(nobody, listing)).status_code == 400
    async with client_of(members.app, service, **{"X-Ballast-User": "rae"}) as acting:
        answer = await post(acting, listing)
    (base,) = answer.json()["result"]["structuredContent"]["knowledge_bases"]
    assert (base["id"], base["role"]) == (members.base_id, "reader")


async def test_an_unknown_method_is_not_found(user: httpx2.AsyncClient):
    answer = await post(user, message("prompts/list"))
    assert answer.json()["error"]["code"] == -32601
