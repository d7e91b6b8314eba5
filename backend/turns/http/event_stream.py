"""Streaming events to a client as server-sent events, with comments as heartbeats and `[DONE]` at the end."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import Any, Protocol, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from backend.foundation.http.middleware import SEND_ON, to_known_error
from backend.foundation.services.supervision import result_or_error
from backend.openai_api.domain.response_events import LoggedEvent
from backend.openai_api.domain.response_object import ResponseBody
from backend.turns.domain.quiet_pace import QuietPace
from backend.turns.http.quiet_send import QuietSend
from shared.errors import BallastError
from shared.models.values import JsonObject

HEARTBEAT_SECONDS = 15.0
HEARTBEAT = b": keep-alive\n\n"
"""A comment; a frame with nothing but `id:` or `retry:` would crash the official client."""

DONE = b"data: [DONE]\n\n"
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
"""Tell proxies not to cache or buffer frames; the second header is for nginx."""

EventBatches = AsyncGenerator[tuple[LoggedEvent, ...], None]
Answer = TypeVar("Answer")
Release = Callable[[bool], Awaitable[None]]


async def release_nothing(_has_left: bool) -> None:
    """Do nothing: for streams whose turn does not depend on this reader."""


class ApiFormat(Protocol):
    """The words of one API, for one answer."""

    async def whole(self, body: ResponseBody, *, with_results: bool) -> JsonObject:
        """Return the answer as one object."""
        ...

    def frames(self, events: Sequence[LoggedEvent]) -> bytes:
        """Return the frames of server-sent events in which further events of the turn are told; there may be none."""
        ...

    async def last_frames(self) -> bytes:
        """Return the frames that follow the last event; `[DONE]` follows them."""
        ...

    def encode_error(self, body: ResponseBody, error: BallastError) -> bytes:
        """Return the last frame of a stream that breaks off with an error; `body` is the response as it was known."""
        ...


class EventStream(Response):
    """A response that ends with its turn or when the client disconnects.

    Where the events of the response `body` break off with an error, a last frame tells it: whatever happens, `[DONE]`
    comes last. `release` is awaited when the stream has ended, and told whether that is because the client has left.
    `pace` is that of the stream of a restricted turn; all others have none.
    """

    media_type = "text/event-stream"
    pace: QuietPace | None = None

    def __init__(
        self,
        batches: EventBatches,
        api_format: ApiFormat,
        body: ResponseBody,
        release: Release = release_nothing,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        self.status_code = 200
        self.background = None
        self._batches = batches
        self._format = api_format
        self._body = body
        self._release = release
        self._heartbeat_seconds = heartbeat_seconds
        self._is_idle = True
        self.init_headers(HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one client."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        send = scope.get("state", {}).get(SEND_ON, send)
        reading, has_ended = asyncio.timeout(None), False
        try:
            with suppress(TimeoutError):
                async with reading, asyncio.TaskGroup() as group:
                    if self.pace is not None:
                        send = QuietSend(send, self.pace)
                        group.create_task(send.run())
                    leaving = group.create_task(_end_when_left(reading, receive))
                    with self._beating(group, send):
                        await self._write_to_the_end(scope, send)
                    leaving.cancel()
                    has_ended = True
                    await self._let_go(scope, has_left=False)
                    await send({"type": "http.response.body", "body": DONE, "more_body": False})
        finally:
            if not has_ended:
                await self._let_go(scope, has_left=reading.expired())

    async def _let_go(self, scope: Scope, *, has_left: bool) -> None:
        released = await result_or_error(self._release(has_left))
        if isinstance(released, BaseException):
            to_known_error(scope, released)  # logged: who reads has the whole answer

    async def _write_to_the_end(self, scope: Scope, send: Send) -> None:
        last = await result_or_error(self._write(send))
        if isinstance(last, BaseException):
            last = self._format.encode_error(self._body, to_known_error(scope, last))
        if last:
            await send({"type": "http.response.body", "body": last, "more_body": True})

    async def _write(self, send: Send) -> bytes:
        """Write all but the last frames, and return those."""
        async with aclosing(self._batches) as batches:
            async for batch in batches:
                if body := self._format.frames(batch):
                    self._is_idle = False
                    await send({"type": "http.response.body", "body": body, "more_body": True})
        return await self._format.last_frames()

    @contextmanager
    def _beating(self, group: asyncio.TaskGroup, send: Send) -> Generator[None]:
        """Send a heartbeat whenever nothing else was sent for a while, until the block ends."""
        self._beat_later(group, send)
        try:
            yield
        finally:
            self._timer.cancel()

    def _beat_later(self, group: asyncio.TaskGroup, send: Send) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._heartbeat_seconds, self._beat, group, send)

    def _beat(self, group: asyncio.TaskGroup, send: Send) -> None:
        if self._is_idle:
            group.create_task(_send_heartbeat(send))
        self._is_idle = True
        self._beat_later(group, send)


async def _send_heartbeat(send: Send) -> None:
    await send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})


def frames(events: Iterable[LoggedEvent]) -> bytes:
    """Encode events as frames; their bodies are JSON text without line breaks."""
    return b"".join([b"event: %b\ndata: %b\n\n" % (event.type.encode(), event.body) for event in events])


async def watch_caller(
    work: Coroutine[Any, Any, Answer], receive: Receive, left: Callable[[], Awaitable[None]]
) -> Answer:
    """Return what `work` returns, and call `left` where the client leaves before."""

    async def call_when_left() -> None:
        await _wait_for_disconnect(receive)
        await left()

    async with asyncio.TaskGroup() as group:
        leaving = group.create_task(call_when_left())
        outcome = await result_or_error(work)
        leaving.cancel()
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


async def _end_when_left(reading: asyncio.Timeout, receive: Receive) -> None:
    await _wait_for_disconnect(receive)
    reading.reschedule(asyncio.get_running_loop().time())
