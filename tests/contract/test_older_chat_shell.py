"""A chat_shell of the release before refuses fields that it does not know; turns run there all the same."""

import asyncio
from contextlib import aclosing
from typing import Any, cast

import orjson
from aiohttp import web

from backend.chat_shell_client.http_client import HttpChatShell
from shared.models.execution import TurnLimits
from tests.fakes.chat_shell_events import WHOLE_TURN
from tests.fakes.chat_shell_requests import full_request
from tests.fakes.chat_shell_servers import MAX_BYTES, SERVICE_TOKEN
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_SECONDS
from tests.servers.ports import free_port

REFUSAL = {"message": "limits.hand_back_tokens: Extra inputs", "type": "InvalidRequest", "param": "metadata.limits"}


async def test_without_the_limit_that_it_does_not_know_the_turn_runs() -> None:
    asked: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        limits = orjson.loads((await request.json())["metadata"]["limits"])
        asked.append(limits)
        if "hand_back_tokens" in limits:
            return web.json_response({"error": {**REFUSAL, "code": "invalid_prompt"}}, status=400)
        frames = "".join(f"event: {event.type}\ndata: {event.model_dump_json()}\n\n" for event in WHOLE_TURN)
        return web.Response(text=frames, content_type="text/event-stream")

    application = web.Application()
    application.router.add_post("/v1/responses", answer)
    runner, port = web.AppRunner(application), free_port()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    client = HttpChatShell(f"http://127.0.0.1:{port}", SERVICE_TOKEN, FakeClock(), MAX_BYTES)
    limits = TurnLimits(max_knowledge_calls=3, max_model_calls=None, hand_back_tokens=9_000)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS), aclosing(cast(Any, client.execute(_with(limits)))) as batches:
            events = [event async for batch in batches for event in batch]
    finally:
        await client.close()
        await runner.cleanup()
    assert events == list(WHOLE_TURN)
    assert [limits.get("hand_back_tokens") for limits in asked] == [9_000, None]


def _with(limits: TurnLimits) -> Any:
    return full_request().model_copy(update={"limits": limits})
