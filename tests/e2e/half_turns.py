"""Turns that stop in the middle until the test lets their model go on."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2

from tests.e2e.turns import Body, live_events, next_delta, text_of
from tests.fakes.model_server import Reply

HALF = Reply(text=("Half ", "an ", "answer"), hold_after=2)


@dataclass
class HalfTurn:
    """A turn that has said "Half an " and waits for its model; `rest` are the events to come."""

    first: list[Body]
    rest: AsyncIterator[Body]

    @property
    def path(self) -> str:
        return f"/v1/responses/{self.first[0]['response']['id']}"


@asynccontextmanager
async def half_a_turn(client: httpx2.AsyncClient, conversation: str) -> AsyncGenerator[HalfTurn]:
    """Stream a turn until half of it was said and the checkpoint of that half is stored."""
    body = {"input": "Go on", "stream": True, "conversation": conversation}
    async with client.stream("POST", "/v1/responses", json=body) as answer:
        events = live_events(answer)
        half = HalfTurn([await anext(events)], events)
        said = ""
        while said != "Half an ":
            said += await next_delta(events)
        while text_of((await client.get(half.path)).json()) != said:
            continue
        yield half


@asynccontextmanager
async def held_calls(port: int) -> AsyncGenerator[asyncio.Event]:
    """Take calls of tools at a port and answer none of them; the event is set when one has come."""
    arrived, over = asyncio.Event(), asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await over.wait()
        writer.close()

    async with await asyncio.start_server(hold, "127.0.0.1", port):
        yield arrived
        over.set()
