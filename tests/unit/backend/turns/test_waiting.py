"""Turns that wait for the conversation that another turn holds."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from backend.conversations.domain.conversation_log import history
from backend.conversations.domain.responses import StoredResponse
from backend.conversations.domain.waiting_turns import MOST_WAITING, WaitingTurn
from backend.foundation.services.admission import Admission
from backend.identity.services import holders_of
from backend.turns.domain.queued_request import request_json
from shared.errors import (
    CorruptRecord,
    InvalidRequest,
    NotFound,
    TooManyRequests,
    TurnRunning,
    Unavailable,
    UnknownModel,
)
from shared.models.messages import AssistantMessage, UserMessage
from shared.shares import Holder
from tests.fakes.chat_shell_scripted import ScriptedChatShell, answer
from tests.fakes.json_paths import at
from tests.fakes.openai_house import ADA, BOB, TurnHouse, open_house
from tests.fakes.parsed_requests import parse_turn_request
from tests.fakes.store_state import StoreState
from tests.fakes.store_waiting import FakeWaitingTurnStore
from tests.patience import until
from tests.unit.backend.turns.asking import SUFFIX, ended, run_waiting
from tests.unit.backend.turns.samples import request


async def test_queued_turns_run_in_their_order_once_the_running_one_has_ended() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answer("Two."), answer("Three.")) as house:
        running = await house.start(input="A")
        second = await house.queue(input="B", previous_response_id=running.response.id)
        third = await house.queue(input="C", previous_response_id=second.id)
        assert (second.status, second.body["status"], third.conversation_id) == (
            "queued",
            "queued",
            running.response.conversation_id,
        )
        await house.services.waiting.look()
        assert list(house.state.waiting) == [second.id, third.id]
        gate.set()
        await running.wait_until_ended()
        await run_waiting(house)
        assert [await ended(house, each.id) for each in (second, third)] == ["completed", "completed"]
        assert [sent.prompt for sent in house.sent] == ["A", "B", "C"]
        assert history(house.log_of(second.conversation_id)) == (
            UserMessage(content=f"A{SUFFIX}"),
            AssistantMessage(text="One."),
            UserMessage(content=f"B{SUFFIX}"),
            AssistantMessage(text="Two."),
            UserMessage(content=f"C{SUFFIX}"),
            AssistantMessage(text="Three."),
        )
        stored = house.state.responses[second.id]
        assert stored.input_items == second.input_items
        assert stored.body["previous_response_id"] == running.response.id


async def test_a_turn_that_comes_later_does_not_overtake_those_that_wait() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answer("Two.")) as house:
        running = await house.start()
        waiting = await house.queue(conversation=running.response.conversation_id)
        gate.set()
        await running.wait_until_ended()
        with pytest.raises(TurnRunning):
            await house.start(conversation=running.response.conversation_id)
        await run_waiting(house)
        assert await ended(house, waiting.id) == "completed"


async def test_cancel_stops_the_running_turn_and_comes_before_those_that_wait() -> None:
    gate = asyncio.Event()
    async with open_house([*answer("One.")[:2], gate], answer("Two."), answer("Three.")) as house:
        running = await house.start(input="A")
        await until(lambda: house.observer.first_deltas == 1)
        patient = await house.queue(input="B", conversation=running.response.conversation_id)
        urgent = await house.queue(input="C", how="cancel", conversation=running.response.conversation_id)
        stopped = await running.wait_until_ended()
        assert (stopped.status, at(stopped.body, "output", 0, "content", 0, "text")) == ("cancelled", "One.")
        await run_waiting(house)
        assert [await ended(house, each.id) for each in (urgent, patient)] == ["completed", "completed"]
        assert [sent.prompt for sent in house.sent] == ["A", "C", "B"]


async def test_where_the_signal_is_lost_another_look_stops_the_turn() -> None:
    gate = asyncio.Event()
    async with open_house([*answer("One.")[:2], gate], answer("Two.")) as house:
        running = await house.start()
        await house.queue(how="cancel", conversation=running.response.conversation_id)
        house.signals.__init__()
        await house.services.waiting.look()
        assert (await running.wait_until_ended()).status == "cancelled"
        await run_waiting(house)


async def test_without_a_running_turn_the_field_changes_nothing() -> None:
    async with open_house(answer("One."), answer("Two.")) as house:
        first = await house.ask(if_running="queue")
        assert (await house.ask(if_running="cancel", previous_response_id=first.id)).status == "completed"


async def test_a_waiting_turn_is_read_and_cancelled_and_deleted() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answer("Two.")) as house:
        running = await house.start()
        responses = house.services.responses
        first, second = [await house.queue(conversation=running.response.conversation_id) for _ in range(2)]
        assert await responses.find(ADA, first.id) == first
        with pytest.raises(NotFound):
            await responses.find(BOB, first.id)
        page = await responses.input_items(ADA, first.id, after=None, limit=9, descending=False)
        assert page.items == first.input_items
        cancelled = await responses.cancel(ADA, first.id)
        assert (cancelled.status, cancelled.body["status"], cancelled.body["output"]) == ("cancelled", "cancelled", [])
        assert await responses.cancel(ADA, first.id) == cancelled
        assert [event["type"] for event in await house.all_events(cancelled)] == [
            "response.created",
            "response.incomplete",
        ]
        await responses.delete(ADA, second.id)
        with pytest.raises(NotFound):
            await responses.find(ADA, second.id)
        gate.set()
        await running.wait_until_ended()
        assert not house.state.waiting
        with pytest.raises(InvalidRequest) as caught:
            await house.start(previous_response_id=first.id)
        assert caught.value.param == "previous_response_id"


async def test_only_so_many_wait_for_one_conversation() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], *([answer("More.")] * MOST_WAITING)) as house:
        running = await house.start()
        for _ in range(MOST_WAITING):
            await house.queue(conversation=running.response.conversation_id)
        with pytest.raises(TooManyRequests) as caught:
            await house.queue(conversation=running.response.conversation_id)
        assert caught.value.param == "if_running"
        gate.set()
        await running.wait_until_ended()
        await run_waiting(house)


async def test_what_can_be_known_to_be_wrong_is_refused_at_once() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")]) as house:
        running = await house.start()
        conversation = running.response.conversation_id
        with pytest.raises(UnknownModel):
            await house.queue(conversation=conversation, model="nobody")
        with pytest.raises(NotFound):
            await house.queue(
                conversation=conversation, tools=[{"type": "file_search", "vector_store_ids": ["kb_none"]}]
            )
        with pytest.raises(InvalidRequest):
            await house.queue(
                conversation=conversation,
                input=[{"type": "function_call_output", "call_id": "call_1", "output": "4"}],
            )
        with pytest.raises(InvalidRequest) as caught:
            await house.start(if_running="queue", store=False)
        assert (caught.value.param, house.state.waiting) == ("store", {})
        gate.set()
        await running.wait_until_ended()


async def test_one_that_cannot_begin_fails_with_the_reason_and_the_next_one_runs() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answer("Two.")) as house:
        running = await house.start(tools=[{"type": "function", "name": "weather"}])
        conversation = running.response.conversation_id
        choice = {"type": "function", "name": "weather"}
        first = await house.queue(conversation=conversation, tool_choice=choice)
        second = await house.queue(conversation=conversation)
        gate.set()
        await running.wait_until_ended()
        broken = house.state.conversations[conversation].model_copy(update={"functions": ()})
        house.state.conversations[conversation] = broken
        await run_waiting(house)
        failed = await house.services.responses.find(ADA, first.id)
        assert (failed.status, at(failed.body, "error", "type")) == ("failed", "InvalidRequest")
        assert await ended(house, second.id) == "completed"


async def test_one_that_has_waited_too_long_fails() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")]) as house:
        running = await house.start()
        waiting = await house.queue(conversation=running.response.conversation_id)
        gate.set()
        await running.wait_until_ended()
        house.clock.advance(timedelta(hours=2).total_seconds())
        await run_waiting(house)
        failed = await house.services.responses.find(ADA, waiting.id)
        assert (failed.status, at(failed.body, "error", "type")) == ("failed", "DeadlineExceeded")


@pytest.mark.parametrize(
    ("holders", "refusal"),
    [
        ([[Holder("b")], [Holder("b")], [Holder("c")], [Holder("c")]], Unavailable),
        ([holders_of(ADA), holders_of(ADA)], TooManyRequests),
    ],
    ids=["of the process", "of its caller"],
)
async def test_without_a_place_it_waits_on(holders: list[list[Holder]], refusal: type[Exception]) -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answer("Two."), admission=Admission(max_turns=4)) as house:
        running = await house.start()
        waiting = await house.queue(conversation=running.response.conversation_id)
        gate.set()
        await running.wait_until_ended()
        others = [house.admission.place(*each) for each in holders]
        with pytest.raises(refusal):
            house.admission.place(*holders_of(ADA))
        await house.services.waiting.look()
        assert list(house.state.waiting) == [waiting.id]
        for place in others:
            place.release()
        await run_waiting(house)
        assert await ended(house, waiting.id) == "completed"


FILTER = {"type": "and", "filters": [{"type": "eq", "key": "kind", "value": "tea"}]}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
FIELDS: list[dict[str, Any]] = [
    {"input": "Hi \u00e4 \U0001f40b"},
    {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Look."}, IMAGE]}]},
    {"input": [{"type": "function_call_output", "call_id": "call_1", "output": "4"}], "tools": []},
    {"tool_choice": {"type": "function", "name": "weather"}, "tools": [{"type": "function", "name": "weather"}]},
    {"tool_choice": "required", "stop": ["a", "b"], "temperature": 0.5, "seed": 2**62, "metadata": {"a": "b"}},
    {"tools": [{"type": "file_search", "vector_store_ids": ["kb_1"], "filters": FILTER, "max_num_results": 3}]},
    {"text": {"format": {"type": "json_schema", "name": "s", "schema": {"type": "object"}}, "verbosity": "low"}},
    {"conversation": {"id": "conv_1"}, "reasoning": {"effort": "low"}, "include": ["file_search_call.results"]},
]


@pytest.mark.parametrize("fields", FIELDS)
def test_what_is_stored_of_a_request_is_the_request(fields: dict[str, Any]) -> None:
    asked = request(**fields)
    assert parse_turn_request(request_json(asked).encode()) == asked


class DamagedWaiting(FakeWaitingTurnStore):
    """Cannot read the turns of `damaged`."""

    damaged: ClassVar[set[str]] = set()

    async def find(self, response_id: str) -> WaitingTurn | None:
        if response_id in self.damaged:
            raise CorruptRecord(f"Response {response_id} cannot be read.")
        return await super().find(response_id)


async def test_a_waiting_turn_that_cannot_be_read_fails_and_the_next_one_runs() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answer("Three."), waiting_class=DamagedWaiting) as house:
        running = await house.start()
        place = running.response.conversation_id
        second = await house.queue(conversation=place, input="Two")
        third = await house.queue(conversation=place, input="Three")
        DamagedWaiting.damaged = {second.id}
        gate.set()
        await running.wait_until_ended()
        while house.state.waiting:
            await house.services.waiting.step()
        failed = house.state.responses[second.id]
        assert (failed.status, failed.body["status"]) == ("failed", "failed")
        assert "cannot be read" in str(failed.body["error"])
        ended = await house.services.responses.wait_until_ended(await house.services.responses.find(ADA, third.id))
        assert ended.status == "completed"
        assert house.observer.queued == [(second.id, "queue"), (third.id, "queue")]


class CountedWaitingTurns(FakeWaitingTurnStore):
    """Notes what it is asked."""

    def __init__(self, state: StoreState) -> None:
        super().__init__(state)
        self.asked: list[str] = []

    async def startable(self, limit: int) -> tuple[str, ...]:
        self.asked.append("startable")
        return await super().startable(limit)

    async def to_be_cancelled(self) -> Sequence[str]:
        self.asked.append("to be cancelled")
        return await super().to_be_cancelled()

    async def to_be_steered(self) -> Sequence[str]:
        self.asked.append("to be steered")
        return await super().to_be_steered()

    async def find_steering(self, response: StoredResponse) -> tuple[WaitingTurn, ...]:
        self.asked.append("steering")
        return await super().find_steering(response)


@asynccontextmanager
async def looking(house: TurnHouse) -> AsyncGenerator[None]:
    """Run turns, and look for those that wait whenever that is asked for, but never by the clock."""

    async def look() -> None:
        while True:
            await house.services.waiting.step()

    task = asyncio.create_task(look())
    try:
        async with asyncio.timeout(60), house.registry:
            yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_where_nobody_waits_nobody_looks() -> None:
    script = ScriptedChatShell(answer("One."), answer("Two."))
    house = TurnHouse(chat_shell=script, waiting_class=CountedWaitingTurns, look_seconds=3600)
    async with looking(house):
        first = await house.ask()
        await house.ask(previous_response_id=first.id)
        await asyncio.sleep(0)
    assert isinstance(house.ports.stored.waiting, CountedWaitingTurns)
    assert house.ports.stored.waiting.asked == []


@pytest.mark.parametrize("how", ["queue", "cancel", "steer"])
@pytest.mark.parametrize("is_elsewhere", [False, True])
async def test_the_end_of_a_turn_that_is_known_to_be_waited_for_begins_the_next(how: str, is_elsewhere: bool) -> None:
    gate = asyncio.Event()
    script = ScriptedChatShell([gate, *answer("One.")], answer("Two."), answer("Three."))
    house = TurnHouse(chat_shell=script, look_seconds=3600)
    other = TurnHouse(script, house.state, house.events, house.signals, replica="replica-2", look_seconds=3600)
    asked = other if is_elsewhere else house
    async with other.registry, looking(house):
        running = await house.start()
        conversation = running.response.conversation_id
        waiting = [await asked.queue(how=each, conversation=conversation) for each in (how, "queue")]
        gate.set()
        for each in waiting:
            assert await ended(house, each.id) == "completed"
        assert not house.state.waiting


async def test_one_whose_signal_is_lost_begins_at_a_later_look() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answer("Two.")) as house:
        running = await house.start()
        with_lost = TurnHouse(house.chat_shell, house.state, house.events, replica="replica-2")
        waiting = await with_lost.queue(conversation=running.response.conversation_id)
        gate.set()
        await running.wait_until_ended()
        await run_waiting(house)
        assert await ended(house, waiting.id) == "completed"


async def test_a_message_whose_signal_is_lost_enters_after_a_look() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answer("Two.")) as house:
        running = await house.start()
        with_lost = TurnHouse(house.chat_shell, house.state, house.events, replica="replica-2")
        await with_lost.queue(how="steer", conversation=running.response.conversation_id)
        await house.services.waiting.look()
        gate.set()
        await running.wait_until_ended()
        assert house.observer.steered == [(running.response.id, 1)]
