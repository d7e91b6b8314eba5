"""The connection pool, and the translation of what it raises."""

import asyncio
import re
from collections.abc import Awaitable
from functools import cached_property
from typing import Any, Protocol, TypeVar, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import DataError, RedisError, ResponseError

from backend.foundation.redis.commands import RedisClient, RedisPipeline
from backend.foundation.redis.shared_connection import SharedConnection
from shared.environment import cause_of, redact_address
from shared.errors import Unavailable

Result = TypeVar("Result")

SOCKET_TIMEOUT_SECONDS = 4.0
BLOCK_MILLISECONDS = 2_000
"""How long a reading command waits in the server; below the timeout of the socket."""

# The event loop raises RuntimeError for a write on a connection that was closed meanwhile.
_DRIVER_ERRORS = (RedisError, OSError, EOFError, TimeoutError, RuntimeError)
_CODE = re.compile(r"[A-Z]{3,} ")
_WRONG_TYPE = "WRONGTYPE "

_MAX_CONNECTIONS = 5_000


class _Client(Redis):
    """Sends what is short over one connection that all of it shares; a reader that waits has one of its own."""

    @cached_property
    def _shared(self) -> SharedConnection:
        return SharedConnection(self.connection_pool)

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Any:
        """Begin a pipeline, which is no transaction."""
        return RedisPipeline(self._shared.send)

    async def mget(self, keys: Any, *args: Any) -> Any:
        """Read keys."""
        (found,) = await self._shared.send([("MGET", *keys)])
        if isinstance(found, Exception):
            raise found
        return found

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Close all connections."""
        await self._shared.close()
        await super().aclose(close_connection_pool)


class _RedisClass(Protocol):
    def from_url(self, url: str, **options: object) -> RedisClient: ...


def connect(url: str) -> RedisClient:
    """Open a connection pool; it connects at first use, and each waiting reader holds one connection.

    Raises:
        ValueError: the address is malformed.
    """
    try:
        return cast(_RedisClass, _Client).from_url(
            url,
            protocol=2,
            socket_timeout=SOCKET_TIMEOUT_SECONDS,
            socket_connect_timeout=2.0,
            health_check_interval=15,
            max_connections=_MAX_CONNECTIONS,
            # A connection may have been lost while idle. Every command that we send may safely be repeated.
            retry=Retry(ExponentialBackoff(cap=0.2, base=0.02), retries=2),
        )
    except ValueError:
        # The library's message may hold a part of the password that it took for a port.
        raise ValueError("a Redis address looks like redis://host:6379/0, a password in it percent-encoded") from None


async def check_redis_reachable(client: RedisClient, url: str) -> None:
    """Check at the start of the process that Redis answers.

    Raises:
        ValueError: Redis does not answer or refuses the login; the text holds neither user nor password.
    """
    try:
        async with asyncio.timeout(SOCKET_TIMEOUT_SECONDS):
            await client.ping()
    except (RedisError, OSError) as error:
        raise ValueError(f"cannot use {redact_address(url)} ({cause_of(error)})") from None


async def await_answer(answer: Awaitable[Result]) -> Result:
    """Await an answer of the client; raise the cancellation that was requested meanwhile.

    The client writes through `asyncio.wait_for`, which before Python 3.12 loses a cancellation that arrives as the
    write ends (https://github.com/python/cpython/issues/81839). A cancellation that nobody requested is the end of a
    connection.

    Raises:
        Unavailable: Redis does not answer, or does not do what it is there for. Retryable: every command that we
            send may be repeated.
    """
    task = asyncio.current_task()
    requests = task.cancelling() if task is not None else 0
    try:
        return await answer
    except _DRIVER_ERRORS as error:
        if is_ours(error):
            raise
        raise away() from error
    except asyncio.CancelledError as error:
        if task is None or task.cancelling() > requests:
            raise
        raise away() from error
    finally:
        if task is not None and task.cancelling() > requests:
            raise asyncio.CancelledError


def is_ours(error: BaseException) -> bool:
    """Whether the error is a defect of ours: a command that no Redis would take.

    Refusals that depend on the server's state carry a code of their own (redis.io, "Redis serialization protocol
    specification", simple errors), such as OOM, READONLY,
    LOADING and MISCONF; a malformed command has the general one, which the client removes.
    """
    if type(error) is not ResponseError:
        return isinstance(error, DataError)
    text = str(error)
    return text.startswith(_WRONG_TYPE) or _CODE.match(text) is None


def away() -> Unavailable:
    """Build the error for a Redis that does not answer."""
    return Unavailable("The event store is not available.", retry_after_seconds=1)
