"""The commands of Redis that are used, typed, without its library."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol


class RedisPipeline(Protocol):
    """Commands that are sent in one round trip; keyword arguments are those of the Redis client."""

    def __len__(self) -> int:
        """Count the commands."""
        ...

    def set(self, name: str, value: bytes, *, px: int) -> object:
        """Set a key that expires after `px` milliseconds."""
        ...

    def xadd(self, name: str, fields: Mapping[bytes, bytes], **options: object) -> object:
        """Append an entry to a stream."""
        ...

    def delete(self, *names: str) -> object:
        """Delete keys."""
        ...

    def pexpire(self, name: str, time: int) -> object:
        """Have a key expire after so many milliseconds."""
        ...

    def execute(self, raise_on_error: bool = True) -> Awaitable[list[object]]:
        """Send the commands; the answers of failed ones are exceptions, unless the first one is to be raised."""
        ...


class RedisClient(Protocol):
    """The few commands that we use, typed: the annotations of the library leave arguments and answers open."""

    def pipeline(self, transaction: bool = True) -> RedisPipeline:
        """Begin a pipeline."""
        ...

    def ping(self) -> Awaitable[bool]:
        """Ask whether the server answers."""
        ...

    def set(self, name: str, value: bytes, *, px: int) -> Awaitable[object]:
        """Set a key that expires after `px` milliseconds."""
        ...

    def exists(self, *names: str) -> Awaitable[int]:
        """Count the keys that exist."""
        ...

    def delete(self, *names: str) -> Awaitable[int]:
        """Delete keys."""
        ...

    def mget(self, keys: Sequence[str]) -> Awaitable[list[bytes | None]]:
        """Read keys."""
        ...

    def xread(
        self, streams: Mapping[str, str], count: int | None = None, block: int | None = None
    ) -> Awaitable[object]:
        """Read entries behind a cursor, waiting for `block` milliseconds."""
        ...

    def xadd(self, name: str, fields: Mapping[bytes, bytes], **options: object) -> Awaitable[bytes | None]:
        """Append an entry to a stream; None where there is no such stream and none is to be made."""
        ...

    def xrevrange(self, name: str, *, count: int) -> Awaitable[list[tuple[bytes, object]]]:
        """Read the newest entries."""
        ...

    def aclose(self) -> Awaitable[None]:
        """Close all connections."""
        ...
