"""Following a turn that is stored and whose events are not there yet."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import httpx2
import pytest

from backend.conversations.domain.responses import StoredResponse
from backend.openai_api.domain.response_events import LoggedEvent
from backend.streams.memory.event_log import MemoryEventLog
from shared.errors import Unavailable
from shared.models.events import ModelCallStarted, TextDelta
from tests.contract.event_cases import CountedSilence
from tests.e2e.turns import events_of
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.openai_house import open_house
from tests.fakes.openai_types import check_response
from tests.fakes.served_turns import serve_api
from tests.fakes.store_turns import FakeTurnStore
from tests.patience import PATIENCE_SECONDS, eventually

KEY = {"Idempotency-Key": "order-17"}


class LateEvents(MemoryEventLog):
    """Holds back the first events of each turn until `gate` is set; `refusal` is raised then."""

    def __init__(self, refusal: Unavailable | None = None) -> None:
        super().__init__(600)
        self.gate = asyncio.Event()
        self.looks = 0
        self._refusal = refusal

    async def append(self, response_id: str, events: Sequence[LoggedEvent]) -> None:
        await self.gate.wait()
        if self._refusal is not None:
            raise self._refusal
        await super().append(response_id, events)

    async def exists(self, response_id: str) -> bool:
        self.looks += 1
        return await super().exists(response_id)


@pytest.mark.parametrize("fields", [{"store": False}, {"store": False, "models": ["demo-model", "vendor/large"]}])
async def test_a_turn_that_is_not_stored_may_be_silent_for_long(fields: dict[str, Any]) -> None:
    """Nothing of it is in the database, which does not mean that it has ended."""
    gate, events = asyncio.Event(), CountedSilence()
    script = [gate, *answer("Late.")]
    async with open_house(script, script, events=events, late_seconds=0.005) as house:
        running = await house.start(**fields)
        following = asyncio.ensure_future(house.all_events(running.response))
        await eventually(lambda: events.silences > 50 or following.done(), bool)
        gate.set()
        seen = await following
        assert (seen[-1]["type"], seen[-1]["response"]["status"]) == ("response.completed", "completed")
        assert "Late." in str(seen[-1]["response"]["output"])


async def test_who_follows_before_the_first_event_is_written_gets_them_all() -> None:
    events = LateEvents()
    async with open_house(answer("One, ", "two"), events=events) as house:
        starting = asyncio.ensure_future(house.start())
        (stored,) = (await eventually(lambda: house.state.responses, bool)).values()
        following = asyncio.ensure_future(house.all_events(stored))
        await eventually(lambda: events.looks, lambda looks: looks > 1)
        assert not following.done()
        events.gate.set()
        ended = await (await starting).wait_until_ended()
        seen = await following
    assert [event["sequence_number"] for event in seen] == list(range(ended.last_event + 1))
    assert (seen[-1]["type"], seen[-1]["response"]) == ("response.completed", ended.body)


async def test_a_turn_that_ends_before_its_first_event_is_followed_to_its_stored_end() -> None:
    events = LateEvents(Unavailable("The event store is not available."))
    async with open_house(answer("One, ", "two"), events=events) as house:
        starting = asyncio.ensure_future(house.start())
        (stored,) = (await eventually(lambda: house.state.responses, bool)).values()
        following = asyncio.ensure_future(house.all_events(stored))
        await eventually(lambda: events.looks, bool)
        events.gate.set()
        ended = await (await starting).wait_until_ended()
        created, failed = await following
    assert created["type"] == "response.created"
    assert (failed["type"], failed["response"]) == ("response.failed", ended.body)


async def test_a_turn_that_never_begins_ends_its_streams_with_an_error() -> None:
    """Its process died behind the storing of the turn, and nobody has taken it over."""
    events = LateEvents()
    async with open_house(answer("One."), events=events, opening_seconds=0.03) as house:
        starting = asyncio.ensure_future(house.start())
        (stored,) = (await eventually(lambda: house.state.responses, bool)).values()
        created, error = await house.all_events(stored)
        assert [event["sequence_number"] for event in (created, error)] == [0, 1]
        assert (created["type"], error["type"]) == ("response.created", "error")
        assert (error["code"], error["error"]["code"]) == ("events_lost", "events_lost")
        check_response(created["response"])
        events.gate.set()
        assert (await (await starting).wait_until_ended()).status == "completed"


class AwayStore(FakeTurnStore):
    """Finds no response while `is_away`: its database does not answer."""

    is_away = False

    async def find(self, response_id: str) -> StoredResponse | None:
        if self.is_away:
            raise Unavailable("The database is not available.")
        return await super().find(response_id)


async def test_who_hears_nothing_while_the_database_cannot_tell_gets_an_error_and_the_turn_goes_on() -> None:
    gate = asyncio.Event()
    script = [ModelCallStarted(call=1), TextDelta(text="Half"), gate, *answer(" and half.")[1:]]
    async with open_house(script, turns_class=AwayStore, events=CountedSilence(), late_seconds=0.05) as house:
        store = cast(AwayStore, house.turns)
        running = await house.start()
        store.is_away = True
        *_, error = await house.all_events(running.response)
        assert (error["type"], error["code"]) == ("error", "events_lost")
        store.is_away = False
        gate.set()
        assert (await running.wait_until_ended()).status == "completed"


async def test_events_that_end_without_a_terminal_one_end_in_an_error() -> None:
    async with open_house([asyncio.Event()]) as house:
        running = await house.start()
        await house.events.close(running.response.id)
        *_, error = await house.all_events(running.response)
        assert (error["type"], error["code"]) == ("error", "events_lost")
        house.registry.spawn(house.signals.send(running.response.id))


async def test_many_streams_at_once_under_one_key_are_one_turn_and_each_is_whole() -> None:
    events = LateEvents()

    async def streamed(http: httpx2.AsyncClient) -> str:
        answered = await http.post("/v1/responses", json={"input": "Hi", "stream": True}, headers=KEY)
        return answered.text

    async with serve_api(answer("Hel", "lo."), events=events) as api:
        streams = asyncio.gather(*(streamed(api.http) for _ in range(10)))
        await eventually(lambda: events.looks, lambda looks: looks > 10)
        events.gate.set()
        texts = set(await streams)
    assert len(texts) == 1
    assert events_of(texts.pop())[-1]["type"] == "response.completed"


class FullLog(MemoryEventLog):
    """Takes no terminal event, and is not cut off either, until the first reader has tried to cut it off."""

    def __init__(self) -> None:
        super().__init__(600, silence_seconds=0.005)
        self.late: Sequence[LoggedEvent] = ()

    async def append(self, response_id: str, events: Sequence[LoggedEvent]) -> None:
        if events[-1].type == "response.completed":
            self.late = events
        else:
            await super().append(response_id, events)

    async def close(self, response_id: str) -> None:
        raise Unavailable("The event store is not available.")

    async def cut_off(self, response_id: str) -> bool:
        late, self.late = self.late, ()
        await super().append(response_id, late)
        raise Unavailable("The event store is not available.")


async def test_last_events_are_waited_for_while_nobody_can_write() -> None:
    events = FullLog()
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        open_house(answer("One, ", "two"), events=events, late_seconds=0.5) as house,
    ):
        ended = await house.ask()
        seen = await house.all_events(ended)
    assert events.late == ()
    assert [event["sequence_number"] for event in seen] == list(range(ended.last_event + 1))
    assert (seen[-1]["type"], seen[-1]["response"]) == ("response.completed", ended.body)


class SilentEnd(FullLog):
    """Never gets its terminal event: its writer was killed; it can be cut off."""

    def __init__(self) -> None:
        super().__init__()
        self.cuts = 0

    async def cut_off(self, response_id: str) -> bool:
        self.cuts += 1
        return await MemoryEventLog.cut_off(self, response_id)


async def test_a_reader_that_meets_a_lost_tail_cuts_it_off_and_goes_on() -> None:
    """Other readers then find the end at once."""
    events = SilentEnd()
    async with asyncio.timeout(PATIENCE_SECONDS), open_house(answer("One, ", "two"), events=events) as house:
        ended = await house.ask()
        *shown, last = await house.all_events(ended)
        assert events.cuts
        assert await house.all_events(ended) == [shown[0], last]
    assert [event["sequence_number"] for event in (*shown, last)] == list(range(ended.last_event + 1))
    assert (last["type"], last["response"]) == ("response.completed", ended.body)
