"""Clients that resend their whole histories, beside twins that name the response that they continue.

What a twin names is found by comparing whole histories, so it knows nothing of chains.
"""

import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import takewhile
from typing import Any

from backend.conversations.domain.responses import ResponseStatus, StoredResponse
from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import KnowledgeBase, MemberRole
from shared.models.canonical import canonical_parts
from shared.models.events import FinishReason
from shared.models.execution import ExecutionRequest
from shared.models.messages import AssistantMessage, Message
from shared.models.values import objects_in
from shared.prompts.message_order import messages_of_request
from tests.fakes.chat_shell_scripted import ScriptedChatShell, answer, function_calls
from tests.fakes.openai_house import ADA, BOB, TurnHouse
from tests.fakes.store_knowledge import FakeKnowledge
from tests.unit.backend.turns.samples import NOW

WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
SUMMARIES = ("Rules of travel.", "Rules of travel by train.", "Rules of travel by sea, of which there are many.")
OPENINGS = ("Hi", "Hello there")
ROLES = (MemberRole.READER, MemberRole.RESTRICTED_ANALYST, None)
Item = dict[str, Any]
Seen = tuple[str, ...]
"""A message as a client has seen it: a role, and what was said; of an answer then each call."""

History = tuple[Seen, ...]


@dataclass
class Tab:
    """One view of a client on its history; `newest` is the request of its newest turn, `twin` the twin's response."""

    caller: Caller
    history: History = ()
    newest: ExecutionRequest | None = None
    twin: str = ""


@dataclass
class Share:
    """Bytes that were sent again as they were, and those that could have been."""

    sent: int = 0
    possible: int = 0

    @property
    def value(self) -> float:
        return self.sent / self.possible if self.possible else 1.0


@dataclass
class Twins:
    """The two houses, over the same knowledge and scripts, and what either user has seen."""

    rng: random.Random
    callers: Sequence[Caller]
    resent: TurnHouse
    named: TurnHouse
    knowledge: FakeKnowledge
    share: Share = field(default_factory=Share)
    turns: int = 0
    recognised: int = 0
    known: dict[tuple[str, History], str] = field(default_factory=dict[tuple[str, History], str])
    owners: dict[str, str] = field(default_factory=dict[str, str])

    async def play(self, turns: int) -> None:
        """Play turns of both users in some tabs, with changes of knowledge between them."""
        tabs: list[Tab] = []
        for _ in range(turns):
            await self._change_knowledge()
            tab = self._chosen(tabs)
            history, new = self._edited(tab)
            await self._turn(tab, history, new)
            for house in (self.resent, self.named):
                house.clock.advance(timedelta(minutes=7).total_seconds())

    def _chosen(self, tabs: list[Tab]) -> Tab:
        kind = self.rng.random()
        if not tabs or kind < 0.2:
            tabs.append(Tab(self.rng.choice(self.callers)))
        elif kind < 0.35:
            twin = self.rng.choice(tabs)
            tabs.append(Tab(twin.caller, twin.history, twin.newest, twin.twin))
        else:
            return self.rng.choice(tabs)
        return tabs[-1]

    def _edited(self, tab: Tab) -> tuple[History, History]:
        """Return the history that is resent, and what is new: mostly the next message, sometimes an edited one."""
        kind, history = self.rng.random(), tab.history
        ends = [place for place, seen in enumerate(history, 1) if seen[0] == "assistant"]
        if history and kind < 0.25:  # an earlier message edited, or its answer regenerated
            cut = self.rng.choice([0, *ends[:-1]])
            again = history[cut : cut + 1] if self.rng.random() < 0.5 and history[cut][0] == "user" else None
            tab.newest = None
            return self._with_new(history[:cut], again)
        if history and kind < 0.33:  # an answer that was never given
            place = self.rng.choice(ends) - 1
            changed: Seen = ("assistant", f"{history[place][1]}!", *history[place][2:])
            tab.newest = None
            return self._with_new((*history[:place], changed, *history[place + 1 :]), None)
        return self._with_new(history, None)

    def _with_new(self, history: History, again: History | None) -> tuple[History, History]:
        calls = _calls(history[-1]) if history else ()
        if calls:
            return history, tuple(("tool", call_id, f"Result of {call_id}") for call_id, _, _ in calls)
        if again is not None:
            return history, again
        said = self.rng.choice(OPENINGS) if not history else f"Question {self.rng.randrange(4)}"
        return history, (("user", said),)

    async def _turn(self, tab: Tab, history: History, new: History) -> None:
        self.turns += 1
        script, fields = self._script(), await self._fields(tab.caller)
        for house in (self.resent, self.named):
            house.scripted.scripts.append(script)
        items = [self._items(seen) for seen in (*history, *new)]
        response = await self.resent.ask(tab.caller, input=_joined(items), **fields)
        twin = await self._twin(tab.caller, history, items, fields)
        sent, wanted = self.resent.sent[-1], self.named.sent[-1]
        assert _bytes(sent) == _bytes(wanted)
        assert (sent.epoch, sent.model, sent.knowledge.access_mode) == (
            wanted.epoch,
            wanted.model,
            wanted.knowledge.access_mode,
        )
        owner = self.owners.setdefault(response.conversation_id, tab.caller.user_id)
        assert owner == tab.caller.user_id
        self._measure(tab, sent)
        said = _said(response)
        tab.history = (*history, *new, said) if said is not None else history
        tab.newest, tab.twin = (sent if said is not None else None), twin.id
        is_whole = response.status is ResponseStatus.COMPLETED
        assert response.status is twin.status
        if is_whole and said is not None:
            self.known[tab.caller.user_id, tab.history] = twin.id

    async def _twin(self, caller: Caller, history: History, items: list[list[Item]], fields: Item) -> StoredResponse:
        for cut in range(len(history), 0, -1):
            named = self.known.get((caller.user_id, history[:cut]))
            if named is not None:
                self.recognised += 1
                return await self.named.ask(caller, input=_joined(items[cut:]), previous_response_id=named, **fields)
        return await self.named.ask(caller, input=_joined(items), **fields)

    def _measure(self, tab: Tab, sent: ExecutionRequest) -> None:
        """Compare with the tab's newest request and its answer, where no declared epoch lies between.

        Where two conversations were seen alike the latest goes on, which may be that of another tab.
        """
        before, is_alone = tab.newest, self.known.get((tab.caller.user_id, tab.history)) == tab.twin
        if before is None or before.epoch != sent.epoch or not is_alone:
            return
        said = tab.history[-1]
        calls = [{"call_id": a, "name": b, "arguments": c} for a, b, c in _calls(said)]
        answered = AssistantMessage.model_validate({"text": said[1], "tool_calls": calls})
        whole = [*_bytes(before), *canonical_parts((), (answered,))[1:]]
        same = takewhile(lambda pair: pair[0] == pair[1], zip(whole, _bytes(sent), strict=False))
        self.share.possible += sum(map(len, whole))
        self.share.sent += sum(len(part) for part, _ in same)

    def _script(self) -> Sequence[Any]:
        kind = self.rng.random()
        if kind < 0.08:
            return [RuntimeError("The model is away.")]
        if kind < 0.14:
            return answer("Half of", finish_reason=FinishReason.CONTENT_FILTER)
        if kind < 0.3:
            return function_calls(*(f"call_{n}" for n in range(self.rng.choice((1, 2)))), text="I look.")
        return answer("Sure.", f" {self.rng.randrange(2)}")

    async def _fields(self, caller: Caller) -> Item:
        """Return settings of a request; what is left out stays as it was."""
        member = bool(await self.knowledge.bindings(caller.tenant, caller.user_id, ["kb_a"]))
        searching = [{"type": "file_search", "vector_store_ids": ["kb_a"]}] if member else []
        kind = self.rng.random()
        if kind < 0.5:
            return {"tools": [WEATHER, *searching]}
        return {"instructions": self.rng.choice(("Be kind.", "Be brief."))} if kind < 0.55 else {}

    async def _change_knowledge(self) -> None:
        kind = self.rng.random()
        if kind < 0.2:
            await self.knowledge.update_base(_base(self.rng.choice(SUMMARIES), self.callers[0].tenant))
        elif kind < 0.27:
            role = self.rng.choice(ROLES)
            user_id = self.rng.choice(self.callers).user_id
            if role is None:
                await self.knowledge.remove_member("kb_a", user_id)
            else:
                await self.knowledge.set_member("kb_a", user_id, role)

    def _items(self, seen: Seen) -> list[Item]:
        """Write a message in one of the ways in which clients do."""
        if seen[0] == "tool":
            return [{"type": "function_call_output", "call_id": seen[1], "output": seen[2]}]
        is_user = seen[0] == "user"
        part: Item = {"type": "input_text" if is_user else "output_text", "text": seen[1]}
        if not is_user and self.rng.random() < 0.5:
            part["annotations"] = []
        content = [part] if self.rng.random() < 0.5 else seen[1]
        message: Item = {"role": seen[0], "content": content}
        if self.rng.random() < 0.3:
            message |= {"type": "message", "id": f"msg_{self.rng.random()}", "status": "completed"}
        has_reasoning = not is_user and self.rng.random() < 0.3
        reasoning: list[Item] = [{"type": "reasoning", "summary": []}] if has_reasoning else []
        calls = [
            {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
            for call_id, name, arguments in _calls(seen)
        ]
        return [*reasoning, message, *calls]


@asynccontextmanager
async def open_twins(seed: int, tenant: str = "default", **fields: Any) -> AsyncGenerator[Twins]:
    """Open both houses, with a base that both users read; `fields` are those of the house that gets histories."""
    callers = tuple(user.model_copy(update={"tenant": tenant}) for user in (ADA, BOB))
    knowledge = FakeKnowledge()
    await knowledge.create_base(_base(SUMMARIES[0], tenant), "owner")
    for user in callers:
        await knowledge.set_member("kb_a", user.user_id, MemberRole.READER)
    houses = [TurnHouse(chat_shell=ScriptedChatShell(), knowledge=knowledge, **given) for given in (fields, {})]
    async with houses[0].registry, houses[1].registry:
        yield Twins(random.Random(seed), callers, houses[0], houses[1], knowledge)


def _base(summary: str, tenant: str) -> KnowledgeBase:
    return KnowledgeBase(
        id="kb_a",
        tenant=tenant,
        name="Travel",
        summary=summary,
        topics=(),
        routing_hint="",
        routing_keywords=(),
        version=1,
        created_at=NOW,
    )


def _joined(items: Sequence[Sequence[Item]]) -> list[Item]:
    return [item for each in items for item in each]


def _calls(seen: Seen) -> tuple[tuple[str, str, str], ...]:
    told = seen[2:] if seen[0] == "assistant" else ()
    return tuple((told[place], told[place + 1], told[place + 2]) for place in range(0, len(told), 3))


def _said(response: StoredResponse) -> Seen | None:
    """Return what a client sees of an answer, None where there is nothing to resend."""
    output = objects_in(response.body["output"])
    texts = [str(part["text"]) for item in output if item["type"] == "message" for part in objects_in(item["content"])]
    calls = [item for item in output if item["type"] == "function_call"]
    told = [str(call[key]) for call in calls for key in ("call_id", "name", "arguments")]
    return ("assistant", "\n\n".join(texts), *told) if texts or told else None


def _bytes(request: ExecutionRequest) -> tuple[bytes, ...]:
    messages: Sequence[Message] = messages_of_request(request)
    return canonical_parts(request.tools, messages)
