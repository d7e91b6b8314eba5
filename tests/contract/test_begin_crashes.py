"""`kill -9` where a turn begins and where a waiting one is added, over every store: it is there whole or not."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from backend.conversations.domain.conversation_log import find_break
from backend.conversations.domain.responses import NewTurn, StoredResponse
from backend.conversations.domain.waiting_turns import WaitingTurn
from shared.models.execution import ExecutionRequest
from shared.models.messages import UserMessage
from shared.models.served_tools import NO_TOOLS
from tests.contract.crash_cases import Death, MortalTurns
from tests.contract.store_cases import Stores, open_stores
from tests.examples import first_of
from tests.fakes.chat_shell_talking import check_pairs, whole_prompt
from tests.fakes.openai_house import TurnHouse
from tests.patience import PATIENCE_SECONDS, eventually
from tests.unit.backend.turns.wandering_shell import GatedChatShell

WORDS = "These words are new."


class MortalBeginnings(MortalTurns):
    """A `TurnStore` whose beginnings of turns may be the last."""

    async def append(self, hold: Any, expected_log_length: int, exchange: Any) -> None:
        await self._turns.append(hold, expected_log_length, exchange)

    async def finish(self, turn: Any) -> bool:
        return await self._turns.finish(turn)

    async def begin(self, turn: NewTurn) -> None:
        await self._death.around(lambda: self._turns.begin(turn))

    async def begin_together(self, turns: Any) -> None:
        await self._death.around(lambda: self._turns.begin_together(turns))


class MortalWaiting:
    """A `WaitingTurnStore` whose additions may be the last."""

    def __init__(self, waiting: Any, death: Death) -> None:
        self._waiting = waiting
        self._death = death

    def __getattr__(self, name: str) -> Any:
        return getattr(self._waiting, name)

    async def add(self, waiting: WaitingTurn, most: int) -> str | None:
        return await self._death.around(lambda: self._waiting.add(waiting, most))


class Replicas:
    """Processes over the same stores, one after another."""

    def __init__(self, stores: Stores) -> None:
        self.stores = stores
        self.requests: list[ExecutionRequest] = []
        self._events: Any = None
        self._number = 0

    def house(self, beginning: Death | None = None, adding: Death | None = None) -> TurnHouse:
        """Start a process, which may die as it begins a turn, or as it adds a waiting one."""
        self._number += 1
        never = Death(None, is_after=False)
        kept: dict[str, Any] = {} if self._events is None else {"events": self._events}
        house = TurnHouse(
            chat_shell=GatedChatShell(self.requests, NO_TOOLS),
            replica=f"replica-{self._number}",
            turns_class=lambda _: MortalBeginnings(self.stores.turns, beginning or never),  # pyright: ignore[reportArgumentType]
            conversations_class=lambda _: self.stores.conversations,
            waiting_class=lambda _: MortalWaiting(self.stores.waiting, adding or never),  # pyright: ignore[reportArgumentType]
            **kept,
        )
        self._events = house.events
        return house


@pytest.fixture(params=first_of("sqlite", "postgresql", "fake"))
async def replicas(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Replicas]:
    async with open_stores(request.param, request, tmp_path) as opened:
        yield Replicas(opened)


async def dies_asking(replicas: Replicas, *, is_after: bool, **asked: Any) -> None:
    """Ask a process that dies at the first write of the turn."""
    death = Death(0, is_after=is_after)
    victim = replicas.house(death)
    async with asyncio.timeout(PATIENCE_SECONDS), victim.registry:
        asking = asyncio.create_task(victim.start(**asked))
        await death.has_come.wait()
        asking.cancel()
        await asyncio.wait({asking})


async def recovered(replicas: Replicas, before: StoredResponse) -> tuple[list[str], TurnHouse]:
    """Let another process take over all that is left, run what waits, and ask once more."""
    survivor = replicas.house()
    async with asyncio.timeout(PATIENCE_SECONDS), survivor.registry:
        await survivor.recovery.at_start()
        found = await replicas.stores.conversations.find(before.conversation_id)
        assert found is not None
        for _ in range(3):
            newest = await survivor.turns.find(str(found.latest_response_id))
            if newest is not None:
                await survivor.services.responses.wait_until_ended(newest)
            await survivor.services.waiting.step()
            found = await replicas.stores.conversations.find(before.conversation_id)
            assert found is not None
        ended = await survivor.ask(input="And now?", conversation=before.conversation_id)
        assert ended.status == "completed"
    assert survivor.observer.drifts + survivor.observer.broken == []
    return await check_whole(replicas, before.conversation_id), survivor


async def check_whole(replicas: Replicas, conversation_id: str) -> list[str]:
    """Check the log and all prompts, and return what users have said in the log."""
    log = await replicas.stores.conversations.log(conversation_id, 1_000)
    assert find_break(log, len(log)) is None
    for request in replicas.requests:
        check_pairs(whole_prompt(request))
    said = [entry.message.content for entry in log if isinstance(entry.message, UserMessage)]
    return [str(content).partition("\n")[0] for content in said]


@pytest.mark.parametrize("is_after", [False, True])
async def test_a_turn_that_was_beginning_runs_or_was_never_there(replicas: Replicas, *, is_after: bool) -> None:
    first = replicas.house()
    async with first.registry:
        before = await first.ask(input="U1 LOOK 10")
    await dies_asking(replicas, is_after=is_after, input=WORDS, previous_response_id=before.id)
    assert len(replicas.requests) == 1
    stored = (await check_whole(replicas, before.conversation_id)).count(WORDS)
    said, survivor = await recovered(replicas, before)
    assert stored == said.count(WORDS) == int(is_after)
    shown = [str(whole_prompt(request)[-1]) for request in replicas.requests]
    assert sum(WORDS in text for text in shown) == int(is_after)
    assert len(survivor.observer.finished) == 1 + is_after
    for earlier, later in zip(replicas.requests, replicas.requests[1:], strict=False):
        sent = whole_prompt(earlier)
        assert whole_prompt(later)[: len(sent)] == sent


@pytest.mark.parametrize("is_after", [False, True])
async def test_the_beginning_of_a_whole_conversation_is_there_or_not(replicas: Replicas, *, is_after: bool) -> None:
    await dies_asking(replicas, is_after=is_after, input=WORDS)
    survivor = replicas.house()
    async with asyncio.timeout(PATIENCE_SECONDS), survivor.registry:
        await survivor.recovery.at_start()
        await eventually(lambda: len(survivor.observer.finished), lambda count: count == int(is_after))
    assert [WORDS in str(whole_prompt(request)[-1]) for request in replicas.requests] == [True] * is_after
    assert [ended.status for ended in survivor.observer.finished] == ["completed"] * is_after


@pytest.mark.parametrize("how", ["queue", "steer", "cancel"])
@pytest.mark.parametrize("is_after", [False, True])
async def test_a_turn_that_was_to_wait_comes_once_or_was_never_there(
    replicas: Replicas, how: str, *, is_after: bool
) -> None:
    first = replicas.house()
    async with first.registry:
        before = await first.ask(input="U1")
    holder = replicas.house()
    assert isinstance(holder.chat_shell, GatedChatShell)
    async with asyncio.timeout(PATIENCE_SECONDS), holder.registry:
        holder.chat_shell.wait_before(2)
        running = await holder.start(input="U2 LOOK 10 10", conversation=before.conversation_id)
        await holder.chat_shell.waiting.wait()
        death = Death(0, is_after=is_after)
        victim = replicas.house(adding=death)
        asking = asyncio.create_task(victim.queue(how=how, input=WORDS, conversation=before.conversation_id))
        await death.has_come.wait()
        asking.cancel()
        holder.chat_shell.gate.set()
        await running.wait_until_ended()
    said, _ = await recovered(replicas, before)
    assert said.count(WORDS) == int(is_after)
