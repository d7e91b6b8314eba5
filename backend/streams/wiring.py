"""The event log of running turns and the signals between processes, as the settings choose them."""

from contextlib import AsyncExitStack
from typing import NamedTuple

from backend.foundation.ports.readiness import Presence
from backend.foundation.redis.commands import RedisClient
from backend.foundation.services.supervision import Supervisor
from backend.streams.memory.event_log import MemoryEventLog
from backend.streams.memory.stop_signals import MemoryStopSignals
from backend.streams.ports.events import EventLog, StopSignals, Tenure


class Streams(NamedTuple):
    """The event log, the signals, and a watch on the server of both: None where they are in memory."""

    events: EventLog
    signals: StopSignals
    presence: Presence | None


def memory_streams(retention_seconds: float) -> Streams:
    """Keep events in this process."""
    return Streams(MemoryEventLog(retention_seconds), MemoryStopSignals(), None)


async def redis_streams(
    client: RedisClient, retention_seconds: float, supervisor: Supervisor, stack: AsyncExitStack, tenure: Tenure
) -> Streams:
    """Keep events in Redis, over a client that works, until the stack ends."""
    from backend.streams.redis.event_log import RedisEventLog
    from backend.streams.redis.presence import watching
    from backend.streams.redis.stop_signals import RedisStopSignals

    events = RedisEventLog(client, supervisor, retention_seconds, tenure=tenure)
    signals = RedisStopSignals(client, supervisor)
    stack.push_async_callback(events.aclose)
    stack.push_async_callback(signals.aclose)
    return Streams(events, signals, await stack.enter_async_context(watching(client, supervisor)))
