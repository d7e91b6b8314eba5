"""Request ids, the limit of a body, addresses, and the counters."""

import re
from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI, Request
from starlette.types import Message, Scope
from structlog.testing import capture_logs

from shared.errors import Unavailable
from tests.fakes.http_api import FakeHouse, client_of


async def test_each_request_gets_an_id(stranger: httpx2.AsyncClient) -> None:
    first, second = [(await stranger.get("/healthz")).headers["x-request-id"] for _ in range(2)]
    assert re.fullmatch(r"req_[0-9a-f]{32}", first)
    assert first != second


@pytest.mark.parametrize("given", ["mine-1", "0af7651916cd43dd8448eb211c80319c"])
async def test_a_callers_own_id_is_kept(stranger: httpx2.AsyncClient, given: str) -> None:
    assert (await stranger.get("/nope", headers={"x-request-id": given})).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "a\tb"])
async def test_an_unusable_id_is_replaced(stranger: httpx2.AsyncClient, given: str) -> None:
    answer = await stranger.get("/healthz", headers={"x-request-id": given})
    assert answer.headers["x-request-id"].startswith("req_")


async def _pieces(count: int, size_bytes: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * size_bytes


async def test_an_announced_body_over_the_limit_is_refused_unread(house: FakeHouse) -> None:
    sent = await _call(house.app(), [(b"content-length", b"100001")], chunks=[])
    assert _status(sent) == 413


@pytest.mark.parametrize("length", [b"9" * 5000, b"000100001"])
async def test_odd_lengths_are_compared_all_the_same(house: FakeHouse, length: bytes) -> None:
    assert _status(await _call(house.app(), [(b"content-length", length)], chunks=[])) == 413


async def test_a_chunked_body_over_the_limit_is_refused_at_the_limit(house: FakeHouse) -> None:
    chunks = [b" " * 60_000, b" " * 60_000]
    key = (await house.key()).encode()
    sent = await _call(house.app(), [(b"authorization", b"Bearer " + key)], chunks)
    assert _status(sent) == 413
    assert b'"payload_too_large"' in b"".join(message.get("body", b"") for message in sent)


async def test_a_body_at_the_limit_passes(user: httpx2.AsyncClient, house: FakeHouse) -> None:
    body = b'{"metadata": {}}'
    padded = body + b" " * (house.max_body_bytes - len(body))
    headers = {"content-type": "application/json"}
    assert (await user.post("/v1/conversations", content=padded, headers=headers)).status_code == 201
    assert (await user.post("/v1/conversations", content=padded + b" ", headers=headers)).status_code == 413


async def test_chunked_uploads_of_the_client_are_limited_too(user: httpx2.AsyncClient) -> None:
    answer = await user.post("/v1/conversations", content=_pieces(200, 1000))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "payload_too_large")


@pytest.mark.parametrize("address", ["/v1/models/a%00b", "/v1/conversations/x/items?after=%00", "/%00"])
async def test_a_nul_in_the_address_is_the_callers_mistake(user: httpx2.AsyncClient, address: str) -> None:
    answer = await user.get(address)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


async def test_requests_are_counted_by_route_and_never_by_id(
    user: httpx2.AsyncClient, admin: httpx2.AsyncClient
) -> None:
    await user.get("/v1/conversations/conv_secret")
    await user.get("/no/such/place")
    await user.request("BREW", "/healthz")
    lines = (await admin.get("/metrics")).text
    assert 'route="/v1/conversations/{conversation_id}",status="404"' in lines
    assert 'method="GET",route="none",status="404"' in lines
    assert 'method="other"' in lines
    assert "conv_secret" not in lines


async def _call(app: FastAPI, headers: list[tuple[bytes, bytes]], chunks: list[bytes]) -> list[Message]:
    """Call as a server would; asking for more than the chunks is an error of the application."""
    sent: list[Message] = []
    waiting = list(chunks)
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/conversations",
        "raw_path": b"/v1/conversations",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"content-type", b"application/json"), *headers],
        "server": ("ballast.test", 80),
        "client": ("127.0.0.1", 1),
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": waiting.pop(0), "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


def _status(sent: list[Message]) -> int:
    return int(sent[0]["status"])


async def test_a_request_is_one_line_without_its_words(house: FakeHouse) -> None:
    body = b'{"metadata": {"a": "my secret"}}'
    async with client_of(house.app(), await house.key()) as client:
        with capture_logs() as lines:
            await client.post("/v1/conversations?note=secret", content=body, headers={"x-request-id": "mine-1"})
            await client.get("/v1/conversations/conv_secret")
            await client.get("/healthz")
    assert [line["event"] for line in lines] == ["HTTP request"] * 2
    made, missing = lines
    assert (made["method"], made["route"], made["status"]) == ("POST", "/v1/conversations", 201)
    assert (made["received_bytes"], made["log_level"]) == (len(body), "info")
    assert made["sent_bytes"] > 0
    assert made["duration_ms"] >= 0
    assert made["key_id"].startswith("key_")
    assert missing["status"] == 404
    assert "secret" not in str(lines)


async def test_a_check_of_health_that_fails_is_logged(house: FakeHouse) -> None:
    house.admission.close()
    async with client_of(house.app()) as client:
        with capture_logs() as lines:
            await client.get("/readyz")
    assert [(line["event"], line["status"]) for line in lines] == [("Request failed", 503), ("HTTP request", 503)]


async def test_every_5xx_is_an_error_in_the_log_with_its_cause(house: FakeHouse) -> None:
    app = house.app()

    @app.get("/away/{name}")
    async def away(request: Request) -> None:
        try:
            raise OSError("password=hunter2")
        except OSError as error:
            raise Unavailable("The store is away.") from error

    async with client_of(app) as client:
        with capture_logs() as lines:
            await client.get("/away/someone")
    failed = next(line for line in lines if line["event"] == "Request failed")
    assert (failed["log_level"], failed["status"], failed["route"]) == ("error", 503, "/away/{name}")
    assert failed["causes"] == ["Unavailable", "OSError"]
    assert "away" in failed["raised_at"][-1]
    assert "hunter2" not in str(lines)
    assert "someone" not in str(lines)
