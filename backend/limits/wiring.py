"""The store of the counts of limits, as the settings choose it."""

from backend.foundation.redis.commands import RedisClient
from backend.limits.memory.rates import MemoryRateStore
from backend.limits.ports.rates import RateStore
from shared.clock import Clock


def rate_store(client: RedisClient | None, clock: Clock) -> RateStore:
    """Count in Redis, for all replicas together, or in this process."""
    if client is None:
        return MemoryRateStore(clock)
    from backend.limits.redis.rates import RedisRateStore

    return RedisRateStore(client)
