"""The commands of Redis that are used, typed, without its library."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

Command = tuple[str | bytes | int, ...]


class RedisPipeline:
    """Commands that are sent in one round trip, by `send`."""

    def __init__(self, send: Callable[[Sequence[Command]], Awaitable[list[object]]]) -> None:
        self._send = send
        self._commands: list[Command] = []

    def __len__(self) -> int:
        """Count the commands."""
        return len(self._commands)

    def set(self, name: str, value: bytes, *, px: int) -> None:
        """Set a key that expires after `px` milliseconds."""
        self._commands.append(("SET", name, value, "PX", px))

    def xadd(
        self,
        name: str,
        fields: Mapping[bytes, bytes],
        *,
        id: str = "*",
        nomkstream: bool = False,
        maxlen: int | None = None,
        approximate: bool = True,
    ) -> None:
        """Append an entry to a stream."""
        options = ("NOMKSTREAM",) if nomkstream else ()
        kept = ("MAXLEN", "~" if approximate else "=", maxlen) if maxlen is not None else ()
        flat = [each for field in fields.items() for each in field]
        self._commands.append(("XADD", name, *options, *kept, id, *flat))

    def delete(self, *names: str) -> None:
        """Delete keys."""
        self._commands.append(("DEL", *names))

    def pexpire(self, name: str, time: int) -> None:
        """Have a key expire after so many milliseconds."""
        self._commands.append(("PEXPIRE", name, time))

    async def execute(self, raise_on_error: bool = True) -> list[object]:
        """Send the commands; the answers of failed ones are exceptions, unless the first one is to be raised."""
        answers = await self._send(self._commands) if self._commands else []
        if raise_on_error:
            for answer in answers:
                if isinstance(answer, Exception):
                    raise answer
        return answers


class RedisScript(Protocol):
    """A script that the server runs as a whole."""

    def __call__(self, keys: Sequence[str], args: Sequence[str | int]) -> Awaitable[object]:
        """Run it."""
        ...


class RedisClient(Protocol):
    """The few commands that we use, typed: the annotations of the library leave arguments and answers open."""

    def pipeline(self, transaction: bool = True) -> RedisPipeline:
        """Begin a pipeline."""
        ...

    def register_script(self, script: str) -> RedisScript:
        """Prepare a script in Lua."""
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
