"""Over generated conversations whose agents change between turns, nothing that was logged moves."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from backend.conversations.domain.responses import StoredResponse
from shared.models.messages import Message
from shared.prompts.message_order import messages_of_request
from tests.contract.knowledge_cases import make_base
from tests.examples import of_many
from tests.fakes.openai_house import TurnHouse
from tests.unit.backend.turns.placing import (
    Uploads,
    agents_house,
    definition,
    is_rebuilt,
    prompts_of,
    put_agent,
    searching,
)

TURNS = 9
WORDS = ("", "CA", "CA two", "C" * 9_000)
FILES = ("", "[project]", "[project two]")
BASES = ("kb_a", "kb_b", "kb_c")


@dataclass
class Play:
    """A generated conversation with an agent: what was sent, and whether an epoch began."""

    seed: int
    placement: str
    order: int = 1
    prompts: list[tuple[Message, ...]] = field(default_factory=list[tuple[Message, ...]])
    epochs: list[int] = field(default_factory=list[int])
    shown: list[list[dict[str, Any]]] = field(default_factory=list[list[dict[str, Any]]])
    drifts: list[Any] = field(default_factory=list[Any])
    rebuilt: list[bool] = field(default_factory=list[bool])

    async def run(self) -> "Play":
        drawn = random.Random(self.seed)
        scripts = [_script(drawn, number) for number in range(TURNS)]
        async with agents_house(*scripts) as (house, uploads):
            for base_id in BASES:
                await house.knowledge.create_base(make_base(base_id, tenant="default"), "ada")
            agent_id = await put_agent(house, placement=self.placement)
            ended: StoredResponse | None = None
            for number in range(TURNS):
                await self._change(drawn, house, uploads, agent_id)
                before: dict[str, Any] = (
                    {"previous_response_id": ended.id} if ended is not None else {"model": "helper"}
                )
                ended = await house.ask(input=f"U{number}", **before)
                request = house.sent[-1]
                self.prompts.append(messages_of_request(request))
                self.epochs.append(request.epoch)
                self.shown.append(await prompts_of(house, ended))
                self.rebuilt.append(await is_rebuilt(house, ended))
            self.drifts = house.observer.drifts
        return self

    async def _change(self, drawn: random.Random, house: TurnHouse, uploads: Uploads, agent_id: str) -> None:
        if drawn.random() < 0.4:
            bases = drawn.sample(BASES, drawn.randint(0, len(BASES)))[:: self.order]
            fields = {
                "instructions": drawn.choice(WORDS),
                "knowledge_base_ids": bases,
                "placement": self.placement,
                "reminder": "R",
            }
            await house.agents.change(agent_id, definition(**fields))
        if drawn.random() < 0.3:
            uploads.project_files = drawn.choice(FILES)
        uploads.files = tuple(f"[upload {n}]" for n in range(drawn.choice((0, 0, 1, 2))))


def _script(drawn: random.Random, number: int) -> list[Any]:
    searches = [f"s{number}_{n}" for n in range(drawn.choice((0, 0, 1, 2)))]
    return searching(*searches, said="word " * drawn.choice((1, 10, 4_000)))


def played(placement: str, *, few: int = 6) -> list[Play]:
    seeds = range(of_many(200, few=few))
    return [asyncio.run(Play(seed, placement).run()) for seed in seeds]


def extends(later: Sequence[Message], earlier: Sequence[Message]) -> bool:
    return tuple(later[: len(earlier)]) == tuple(earlier)


def test_anchored_each_prompt_begins_with_all_of_the_one_before() -> None:
    for play in played("anchored"):
        assert play.drifts == []
        for (earlier, later), (epoch, next_epoch) in zip(pairwise(play.prompts), pairwise(play.epochs), strict=True):
            assert epoch == next_epoch
            assert extends(later, earlier)
        assert all(call["rewritten_tokens"] == 0 for calls in play.shown for call in calls if call["call"] == 1)


def test_classic_moves_only_what_it_declares() -> None:
    rewritten = 0
    for play in played("classic"):
        assert play.drifts == []
        assert set(play.epochs) == {0}
        firsts = [calls[0] for calls in play.shown]
        rewritten += sum(call["rewritten_tokens"] for call in firsts)
        assert all(call["first_difference"] is None for call in firsts)
        for calls in play.shown:
            kinds = [message["kind"] for message in calls[0]["messages"]]
            assert kinds.count("custom_instructions") <= 1
            assert kinds.count("project_files") <= 1
    assert rewritten > 0


@pytest.mark.parametrize("placement", ["classic", "anchored"])
def test_the_order_in_which_bases_are_named_changes_nothing(placement: str) -> None:
    for seed in range(of_many(50, few=2)):
        one, other = (asyncio.run(Play(seed, placement, order=order).run()) for order in (1, -1))
        assert one.prompts == other.prompts


@pytest.mark.parametrize("placement", ["classic", "anchored"])
def test_what_is_stored_makes_the_same_request_again(placement: str) -> None:
    for seed in range(of_many(100, few=4)):
        assert all(asyncio.run(Play(seed, placement).run()).rebuilt)
