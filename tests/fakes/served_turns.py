"""The HTTP API of a backend whose turns play scripts, and clients of it."""

import asyncio
from collections.abc import AsyncGenerator, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx2
import orjson
from fastapi import FastAPI
from openai import AsyncOpenAI

from shared.errors import ModelRateLimited
from shared.models.events import ErrorReport, ModelCallStarted, TextDelta, TurnFailed
from tests.fakes.chat_shell_scripted import USAGE, ScriptedChatShell
from tests.fakes.http_api import BASE_URL, FakeHouse, client_of
from tests.fakes.openai_house import ADA, TurnHouse
from tests.patience import PATIENCE_SECONDS, until

REPORT = ErrorReport(
    type=ModelRateLimited.__name__, code="rate_limit_exceeded", message="Slow down.", param=None, retryable=True
)
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
SAID: dict[str, dict[str, Any]] = {CHAT: {"messages": [{"role": "user", "content": "Hi"}]}, RESPONSES: {"input": "Hi"}}
HI: Any = [{"role": "user", "content": "Hi"}]
WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
FAILS = [ModelCallStarted(call=1), TextDelta(text="Half"), TurnFailed(error=REPORT, usage=USAGE)]


@dataclass
class ServedApi:
    """An API in this process, and two clients of it."""

    app: FastAPI
    turns: TurnHouse
    http: httpx2.AsyncClient
    openai: AsyncOpenAI
    key: str


@cache
def built_app() -> FastAPI:
    return FakeHouse().app()


@asynccontextmanager
async def serve_api(*scripts: Sequence[Any], **fields: Any) -> AsyncGenerator[ServedApi, None]:
    house = FakeHouse()
    house.turns = TurnHouse(chat_shell=ScriptedChatShell(*scripts), state=house.state, **fields)
    app = built_app()
    house.stand_behind(app)
    key = await house.key(ADA.user_id)
    transport = httpx2.AsyncClient(transport=httpx2.ASGITransport(app))
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        client_of(app, key) as http,
        AsyncOpenAI(api_key=key, base_url=f"{BASE_URL}/v1", http_client=transport, max_retries=0) as client,
        house.turns.registry,
    ):
        yield ServedApi(app, house.turns, http, client, key)


def scope_of(path: str, key: str) -> dict[str, Any]:
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {key}".encode()), (b"content-type", b"application/json")],
        "http_version": "1.1",
        "scheme": "http",
        "server": ("ballast.test", 80),
        "client": ("127.0.0.1", 1),
        "root_path": "",
    }


class LeavingClient:
    """A client that asks for a turn and closes the connection when `is_time`; `received` is what came before."""

    def __init__(self, api: ServedApi, path: str, **fields: Any) -> None:
        self.is_time = asyncio.Event()
        self.received: list[MutableMapping[str, Any]] = []
        self._request = [{"type": "http.request", "body": orjson.dumps(SAID[path] | fields), "more_body": False}]
        self.asking = asyncio.create_task(api.app(scope_of(path, api.key), self._receive, self._send))

    async def leave(self) -> bytes:
        """Close the connection, and return what had come of the body once nobody serves it any more."""
        self.is_time.set()
        await self.asking
        return b"".join(message.get("body", b"") for message in self.received)

    async def response_id(self) -> str:
        """Return the id in the headers of the answer, which has begun."""
        await until(lambda: bool(self.received))
        return dict(self.received[0]["headers"])[b"x-ballast-response-id"].decode()

    async def _receive(self) -> dict[str, Any]:
        if self._request:
            return self._request.pop()
        await self.is_time.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        self.received.append(message)


async def reached(api: ServedApi, count: int) -> None:
    """Return once so many requests have reached chat_shell."""
    await until(lambda: len(api.turns.sent) == count)


async def idle(api: ServedApi) -> None:
    """Return once no turn runs."""
    await until(lambda: not api.turns.registry.running_count)
