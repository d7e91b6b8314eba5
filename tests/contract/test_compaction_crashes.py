"""`kill -9` at each write of a turn that leaves a part of its conversation out, over every store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from backend.conversations.domain.conversation_log import find_break
from backend.conversations.domain.responses import StoredResponse
from shared.models.messages import Message
from shared.models.values import objects_in
from tests.contract.crash_cases import MOST_WRITES, Death, Killed, World
from tests.contract.store_cases import open_stores
from tests.examples import first_of
from tests.fakes.chat_shell_talking import TalkingChatShell, check_pairs, facts_in, whole_prompt
from tests.fakes.openai_house import TurnHouse
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.whole

LONG = "word " * 800


@pytest.fixture(params=first_of("sqlite", "postgresql", "fake"))
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with open_stores(request.param, request, tmp_path) as opened:
        yield World(opened)


async def prepared(house: TurnHouse) -> StoredResponse:
    """Ask until the next question is more than the window takes."""
    last = await house.ask(input=f"FACT-a {LONG}")
    for number in range(8):
        last = await house.ask(input=f"FACT-b{number} {LONG}", previous_response_id=last.id)
    return last


QUESTIONS = {"before the first call": f"FACT-c {LONG}", "between two calls": "LOOK 2500 2500 1000"}


def prompts(house: TurnHouse) -> list[tuple[Message, ...]]:
    assert isinstance(house.chat_shell, TalkingChatShell)
    return [whole_prompt(request) for request in house.chat_shell.answers]


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("when", QUESTIONS)
async def test_nothing_is_lost_wherever_the_process_ends(world: World, when: str, *, is_after: bool) -> None:
    twin_prompt, outcomes = await whole(world, when), list[str]()
    for number in range(MOST_WRITES):
        death = Death(number, is_after=is_after)
        ended, known = await killed_and_continued(world, when, death)
        if ended is None:
            break
        outcomes.append(ended.status)
        assert known >= {fact for fact in facts_in(twin_prompt) if not fact.removeprefix("FACT-").isdigit()}
    else:
        raise AssertionError("the turn never ended")
    assert outcomes.count("completed") > len(outcomes) // 2
    assert "failed" not in outcomes


async def whole(world: World, when: str) -> tuple[Message, ...]:
    """Return the last prompt of a turn that nobody kills."""
    house = world.house(Death(None, is_after=False))
    async with house.registry:
        before = await prepared(house)
        ended = await house.ask(input=QUESTIONS[when], previous_response_id=before.id)
        assert (ended.status, bool(house.observer.compactions)) == ("completed", True)
    return prompts(house)[-1]


async def killed_and_continued(world: World, when: str, death: Death) -> tuple[StoredResponse | None, set[str]]:
    """Kill a process at its write, let another continue, and ask once more; return the response and the known facts.

    The response is None where the turn ended before that write.
    """
    first = world.house(Death(None, is_after=False))
    async with first.registry:
        before = await prepared(first)
    victim = world.house(death)
    with suppress(Killed):
        async with victim.registry:
            ends = asyncio.create_task(victim.ask(input=QUESTIONS[when], previous_response_id=before.id))
            dies = asyncio.create_task(death.has_come.wait())
            await asyncio.wait({ends, dies}, return_when=asyncio.FIRST_COMPLETED)
            ends.cancel()
            dies.cancel()
            if not death.has_come.is_set():
                return None, set()
            raise Killed
    survivor = world.house(Death(None, is_after=False))
    async with asyncio.timeout(PATIENCE_SECONDS), survivor.registry:
        found = await world.conversations.find(before.conversation_id)
        assert found is not None
        response_id = str(found.latest_response_id)
        await survivor.recovery.at_start()
    ended = await survivor.turns.find(response_id)
    assert ended is not None
    assert [str(item["type"]) for item in objects_in(ended.body["output"])].count("compaction") <= 1
    last = world.house(Death(None, is_after=False))
    async with last.registry:
        await last.ask(input="And now?", conversation=ended.conversation_id)
    assert survivor.observer.drifts + last.observer.drifts == []
    log = await world.conversations.log(ended.conversation_id, 1_000)
    assert find_break(log, len(log)) is None
    shown = prompts(last)[-1]
    check_pairs(shown)
    return ended, set(facts_in(shown))
