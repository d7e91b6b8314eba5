"""Events, signals and presence of turns over one Redis client."""

from contextlib import AsyncExitStack

from backend.turns.ports.events import EventStore
from backend.turns.redis.client import check_reachable, connect
from backend.turns.redis.event_log import RedisEventLog
from backend.turns.redis.presence import watching
from backend.turns.redis.stop_signals import RedisStopSignals


async def open_event_store(url: str, retention_seconds: float, stack: AsyncExitStack) -> EventStore:
    """Connect to Redis and begin to watch it; `stack` closes all of it.

    Raises:
        ValueError: the address is none, or Redis cannot be used there; the text holds neither user nor password.
    """
    client = connect(url)
    stack.push_async_callback(client.aclose)
    await check_reachable(client, url)
    events = RedisEventLog(client, retention_seconds)
    signals = RedisStopSignals(client)
    stack.push_async_callback(events.aclose)
    stack.push_async_callback(signals.aclose)
    return EventStore(events, signals, await stack.enter_async_context(watching(client)))
