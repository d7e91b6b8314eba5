"""The last item of a conversation can be taken out, and the model then gets what it got before there was the item."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from backend.conversations.domain.conversation_log import find_pending_calls, history
from backend.conversations.domain.responses import StoredResponse
from backend.knowledge.domain.knowledge import MemberRole
from shared.errors import InvalidRequest, MethodNotAllowed, NotFound, TurnRunning
from shared.models.canonical import canonical_parts
from shared.models.events import (
    ExecutionEvent,
    FinishReason,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    SearchFinished,
    SearchStarted,
    TextDelta,
)
from shared.models.messages import AssistantMessage, HistoryMessage, ToolCall, ToolMessage
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_SEARCH
from shared.prompts.message_order import messages_of_request
from tests.examples import of_many
from tests.fakes.chat_shell_scripted import USAGE, answer, function_calls
from tests.fakes.openai_house import ADA, BOB, TurnHouse, open_house
from tests.unit.backend.conversations.samples import binding, parse_items
from tests.unit.backend.turns.asking import SUFFIX, WEATHER, items_of, pop, said, texts, user

SEARCH = {"type": "file_search", "vector_store_ids": ["kb_a"]}


def searching(*call_ids: str, text: str = "", client_calls: Sequence[str] = ()) -> list[ExecutionEvent]:
    """Script a turn that searches knowledge, and then answers or calls functions of the client."""
    calls = tuple(ToolCall(call_id=each, name=KNOWLEDGE_BASE_SEARCH, arguments="{}") for each in call_ids)
    results = tuple(ToolMessage(call_id=each, content=f"[1] Of {each}") for each in call_ids)
    shown = [
        event
        for each in call_ids
        for event in (
            SearchStarted(call_id=each, queries=("q",)),
            SearchFinished(call_id=each, failed=False, results=()),
        )
    ]
    return [
        ModelCallStarted(call=1),
        *([TextDelta(text=text)] if text else []),
        ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
        *shown,
        MessagesAdded(messages=(AssistantMessage(text=text, tool_calls=calls), *results)),
        *(function_calls(*client_calls) if client_calls else answer("Found.")),
    ]


async def give(house: TurnHouse, conversation_id: str, *items: dict[str, Any]) -> None:
    given = parse_items(list(items), "items")
    await house.caller_conversations.add_items(ADA, conversation_id, given)


async def test_the_next_turn_begins_where_the_item_was() -> None:
    async with open_house(answer("One."), answer("Two."), answer("Other.")) as house:
        first = await house.ask(input="A")
        second = await house.ask(input="B", conversation=first.conversation_id)
        assert await pop(house, first.conversation_id, 2) == ["message"] * 2
        third = await house.ask(input="C", conversation=first.conversation_id)
        assert texts(house) == [f"A{SUFFIX}", "One."]
        assert house.observer.epochs[-1] == (2, "history_edited")
        assert house.observer.drifts == []
        shown = [item.body["content"][0]["text"] for item in await items_of(house, first.conversation_id)]  # type: ignore[index]
        assert shown == ["A", "One.", "C", "Other."]
        sequences = [item.sequence for item in await items_of(house, first.conversation_id)]
        assert sequences == [0, 1, 4, 5]
        kept = await house.turns.find(second.id)
        assert kept is not None
        assert (kept.body["output"], kept.input_items) == (second.body["output"], second.input_items)
        prompts = await house.read_prompts(ADA, second.id)
        assert [message["content"] for message in prompts[0]["messages"]][1:] == [f"A{SUFFIX}", "One.", f"B{SUFFIX}"]  # type: ignore[index]
        reasons = [prompt["epoch_reason"] for prompt in await house.read_prompts(ADA, third.id)]
        assert reasons == ["history_edited"]


async def test_a_question_without_its_answer_is_followed_by_the_next() -> None:
    async with open_house(answer("One.")) as house:
        first = await house.ask(input="A")
        await pop(house, first.conversation_id)
        await house.ask(input="B", conversation=first.conversation_id)
        assert texts(house) == [f"A{SUFFIX}"]


async def test_a_call_whose_output_was_taken_out_waits_for_it_again() -> None:
    async with open_house(function_calls("c1", "c2", text="I look."), answer("Rain.")) as house:
        first = await house.ask(input="Weather?", tools=[WEATHER])
        where: dict[str, Any] = {"conversation": first.conversation_id}
        outputs = [{"type": "function_call_output", "call_id": each, "output": each} for each in ("c2", "c1")]
        await house.ask(input=outputs, **where)
        assert await pop(house, first.conversation_id, 2) == ["message", "function_call_output"]
        with pytest.raises(InvalidRequest, match="'c1'"):
            await house.ask(input="And?", **where)
        await house.ask(input=outputs[1:], **where)
        assert [message.content for message in house.sent[-1].history if message.role == "tool"] == ["c1", "c2"]
        taken = await pop(house, first.conversation_id, 4)
        assert taken == ["message", "function_call_output", "function_call_output", "function_call"]
        with pytest.raises(InvalidRequest, match="'c1'"):
            await house.ask(input="And?", **where)
        assert await pop(house, first.conversation_id) == ["function_call"]
        await house.ask(input="And?", **where)
        assert texts(house) == [f"Weather?{SUFFIX}", "I look."]


async def test_a_search_goes_with_what_it_found() -> None:
    async with open_house(searching("k1", "k2", text="Let me see.")) as house:
        first = await house.ask(input="A")
        assert await pop(house, first.conversation_id, 2) == ["message", "file_search_call"]
        await house.ask(input="B", conversation=first.conversation_id)
        assert texts(house) == [f"A{SUFFIX}", "Let me see.", "[1] Of k1"]


async def test_only_the_last_item_can_be_taken_out_and_only_by_its_owner() -> None:
    async with open_house(answer("One.")) as house:
        first = await house.ask(input="A")
        remove = house.caller_conversations.remove_item
        question, said_ = await items_of(house, first.conversation_id)
        with pytest.raises(MethodNotAllowed, match="Only the last item"):
            await remove(ADA, first.conversation_id, question.id)
        for caller in (BOB, ADA.model_copy(update={"tenant": "elsewhere"})):
            with pytest.raises(NotFound):
                await remove(caller, first.conversation_id, said_.id)
        with pytest.raises(NotFound):
            await remove(ADA, first.conversation_id, "msg_none")
        await remove(ADA, first.conversation_id, said_.id)
        with pytest.raises(NotFound):
            await remove(ADA, first.conversation_id, said_.id)
        with pytest.raises(NotFound):
            await house.caller_conversations.item(ADA, first.conversation_id, said_.id)
        with pytest.raises(InvalidRequest):
            await house.ask(input=[user("A"), {"type": "item_reference", "id": said_.id}, user("B")])


async def test_while_a_turn_runs_nothing_is_taken_out() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")]) as house:
        running = await house.start(input="A")
        with pytest.raises(TurnRunning):
            await pop(house, running.response.conversation_id)
        gate.set()
        await running.wait_until_ended()
        await pop(house, running.response.conversation_id)


async def test_a_response_branches_off_as_it_was() -> None:
    async with open_house(answer("One."), answer("Two.")) as house:
        first = await house.ask(input="A")
        await pop(house, first.conversation_id)
        branch = await house.ask(input="B", previous_response_id=first.id)
        assert branch.conversation_id != first.conversation_id
        assert (texts(house), house.sent[-1].epoch) == ([f"A{SUFFIX}", "One."], 0)
        assert [item.sequence for item in await items_of(house, branch.conversation_id)] == [0, 1, 2, 3]
        resent = await house.ask(input=[user("A"), said("One."), user("C")])
        assert resent.conversation_id not in (first.conversation_id, branch.conversation_id)
        assert texts(house) == [f"A{SUFFIX}", "One."]
        later = await house.ask(input="D", conversation=first.conversation_id)
        assert later.seen is None
        again = await house.ask(input="E", previous_response_id=later.id)
        assert again.conversation_id == first.conversation_id
        fork = await house.ask(input="F", previous_response_id=later.id)
        assert [item.sequence for item in await items_of(house, fork.conversation_id)] == [0, 2, 3, 4, 5]


async def test_what_is_withheld_stays_withheld() -> None:
    async with open_house(answer("Secret one."), answer("Secret two.")) as house:
        await house.knowledge.create_base(binding("kb_a", tenant=ADA.tenant).base, "owner")
        await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.READER)
        first = await house.ask(input="A", tools=[SEARCH])
        where: dict[str, Any] = {"conversation": first.conversation_id}
        await house.ask(input="B", **where)
        await house.knowledge.remove_member("kb_a", ADA.user_id)
        await house.ask(input="C", tools=[], **where)
        assert not any("Secret" in text for text in texts(house))
        await pop(house, first.conversation_id, 3)
        await house.ask(input="D", **where)
        assert not any("Secret" in text for text in texts(house))
        assert house.observer.epochs[-1][1] == "history_edited"
        await pop(house, first.conversation_id, 4)
        await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.READER)
        await house.ask(input="E", **where)
        assert not any("taken out" in text for text in texts(house))


def is_valid(messages: Sequence[HistoryMessage]) -> bool:
    """Whether every result follows its call, and only the last calls wait."""
    waiting: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.call_id not in waiting:
                return False
            waiting.remove(message.call_id)
        elif waiting:
            return False
        elif isinstance(message, AssistantMessage):
            waiting = {call.call_id for call in message.tool_calls}
    return True


class Session:
    """One conversation that grows and shrinks; `told` holds what a model would get at each number of items."""

    def __init__(self, house: TurnHouse, rng: random.Random, conversation_id: str) -> None:
        self.house = house
        self.rng = rng
        self.conversation_id = conversation_id
        self.told: dict[int, tuple[bytes, ...]] = {0: (b"",)}
        self.calls = 0
        self.compared = 0

    def messages(self) -> tuple[HistoryMessage, ...]:
        return history(self.house.log_of(self.conversation_id))

    async def grow(self) -> None:
        waiting = find_pending_calls(self.messages())
        given: list[dict[str, Any]] = [
            {"type": "function_call_output", "call_id": each, "output": f"Of {each}"} for each in waiting
        ]
        self.rng.shuffle(given)
        kind = self.rng.random()
        if kind < 0.3:
            given += [user(f"Given {self.rng.random()}"), *([said("Noted.")] if kind < 0.2 else [])]
            await give(self.house, self.conversation_id, *given)
        else:
            await self._turn(given if waiting else [*self._history(), user("Q")])
        self.told[len(await items_of(self.house, self.conversation_id))] = canonical_parts((), self.messages())

    def _history(self) -> list[dict[str, Any]]:
        return [user("Earlier"), said("Indeed.")] if self.rng.random() < 0.2 else []

    async def _turn(self, items: list[dict[str, Any]]) -> None:
        self.calls += 3
        names = [f"call_{self.calls + n}" for n in range(self.rng.choice((1, 2)))]
        searches = [f"search_{self.calls + n}" for n in range(self.rng.choice((1, 2)))]
        script = self.rng.choice(
            [
                answer(f"Sure {self.calls}"),
                function_calls(*names, text=self.rng.choice(("", "I look."))),
                searching(*searches, text=self.rng.choice(("", "Let me see."))),
                searching(*searches, client_calls=names),
                [RuntimeError("The model is away.")],
            ]
        )
        self.house.scripted.scripts.append(script)
        if self.rng.random() < 0.3:
            await self.house.knowledge.update_base("kb_a", {"summary": f"Rules {self.rng.random()}"})
        await self.house.ask(input=items, conversation=self.conversation_id, tools=[WEATHER, SEARCH])
        sent = canonical_parts((), messages_of_request(self.house.sent[-1]))
        assert is_valid(self.house.sent[-1].history)
        assert sent[0] == b""
        self.house.clock.advance(60)

    async def shrink(self) -> None:
        for _ in range(self.rng.randrange(1, 7)):
            before = self.messages()
            count = len(await items_of(self.house, self.conversation_id))
            if not count:
                return
            await pop(self.house, self.conversation_id)
            after = self.messages()
            assert is_valid(after)
            self.told.pop(count, None)
            wanted = self.told.get(count - 1)
            if wanted is not None:
                self.compared += 1
                assert canonical_parts((), after) == wanted
            assert after[:-1] == before[: len(after[:-1])] or isinstance(after[-1], ToolMessage)


async def played(seed: int) -> int:
    async with open_house() as house:
        await house.knowledge.create_base(binding("kb_a", tenant=ADA.tenant).base, ADA.user_id)
        conversation = await house.caller_conversations.create(ADA, (), {})
        session = Session(house, random.Random(seed), conversation.id)
        for _ in range(8):
            for _ in range(session.rng.randrange(1, 4)):
                await session.grow()
            await session.shrink()
        sequences = [item.sequence for item in await items_of(house, conversation.id)]
        assert sequences == sorted(set(sequences))
        assert house.observer.drifts == []
        return session.compared


def test_after_an_item_is_taken_out_the_log_says_what_it_said_before_the_item() -> None:
    compared = [asyncio.run(played(seed)) for seed in range(of_many(300, few=15))]
    assert sum(compared) > 3 * len(compared)


async def test_a_long_given_history_is_taken_out_item_by_item_in_few_entries() -> None:
    async with open_house() as house:
        given = [each for n in range(40) for each in (user(f"Q{n}"), said(f"A{n}"))]
        first: StoredResponse = await house.ask(input=[*given, user("Now?")])
        await pop(house, first.conversation_id, 82)
        assert history(house.log_of(first.conversation_id)) == ()
        assert len(house.log_of(first.conversation_id)) < 4 * 82
