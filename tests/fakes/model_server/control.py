"""The fake model server's methods for a test that runs it as a child process."""

from typing import Any, Self

import aiohttp
import orjson
from pydantic import TypeAdapter

from tests.fakes.model_server.script import ConnectionRecord, RecordedRequest, Reply

_REQUESTS = TypeAdapter(list[RecordedRequest])
_CONNECTIONS = TypeAdapter(list[ConnectionRecord])


class FakeModelControl:
    """Talk to a fake in another process; use as an async context manager."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self._root = base_url.removesuffix("/v1")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *exception: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def script(self, *replies: Reply, when: str | None = None) -> None:
        """Append replies, used up in order."""
        posted = {"replies": [orjson.loads(reply.model_dump_json()) for reply in replies], "when": when}
        await self._call("POST", "/_script", orjson.dumps(posted))

    async def release(self, count: int = 1) -> None:
        """Let so many held replies go on."""
        await self._call("POST", "/_release", orjson.dumps({"count": count}))

    async def reset(self) -> None:
        """Forget script and requests."""
        await self._call("POST", "/_reset")

    async def requests(self) -> list[RecordedRequest]:
        """All chat requests so far."""
        return _REQUESTS.validate_json(await self._call("GET", "/_requests"))

    async def connections(self) -> list[ConnectionRecord]:
        """All connections so far, this control's own among them."""
        return _CONNECTIONS.validate_json(await self._call("GET", "/_connections"))

    async def wait_requests(self, count: int) -> None:
        """Return once so many requests have come."""
        await self._call("GET", f"/_wait?requests={count}")

    async def wait_held(self, count: int = 1) -> None:
        """Return once so many replies wait for `release`."""
        await self._call("GET", f"/_wait_held?count={count}")

    async def wait_closed(self, request: int = -1) -> float:
        """Return when, in monotonic seconds, the client closed the connection of this request."""
        answer: Any = orjson.loads(await self._call("GET", f"/_wait_closed?request={request}"))
        return float(answer["closed_at"])

    async def _call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        assert self._session is not None
        async with self._session.request(method, self._root + path, data=body) as response:
            response.raise_for_status()
            return await response.read()
