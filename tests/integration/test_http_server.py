"""The API behind a real server: large bodies, clients that leave, connections that go on."""

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from fastapi import FastAPI, Request

from backend.foundation.http.app import http_server
from shared.listening import open_listening_socket
from tests.fakes.chat_shell_scripted import ScriptedChatShell, answer
from tests.fakes.http_api import FakeHouse
from tests.fakes.openai_house import TurnHouse
from tests.patience import PATIENCE_SECONDS

PIECE = b" " * 65_536
OURS = ("backend.", "shared.", "uvicorn.")


@pytest.fixture
def house() -> FakeHouse:
    return FakeHouse()


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncGenerator[tuple[str, int]]:
    """Serve on a port that the system chose, until the block ends."""
    server = http_server(app)
    listener = open_listening_socket("127.0.0.1", 0)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener]))
        yield listener.getsockname()
        server.should_exit = True


@pytest.fixture
async def address(house: FakeHouse) -> AsyncIterator[tuple[str, int]]:
    async with serving(house.app()) as address:
        yield address


@pytest.fixture
async def client(house: FakeHouse, address: tuple[str, int]) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": f"Bearer {await house.key()}"}
    async with httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{address[1]}", headers=headers, timeout=PATIENCE_SECONDS, verify=False
    ) as opened:
        yield opened


async def _pieces(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield PIECE


async def test_a_large_body_gets_its_413_and_the_connection_goes_on(client: httpx2.AsyncClient) -> None:
    for body in (PIECE * 64, _pieces(64)):
        answer = await client.post("/v1/conversations", content=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "payload_too_large")
    assert (await client.get("/healthz")).status_code == 200


async def test_a_client_that_asks_first_is_refused_before_it_sends(address: tuple[str, int], house: FakeHouse) -> None:
    reader, writer = await asyncio.open_connection(*address)
    key = await house.key()
    head = [
        "POST /v1/conversations HTTP/1.1",
        "Host: ballast",
        f"Authorization: Bearer {key}",
        "Content-Length: 999999999",
        "Expect: 100-continue",
    ]
    writer.write("\r\n".join([*head, "", ""]).encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
    writer.close()
    await writer.wait_closed()


async def test_a_client_that_leaves_in_mid_body_harms_nobody(
    address: tuple[str, int], client: httpx2.AsyncClient, house: FakeHouse
) -> None:
    _, writer = await asyncio.open_connection(*address)
    key = await house.key()
    head = ["POST /v1/conversations HTTP/1.1", "Host: ballast", f"Authorization: Bearer {key}", "Content-Length: 100"]
    writer.write("\r\n".join([*head, "", '{"metadata"']).encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await client.post("/v1/conversations", json={})).status_code == 201
    assert len(house.state.conversations) == 1


async def test_the_first_of_two_requests_is_told_that_its_client_has_left() -> None:
    arrived, left, app = asyncio.Event(), asyncio.Event(), FastAPI()

    @app.get("/")
    async def wait(request: Request) -> None:
        arrived.set()
        while (await request.receive())["type"] != "http.disconnect":
            pass
        left.set()

    async with serving(app) as address, asyncio.timeout(PATIENCE_SECONDS):
        _, writer = await asyncio.open_connection(*address)
        writer.write(b"GET / HTTP/1.1\r\nHost: ballast\r\n\r\n" * 2)
        await arrived.wait()
        writer.close()
        await left.wait()


async def test_ids_in_addresses_may_be_any_bytes(client: httpx2.AsyncClient) -> None:
    for name in ("%ff%fe", "%ed%a0%80", "..%2f..", "%E4%BD%A0", "a" * 4000, "%0d%0a"):
        assert (await client.get(f"/v1/conversations/{name}")).status_code == 404, name
        assert (await client.get(f"/v1/conversations/conv_1/items?after={name}")).status_code == 404, name


async def test_a_turn_leaves_nothing_to_the_collector_of_cycles(house: FakeHouse) -> None:
    def garbage() -> list[str]:
        gc.collect()
        kept = [repr(each) for each in gc.garbage if str(getattr(each, "__module__", "")).startswith(OURS)]
        gc.garbage.clear()
        return kept

    house.turns = TurnHouse(chat_shell=ScriptedChatShell(answer("One."), answer("Two.")), state=house.state)
    asked = b'{"model": "demo-model", "input": "Hi", "stream": true}'
    head = [b"POST /v1/responses HTTP/1.1", b"Host: ballast", b"Connection: close", b"Content-Length: %d" % len(asked)]
    head.append(b"Authorization: Bearer " + (await house.key()).encode())
    async with asyncio.timeout(PATIENCE_SECONDS), serving(house.app()) as address, house.turns.registry:

        async def ask() -> None:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"\r\n".join([*head, b"", asked]))
            assert b"response.completed" in await reader.read()
            writer.close()
            await writer.wait_closed()

        await ask()  # what a first time makes may stay
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            await ask()
            await asyncio.sleep(0)  # the server hears in the next step that the connection is closed
            assert not garbage()
        finally:
            gc.set_debug(0)
