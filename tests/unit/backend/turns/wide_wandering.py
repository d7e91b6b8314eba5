"""Walks with more in them: access that narrows and widens, resent histories, several models, functions of clients."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.responses import StoredResponse
from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import MemberRole
from backend.turns.services.running_turn import RunningTurn
from shared.errors import ContextTooLong, NotFound
from shared.models.execution import ExecutionRequest
from tests.fakes.chat_shell_talking import facts_in, whole_prompt
from tests.fakes.openai_house import ADA, BOB, TurnHouse
from tests.unit.backend.turns.resent_shapes import (
    Form,
    Item,
    Seen,
    any_form,
    chat_messages,
    chat_request,
    response_items,
    response_request,
    said_in,
)
from tests.unit.backend.turns.wandering import BASES, KINDS, Walk
from tests.unit.backend.turns.wandering_shell import protected_word

LANES = ("demo-model", "vendor/large")
FUNCTION = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
ROLES = (MemberRole.READER, MemberRole.READER, MemberRole.RESTRICTED_ANALYST, None)
WIDER = ("access", "narrow", "narrow", "search", "search", "function", "lanes", "resend", "resend", "resend")
WIDE_KINDS = (*KINDS, *WIDER)


@dataclass
class Tab:
    """A client that resends its history; `newest` is the turn that answered it last."""

    caller: Caller
    model: str
    history: list[Seen] = field(default_factory=list[Seen])
    newest: str = ""


@dataclass
class WideWalk(Walk):
    """A walk of a seed.

    `resent` counts the histories that were sent again, `recognised` those that went on where they had been answered,
    `narrowed` the requests for one who may not read what stands in their conversation's log.
    """

    kinds: tuple[str, ...] = WIDE_KINDS
    steps: int = 16
    tabs: list[Tab] = field(default_factory=list[Tab])
    looked_at: int = 0
    recognised: int = 0
    resent: int = 0
    narrowed: int = 0

    async def _begin(self, house: TurnHouse) -> None:
        await super()._begin(house)
        await self._check_access()

    async def _step(self, house: TurnHouse, kind: str) -> None:
        self.seen.add(kind)
        try:
            match kind:
                case "access":
                    await self._change_access()
                case "narrow":
                    await self._narrow(house)
                case "function":
                    await self._call_function(house)
                case "resend":
                    await self._resend(house)
                case _:
                    await super()._step(house, kind)
        finally:
            await self._check_access()

    def _asked(self, kind: str) -> dict[str, Any]:
        asked = super()._asked("look" if kind in {"search", "lanes"} else kind)
        if kind == "search":
            bases = self.drawn.sample(BASES, self.drawn.randint(1, 2))
            asked["tools"] = [{"type": "file_search", "vector_store_ids": bases}]
        if kind == "function":
            asked |= {"input": "CALL", "tools": [FUNCTION]}
        if kind == "lanes" or (kind == "kill" and self.drawn.random() < 0.2):
            del asked["if_running"]
            asked.pop("model", None)
            asked["models"] = list(LANES)
        return asked

    async def _started(self, house: TurnHouse, kind: str) -> RunningTurn | None:
        try:
            return await super()._started(house, kind)
        except NotFound:
            self.seen.add("not found")
            return None

    async def _change_access(self) -> None:
        """Give somebody another role in a base, or none."""
        base_id, who = self.drawn.choice(BASES), self.drawn.choice((ADA, BOB))
        role = self.drawn.choice(ROLES)
        if role is None:
            await self.world.knowledge.remove_member(base_id, who.user_id)
        else:
            await self.world.knowledge.set_member(base_id, who.user_id, role)

    async def _narrow(self, house: TurnHouse) -> None:
        """Search a base, lose the right to read it, and go on."""
        await self._ask(house, "search")
        await self._check_access()
        for base_id in BASES:
            await self.world.knowledge.set_member(base_id, ADA.user_id, MemberRole.RESTRICTED_ANALYST)
        await self._ask(house, "ask")
        await self._check_access()
        await self.world.knowledge.set_member(self.drawn.choice(BASES), ADA.user_id, MemberRole.READER)

    async def _check_access(self) -> None:
        """Look for words of bases in what was sent since the last look, for those who may not read them now."""
        new = self.world.requests[self.looked_at :]
        self.looked_at += len(new)
        for request in new:
            bindings = await self.world.knowledge.bindings("default", request.user.id, None)
            readable = {binding.base.id for binding in bindings if binding.role is not MemberRole.RESTRICTED_ANALYST}
            shown = set(facts_in(whole_prompt(request)))
            stored = set(facts_in([entry.message for entry in self._log_of(request) if entry.message is not None]))
            for base_id in set(BASES) - readable:
                self.narrowed += protected_word(base_id) in stored
                assert protected_word(base_id) not in shown, f"seed {self.seed}, {request.turn_id}"

    def _log_of(self, request: ExecutionRequest) -> Sequence[Entry]:
        return self.world.state.entries.get(request.conversation_id, ())

    async def _call_function(self, house: TurnHouse) -> None:
        """Have the model call a function of the client, and give the results in the next turn."""
        running = await self._started(house, "function")
        if running is None:
            return
        ended = await running.wait_until_ended()
        await house.registry.release(running)
        calls = [item for item in _output(ended) if item["type"] == "function_call"]
        if not calls:
            self._note(ended)
            return
        results = [
            {"type": "function_call_output", "call_id": call["call_id"], "output": f"FACT-f{self.number}"}
            for call in calls
        ]
        who = BOB if ended.user_id == BOB.user_id else ADA
        await self._ended(house, await house.start(who, input=results, previous_response_id=ended.id))

    async def _resend(self, house: TurnHouse) -> None:
        """Ask as a client does that sends all it has seen, by one API or the other."""
        if not self.tabs or self.drawn.random() < 0.2:
            self.tabs.append(Tab(ADA, self.drawn.choice(("helper", "mover", "demo-model"))))
        tab = self.drawn.choice(self.tabs)
        words = self.drawn.choice((f"FACT-r{self.number} word", f"LOOK {self.drawn.randint(1, 400)}"))
        seen: list[Seen] = [*tab.history, ("user", words)]
        if self.drawn.random() < 0.5:
            request = chat_request(_written(chat_messages, self.drawn, seen), {"model": tab.model})
        else:
            request = response_request(_written(response_items, self.drawn, seen), {"model": tab.model})
        try:
            running = await house.services.start(tab.caller, request, "req_1")
        except ContextTooLong:
            self.seen.add("too long")
            return
        assert isinstance(running, RunningTurn)
        log = self.world.state.entries[running.response.conversation_id]
        self.resent += bool(tab.history)
        self.recognised += tab.newest in {entry.turn_id for entry in log}
        ended = await running.wait_until_ended()
        await self._ended(house, running)
        said = said_in(ended)
        if ended.status == "completed" and said is not None:
            tab.history, tab.newest = [*seen, said], ended.id


def _written(
    write: Callable[[random.Random, Seen, Form], list[Item]], rng: random.Random, seen: Sequence[Seen]
) -> list[Item]:
    return [item for one in seen for item in write(rng, one, any_form(rng))]


def _output(response: StoredResponse) -> list[Any]:
    output = response.body["output"]
    assert isinstance(output, list)
    return output
