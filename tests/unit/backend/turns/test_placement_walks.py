"""Random walks over all that a caller may do with agents: no prompt drifts, and what is shown is what was sent."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from backend.conversations.domain.responses import StoredResponse
from shared.errors import Unavailable
from shared.models.canonical import message_json
from shared.prompts.message_order import messages_of_request
from tests.examples import of_many
from tests.fakes.chat_shell_scripted import answer, function_calls
from tests.fakes.openai_house import BOB, TurnHouse
from tests.unit.backend.turns.asking import pop
from tests.unit.backend.turns.placing import (
    Uploads,
    agents_house,
    definition,
    is_rebuilt,
    prompts_of,
    put_agent,
    searching,
    without_own_fields,
)

STEPS = 12
MODELS = ("helper", "mover", "demo-model")
WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object"}}


@dataclass
class Walk:
    """One walk: what may be continued, and which of it waits for results."""

    house: TurnHouse
    uploads: Uploads
    drawn: random.Random
    ended: list[StoredResponse] = field(default_factory=list[StoredResponse])
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    seen: set[str] = field(default_factory=set[str])

    async def step(self, number: int) -> None:
        name = self.drawn.choice(("ask", "ask", "ask", "fork", "agent", "fail", "call", "pop", "lose", "unstored"))
        self.seen.add(name)
        if name == "agent":
            await self._change_agent("helper")
        elif name == "lose":
            await self._change_agent("mover", owner_only=True)
        elif name == "pop":
            await self._pop()
        else:
            await self._turn(number, name)

    async def _change_agent(self, agent: str, *, owner_only: bool = False) -> None:
        (found,) = await self.house.agents.find("default", "bob", [agent])
        fields: dict[str, Any] = {
            "instructions": self.drawn.choice(("", "CA", "CA two", "C" * 9_000)),
            "placement": self.drawn.choice(("anchored", "classic")),
            "system_prompt": self.drawn.choice((None, None, "Own {{model}}.")),
            "reminder": self.drawn.choice((None, "Be kind.")),
            "visibility": "private" if owner_only and self.drawn.random() < 0.5 else "tenant",
            "tools": [WEATHER],
        }
        await self.house.agents.change(found.agent.id, definition(**fields))

    async def _pop(self) -> None:
        newest = self.ended[-1] if self.ended else None
        if newest is None or newest.id in self.waiting or newest.status != "completed":
            return
        if self.house.log_of(newest.conversation_id)[-1].turn_id == newest.id:
            await pop(self.house, newest.conversation_id, 2)
            self.ended = [one for one in self.ended if one.conversation_id != newest.conversation_id]

    async def _turn(self, number: int, name: str) -> None:
        origin = self.drawn.choice(self.ended) if name == "fork" and self.ended else (self.ended or [None])[-1]
        asked: dict[str, Any] = {"input": f"U{number}", "model": await self._usable()}
        if origin is not None and self.drawn.random() < 0.9:
            asked["previous_response_id"] = origin.id
            if origin.id in self.waiting:
                output = {"type": "function_call_output", "call_id": self.waiting[origin.id], "output": "Rain."}
                asked["input"] = [output]
        if name == "unstored":
            asked["store"] = False
        self.uploads.project_files = self.drawn.choice(("", "[project]", "[project two]"))
        self.uploads.files = self.drawn.choice(((), (), ("[upload]",)))
        self.house.scripted.scripts.append(self._script(number, name))
        ended = await self.house.ask(**asked, tools=[WEATHER])
        if name == "unstored":
            return
        await self._check(ended)
        if name == "call":
            self.waiting[ended.id] = f"c{number}"
        if ended.status == "completed":
            self.ended.append(ended)

    async def _usable(self) -> str:
        model = self.drawn.choice(MODELS)
        (known,) = await self.house.agents.find("default", "ada", ["mover"])
        return "demo-model" if model == "mover" and not known.is_usable else model

    def _script(self, number: int, name: str) -> list[Any]:
        if name == "fail":
            return [Unavailable("chat_shell is away")]
        if name == "call":
            return function_calls(f"c{number}")
        words = "word " * self.drawn.choice((1, 10, 8_000))
        return searching(f"s{number}", said=words) if self.drawn.random() < 0.4 else [*answer(words)]

    async def _check(self, ended: StoredResponse) -> None:
        request = self.house.sent[-1]
        sent = [message_json(message) for message in messages_of_request(request)]
        for call in (await prompts_of(self.house, ended))[:1]:
            assert [without_own_fields(message) for message in call["messages"]] == sent
        if ended.conversation_id in self.house.state.conversations:
            assert await is_rebuilt(self.house, ended)


async def walked(seed: int) -> set[str]:
    async with agents_house() as (house, uploads):
        for name, placement in (("helper", "anchored"), ("mover", "classic")):
            agent: dict[str, Any] = {"owner": BOB, "visibility": "tenant", "placement": placement, "tools": [WEATHER]}
            await put_agent(house, name, **agent)
        walk = Walk(house, uploads, random.Random(seed))
        for number in range(STEPS):
            await walk.step(number)
        assert house.observer.drifts == []
        assert house.observer.broken == []
        return walk.seen


PARTS = of_many(10, few=1)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_walk_drifts(part: int) -> None:
    seen: set[str] = set()
    for seed in range(part, of_many(400, few=24), PARTS):
        seen |= asyncio.run(walked(seed))
    assert seen == {"ask", "fork", "agent", "fail", "call", "pop", "lose", "unstored"}
