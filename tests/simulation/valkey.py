"""A double of Valkey: the few commands that the product sends, over values in memory, and its client."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import ResponseError

from backend.foundation.redis.client import SOCKET_TIMEOUT_SECONDS
from backend.foundation.redis.commands import Command, RedisPipeline, RedisScript
from backend.streams.redis.outbox import DELETE_WHERE_LAST
from tests.simulation.network import Broken, Reply, Requests, Server
from tests.simulation.world import World

_ATTEMPTS = 2
_OUT_OF_MEMORY = "OOM command not allowed when used memory > 'maxmemory'."
_REPEATED = "The ID specified in XADD is equal or smaller than the target stream top item"

Entry = tuple[bytes, dict[bytes, bytes]]


class _Stream:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.newest: tuple[int, int] = (0, 0)


class Valkey(Server):
    """Keys with their expiry; `is_full` refuses what would take memory."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "valkey")
        self.is_full = False
        self._values: dict[str, bytes | _Stream] = {}
        self._expires: dict[str, float] = {}
        self._readers: dict[str, list[Callable[[], None]]] = {}
        self._commands: dict[str, Callable[..., object]] = {
            "SET": self._set,
            "XADD": self._xadd,
            "DEL": self._del,
            "PEXPIRE": self._pexpire,
            "EXISTS": self._exists,
            "MGET": self._mget,
            "XREVRANGE": self._xrevrange,
            DELETE_WHERE_LAST: self._delete_where_last,
            "PING": lambda: True,
        }

    def flush(self) -> None:
        """Lose everything."""
        self._values.clear()

    def evict(self) -> str:
        """Lose a stream of events, if there is one; return its name."""
        names = [name for name in self._values if name.startswith("ballast:events:")]
        lost = self.world.dice.choice(names) if names else ""
        self._values.pop(lost, None)
        return lost

    def keys_without_expiry(self) -> list[str]:
        """Return the keys that would stay for ever."""
        return [name for name in self._values if name not in self._expires]

    def serve(self, commands: Sequence[Command], reply: Reply) -> None:
        """Do commands one behind the other."""
        reply([self._answer(command) for command in commands])

    def read(self, streams: Mapping[str, str], count: int | None, block: int | None, reply: Reply) -> None:
        """Answer with entries behind a cursor, where it has to be after a wait."""
        ((name, cursor),) = streams.items()
        behind = _number_of(cursor)

        def answer(*, is_last: bool) -> bool:
            stream = self._find(name)
            entries = stream.entries if isinstance(stream, _Stream) else []
            found = [entry for entry in entries if _number_of(entry[0].decode()) > behind][:count]
            if found or is_last:
                reply([(name.encode(), found)] if found else None)
            return bool(found) or is_last

        if not answer(is_last=block is None) and block is not None:
            self._wait_for(name, answer, block / 1000)

    def _wait_for(self, name: str, answer: Callable[..., bool], seconds: float) -> None:
        waiting = self._readers.setdefault(name, [])

        def end(*, is_last: bool) -> None:
            if look in waiting and answer(is_last=is_last):
                waiting.remove(look)
                timer.cancel()

        look = partial(end, is_last=False)
        waiting.append(look)
        timer = self.loop.call_later(seconds, partial(end, is_last=True))

    def _find(self, name: str) -> bytes | _Stream | None:
        if self._expires.get(name, self.world.now) < self.world.now:
            self._values.pop(name, None)
        found = self._values.get(name)
        if found is None:
            self._expires.pop(name, None)
        return found

    def _answer(self, command: Command) -> object:
        name, *rest = command
        if self.is_full and name in ("SET", "XADD"):
            return ResponseError(_OUT_OF_MEMORY)
        return self._commands[str(name)](*rest)

    def _set(self, name: str, value: bytes, _px: str, milliseconds: int) -> bool:
        self._values[name] = value
        self._expires[name] = self.world.now + milliseconds / 1000
        return True

    def _xadd(self, name: str, *rest: Any) -> object:
        options = list(rest)
        makes = options[0] != "NOMKSTREAM"
        if not makes:
            del options[0]
        most = options[2] if options[0] == "MAXLEN" else None
        if most is not None:
            del options[:3]
        entry, *flat = options
        stream = self._find(name)
        if not isinstance(stream, _Stream):
            if not makes:
                return None
            stream = self._values[name] = _Stream()
        number = (int(self.world.now * 1000) + 1, stream.newest[1] + 1) if entry == "*" else _number_of(entry)
        if number <= stream.newest:
            return ResponseError(_REPEATED)
        stream.newest = number
        written = b"%d-%d" % number
        stream.entries.append((written, dict(zip(flat[::2], flat[1::2], strict=True))))
        for look in list(self._readers.get(name, ())):
            look()
        return written

    def _del(self, *names: str) -> int:
        return sum(self._find(name) is not None and self._values.pop(name, None) is not None for name in names)

    def _delete_where_last(self, name: str, entry: str) -> int:
        is_last = any(written == entry.encode() for written, _ in self._xrevrange(name, 1))
        return self._del(name) if is_last else 0

    def _pexpire(self, name: str, milliseconds: int) -> int:
        if self._find(name) is None:
            return 0
        self._expires[name] = self.world.now + milliseconds / 1000
        return 1

    def _exists(self, *names: str) -> int:
        return sum(self._find(name) is not None for name in names)

    def _mget(self, *names: str) -> list[object]:
        return [self._find(name) for name in names]

    def _xrevrange(self, name: str, count: int) -> list[Entry]:
        stream = self._find(name)
        return stream.entries[: -count - 1 : -1] if isinstance(stream, _Stream) else []


class ValkeyClient:
    """Implements `RedisClient`: short commands share a connection, and are sent again where that breaks."""

    def __init__(self, valkey: Valkey, shared: Requests, own: Requests) -> None:
        self._valkey = valkey
        self._shared = shared
        self._own = own

    def pipeline(self, transaction: bool = True) -> RedisPipeline:
        return RedisPipeline(self._send)

    def ping(self) -> Awaitable[Any]:
        return self._one("PING")

    def set(self, name: str, value: bytes, *, px: int) -> Awaitable[object]:
        return self._one("SET", name, value, "PX", px)

    def exists(self, *names: str) -> Awaitable[Any]:
        return self._one("EXISTS", *names)

    def register_script(self, script: str) -> RedisScript:
        return lambda keys, args: self._one(script, *keys, *args)

    def mget(self, keys: Sequence[str]) -> Awaitable[Any]:
        return self._one("MGET", *keys)

    def xrevrange(self, name: str, *, count: int) -> Awaitable[Any]:
        return self._one("XREVRANGE", name, count)

    async def xread(self, streams: Mapping[str, str], count: int | None = None, block: int | None = None) -> object:
        reading = partial(self._valkey.read, streams, count, block)
        return await self._asked(self._own, reading)

    async def xadd(self, name: str, fields: Mapping[bytes, bytes], **options: Any) -> Any:
        pipeline = self.pipeline()
        pipeline.xadd(name, fields, **options)
        return (await pipeline.execute())[0]

    async def aclose(self) -> None:
        """Close nothing."""

    async def _one(self, *command: Any) -> Any:
        (answer,) = await self._send([command])
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _send(self, commands: Sequence[Command]) -> list[object]:
        return await self._asked(self._shared, partial(self._valkey.serve, tuple(commands)))

    async def _asked(self, requests: Requests, serve: Callable[[Reply], None]) -> Any:
        for attempt in range(_ATTEMPTS):
            try:
                return await requests.ask(serve, SOCKET_TIMEOUT_SECONDS)
            except Broken as error:
                if attempt == _ATTEMPTS - 1:
                    raise Disconnected(str(error)) from error
            await asyncio.sleep(0)
        raise AssertionError


def _number_of(entry: str) -> tuple[int, int]:
    first, _, second = entry.partition("-")
    return int(first), int(second or 0)
