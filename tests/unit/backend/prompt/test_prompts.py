"""What turns keep of their model calls, and what is shown of them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import orjson
import pytest

from backend.conversations.domain.conversation_log import WITHHELD
from backend.conversations.domain.responses import Checkpoint
from backend.knowledge.domain.knowledge import MemberRole
from shared.errors import NotFound, Unavailable
from shared.models.canonical import message_json
from shared.models.events import (
    ErrorReport,
    FinishReason,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    TextDelta,
    TurnFailed,
    Usage,
)
from shared.models.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from tests.contract.knowledge_cases import make_base
from tests.fakes.chat_shell_scripted import USAGE, answer, function_calls
from tests.fakes.http_api import FakeHouse, client_of
from tests.fakes.openai_house import ADA, BOB, TurnHouse, open_house
from tests.fakes.store_turns import FakeTurnStore

SECRET = "The margin fell to 41 percent."
SEARCH = ToolCall(call_id="call_1", name="knowledge_base_search", arguments='{"query": "margin"}')
FAILED = TurnFailed(
    error=ErrorReport(type="ModelUnavailable", code="server_error", message="Away.", param=None, retryable=True),
    usage=Usage(),
)
WEATHER: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}}


def searched(text: str = "Down.") -> list[Any]:
    """Script a search in a first model call and an answer in a second one."""
    found = (AssistantMessage(text="", tool_calls=(SEARCH,)), ToolMessage(call_id="call_1", content=SECRET))
    return [
        ModelCallStarted(call=1),
        ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
        MessagesAdded(messages=found),
        ModelCallStarted(call=2),
        ModelCallFinished(call=2, finish_reason=FinishReason.STOP, usage=USAGE),
        *answer(text)[-2:],
    ]


async def add_base(house: TurnHouse) -> Any:
    base = make_base(tenant="default", summary="All about the board.")
    await house.knowledge.create_base(base, "owner")
    await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.READER)
    return [{"type": "file_search", "vector_store_ids": ["kb_a"]}]


@asynccontextmanager
async def serve_api(house: TurnHouse) -> AsyncGenerator[httpx2.AsyncClient]:
    behind = FakeHouse(knowledge=house.knowledge, state=house.state)
    behind.turns = house
    key = await behind.key(ADA.user_id)
    async with client_of(behind.app(), key) as client:
        yield client


async def prompts(house: TurnHouse, response_id: str) -> list[dict[str, Any]]:
    async with serve_api(house) as api:
        answered = await api.get(f"/v1/responses/{response_id}/prompts")
    assert answered.status_code == 200, answered.text
    assert answered.json()["object"] == "list"
    return answered.json()["data"]


def sent_form(message: dict[str, Any]) -> dict[str, Any]:
    return {name: message[name] for name in message if name not in ("kind", "position", "tokens", "reused")}


def kinds(prompt: dict[str, Any]) -> list[str]:
    return [message["kind"] for message in prompt["messages"]]


async def test_each_call_of_each_turn_is_shown_as_it_was_sent() -> None:
    async with open_house(searched(), answer("Sure.")) as house:
        tools = await add_base(house)
        first = await house.ask(input="Margin?", tools=tools, instructions="Be brief.")
        second = await house.ask(input="Sure?", conversation=first.conversation_id)
        one, two = await prompts(house, first.id)
        (three,) = await prompts(house, second.id)
        request = house.sent[1]
    assert kinds(one) == ["system", "dynamic_context", "user"]
    assert kinds(two) == [*kinds(one), "assistant", "tool_result"]
    assert kinds(three) == [*kinds(two), "assistant", "user"]
    assert [(call["call"], call["epoch_reason"]) for call in (one, two, three)] == [
        (1, "new_conversation"),
        (2, None),
        (1, None),
    ]
    assert [sent_form(message) for message in three["messages"][1:-1]] == [message_json(m) for m in request.history]
    assert three["messages"][0]["content"] == request.system_prompt
    assert [message["position"] for message in three["messages"]] == [None, 0, 1, 2, 3, 4, 5]
    assert [message["reused"] for message in three["messages"]] == [True] * 5 + [False] * 2
    assert (one["reused_bytes"], one["reused_tokens"]) == (0, 0)
    assert 0 < two["reused_bytes"] < three["reused_bytes"]
    assert {call["cached_tokens"] for call in (one, two, three)} == {USAGE.cached_tokens}
    assert {call["first_difference"] for call in (one, two, three)} == {None}
    names = [tool["function"]["name"] for tool in three["tools"]]
    assert names == ["knowledge_base_list_documents", "knowledge_base_read_document", "knowledge_base_search"]
    reused = [tokens for tokens, _ in house.observer.prompts]
    assert reused == [call["reused_tokens"] for call in (one, two, three)]
    assert all(new > 0 for _, new in house.observer.prompts)


@pytest.mark.parametrize("query", ["", "?layouts=true"])
async def test_layouts_are_told_where_they_are_asked_for(query: str) -> None:
    async with open_house(searched(), answer("Sure.")) as house:
        first = await house.ask(input="Margin?", tools=await add_base(house))
        second = await house.ask(input="Sure?", conversation=first.conversation_id)
        async with serve_api(house) as api:
            (call,) = (await api.get(f"/v1/responses/{second.id}/prompts{query}")).json()["data"]
    assert ("layouts" in call) == bool(query)
    if query:
        told = {one["layout"]: one for one in call["layouts"]}
        assert told["as_sent"]["cached_tokens"] == call["reused_tokens"]
        assert told["as_sent"]["cost_tokens"] < told["context_before_question"]["cost_tokens"]


async def test_what_a_void_turn_sent_is_compared_with_nothing() -> None:
    async with open_house(answer("A."), [ModelCallStarted(call=1), FAILED], answer("B.")) as house:
        first = await house.ask(input="One?")
        await house.ask(input="Two?", conversation=first.conversation_id)
        third = await house.ask(input="Three?", conversation=first.conversation_id)
        (call,) = await prompts(house, third.id)
        assert [message["reused"] for message in call["messages"]] == [True, True, False, False]
        assert house.observer.drifts == []


@pytest.mark.parametrize("way", ["tampered", "reworded"])
async def test_drift_is_seen_and_told_by_place_alone(way: str) -> None:
    async with open_house() as house:
        first = await house.ask(input="One?")
        conversation = house.state.conversations[first.conversation_id]
        if way == "tampered":
            log = house.state.entries[conversation.id]
            log[0] = log[0].model_copy(update={"message": UserMessage(content="Two?")})
        else:
            assert conversation.sent is not None
            before = conversation.sent.model_copy(update={"messages": ("s" * 19, *conversation.sent.messages[1:])})
            house.state.conversations[conversation.id] = conversation.model_copy(update={"sent": before})
        second = await house.ask(input="And?", conversation=first.conversation_id)
        path = "messages[1].content" if way == "tampered" else "messages[0].content"
        assert house.observer.drifts == [(second.id, 1, path)]
        (call,) = await prompts(house, second.id)
        assert (call["first_difference"], call["shortfall"]) == (path, "ours")


def unread(text: str, diagnosis: str, usage: Usage) -> list[Any]:
    """Script an answer to a prompt of which the provider has read nothing, or less than it could."""
    begun, said, ended, *rest = answer(text)
    assert isinstance(ended, ModelCallFinished)
    return [begun, said, ended.model_copy(update={"usage": usage, "cache_diagnosis": diagnosis}), *rest]


@pytest.mark.parametrize(
    ("diagnosis", "cached", "cause"),
    [
        ("unchanged", 0, "routed_elsewhere"),
        ("", 2_000, "evicted"),
        ("messages_changed", 0, "ours"),
    ],
)
async def test_what_the_provider_says_of_a_miss_stands_beside_whose_doing_it_is(
    diagnosis: str, cached: int, cause: str
) -> None:
    missed = unread("B.", diagnosis, Usage(cached_tokens=cached))
    async with open_house(answer("A."), missed) as house:
        first = await house.ask(input="word " * 8_000)
        second = await house.ask(input="And?", conversation=first.conversation_id)
        (call,) = await prompts(house, second.id)
        assert (call["cache_miss"], call["cache_diagnosis"]) == (cause, diagnosis or None)
        assert call["shortfall"] == "provider_miss"
        assert house.observer.misses == [(cause, diagnosis)]


async def test_a_declared_reset_is_no_drift() -> None:
    async with open_house() as house:
        first = await house.ask(input="One?", instructions="Be brief.")
        second = await house.ask(input="Two?", conversation=first.conversation_id, instructions="Be long.")
        (call,) = await prompts(house, second.id)
        assert (call["epoch"], call["epoch_reason"]) == (1, "instructions_changed")
        assert call["first_difference"] == "messages[0].content"
        assert house.observer.drifts == []


async def test_a_branch_reuses_what_it_shares_and_no_more() -> None:
    async with open_house() as house:
        first = await house.ask(input="One?")
        await house.ask(input="Two?", conversation=first.conversation_id)
        branch = await house.ask(input="Other?", previous_response_id=first.id)
        assert branch.conversation_id != first.conversation_id
        (call,) = await prompts(house, branch.id)
        assert [message["reused"] for message in call["messages"]] == [True, True, True, False]
        assert house.observer.drifts == []


async def test_a_branch_between_results_is_no_drift() -> None:
    calls = tuple(ToolCall(call_id=call_id, name="weather", arguments="{}") for call_id in ("theirs", "ours"))
    script = function_calls("theirs")
    script[-2] = MessagesAdded(
        messages=(AssistantMessage(text="", tool_calls=calls), ToolMessage(call_id="ours", content="42"))
    )
    async with open_house(script) as house:
        first = await house.ask(input="Go", tools=[WEATHER])
        for output in ("sunny", "rainy"):
            result = {"type": "function_call_output", "call_id": "theirs", "output": output}
            await house.ask(input=[result], previous_response_id=first.id)
        assert house.observer.drifts == []


async def test_withheld_turns_show_notices_only() -> None:
    async with open_house(searched(SECRET), answer("Sure.")) as house:
        tools = await add_base(house)
        first = await house.ask(input="Margin?", tools=tools)
        second = await house.ask(input="Sure?", conversation=first.conversation_id)
        await house.knowledge.remove_member("kb_a", ADA.user_id)
        shown = [*await prompts(house, first.id), *await prompts(house, second.id)]
    text = orjson.dumps(shown).decode()
    assert SECRET not in text
    assert "All about the board." not in text
    assert "margin" not in text
    assert "Margin?" in text
    assert [message["content"] for message in shown[1]["messages"] if message["kind"] == "tool_result"] == [WITHHELD]


async def test_only_its_owner_sees_them_and_only_while_there_is_a_log() -> None:
    async with open_house() as house:
        first = await house.ask(input="One?")
        read = house.read_prompts
        with pytest.raises(NotFound):
            await read(BOB, first.id)
        unstored = await house.ask(input="One?", store=False)
        with pytest.raises(NotFound):
            await read(ADA, unstored.id)
        await house.conversations.delete(first.conversation_id)
        with pytest.raises(NotFound):
            await read(ADA, first.id)


async def test_a_turn_that_is_not_stored_is_measured_and_not_kept() -> None:
    async with open_house() as house:
        first = await house.ask(input="One?")
        await house.ask(input="Two?", previous_response_id=first.id, store=False)
        assert house.observer.prompts[1][0] > 0
        assert list(house.state.calls) == [first.id]


async def test_a_running_turn_shows_its_calls_so_far() -> None:
    gate, written = asyncio.Event(), asyncio.Event()

    class Watched(FakeTurnStore):
        async def checkpoint_many(self, checkpoints: Sequence[Checkpoint]) -> frozenset[str]:
            refused = await super().checkpoint_many(checkpoints)
            if any(checkpoint.calls.calls for checkpoint in checkpoints):
                written.set()
            return refused

    script = [ModelCallStarted(call=1), gate, *answer("One.")[1:]]
    async with open_house(script, turns_class=Watched) as house:
        running = await house.start(input="One?")
        await written.wait()
        shown = await prompts(house, running.response.id)
        assert [(call["call"], call["cached_tokens"]) for call in shown] == [(1, None)]
        gate.set()
        await running.wait_until_ended()
        (ended,) = await prompts(house, running.response.id)
        gauge = {**shown[0]["gauge"], "used_tokens": USAGE.input_tokens}
        assert ended == {**shown[0], "cached_tokens": USAGE.cached_tokens, "gauge": gauge}


async def test_a_checkpoint_whose_answer_is_lost_keeps_nothing_of_what_a_call_has_used_back() -> None:
    first, second, stored = (asyncio.Event() for _ in range(3))

    class Losing(FakeTurnStore):
        """The first checkpoint with a call is stored, and nobody learns it."""

        async def checkpoint_many(self, checkpoints: Sequence[Checkpoint]) -> frozenset[str]:
            refused = await super().checkpoint_many(checkpoints)
            calls = [call for checkpoint in checkpoints for call in checkpoint.calls.calls]
            if calls and not first.is_set():
                first.set()
                raise Unavailable("The connection was lost.")
            if calls:
                stored.set()
            return refused

    finished = ModelCallFinished(call=1, finish_reason=FinishReason.STOP, usage=USAGE)
    script = [ModelCallStarted(call=1), TextDelta(text="One."), first, finished, second, *answer("One.")[-2:]]
    async with open_house(script, turns_class=Losing, checkpoint_seconds=0.2) as house:
        running = await house.start(input="One?")
        await stored.wait()
        second.set()
        await running.wait_until_ended()
        (call,) = await prompts(house, running.response.id)
    assert call["cached_tokens"] == USAGE.cached_tokens


async def test_a_turn_whose_call_never_began_has_no_prompts() -> None:
    async with open_house([FAILED]) as house:
        first = await house.ask(input="One?")
        assert await prompts(house, first.id) == []
