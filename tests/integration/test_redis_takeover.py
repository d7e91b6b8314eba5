"""Events of a response in Redis whose writer changes while others read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, NamedTuple

import pytest

from backend.streams.redis.event_log import RedisEventLog
from shared.errors import Conflict, TurnTaken, Unavailable
from tests.contract.event_cases import make_events, read_all, read_some, reading
from tests.fakes.chat_shell_scripted import ScriptedChatShell, answer
from tests.fakes.openai_house import TurnHouse
from tests.fakes.supervision import make_supervisor
from tests.patience import PATIENCE_SECONDS, eventually
from tests.servers.valkey import patient_client


class CountingReads:
    """A client that counts the commands which read streams."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        self.count += name == "xread"
        return getattr(self._client, name)


class SlowAnswers:
    """A client whose pipelines are carried out at once, and whose answers come when `gate` is set."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.gate = asyncio.Event()
        self.waiting = 0
        self.gate.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def pipeline(self, transaction: bool = True) -> Any:
        pipeline = self._client.pipeline(transaction=transaction)
        execute = pipeline.execute

        async def execute_slowly(raise_on_error: bool = True) -> list[object]:
            answers = await execute(raise_on_error=raise_on_error)
            self.waiting += 1
            await self.gate.wait()
            return answers

        pipeline.execute = execute_slowly
        return pipeline


class Logs(NamedTuple):
    """The log as its first holder, the next one and an onlooker have it."""

    old: RedisEventLog
    new: RedisEventLog
    onlooker: RedisEventLog
    reads: CountingReads
    answers: SlowAnswers
    client: Any


@pytest.fixture
async def logs(valkey_url: str) -> AsyncIterator[Logs]:
    client: Any = patient_client(valkey_url)
    reads, answers = CountingReads(client), SlowAnswers(client)
    slow: Any = answers
    counted: Any = reads
    old, new, onlooker = (
        RedisEventLog(each, make_supervisor(), 600.0, patience_seconds=PATIENCE_SECONDS)
        for each in (slow, client, counted)
    )
    yield Logs(old, new, onlooker, reads, answers, client)
    answers.gate.set()
    for log in (old, new, onlooker):
        await log.aclose()
    await client.aclose()


async def sealed(log: RedisEventLog, fence: int) -> list[Any]:
    return [event async for batch in log.take_over("resp_a", fence) for event in batch]


async def test_readers_of_a_holder_that_was_sealed_off_get_what_the_next_one_writes(logs: Logs) -> None:
    await logs.old.append("resp_a", make_events(0, 3))
    async with aclosing(reading(logs.old, "resp_a")) as batches:
        assert await anext(batches) == make_events(0, 3)
        assert await sealed(logs.new, 1) == list(make_events(0, 3))
        refused = [event._replace(body=b'"refused"') for event in make_events(3, 2)]
        await logs.old.append("resp_a", refused)
        await logs.new.append("resp_a", make_events(3, 4))
        await logs.new.close("resp_a")
        rest = [event async for batch in batches for event in batch]
    assert rest == list(make_events(3, 4))
    with pytest.raises(Conflict):
        await logs.old.append("resp_a", make_events(5, 1))
    for log in (logs.old, logs.onlooker):
        assert [event async for batch in reading(log, "resp_a", 1) for event in batch] == list(make_events(2, 5))


async def test_readers_of_a_holder_that_leaves_get_what_the_next_one_writes(logs: Logs) -> None:
    await logs.old.append("resp_a", make_events(0, 3))
    async with aclosing(reading(logs.old, "resp_a")) as batches:
        assert await anext(batches) == make_events(0, 3)
        waiting = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0)
        await sealed(logs.new, 1)
        logs.old.leave("resp_a")
        await logs.new.append("resp_a", make_events(3, 1))
        await logs.new.close("resp_a")
        rest = [*await waiting, *[event async for batch in batches for event in batch]]
    assert rest == list(make_events(3, 1))


async def test_readers_wait_for_the_next_holder_instead_of_reading_again_and_again(logs: Logs) -> None:
    await logs.old.append("resp_a", make_events(0, 3))
    await sealed(logs.new, 1)
    await logs.new.append("resp_a", make_events(3, 1))
    async with aclosing(reading(logs.onlooker, "resp_a", 1)) as batches:
        seen = [event for _ in range(3) for event in await anext(batches)]
        waiting = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0.3)
        assert logs.reads.count < 6
        await logs.new.append("resp_a", make_events(4, 1))
        assert [*seen, *await waiting] == list(make_events(2, 3))


async def test_a_holder_that_comes_too_late_takes_nothing(logs: Logs) -> None:
    await logs.old.append("resp_a", make_events(0, 3))
    await sealed(logs.new, 2)
    await logs.new.append("resp_a", make_events(3, 1))
    with pytest.raises(TurnTaken):
        await sealed(logs.onlooker, 1)
    await logs.new.close("resp_a")
    assert [event async for batch in reading(logs.onlooker, "resp_a") for event in batch] == list(make_events(0, 4))


@pytest.mark.parametrize("is_refused", [False, True], ids=["taken", "refused"])
async def test_a_holder_that_leaves_with_a_write_under_way_deletes_nothing_of_the_next_one(
    logs: Logs, is_refused: bool
) -> None:
    await logs.old.append("resp_a", make_events(0, 3))
    logs.answers.gate.clear()
    logs.answers.waiting = 0
    if is_refused:
        await sealed(logs.new, 1)
    await logs.old.append("resp_a", make_events(3, 1))
    await eventually_waiting(logs.answers)
    await sealed(logs.new, 1)
    logs.old.leave("resp_a")
    first = 3 if is_refused else 4
    await logs.new.append("resp_a", make_events(first, 1))
    logs.answers.gate.set()
    await logs.old.close("resp_b")  # which is written behind what was under way
    await logs.new.append("resp_a", make_events(first + 1, 1))
    await logs.new.close("resp_a")
    assert await read_all(logs.onlooker, "resp_a") == list(make_events(0, first + 2))


async def test_a_holder_that_gave_up_its_first_write_deletes_nothing_of_the_next_one(logs: Logs) -> None:
    """Its write was carried out, and the answer came so late that the turn had another holder by then."""
    client: Any = logs.answers
    old = RedisEventLog(client, make_supervisor(), 600.0, opening_seconds=0.05)
    logs.answers.gate.clear()
    with pytest.raises(Unavailable):
        await old.append("resp_a", make_events(0, 1))
    await eventually_waiting(logs.answers)
    assert await sealed(logs.new, 1) == list(make_events(0, 1))
    await logs.new.append("resp_a", make_events(1, 1))
    logs.answers.gate.set()
    await old.close("resp_b")
    await logs.new.close("resp_a")
    assert await read_all(logs.onlooker, "resp_a") == list(make_events(0, 2))
    await old.aclose()


async def eventually_waiting(answers: SlowAnswers) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not answers.waiting:  # noqa: ASYNC110 -- the server tells nobody
            await asyncio.sleep(0.001)


async def test_a_seal_keeps_an_earlier_holder_from_beginning(logs: Logs) -> None:
    assert await sealed(logs.new, 1) == []
    assert 3500 < await logs.client.ttl("ballast:events:resp_a") <= 3600
    with pytest.raises(TurnTaken):
        await logs.old.append("resp_a", make_events(0, 2))
    await logs.new.append("resp_a", make_events(0, 3))
    await logs.new.close("resp_a")
    assert await read_all(logs.onlooker, "resp_a") == list(make_events(0, 3))


async def test_a_number_that_was_written_twice_is_read_once(logs: Logs) -> None:
    await logs.old.append("resp_a", make_events(0, 2))
    await sealed(logs.new, 1)
    await logs.new.append("resp_a", make_events(0, 3))
    assert await read_some(logs.onlooker, "resp_a", 3) == list(make_events(0, 3))
    assert await sealed(logs.onlooker, 2) == list(make_events(0, 3))
    await logs.onlooker.close("resp_a")
    assert await read_all(logs.onlooker, "resp_a") == list(make_events(0, 3))


async def test_a_closed_log_is_taken_by_nobody(logs: Logs) -> None:
    await logs.old.append("resp_a", make_events(0, 1))
    await logs.old.close("resp_a")
    with pytest.raises(Conflict) as caught:
        await sealed(logs.new, 1)
    assert not isinstance(caught.value, TurnTaken)


def has_come(output: str) -> bool:
    return "Mine" in output


@pytest.mark.parametrize("are_events_there", [True, False])
@pytest.mark.parametrize("has_spoken", [True, False])
async def test_a_holder_that_was_sealed_off_leaves_and_no_process_keeps_a_writer(
    logs: Logs, *, are_events_there: bool, has_spoken: bool
) -> None:
    gate = asyncio.Event()
    said: list[Any] = list(answer("Mine, ", "all of it."))
    said.insert(2 if has_spoken else 0, gate)
    old: Any = logs.old
    new: Any = logs.new
    first = TurnHouse(chat_shell=ScriptedChatShell(said), events=old, replica="first", checkpoint_seconds=0.01)
    second = TurnHouse(
        chat_shell=ScriptedChatShell(answer("Theirs.")),
        state=first.state,
        events=new,
        replica="second",
    )
    async with asyncio.timeout(PATIENCE_SECONDS), first.registry, second.registry:
        running = await first.start()
        if has_spoken:
            await eventually(lambda: str(first.state.responses[running.response.id].body["output"]), has_come)
        if not are_events_there:
            await logs.client.delete(f"ballast:events:{running.response.id}")
        await second.recovery.at_start()
        gate.set()
        ended = await running.wait_until_ended()
        shown = await second.all_events(ended)
    assert shown[-1]["response"] == ended.body
    assert [*first.observer.left, *[response.id for response in first.observer.finished]] == [ended.id]
    assert not first.observer.broken
    assert not second.observer.broken
    assert (logs.old.writer_count, logs.new.writer_count) == (0, 0)


class Pause(asyncio.Event):
    """A moment in which the model says nothing."""

    async def wait(self) -> Any:
        """Wait for it to pass."""
        await asyncio.sleep(0.01)


async def test_a_holder_whose_events_are_refused_leaves_the_turn_to_the_next_one(logs: Logs) -> None:
    spoken = asyncio.Event()
    begun, first, more, *rest = answer("Mine, ", "more, ", "all of it.")
    script = [begun, first, spoken, *[more, Pause()] * 1000, *rest]
    events: Any = logs.old
    house = TurnHouse(chat_shell=ScriptedChatShell(script), events=events, checkpoint_seconds=3600.0)
    next_events: Any = logs.new
    second = TurnHouse(chat_shell=ScriptedChatShell(), state=house.state, events=next_events, replica="second")
    async with asyncio.timeout(PATIENCE_SECONDS), house.registry, second.registry:
        running = await house.start()
        await eventually(lambda: logs.old.writer_count, bool)
        await second.recovery.at_start()
        spoken.set()
        ended = await running.wait_until_ended()
    assert house.observer.left == [ended.id]
    assert not house.observer.broken
    assert not house.failures.failures


async def test_a_turn_whose_events_were_closed_is_ended_and_not_run_again(logs: Logs) -> None:
    old: Any = logs.old
    new: Any = logs.new
    first = TurnHouse(chat_shell=ScriptedChatShell([asyncio.Event()]), events=old, replica="first")
    second = TurnHouse(chat_shell=ScriptedChatShell(), state=first.state, events=new, replica="second")
    async with asyncio.timeout(PATIENCE_SECONDS), first.registry, second.registry:
        running = await first.start()
        await old.close(running.response.id)
        await second.recovery.at_start()
        ended = second.state.responses[running.response.id]
        assert ended.status == "failed"
        assert not second.observer.broken
        await first.signals.send(ended.id)
    assert (logs.old.writer_count, logs.new.writer_count) == (0, 0)
