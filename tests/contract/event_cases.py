"""Event logs and stop signals for their contracts."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple, cast

import pytest

from backend.openai_api.domain.response_events import LoggedEvent
from backend.streams.memory.event_log import MemoryEventLog
from backend.streams.memory.stop_signals import MemoryStopSignals
from backend.streams.ports.events import EventLog, StopSignals
from backend.streams.redis.event_log import RedisEventLog
from backend.streams.redis.stop_signals import RedisStopSignals
from tests.fakes.supervision import make_supervisor
from tests.patience import PATIENCE_SECONDS
from tests.servers.valkey import patient_client

KINDS = ("memory", "redis")
RETENTION_SECONDS = 600.0


class Replicas(NamedTuple):
    """The same log and the same signals as two replicas see them; in memory there is but one."""

    here: EventLog
    there: EventLog
    signals_here: StopSignals
    signals_there: StopSignals


@asynccontextmanager
async def open_replicas(kind: str, request: pytest.FixtureRequest) -> AsyncGenerator[Replicas]:
    if kind == "memory":
        log, signals = MemoryEventLog(RETENTION_SECONDS), MemoryStopSignals()
        yield Replicas(log, log, signals, signals)
        return
    url: str = request.getfixturevalue("valkey_url")
    clients: list[Any] = [patient_client(url), patient_client(url)]
    logs = [
        RedisEventLog(client, make_supervisor(), RETENTION_SECONDS, patience_seconds=PATIENCE_SECONDS)
        for client in clients
    ]
    redis_signals = [RedisStopSignals(client, make_supervisor()) for client in clients]
    try:
        yield Replicas(logs[0], logs[1], redis_signals[0], redis_signals[1])
    finally:
        for part in (*logs, *redis_signals, *clients):
            await part.aclose()


def make_events(first: int, count: int) -> tuple[LoggedEvent, ...]:
    return tuple(
        LoggedEvent(
            sequence_number=number, type=f"response.kind_{number % 3}", body=b'{"n":%d,"t":"\xe6\xb2\xb3"}' % number
        )
        for number in range(first, first + count)
    )


def reading(log: EventLog, response_id: str, after: int = -1) -> AsyncGenerator[tuple[LoggedEvent, ...]]:
    """Read as a generator, which can be closed."""
    return cast(AsyncGenerator[tuple[LoggedEvent, ...]], log.read(response_id, after))


async def read_all(log: EventLog, response_id: str, after: int = -1) -> list[LoggedEvent]:
    """Read until the log ends."""
    seen: list[LoggedEvent] = []
    async with aclosing(reading(log, response_id, after)) as batches:
        async for batch in batches:
            assert batch
            seen.extend(batch)
    return seen


async def read_some(log: EventLog, response_id: str, count: int, after: int = -1) -> list[LoggedEvent]:
    """Read until so many events were seen, then leave."""
    seen: list[LoggedEvent] = []
    async with aclosing(reading(log, response_id, after)) as batches:
        async for batch in batches:
            seen.extend(batch)
            if len(seen) >= count:
                break
    return seen


class ManualTimer:
    """A `call_later` whose time passes when a test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Callable[[], None], asyncio.Event]] = []

    def __call__(self, seconds: float, call: Callable[[], None]) -> "ManualTimer.Handle":
        cancelled = asyncio.Event()
        self.calls.append((seconds, call, cancelled))
        return self.Handle(cancelled)

    def fire(self) -> None:
        calls, self.calls = self.calls, []
        for _, call, cancelled in calls:
            if not cancelled.is_set():
                call()

    class Handle:
        def __init__(self, cancelled: asyncio.Event) -> None:
            self.cancel = cancelled.set


class CountedSilence(MemoryEventLog):
    """Counts how often its readers were told that nothing came."""

    def __init__(self) -> None:
        super().__init__(600, silence_seconds=0.001)
        self.silences = 0

    async def read(self, response_id: str, after: int) -> AsyncGenerator[tuple[LoggedEvent, ...]]:
        async for batch in super().read(response_id, after):
            self.silences += not batch
            yield batch
