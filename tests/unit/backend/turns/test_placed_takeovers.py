"""A turn with an agent's words that another process continues, from every place in it."""

from typing import Any

import pytest

from backend.conversations.domain.responses import StoredResponse
from shared.models.events import ModelCallStarted
from shared.models.execution import ExecutionRequest
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.openai_house import TurnHouse
from tests.fakes.replicas import EXCHANGE, Replicas, bytes_of, searched
from tests.fakes.store_agents import FakeAgentStore
from tests.unit.backend.turns.placing import REMINDER, letters, prompts_of, put_agent, searching, uploads_of

WORDS: dict[str, Any] = {"reminder": "Be kind.", "instructions": "CA \ud7ff\x00", "system_prompt": None}


class PlacedReplicas(Replicas):
    """Replicas whose turns have project files and an upload."""

    def make(self, *scripts: Any, **fields: Any) -> TurnHouse:
        house = super().make(*scripts, **fields)
        uploads = uploads_of(house)
        uploads.project_files, uploads.files = "[project]", ("[upload]",)
        return house


async def begun(placement: str) -> tuple[PlacedReplicas, dict[str, Any]]:
    """Run the first turn of an agent's conversation, with a search, and return how to ask the next one."""
    replicas = PlacedReplicas(agents=FakeAgentStore())
    house = replicas.make(searching("s1", said="A1"))
    async with house.registry:
        await put_agent(house, placement=placement, **WORDS)
        first = await house.ask(input="U1", model="helper")
    return replicas, {"input": "U2", "previous_response_id": first.id}


async def taken_over(
    replicas: PlacedReplicas, asked: dict[str, Any], script: list[Any], rest: list[Any]
) -> tuple[ExecutionRequest, ExecutionRequest, StoredResponse]:
    """Kill a turn behind a script, and let another replica run the rest: what both have sent, and the response."""
    lost = await replicas.killed(script, **asked)
    first = replicas.last.sent[0]
    ended = await replicas.continued(lost, rest)
    assert ended.status == "completed"
    assert not replicas.last.observer.drifts
    return first, replicas.last.sent[0], ended


@pytest.mark.parametrize("placement", ["classic", "anchored"])
async def test_before_the_first_model_call_the_same_bytes_are_sent(placement: str) -> None:
    replicas, asked = await begun(placement)
    first, again, ended = await taken_over(replicas, asked, [], answer("A2"))
    assert again == first.model_copy(update={"knowledge": again.knowledge})
    assert again.reminder == "Be kind."
    shown = [letters(call) for call in await prompts_of(replicas.last, ended)]
    before = "S F U1 TC tr A1 CA P F U2" if placement == "classic" else "S CA P F U1 TC TR R A1 F U2"
    assert shown == [before]


@pytest.mark.parametrize("placement", ["classic", "anchored"])
async def test_behind_an_exchange_the_same_bytes_are_sent_with_it(placement: str) -> None:
    replicas, asked = await begun(placement)
    rest = [ModelCallStarted(call=2, reminder=REMINDER), *answer("A2")[1:]]
    first, again, ended = await taken_over(replicas, asked, searched(), rest)
    assert again.added == EXCHANGE
    assert bytes_of(again.model_copy(update={"added": ()})) == bytes_of(first)
    shown = [letters(call) for call in await prompts_of(replicas.last, ended)]
    before = "S F U1 TC tr A1 CA P F U2" if placement == "classic" else "S CA P F U1 TC TR R A1 F U2"
    assert shown == [before, f"{before} TC TR{' R' if placement == 'classic' else ''}"]


async def test_without_the_text_of_a_block_the_turn_ends() -> None:
    replicas, asked = await begun("classic")
    lost = await replicas.killed([], **asked)
    replicas.state.texts.clear()
    ended = await replicas.continued(lost)
    assert not replicas.last.sent
    assert ended.status != "completed"
