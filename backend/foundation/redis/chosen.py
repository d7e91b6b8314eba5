"""Opening Redis where its address is set; without one its library is not loaded."""

from contextlib import AsyncExitStack

from backend.foundation.redis.commands import RedisClient


async def open_redis(url: str, stack: AsyncExitStack) -> RedisClient | None:
    """Open Redis until the stack ends; None without an address.

    Raises:
        ValueError: Redis cannot be used at this address; the text holds neither user nor password.
    """
    if not url:
        return None
    from backend.foundation.redis.client import check_redis_reachable, connect

    client = connect(url)
    stack.push_async_callback(client.aclose)
    await check_redis_reachable(client, url)
    return client
