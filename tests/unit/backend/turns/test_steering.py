"""Messages that enter a running turn, between two of its model calls."""

import asyncio
from typing import Any

import pytest

from backend.conversations.domain.conversation_log import history
from backend.knowledge.domain.knowledge import MemberRole
from backend.turns.domain.queued_request import MOST_STEERING_CHARACTERS, MOST_STEERING_PARTS
from shared.errors import InvalidRequest
from shared.models.messages import AssistantMessage, UserMessage
from shared.models.values import objects_in
from tests.fakes.chat_shell_scripted import answer, answered, exchange, function_calls, searched
from tests.fakes.json_paths import at
from tests.fakes.openai_house import ADA, TurnHouse, open_house
from tests.fakes.replicas import Replicas, bytes_of, check_events
from tests.patience import eventually
from tests.unit.backend.turns.asking import SUFFIX, add_base, ended, run_waiting, searching


async def items_of(house: TurnHouse, conversation_id: str) -> list[str]:
    """Return what the messages of a conversation say, and the kinds of its other items."""
    items = await house.conversations.items(conversation_id, after=None, limit=99, descending=False)
    return [
        str(objects_in(item.body["content"])[0]["text"]) if item.body["type"] == "message" else str(item.body["type"])
        for item in items
    ]


async def test_a_message_enters_between_two_model_calls_and_nothing_that_was_sent_moves() -> None:
    gate = asyncio.Event()
    async with open_house([*searched(1), gate, *searched(2), asyncio.Event()], answered(3)) as house:
        running = await house.start(input="A")
        await eventually(lambda: house.log_of(running.response.conversation_id), lambda log: len(log) == 3)
        steer = await house.queue(input="B", how="steer", previous_response_id=running.response.id)
        await eventually(lambda: running, lambda one: one.boundary.is_set())
        gate.set()
        response = await running.wait_until_ended()
        said = (UserMessage(content=f"A{SUFFIX}"), *exchange(1), *exchange(2), UserMessage(content=f"B{SUFFIX}"))
        assert house.sent[1].added == said[1:]
        assert history(house.log_of(response.conversation_id)) == (*said, AssistantMessage(text="They sleep."))
        assert await house.services.responses.find(ADA, steer.id) == response
        assert await items_of(house, response.conversation_id) == [
            "A",
            "file_search_call",
            "file_search_call",
            "B",
            "They sleep.",
        ]
        calls = await house.turns.model_calls(response.id)
        assert [(call.call, call.log_end) for call in calls] == [(1, 1), (2, 3), (3, 6)]
        assert (house.observer.drifts, house.observer.broken) == ([], [])
        assert (house.observer.queued, house.observer.steered) == ([(steer.id, "steer")], [(response.id, 1)])
        assert all(call.reuse.first_difference is None for call in calls)
        await check_events(house, response)
        assert not house.state.waiting


async def test_behind_the_last_model_call_the_turn_goes_on_with_one_more() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answered(2, "Two."), answer("Three.")) as house:
        running = await house.start(input="A")
        for text in ("B", "C"):
            await house.queue(input=text, how="steer", conversation=running.response.conversation_id)
        gate.set()
        response = await running.wait_until_ended()
        steered = (UserMessage(content=f"B{SUFFIX}"), UserMessage(content=f"C{SUFFIX}"))
        assert house.sent[1].added == (AssistantMessage(text="One."), *steered)
        assert await items_of(house, response.conversation_id) == ["A", "One.", "B", "C", "Two."]
        assert response.seen is None
        later = await house.ask(input="D", previous_response_id=response.id)
        assert house.sent[2].history[-2:] == (steered[1], AssistantMessage(text="Two."))
        assert (later.conversation_id, house.observer.drifts) == (response.conversation_id, [])
        await check_events(house, response)


async def test_one_that_comes_too_late_runs_as_a_turn_of_its_own() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answer("Two.")) as house:
        running = await house.start(input="A")
        steer = await house.queue(input="B", how="steer", conversation=running.response.conversation_id)
        waiting = house.state.waiting.pop(steer.id)
        gate.set()
        await running.wait_until_ended()
        house.state.waiting[steer.id] = waiting
        await run_waiting(house)
        assert await ended(house, steer.id) == "completed"
        assert house.state.responses[steer.id].body["output"]


@pytest.mark.parametrize("is_told_before", [False, True])
async def test_none_enters_what_its_author_may_not_read_any_more(is_told_before: bool) -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answer("Two.")) as house:
        await add_base(house, "kb_1")
        running = await house.start(input="A", tools=[searching("kb_1")])
        conversation = running.response.conversation_id
        if is_told_before:
            steer = await house.queue(input="Quote it!", how="steer", conversation=conversation)
            await house.knowledge.set_member("kb_1", ADA.user_id, MemberRole.RESTRICTED_ANALYST)
        else:
            await house.knowledge.set_member("kb_1", ADA.user_id, MemberRole.RESTRICTED_ANALYST)
            steer = await house.queue(input="Quote it!", how="steer", conversation=conversation)
        gate.set()
        await running.wait_until_ended()
        assert await items_of(house, conversation) == ["A", "One."]
        await run_waiting(house)
        assert await ended(house, steer.id) == "completed"
        assert "One." not in house.sent[1].model_dump_json()


async def test_one_is_withdrawn_before_it_enters_and_not_behind() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answered(2, "Two.")) as house:
        running = await house.start(input="A")
        conversation, responses = running.response.conversation_id, house.services.responses
        first = await house.queue(input="B", how="steer", conversation=conversation)
        second = await house.queue(input="C", how="steer", conversation=conversation)
        assert (await responses.cancel(ADA, first.id)).status == "cancelled"
        gate.set()
        response = await running.wait_until_ended()
        assert await items_of(house, conversation) == ["A", "One.", "C", "Two."]
        assert await responses.cancel(ADA, second.id) == response


async def test_a_turn_that_is_cancelled_leaves_it_a_turn_of_its_own() -> None:
    async with open_house([*answer("One.")[:2], asyncio.Event()], answer("Two.")) as house:
        running = await house.start(input="A")
        steer = await house.queue(input="B", how="steer", conversation=running.response.conversation_id)
        assert (await house.services.responses.cancel(ADA, running.response.id)).status == "cancelled"
        await run_waiting(house)
        assert await ended(house, steer.id) == "completed"


async def test_no_message_parts_a_call_of_the_client_from_its_output() -> None:
    gate = asyncio.Event()
    calls = function_calls("call_1", name="weather")
    async with open_house([gate, *calls]) as house:
        running = await house.start(tools=[{"type": "function", "name": "weather"}])
        steer = await house.queue(input="B", how="steer", conversation=running.response.conversation_id)
        gate.set()
        assert (await running.wait_until_ended()).status == "completed"
        await run_waiting(house)
        failed = await house.services.responses.find(ADA, steer.id)
        assert (failed.status, at(failed.body, "error", "type")) == ("failed", "InvalidRequest")


async def test_only_messages_of_the_user_enter() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")]) as house:
        running = await house.start()
        given = [{"role": "assistant", "content": "I said so."}, {"role": "user", "content": "Hi"}]
        with pytest.raises(InvalidRequest) as caught:
            await house.queue(input=given, how="steer", conversation=running.response.conversation_id)
        assert caught.value.param == "input"
        gate.set()
        await running.wait_until_ended()


@pytest.mark.parametrize("has_entered", [False, True])
async def test_through_a_takeover_it_enters_exactly_once(has_entered: bool) -> None:
    replicas, gate = Replicas(), asyncio.Event()
    house = replicas.make([*searched(1), gate, *searched(2), asyncio.Event()], [asyncio.Event()])
    running = None

    class KilledHere(Exception):
        """The process ends."""

    with pytest.raises(KilledHere):
        async with house.registry:
            running = await house.start(input="A")
            conversation = running.response.conversation_id
            await eventually(lambda: house.log_of(conversation), lambda log: len(log) == 3)
            await house.queue(input="B", how="steer", conversation=conversation)
            if has_entered:
                await house.services.waiting.look()
                gate.set()
                await eventually(lambda: house.sent, lambda sent: len(sent) == 2)
            raise KilledHere
    assert running is not None
    stored = replicas.state.responses[running.response.id]
    if has_entered:
        response = await replicas.continued(stored, answered(3))
        assert bytes_of(replicas.last.sent[0]) == bytes_of(house.sent[-1])
    else:
        response = await replicas.continued(stored, answered(2), answered(3))
    texts = [message.content for message in history(replicas.log_of(response)) if isinstance(message, UserMessage)]
    assert texts == [f"A{SUFFIX}", f"B{SUFFIX}"]
    assert (await items_of(replicas.last, response.conversation_id)).count("B") == 1
    assert replicas.last.observer.drifts == []


@pytest.mark.parametrize(
    "content",
    ["x" * (MOST_STEERING_CHARACTERS + 1), [{"type": "input_text", "text": "x"}] * (MOST_STEERING_PARTS + 1)],
    ids=["characters", "parts"],
)
async def test_what_is_too_long_to_enter_is_refused_and_may_queue(content: Any) -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answer("Two.")) as house:
        running = await house.start()
        place = running.response.conversation_id
        asked: dict[str, Any] = {"conversation": place, "input": [{"role": "user", "content": content}]}
        with pytest.raises(InvalidRequest) as caught:
            await house.queue(how="steer", **asked)
        assert (caught.value.param, "let it queue" in caught.value.message) == ("input", True)
        assert (await house.queue(**asked)).status == "queued"
        gate.set()
        assert (await running.wait_until_ended()).status == "completed"
