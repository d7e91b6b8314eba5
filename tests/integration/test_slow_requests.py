"""Requests that come too slowly, and connections that send nothing: answered 408 or closed, and nobody else waits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

import pytest
from fastapi import FastAPI, Request

from backend.foundation.http.app import http_server
from backend.foundation.http.services import HttpOptions
from backend.foundation.services.refusal_pace import RefusalPace
from shared.http_server.timing import ReadLimits
from shared.listening import open_listening_socket
from tests.fakes.http_api import FakeHouse
from tests.patience import PATIENCE_SECONDS

UNREAD_BYTES = 1_000_000
LIMITS = ReadLimits(
    seconds=0.5,
    bytes_a_second=1000,
    head_bytes=4096,
    unfinished_heads=3,
    unread_bytes=UNREAD_BYTES,
    waiting_requests=9,
)
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
ORIGIN = "https://app.example"
Address = tuple[str, int]


@pytest.fixture(scope="module")
def house() -> FakeHouse:
    return FakeHouse(origins=(ORIGIN,))


class Held(RefusalPace):
    """Holds every refusal back for a moment."""

    def delay_seconds(self, reason: str) -> float:
        return 0.2


@pytest.fixture
async def address(house: FakeHouse) -> AsyncIterator[Address]:
    app = house.app()
    app.state.services[HttpOptions] = replace(house.options(), refusals=Held(lambda: 0.0))
    server = http_server(app, LIMITS, house.options().allows)
    listener = open_listening_socket("127.0.0.1", 0)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener]))
        yield listener.getsockname()
        server.should_exit = True


async def answer_to(address: Address, sent: bytes, trickle: bytes = b"") -> bytes:
    """Send, then go on with a byte now and then; return all that comes until the connection ends."""
    reader, writer = await asyncio.open_connection(*address)

    async def send_slowly() -> None:
        with suppress(OSError):
            while True:
                writer.write(trickle)
                await writer.drain()
                await asyncio.sleep(0.05)

    writer.write(sent)
    slowly = asyncio.create_task(send_slowly()) if trickle else None
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await _until_closed(reader)
    finally:
        if slowly is not None:
            slowly.cancel()
        writer.close()


async def _until_closed(reader: asyncio.StreamReader) -> bytes:
    """Read piece by piece: a reset, by which the server answers what still trickles in, drops what is unread."""
    answer = b""
    with suppress(ConnectionResetError):
        while piece := await reader.read(65_536):
            answer += piece
    return answer


HEADERS = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: "
BODY = b"POST /v1/conversations HTTP/1.1\r\nAuthorization: Bearer %b\r\nContent-Length: 9999\r\n\r\n{"


@pytest.mark.parametrize("begun", [HEADERS, BODY], ids=["headers", "body"])
@pytest.mark.parametrize("trickle", [b"", b" "], ids=["stops", "trickles"])
async def test_half_a_request_is_answered_408(address: Address, house: FakeHouse, begun: bytes, trickle: bytes) -> None:
    answer = await answer_to(address, begun.replace(b"%b", (await house.key()).encode()), trickle)
    assert answer.startswith(b"HTTP/1.1 408 "), answer
    assert b'"code":"request_timeout"' in answer
    assert not house.state.conversations


@pytest.mark.parametrize(
    ("begun", "status"),
    [
        (b"GET / HTTP/1.1\r\nOrigin: %o\r\nX: ", 408),
        (BODY.replace(b"Content", b"Origin: %o\r\nContent"), 408),
        (b"GET / HTTP/1.1\r\nOrigin: %o\r\nX: " + b"x" * 5000, 431),
        (b"GET / HTTP/1.1\r\nOrigin: %o\r\nHost: x\r\nno header\r\n\r\n", 400),
    ],
    ids=["headers", "body", "long", "malformed"],
)
@pytest.mark.parametrize(("origin", "is_marked"), [(ORIGIN, True), ("https://other.example", False)])
async def test_scripts_of_an_allowed_origin_may_read_what_the_protocol_refuses(
    address: Address, house: FakeHouse, begun: bytes, status: int, origin: str, is_marked: bool
) -> None:
    sent = begun.replace(b"%o", origin.encode()).replace(b"%b", (await house.key()).encode())
    head, _, body = (await answer_to(address, sent)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), head
    assert b'"error"' in body
    assert (b"\r\naccess-control-allow-origin: " + ORIGIN.encode() in head) is is_marked
    assert (b"access-control" in head) is is_marked


async def test_a_body_that_never_ends_behind_its_refusal_does_not_keep_the_connection(address: Address) -> None:
    assert (await answer_to(address, BODY)).startswith((b"HTTP/1.1 401 ", b"HTTP/1.1 408 "))


REFUSED = b"POST /v1/responses HTTP/1.1\r\nAuthorization: Bearer wrong\r\n"


async def test_a_client_that_waits_for_leave_to_send_its_body_gets_none_while_its_refusal_is_held(
    address: Address,
) -> None:
    answer = await answer_to(address, REFUSED + b"Expect: 100-continue\r\nContent-Length: 9999\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 401 "), answer


async def test_a_refused_body_without_an_end_is_taken_for_a_while_and_then_its_connection_is_closed(
    address: Address,
) -> None:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(REFUSED + b"Transfer-Encoding: chunked\r\n\r\n")
    piece = b"4000\r\n" + bytes(0x4000) + b"\r\n"
    async with asyncio.timeout(PATIENCE_SECONDS):
        with suppress(ConnectionError):
            while True:
                writer.write(piece)
                await writer.drain()
        answer = await _until_closed(reader)
    assert answer.startswith(b"HTTP/1.1 401 ") or not answer  # what was not read yet is lost with a reset
    writer.close()


async def test_requests_sent_behind_a_refused_one_are_refused_one_after_the_other(address: Address) -> None:
    one = REFUSED + b"Content-Length: 0\r\n\r\n"
    began_at = asyncio.get_running_loop().time()
    answer = await answer_to(address, 4 * one + REFUSED + b"Connection: close\r\nContent-Length: 0\r\n\r\n")
    assert answer.count(b"HTTP/1.1 401 ") == 5
    assert asyncio.get_running_loop().time() - began_at >= 5 * 0.2


async def test_of_requests_without_an_end_behind_an_unanswered_one_no_more_are_answered_than_may_wait(
    address: Address,
) -> None:
    one = REFUSED + b"Content-Length: 0\r\n\r\n"
    answer = await answer_to(address, 300 * one, trickle=one)
    # what is unread when a connection is closed resets it, which may take the newest answers from its client
    assert 1 <= answer.count(b"HTTP/1.1 401 ") <= 1 + LIMITS.waiting_requests


async def test_a_client_that_leaves_is_noticed_though_requests_wait_behind_the_unanswered_one(house: FakeHouse) -> None:
    is_asked, has_left = asyncio.Event(), asyncio.Event()

    async def wait(request: Request) -> None:
        is_asked.set()
        while (await request.receive())["type"] != "http.disconnect":
            continue
        has_left.set()

    app = FastAPI()
    app.add_api_route("/wait", wait)
    server = http_server(app, LIMITS, house.options().allows)
    listener = open_listening_socket("127.0.0.1", 0)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener]))
        _, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        await is_asked.wait()
        writer.write(2 * WHOLE)
        writer.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await has_left.wait()
        server.should_exit = True


async def test_a_connection_that_sends_nothing_is_closed(address: Address) -> None:
    assert await answer_to(address, b"") == b""


async def test_the_second_request_of_a_connection_is_timed_too(address: Address) -> None:
    answer = await answer_to(address, WHOLE + b"GET /healthz HT")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in answer


async def test_a_body_that_comes_fast_enough_may_take_longer(address: Address, house: FakeHouse) -> None:
    key = await house.key()
    reader, writer = await asyncio.open_connection(*address)
    head = f"POST /v1/conversations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: 60000\r\n\r\n"
    writer.write(head.encode() + b"{}" + b" " * 58_000)
    await asyncio.sleep(2 * LIMITS.seconds)
    writer.write(b" " * 1998)
    assert (await reader.readline()).startswith(b"HTTP/1.1 201 ")
    writer.close()


@pytest.mark.parametrize("is_complete", [True, False])
async def test_endless_headers_are_refused(address: Address, is_complete: bool) -> None:
    sent = b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 5000 + (b"\r\n\r\n" if is_complete else b"")
    answer = await answer_to(address, sent)
    assert answer.startswith(b"HTTP/1.1 431 "), answer
    assert b"4096 bytes" in answer


async def test_what_is_no_http_is_refused_in_our_form(address: Address) -> None:
    answer = await answer_to(address, b"hello\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"type":"invalid_request_error"' in answer


async def test_of_too_many_half_requests_the_oldest_is_closed_and_others_are_served(address: Address) -> None:
    first = asyncio.create_task(answer_to(address, b"GET / "))
    await asyncio.sleep(0.05)
    others = [await asyncio.open_connection(*address) for _ in range(LIMITS.unfinished_heads)]
    assert (await first).startswith(b"HTTP/1.1 408 ")
    reader, writer = await asyncio.open_connection(*address)
    writer.write(WHOLE)
    assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    for _, opened in (*others, (reader, writer)):
        opened.close()


async def test_of_too_many_idle_connections_the_one_that_was_idle_longest_is_closed(address: Address) -> None:
    opened = [await asyncio.open_connection(*address) for _ in range(LIMITS.unfinished_heads)]
    for reader, writer in (*opened, opened[0]):
        await answered(reader, writer)
    one_more = await asyncio.open_connection(*address)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await opened[1][0].read() == b""
    for reader, writer in (opened[0], opened[2], one_more):
        await answered(reader, writer)
    for _, writer in (*opened, one_more):
        writer.close()


async def test_a_connection_whose_body_came_behind_its_refusal_is_idle_like_others(address: Address) -> None:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(REFUSED + b"Content-Length: 4\r\n\r\n")
    assert await status_of_answer(reader) == b"401"
    writer.write(b"late")
    await writer.drain()
    await asyncio.sleep(0.1)  # until the server has read it: only later connections are newer
    others = [await asyncio.open_connection(*address) for _ in range(LIMITS.unfinished_heads)]
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await reader.read() == b""
    for _, opened in (*others, (reader, writer)):
        opened.close()


async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a request over an open connection and read its answer."""
    writer.write(WHOLE)
    assert await status_of_answer(reader) == b"200"


async def status_of_answer(reader: asyncio.StreamReader) -> bytes:
    """Read an answer to its end."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    await reader.readexactly(length)
    return head.split(b" ")[1]
