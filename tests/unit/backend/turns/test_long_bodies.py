"""Long bodies wait for one another until they are stored, and not for turns that run."""

import asyncio
from typing import Any

from backend.foundation.http.bodies import SMALL_BODY_BYTES
from tests.fakes.chat_shell_scripted import ScriptedChatShell, answer
from tests.fakes.http_api import FakeHouse, client_of
from tests.fakes.openai_house import ADA, TurnHouse
from tests.patience import PATIENCE_SECONDS, until

LONG = "a" * (SMALL_BODY_BYTES + 1)


async def test_a_turn_that_runs_keeps_no_long_body_waiting() -> None:
    house, gate = FakeHouse(max_bodies_bytes=3 * FakeHouse.max_body_bytes), asyncio.Event()
    held: list[Any] = list(answer("Half ", "and half."))
    held.insert(1, gate)
    shell = ScriptedChatShell(held, answer("Whole."))
    house.turns = TurnHouse(chat_shell=shell, state=house.state)
    async with asyncio.timeout(PATIENCE_SECONDS), house.turns.registry:
        async with client_of(house.app(), await house.key(ADA.user_id)) as client, asyncio.TaskGroup() as group:
            running = group.create_task(client.post("/v1/responses", json={"input": LONG}))
            await until(lambda: bool(shell.requests))
            begun = await client.post("/v1/responses", json={"input": LONG, "background": True})
            assert begun.status_code == 200
            assert not running.done()
            gate.set()
        assert running.result().json()["status"] == "completed"
