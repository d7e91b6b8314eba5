"""A turn that chat_shell runs in several executions is one turn to everybody else."""

import asyncio

import pytest

from backend.conversations.domain.conversation_log import EntryKind
from shared.models.events import (
    ModelCallStarted,
    TextDelta,
    TurnHandedBack,
)
from shared.models.messages import AssistantMessage
from shared.models.values import objects_in
from tests.fakes.chat_shell_scripted import USAGE, answer, answered, exchange, searched
from tests.fakes.json_paths import at
from tests.fakes.openai_house import ADA, open_house
from tests.fakes.replicas import Replicas, bytes_of, check_events
from tests.patience import eventually

SPOKEN = USAGE.output_tokens or 0
HANDED_BACK = TurnHandedBack(prompt_tokens=9_000, usage=USAGE)


async def test_a_turn_that_is_handed_back_goes_on_as_one() -> None:
    async with open_house([*searched(1), HANDED_BACK], [*searched(2), HANDED_BACK], answered(3)) as house:
        response = await house.ask()
        first, second, third = house.sent
        assert (second.history, second.prompt, second.deadline) == (first.history, first.prompt, first.deadline)
        assert (second.cache_key, second.knowledge, second.sent_at) == (first.cache_key, first.knowledge, first.sent_at)
        assert (first.added, second.added, third.added) == ((), exchange(1), (*exchange(1), *exchange(2)))
        assert [entry.kind.value for entry in house.log_of(response.conversation_id)] == [
            "user",
            *["assistant", "tool_result"] * 2,
            "assistant",
        ]
        assert at(response.body, "usage", "output_tokens") == 3 * SPOKEN
        kinds = [item["type"] for item in objects_in(response.body["output"])]
        assert kinds == ["file_search_call", "file_search_call", "message"]
        await check_events(house, response)
        calls = await house.turns.model_calls(response.id)
        assert [(call.call, call.log_end, call.epoch_reason) for call in calls] == [
            (1, 1, "new_conversation"),
            (2, 3, None),
            (3, 5, None),
        ]
        assert house.observer.drifts == []
        assert all(call.reuse.first_difference is None for call in calls)


async def test_a_turn_may_be_asked_to_go_on_from_its_log() -> None:
    gate = asyncio.Event()
    first = [*searched(1), gate, searched(2), [ModelCallStarted(call=3), TextDelta(text="Lost")], asyncio.Event()]
    async with open_house(first, answered(3)) as house:
        running = await house.start()
        await eventually(lambda: house.log_of(running.response.conversation_id), lambda log: len(log) == 3)
        running.boundary.set()
        gate.set()
        response = await running.wait_until_ended()
        assert house.scripted.broken_off == 1
        assert house.sent[1].added == (*exchange(1), *exchange(2))
        assert "Lost" not in str(await check_events(house, response))
        assert [call.call for call in await house.turns.model_calls(response.id)] == [1, 2, 3]
        assert at(response.body, "usage", "output_tokens") == 3 * SPOKEN


async def test_the_last_model_call_is_no_boundary() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("Hello.")]) as house:
        running = await house.start()
        running.boundary.set()
        gate.set()
        assert (await running.wait_until_ended()).status == "completed"
        assert len(house.sent) == 1


async def test_a_turn_may_be_cancelled_in_a_later_execution() -> None:
    late = [ModelCallStarted(call=2), TextDelta(text="Half"), asyncio.Event()]
    async with open_house([*searched(1), HANDED_BACK], late) as house:
        running = await house.start()
        await eventually(lambda: house.observer.first_deltas, bool)
        cancelled = await house.services.responses.cancel(ADA, running.response.id)
        assert cancelled.status == "cancelled"
        log = house.log_of(cancelled.conversation_id)
        assert log[-1].message == AssistantMessage(text="Half")
        assert at(cancelled.body, "usage", "output_tokens") == SPOKEN


@pytest.mark.parametrize("earlier", [1, 2])
async def test_a_turn_whose_process_dies_in_a_later_execution_sends_the_same_bytes(earlier: int) -> None:
    replicas, number = Replicas(), earlier + 1
    before = [[*searched(call), HANDED_BACK] for call in range(1, number)]
    house = replicas.make(*before, [ModelCallStarted(call=number), asyncio.Event()])
    running = None

    class KilledHere(Exception):
        """The process ends."""

    with pytest.raises(KilledHere):
        async with house.registry:
            running = await house.start()
            await eventually(lambda: house.sent, lambda sent: len(sent) == number)
            raise KilledHere
    assert running is not None
    ended = await replicas.continued(replicas.state.responses[running.response.id], answered(number))
    assert bytes_of(replicas.last.sent[0]) == bytes_of(house.sent[-1])
    assert ended.status == "completed"
    assert at(ended.body, "usage", "output_tokens") == number * SPOKEN
    assert [call.call for call in await replicas.last.turns.model_calls(ended.id)] == [*range(1, number + 1)]
    assert replicas.log_of(ended)[-1].kind is EntryKind.ASSISTANT
