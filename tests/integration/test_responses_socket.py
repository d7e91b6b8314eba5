"""Responses over a WebSocket, as the official client opens it, at the real HTTP server."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import orjson
import pytest
from fastapi import FastAPI
from openai import AsyncOpenAI
from openai.resources.responses.responses import AsyncResponsesConnection
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from backend.foundation.http.app import LONGEST_SOCKET_MESSAGE_BYTES, http_server
from backend.foundation.http.services import HttpOptions
from backend.turns.http.responses_socket import ResponsesSocket
from shared.http_server.server import HttpServer, while_serving
from shared.http_server.timing import ReadLimits
from shared.listening import open_listening_socket
from shared.shares import SharedBudget
from tests.fakes.chat_shell_scripted import ScriptedChatShell, answer
from tests.fakes.http_api import FakeHouse
from tests.fakes.openai_house import TurnHouse
from tests.fakes.openai_types import check_event
from tests.fakes.served_turns import built_app
from tests.patience import PATIENCE_SECONDS, until

ADA = "ada"


@dataclass
class ServedApi:
    """A server, and a client that calls it."""

    app: FastAPI
    house: FakeHouse
    server: HttpServer
    address: str
    key: str
    openai: AsyncOpenAI

    def asked(self, **headers: str) -> Any:
        """Ask for a bare connection."""
        named = {"Authorization": f"Bearer {self.key}"} | headers
        return connect(f"ws://{self.address}/v1/responses", additional_headers=named, max_size=None)


@asynccontextmanager
async def serve_api(
    *scripts: Sequence[Any], limits: ReadLimits | None = None, **options: Any
) -> AsyncGenerator[ServedApi, None]:
    house = FakeHouse(**options)
    house.turns = TurnHouse(chat_shell=ScriptedChatShell(*scripts), state=house.state, admission=house.admission)
    app, listening = built_app(), open_listening_socket("127.0.0.1", 0)
    house.stand_behind(app)
    server = http_server(app, limits or ReadLimits(), allows=house.options().allows)
    key, address = await house.key(ADA), f"127.0.0.1:{listening.getsockname()[1]}"
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        house.turns.registry,
        while_serving(server, listening),
        AsyncOpenAI(api_key=key, base_url=f"http://{address}/v1", max_retries=0) as client,
    ):
        yield ServedApi(app, house, server, address, key, client)


async def events_of(connection: AsyncResponsesConnection) -> list[dict[str, Any]]:
    """Read the events of one response, or the error in its place."""
    found: list[dict[str, Any]] = []
    while True:
        event = orjson.loads(await connection.recv_bytes())
        found.append(event)
        if event["type"] in ("error", "response.completed", "response.incomplete", "response.failed"):
            return found


async def next_error(connection: Any) -> dict[str, Any]:
    event = orjson.loads(await connection.recv())
    assert event["type"] == "error"
    return cast(dict[str, Any], event)


def ask(text: str, **fields: Any) -> Any:
    return {"type": "response.create", "model": "demo-model", "input": text, **fields}


async def test_turns_follow_each_other_with_the_events_that_a_stream_has() -> None:
    async with serve_api(answer("One."), answer("Two."), answer("One.")) as api:
        async with api.openai.responses.connect() as connection:
            await connection.send(ask("First"))
            first = await events_of(connection)
            await connection.send(ask("Then", previous_response_id=first[-1]["response"]["id"]))
            second = await events_of(connection)
        streamed = [
            event.type
            async for event in await api.openai.responses.create(model="demo-model", input="First", stream=True)
        ]
        assert [event["type"] for event in first] == streamed
        for event in (*first, *second):
            check_event(orjson.dumps(event))
        assert second[-1]["response"]["output"][0]["content"][0]["text"] == "Two."
        assert second[-1]["response"]["conversation"] == first[-1]["response"]["conversation"]
        assert len(api.house.turns.sent[1].history) == 2


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"input": "Hi", "model": "demo-model"}, 400, "type"),
    (ask("Hi", background=True), 400, "background"),
    (ask("Hi", generate=False), 400, "generate"),
    (ask("Hi", stream_id="lane-1"), 400, "stream_id"),
    (ask("Hi", temperature=7), 400, "temperature"),
    (ask("Hi", model="nobody"), 404, "model"),
    (ask("Hi", previous_response_id="resp_0"), 404, "previous_response_id"),
]


async def test_a_refused_message_is_an_error_event_and_the_connection_goes_on() -> None:
    async with serve_api() as api, api.asked() as connection:
        codes: list[str] = []
        for message, status, param in REFUSED:
            await connection.send(orjson.dumps(message).decode())
            error = await next_error(connection)
            assert (error["status"], error["error"]["param"]) == (status, param), error
            codes.append(error["error"]["code"])
        assert codes[-1] == "previous_response_not_found"
        await connection.send("no JSON")
        assert (await next_error(connection))["status"] == 400
        await connection.send(orjson.dumps(ask("Hi")))  # in a binary message
        assert orjson.loads(await connection.recv())["type"] == "response.created"


async def test_who_may_not_call_gets_no_connection() -> None:
    async with serve_api(origins=("https://app.example.com",)) as api:
        for headers, status in (
            ({"Authorization": "Bearer nobody"}, 401),
            ({"Origin": "https://evil.example.com"}, 403),
        ):
            with pytest.raises(InvalidStatus) as refused:
                async with api.asked(**headers):
                    raise AssertionError
            response = refused.value.response
            assert response.status_code == status
            assert orjson.loads(response.body or b"{}")["error"]["message"]
        async with api.asked(Origin="https://app.example.com") as connection:
            await connection.send(orjson.dumps(ask("Hi")).decode())
            assert orjson.loads(await connection.recv())["type"] == "response.created"


async def test_a_key_has_its_part_of_all_connections() -> None:
    async with serve_api() as api:
        services: dict[type, Any] = api.app.state.services
        services[HttpOptions] = replace(services[HttpOptions], sockets=SharedBudget("room for WebSockets", 2))
        async with api.asked():
            with pytest.raises(InvalidStatus) as refused:
                async with api.asked():
                    raise AssertionError
            assert refused.value.response.status_code == 429
        async with api.asked():
            """The place of the first one is free again."""


async def test_a_further_message_waits_and_one_more_is_refused() -> None:
    gate = asyncio.Event()
    async with serve_api([gate, *answer("One.")], answer("Two.")) as api, api.asked() as connection:
        for text in ("A", "B", "C"):
            await connection.send(orjson.dumps(ask(text)).decode())
        found: list[dict[str, Any]] = []
        while not found or found[-1]["type"] != "error":
            found.append(orjson.loads(await connection.recv()))
        assert found[-1]["status"] == 409
        gate.set()
        ended = 0
        while ended < 2:
            ended += orjson.loads(await connection.recv())["type"] == "response.completed"
        assert [str(sent.prompt)[0] for sent in api.house.turns.sent] == ["A", "B"]


async def test_messages_are_held_until_they_are_answered_within_the_part_of_their_key() -> None:
    asked, gate = orjson.dumps(ask("Hi")), asyncio.Event()
    budget = SharedBudget("room for messages", 2 * len(asked))
    async with serve_api([gate, *answer("One.")], answer("Two.")) as api:
        services: dict[type, Any] = api.app.state.services
        services[HttpOptions] = replace(services[HttpOptions], socket_bytes=budget)
        async with api.asked() as busy, api.asked() as other:
            await busy.send(asked)
            assert orjson.loads(await busy.recv())["type"] == "response.created"
            await other.send(asked)
            assert (await next_error(other))["status"] == 429
            gate.set()
            while orjson.loads(await busy.recv())["type"] != "response.completed":
                continue
            await until(lambda: not budget.taken)
            await other.send(asked)
            assert orjson.loads(await other.recv())["type"] == "response.created"
        await until(lambda: not budget.taken)


async def test_a_client_that_leaves_ends_what_is_not_stored() -> None:
    async with serve_api([asyncio.Event()]) as api:
        async with api.asked() as connection:
            await connection.send(orjson.dumps(ask("Hi", store=False)).decode())
            while orjson.loads(await connection.recv())["type"] != "response.in_progress":
                continue
        await until(lambda: not api.house.turns.registry.running_count)
        assert api.house.turns.scripted.broken_off == 1


async def test_at_shutdown_a_connection_closes_behind_its_running_turn() -> None:
    gate = asyncio.Event()
    async with serve_api([gate, *answer("One.")]) as api, api.asked() as busy, api.asked() as idle:
        await busy.send(orjson.dumps(ask("Hi")).decode())
        assert orjson.loads(await busy.recv())["type"] == "response.created"
        api.house.admission.close()
        api.server.send_clients_away()
        with pytest.raises(ConnectionClosed) as closed:
            await idle.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001
        gate.set()
        types = [orjson.loads(text)["type"] async for text in busy]
        assert types[-1] == "response.completed"


@pytest.mark.parametrize("limits", [ResponsesSocket(idle_seconds=0), ResponsesSocket(longest_seconds=0)])
async def test_an_idle_and_an_old_connection_are_told_that_they_end(limits: ResponsesSocket) -> None:
    async with serve_api() as api:
        arrived: asyncio.Queue[Any] = asyncio.Queue()
        arrived.put_nowait({"type": "websocket.connect"})
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"authorization", f"Bearer {api.key}".encode())]
        place = {"path": "/v1/responses", "raw_path": b"/v1/responses", "scheme": "ws", "http_version": "1.1"}
        peers = {"asgi": {"version": "3.0"}, "client": None, "server": None, "headers": headers, "state": {}}
        await limits({"type": "websocket", "app": api.app, **place, **peers}, arrived.get, send)
        assert [message["type"] for message in sent] == ["websocket.accept", "websocket.send", "websocket.close"]
        assert orjson.loads(sent[1]["text"])["error"]["code"] == "websocket_connection_limit_reached"


async def test_a_long_message_closes_the_connection() -> None:
    async with serve_api() as api, api.asked() as connection:
        with pytest.raises(ConnectionClosed):
            await connection.send("x" * (LONGEST_SOCKET_MESSAGE_BYTES + 1))
            await connection.recv()


async def test_no_clock_of_requests_ends_a_connection_that_was_kept_before_it_was_a_socket() -> None:
    """The waits for a request's body and for another request would otherwise close it."""
    limits = ReadLimits(seconds=0.2, idle_seconds=1)
    async with serve_api(limits=limits) as api:
        host, port = api.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"}")
        writer.write(
            b"GET /v1/responses HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
            b"Authorization: Bearer " + api.key.encode() + b"\r\n\r\n"
        )
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await reader.read()
        writer.close()
