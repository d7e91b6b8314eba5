"""Readers of responses come in a few at a time, each key by itself, until their answers begin."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from backend.turns.http.paced_following import OPENED_AT_ONCE, PacedFollowing
from tests.patience import PATIENCE_SECONDS, until

START: Message = {"type": "http.response.start", "status": 200, "headers": []}
READERS = 3 * OPENED_AT_ONCE


class Opening:
    """An application whose answers begin one after another, whenever `begin` is released, and end with `end`."""

    def __init__(self) -> None:
        self.inside: Counter[str] = Counter()
        self.begin = asyncio.Semaphore(0)
        self.end = asyncio.Event()
        self.begun = 0
        self.app = PacedFollowing(self.serve)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["headers"][0][1].decode()
        self.inside[name] += 1
        try:
            await self.begin.acquire()
            await send(START)
            self.begun += 1
        finally:
            self.inside[name] -= 1
        await self.end.wait()

    async def get(self, key: str, path: str = "/v1/responses/resp_1") -> None:
        scope: dict[str, Any] = {
            "type": "http", "method": "GET", "path": path,
            "headers": [(b"authorization", f"Bearer {key}".encode())],
        }  # fmt: skip
        await self.app(scope, _nothing_comes, _take)


async def _nothing_comes() -> Message:
    return await asyncio.Future()


async def _take(message: Message) -> None:
    del message


@pytest.fixture
def opening() -> Opening:
    return Opening()


async def test_of_one_key_a_few_are_let_in_until_their_answers_begin(opening: Opening) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        for _ in range(READERS):
            group.create_task(opening.get("ann"))
        for begun in range(READERS):
            await until(lambda: opening.inside["Bearer ann"] == min(OPENED_AT_ONCE, READERS - opening.begun))
            assert opening.begun == begun
            opening.begin.release()
            await until(lambda count=begun + 1: opening.begun == count)
        opening.end.set()


async def test_other_keys_and_other_requests_do_not_wait(opening: Opening) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        for _ in range(READERS):
            group.create_task(opening.get("ann"))
        group.create_task(opening.get("bob"))
        group.create_task(opening.get("cia", path="/v1/responses/resp_1/input_items"))
        await until(lambda: opening.inside == {"Bearer ann": OPENED_AT_ONCE, "Bearer bob": 1, "Bearer cia": 1})
        opening.end.set()
        for _ in range(READERS + 2):
            opening.begin.release()


async def test_who_leaves_before_the_answer_begins_gives_the_place_back(opening: Opening) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        readers = [asyncio.create_task(opening.get("ann")) for _ in range(OPENED_AT_ONCE + 1)]
        await until(lambda: opening.inside["Bearer ann"] == OPENED_AT_ONCE)
        for reader in readers[:OPENED_AT_ONCE]:
            reader.cancel()
        await asyncio.wait(readers[:OPENED_AT_ONCE])
        await until(lambda: opening.inside["Bearer ann"] == 1)
        opening.begin.release()
        opening.end.set()
        await readers[-1]
