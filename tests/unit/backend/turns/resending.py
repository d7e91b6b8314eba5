"""Clients that resend their whole histories, beside twins that name the response that they continue.

What a twin names is found by comparing whole histories, so it knows nothing of chains.
"""

import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import takewhile
from typing import Any

from backend.conversations.domain.responses import ResponseStatus, StoredResponse
from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import KnowledgeBase, MemberRole
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.services.running_turn import RunningTurn
from shared.models.canonical import canonical_parts
from shared.models.events import (
    FinishReason,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    RefusalDelta,
    TurnFinished,
)
from shared.models.execution import ExecutionRequest
from shared.models.messages import AssistantMessage, Message
from shared.models.values import objects_in
from shared.prompts.message_order import messages_of_request
from tests.contract.knowledge_cases import make_base
from tests.fakes.chat_shell_scripted import USAGE, ScriptedChatShell, answer, function_calls
from tests.fakes.openai_house import ADA, BOB, TurnHouse
from tests.fakes.store_knowledge import FakeKnowledge
from tests.unit.backend.turns.asking import WEATHER
from tests.unit.backend.turns.resent_shapes import (
    BETWEEN,
    Form,
    Item,
    Seen,
    answers_of,
    any_form,
    as_counted,
    calls_of,
    chat_messages,
    chat_request,
    response_items,
    response_request,
    said_in,
)

SUMMARIES = ("Rules of travel.", "Rules of travel by train.", "Rules of travel by sea, of which there are many.")
OPENINGS = ("Hi", "Hello there")
ROLES = (MemberRole.READER, MemberRole.RESTRICTED_ANALYST, None)
PIXEL = "data:image/png;base64,iVBORw0KGgo="
SECRET = "What only readers of the base may read."
History = tuple[Seen, ...]


@dataclass
class Tab:
    """One view of a client on its history.

    `newest` is the request of its newest turn, `answered` what the model said to it, `twin` the twin's response.
    `given` holds the responses in which the answers of the history were given, by their places.
    """

    caller: Caller
    history: History = ()
    newest: ExecutionRequest | None = None
    answered: tuple[AssistantMessage, ...] = ()
    twin: str = ""
    given: dict[int, StoredResponse] = field(default_factory=dict[int, StoredResponse])

    def copied(self) -> "Tab":
        """Return another view on the same history."""
        return replace(self, given=dict(self.given))

    def forget(self, place: int) -> None:
        """Note that the history is another one from this place on."""
        self.newest = None
        self.given = {at: response for at, response in self.given.items() if at < place}


@dataclass(frozen=True)
class Known:
    """A response of the twin, with the settings that its turn had: those that begin epochs, and the bases.

    `has_told` says that a client has given the text of the base: it is then their own.
    """

    response_id: str
    header: str
    bases: str
    has_told: bool


def known(response_id: str, fields: Item, *, has_told: bool) -> Known:
    """Note with what a turn ran: the settings that its request gives, and no others."""
    kinds = [tool["type"] for tool in fields.get("tools", ())]
    header = f"{'function' in kinds} {fields.get('instructions', '')}"
    return Known(response_id, header, str("file_search" in kinds), has_told)


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
    withheld: int = 0
    known: dict[tuple[str, History], list[Known]] = field(default_factory=dict[tuple[str, History], list[Known]])
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
            tabs.append(twin.copied())
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
            tab.forget(cut)
            return self._with_new(history[:cut], again)
        if history and kind < 0.45:  # messages that were never given in this form
            place, count, written = self._rewritten(history)
            if count:
                tab.forget(place)
                return self._with_new((*history[:place], written, *history[place + count :]), None)
        return self._with_new(history, None)

    def _rewritten(self, history: History) -> tuple[int, int, Seen]:
        """Return what a client writes in another way, and in the place of how many messages."""
        place = self.rng.randrange(len(history))
        seen = history[place]
        after: Seen = history[place + 1] if place + 1 < len(history) else ("none", "")
        if seen[0] == after[0] == "user" and len(seen) == len(after) == 2:
            return place, 2, ("user", f"{seen[1]}{BETWEEN}{after[1]}")
        if seen[0] == "tool":
            return place, 0, seen
        changed = self.rng.choice((f"{seen[1]}!", f"{seen[1]} ", seen[1].strip(), " ".join(seen[1].split())))
        return place, int(changed != seen[1]), (seen[0], changed, *seen[2:])

    def _with_new(self, history: History, again: History | None) -> tuple[History, History]:
        waiting = calls_of(history[-1]) if history else ()
        if waiting:
            results: History = tuple(("tool", call_id, f"Result of {call_id}") for call_id, _, _ in waiting)
            return history, (*results, *([("user", "And?")] if self.rng.random() < 0.2 else []))
        if again is not None:
            return history, again
        said = self.rng.choice(OPENINGS) if not history else f"Question {self.rng.randrange(4)}"
        shown: Seen = ("user", said, *([PIXEL] if self.rng.random() < 0.15 else []))
        kind = self.rng.random()
        if kind < 0.1:  # behind an answer it would join the instructions of the twin's request
            return history, (("user", "Look:"), ("system", "It is night."), shown)
        return history, ((("user", " Well, "), shown) if kind < 0.2 else (shown,))

    async def _turn(self, tab: Tab, history: History, new: History) -> None:
        self.turns += 1
        fields = await self._fields(tab.caller)
        script = await self._script(tab.caller, fields)
        for house in (self.resent, self.named):
            house.scripted.scripts.append(script)
        forms = [any_form(self.rng) for _ in (*history, *new)]
        request = await self._request(tab, (*history, *new), forms, fields)
        response = await self._ask(self.resent, tab.caller, request)
        twin, has_told = await self._twin(tab.caller, history, new, forms, fields)
        sent, wanted = self.resent.sent[-1], self.named.sent[-1]
        assert _bytes(sent) == _bytes(wanted)
        assert (sent.epoch, sent.model, sent.knowledge.access_mode) == (
            wanted.epoch,
            wanted.model,
            wanted.knowledge.access_mode,
        )
        owner = self.owners.setdefault(response.conversation_id, tab.caller.user_id)
        assert owner == tab.caller.user_id
        self._measure(tab, history, fields, sent)
        if not has_told:
            await self._check_withheld(tab.caller, sent)
        said = said_in(response)
        tab.history = (*history, *new, said) if said is not None else history
        tab.newest, tab.twin = (sent if said is not None else None), twin.id
        tab.answered = answers_of(response)
        if said is not None:
            tab.given[len(tab.history) - 1] = response
        is_whole = response.status is ResponseStatus.COMPLETED
        assert response.status is twin.status
        if is_whole and said is not None:
            self.known.setdefault((tab.caller.user_id, as_counted(tab.history)), []).append(
                known(twin.id, fields, has_told=has_told)
            )

    async def _ask(self, house: TurnHouse, caller: Caller, request: TurnRequest) -> StoredResponse:
        running = await house.services.start(caller, request, "req_1")
        assert isinstance(running, RunningTurn)
        ended = await running.wait_until_ended()
        await house.registry.release(running)
        return ended

    async def _request(self, tab: Tab, seen: History, forms: list[Form], fields: Item) -> TurnRequest:
        """Write a request for one of the APIs; at Responses some name earlier answers by ids, as the AI SDK does."""
        if self.rng.random() < 0.4:
            pairs = zip(seen, forms, strict=True)
            return chat_request([each for one, form in pairs for each in chat_messages(self.rng, one, form)], fields)
        named: dict[int, list[Item]] = {}
        for place, response in tab.given.items() if self.rng.random() < 0.5 else ():
            if place < len(seen) and not await self.resent.services.withheld.concerns(tab.caller, response):
                output = [item for item in objects_in(response.body["output"]) if item["type"] != "reasoning"]
                named[place] = [{"type": "item_reference", "id": item["id"]} for item in output]
                forms[place] = Form(as_parts=True, is_split=True)
        written = [named.get(place) or self._plain(seen, forms, place) for place in range(len(seen))]
        return response_request([item for items in written for item in items], fields)

    def _plain(self, seen: History, forms: list[Form], place: int) -> list[Item]:
        return response_items(self.rng, seen[place], forms[place])

    async def _twin(
        self, caller: Caller, history: History, new: History, forms: list[Form], fields: Item
    ) -> tuple[StoredResponse, bool]:
        """Let the twin name the response that its user has seen last.

        Return whether the client has given text of the base, too.
        """
        seen = (*history, *new)
        items = [self._plain(seen, forms, place) for place in range(len(seen))]
        for cut in range(len(history), 0, -1):
            candidates = self.known.get((caller.user_id, as_counted(history[:cut])))
            if candidates:
                self.recognised += 1
                found = chosen(candidates, fields)
                # Who names a response inherits its settings; who resends their history has those that they give.
                given: Item = {"previous_response_id": found.response_id, "tools": [], "instructions": "", **fields}
                response = await self.named.ask(caller, input=_joined(items[cut:]), **given)
                return response, found.has_told or tells(history[cut:])
        return await self.named.ask(caller, input=_joined(items), **fields), tells(history)

    async def _check_withheld(self, caller: Caller, sent: ExecutionRequest) -> None:
        """Look for text of the base in what is sent for a caller who may not read it, and has given none of it."""
        bindings = await self.knowledge.bindings(caller.tenant, caller.user_id, ["kb_a"])
        if not any(binding.role is MemberRole.READER for binding in bindings):
            self.withheld += 1
            assert SECRET.encode() not in b"".join(_bytes(sent))

    def _measure(self, tab: Tab, history: History, fields: Item, sent: ExecutionRequest) -> None:
        """Compare with the tab's newest request and its answer, where no declared epoch lies between.

        Where two conversations were seen alike another one may go on, which is that of another tab.
        """
        before = tab.newest
        if before is None or before.epoch != sent.epoch:
            return
        candidates = self.known.get((tab.caller.user_id, as_counted(history)))
        if not candidates or chosen(candidates, fields).response_id != tab.twin:
            return
        whole = [*_bytes(before), *canonical_parts((), tab.answered)[1:]]
        same = takewhile(lambda pair: pair[0] == pair[1], zip(whole, _bytes(sent), strict=False))
        self.share.possible += sum(map(len, whole))
        self.share.sent += sum(len(part) for part, _ in same)

    async def _script(self, caller: Caller, fields: Item) -> Sequence[Any]:
        kind = self.rng.random()
        if kind < 0.08:
            return [RuntimeError("The model is away.")]
        if kind < 0.14:
            return answer("Half of", finish_reason=FinishReason.CONTENT_FILTER)
        if kind < 0.3:
            text = self.rng.choice(("I look.", ""))
            return function_calls(*(f"call_{n}" for n in range(self.rng.choice((1, 2)))), text=text)
        if kind < 0.36:
            return refusal("I cannot say.")
        said = answer("Sure.", f" {self.rng.randrange(2)}", self.rng.choice(("", "\n")))
        if kind < 0.45:
            return [*answer("Let me see.")[:-1], *said]
        bindings = await self.knowledge.bindings(caller.tenant, caller.user_id, ["kb_a"])
        is_reader = any(binding.role is MemberRole.READER for binding in bindings)
        is_bound = any(tool["type"] == "file_search" for tool in fields.get("tools", ()))
        return answer(SECRET) if kind < 0.6 and is_reader and is_bound else said

    async def _fields(self, caller: Caller) -> Item:
        """Return settings of a request."""
        member = bool(await self.knowledge.bindings(caller.tenant, caller.user_id, ["kb_a"]))
        searching = [{"type": "file_search", "vector_store_ids": ["kb_a"]}] if member else []
        kind = self.rng.random()
        if kind < 0.5:
            return {"tools": [WEATHER, *searching]}
        return {"instructions": self.rng.choice(("Be kind.", "Be brief."))} if kind < 0.55 else {}

    async def _change_knowledge(self) -> None:
        kind = self.rng.random()
        if kind < 0.2:
            await self.knowledge.update_base("kb_a", {"summary": self.rng.choice(SUMMARIES)})
        elif kind < 0.27:
            role = self.rng.choice(ROLES)
            user_id = self.rng.choice(self.callers).user_id
            if role is None:
                await self.knowledge.remove_member("kb_a", user_id)
            else:
                await self.knowledge.set_member("kb_a", user_id, role)


def chosen(candidates: Sequence[Known], fields: Item) -> Known:
    """Return the newest with the settings of a request, else with those that begin epochs, else the newest."""
    wanted = known("", fields, has_told=False)
    return max(
        reversed(candidates),
        key=lambda one: (one.header == wanted.header, (one.header, one.bases) == (wanted.header, wanted.bases)),
    )


def tells(history: History) -> bool:
    """Return whether a history that a client gives holds text of the base."""
    return any(SECRET in field for seen in history for field in seen)


def refusal(text: str) -> list[Any]:
    """Script a turn in which the model refuses."""
    return [
        ModelCallStarted(call=1),
        RefusalDelta(text=text),
        ModelCallFinished(call=1, finish_reason=FinishReason.STOP, usage=USAGE),
        MessagesAdded(messages=(AssistantMessage(text=text),)),
        TurnFinished(finish_reason=FinishReason.STOP, usage=USAGE),
    ]


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
    return make_base(tenant=tenant, summary=summary)


def _joined(items: Sequence[Sequence[Item]]) -> list[Item]:
    return [item for each in items for item in each]


def _bytes(request: ExecutionRequest) -> tuple[bytes, ...]:
    messages: Sequence[Message] = messages_of_request(request)
    return canonical_parts(request.tools, messages)
