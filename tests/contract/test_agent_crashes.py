"""`kill -9` at each write of a steered turn of an agent, in both placements, over every store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from backend.conversations.domain.conversation_log import Entry, find_break
from backend.conversations.domain.responses import StoredResponse
from shared.models.execution import ExecutionRequest
from shared.models.messages import UserMessage
from shared.models.served_tools import NO_TOOLS
from tests.contract.crash_cases import MOST_WRITES, Death, Killed, World
from tests.contract.store_cases import open_stores
from tests.examples import first_of
from tests.fakes.attached_files import FakeAgentFiles, FakeText
from tests.fakes.chat_shell_talking import check_pairs, whole_prompt
from tests.fakes.openai_house import TurnHouse
from tests.fakes.store_agents import FakeAgentStore
from tests.patience import PATIENCE_SECONDS, eventually
from tests.unit.backend.turns.placing import definition, put_agent
from tests.unit.backend.turns.wandering_shell import GatedChatShell

SECOND_RESULT = 5
"""The place of the event before which the turn waits to be steered: behind a whole model call."""


@pytest.fixture(params=first_of("sqlite", "postgresql", "fake"))
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with open_stores(request.param, request, tmp_path) as opened:
        yield World(opened, agents=FakeAgentStore(), agent_files=FakeAgentFiles())


def living(world: World) -> TurnHouse:
    return world.house(Death(None, is_after=False), GatedChatShell([], NO_TOOLS))


def words(**fields: Any) -> dict[str, Any]:
    return {"file_ids": ["file_a"], **fields}


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("placement", ["anchored", "classic"])
async def test_a_steered_turn_says_all_once_wherever_the_process_ends(
    world: World, placement: str, *, is_after: bool
) -> None:
    outcomes, steered_count = list[str](), 0
    for number in range(MOST_WRITES):
        first = living(world)
        async with first.registry:
            name = f"helper{number}"
            agent_id = await put_agent(first, name, placement=placement, **words())
            first.agent_files.stored[f"shelf_{agent_id}", "file_a"] = FakeText("a.md", "The Rhine")
            before = await first.ask(input="U1 LOOK 10", model=name)
            changed = words(placement=placement, instructions="CA two")
            await first.agents.change(agent_id, definition(**changed))
        death, acknowledged = Death(number, is_after=is_after), asyncio.Event()
        if not await killed(world, death, before, acknowledged):
            break
        ended, count = await survived(world, before, placement)
        # One that was stored and not acknowledged yet may be there.
        assert acknowledged.is_set() <= count <= 1
        steered_count += count
        outcomes.append(ended.status)
    else:
        raise AssertionError("the turn never ended")
    assert outcomes.count("completed") > len(outcomes) // 2
    assert "failed" not in outcomes
    assert len(outcomes) > steered_count > 0


async def killed(world: World, death: Death, before: StoredResponse, acknowledged: asyncio.Event) -> bool:
    """Steer a turn of a process that dies at its write; return False where the turn ended before that."""
    shell = GatedChatShell([], NO_TOOLS)
    house = world.house(death, shell)
    with suppress(Killed):
        async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
            shell.wait_before(SECOND_RESULT)
            turn = asyncio.create_task(steered(house, shell, before, acknowledged))
            dies = asyncio.create_task(death.has_come.wait())
            await asyncio.wait({turn, dies}, return_when=asyncio.FIRST_COMPLETED)
            is_over = not death.has_come.is_set()
            turn.cancel()
            dies.cancel()
            if is_over:
                return False
            raise Killed
    return True


async def steered(house: TurnHouse, shell: GatedChatShell, before: StoredResponse, acknowledged: asyncio.Event) -> None:
    running = await house.start(input="U2 LOOK 10 10 10", previous_response_id=before.id)
    await shell.waiting.wait()
    await house.queue(how="steer", input="STEERED", conversation=before.conversation_id)
    acknowledged.set()
    await eventually(lambda: running, lambda one: one.boundary.is_set())
    shell.gate.set()
    await running.wait_until_ended()


async def survived(world: World, before: StoredResponse, placement: str) -> tuple[StoredResponse, int]:
    """Let another process go on, run what waits, ask once more, and check the log and the prompts.

    Return the response, and how often the log has the message that was to steer it.
    """
    found = await world.conversations.find(before.conversation_id)
    assert found is not None
    response_id = str(found.latest_response_id)
    survivor = living(world)
    async with asyncio.timeout(PATIENCE_SECONDS), survivor.registry:
        await survivor.recovery.at_start()
        await eventually_over(survivor, response_id)
        for _ in range(3):
            await survivor.services.waiting.step()
        newest = await world.conversations.find(before.conversation_id)
        assert newest is not None
        await eventually_over(survivor, str(newest.latest_response_id))
        await survivor.ask(input="And now?", conversation=before.conversation_id)
    assert survivor.observer.drifts == []
    log = await world.conversations.log(before.conversation_id, 1_000)
    assert find_break(log, len(log)) is None
    count = check_log(log, placement)
    check_prompts(survivor.chat_shell, placement)
    ended = await survivor.turns.find(response_id)
    assert ended is not None
    return ended, count


async def eventually_over(house: TurnHouse, response_id: str) -> None:
    found = await house.turns.find(response_id)
    assert found is not None
    await house.services.responses.wait_until_ended(found)


def check_log(log: tuple[Entry, ...], placement: str) -> int:
    said = [said_in(entry) for entry in log]
    assert sum("CA two" in text for text in said) == (1 if placement == "anchored" else 0)
    assert sum("The Rhine" in text for text in said) == (1 if placement == "anchored" else 0)
    return sum("STEERED" in text for text in said)


def said_in(entry: Entry) -> str:
    return str(entry.message.content) if isinstance(entry.message, UserMessage) else ""


def check_prompts(shell: object, placement: str) -> None:
    assert isinstance(shell, GatedChatShell)
    for request in shell.requests:
        prompt = whole_prompt(request)
        check_pairs(prompt)
        texts = [str(message.content) for message in prompt if isinstance(message, UserMessage)]
        assert sum("The Rhine" in text for text in texts) == 1, placement
        assert sum("CA two" in text for text in texts) == 1, placement
    check_extension(shell.requests, placement)


def check_extension(requests: list[ExecutionRequest], placement: str) -> None:
    for earlier, later in pairwise(requests):
        if placement == "anchored" and earlier.epoch == later.epoch:
            sent = whole_prompt(earlier)
            assert whole_prompt(later)[: len(sent)] == sent
