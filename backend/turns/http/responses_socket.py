"""Responses over a WebSocket: each message of the client is answered as the same request over HTTP would be.

It is put to the application as such a request, so that its key, its limits and its log are those of any other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import WebSocketRoute
from starlette.types import Message, Receive, Scope, Send

from backend.foundation.http.errors import error_body, error_response, status_of
from backend.foundation.http.json_body import new_router
from backend.foundation.http.middleware import KEY_ID
from backend.foundation.http.services import GOING_AWAY, HttpOptions, service_in
from backend.identity.services import ACT_FOR_HEADER
from backend.turns.domain.input_requests import socket_request_cooperatively
from backend.turns.http.refused_early import RESPONSES_PATH
from backend.turns.http.turn_answers import READING
from shared.errors import BallastError, Conflict, InvalidRequest, PermissionDenied
from shared.http_server.connection import CLIENT_LEFT
from shared.shares import Holder, Lease

MOST_ASKED = 2
"""The turn that runs, and the message behind it: turns of a connection run one after another."""

_FORWARDED = (b"authorization", b"host", b"user-agent", ACT_FOR_HEADER.lower().encode())
_GOING_AWAY_CODE = 1001
_AT_LIMIT = "websocket_connection_limit_reached"
_LOST_PREVIOUS = "previous_response_not_found"
"""OpenAI's codes, by which clients open a new connection, or send the whole history."""

Tell = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class ResponsesSocket:
    """Serves connections as an ASGI application; a connection may be used as long as OpenAI's."""

    idle_seconds: float = 600.0
    longest_seconds: float = 3600.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection: who may not call is told so by an answer of HTTP, and has no socket."""
        await receive()  # the client asks for a connection
        left, connection = asyncio.Event(), HTTPConnection(scope)
        options, knock = service_in(connection, HttpOptions), _Exchange(scope, "GET", b"", left)
        try:
            _check_origin(connection, options)
            await knock.run(_tell_nothing)
            if knock.status != HTTPStatus.UPGRADE_REQUIRED:
                await _deny(Response(bytes(knock.body), knock.status, knock.headers), send)
                return
            holder = Holder(knock.state[KEY_ID])
            place, room = options.sockets.lease(holder), options.socket_bytes.lease(holder)
            place.grow(1)
        except BallastError as error:
            await _deny(error_response(error), send)
            return
        with place, room:
            await send({"type": "websocket.accept", "headers": []})
            await _Socket(scope, receive, send, left).serve(self, room)


def _check_origin(connection: HTTPConnection, options: HttpOptions) -> None:
    origin = connection.headers.get("origin")
    if origin is not None and not options.allows(origin):
        raise PermissionDenied("Scripts of this origin may not use this API.", param="Origin")


async def _tell_nothing(_: str) -> None:
    """Tell nothing: there is no connection yet."""


async def _deny(response: Response, send: Send) -> None:
    start = {"type": "websocket.http.response.start", "status": response.status_code}
    await send({**start, "headers": response.raw_headers})
    await send({"type": "websocket.http.response.body", "body": response.body})


class _Exchange:
    """One request that is put to the application, and its answer, of which the events of a stream are told."""

    def __init__(self, socket: Scope, method: str, body: bytes, left: asyncio.Event) -> None:
        self.status = 0
        self.headers = Headers()
        self.body = bytearray()
        self.state: dict[str, Any] = {**socket["state"], CLIENT_LEFT: left, READING: socket_request_cooperatively}
        self._frames = FrameReader()
        self._socket = socket
        self._method = method
        self._asked: bytes | None = body
        self._left = left

    async def run(self, tell: Tell) -> None:
        """Put the request, and tell the events of its answer."""
        self._tell, socket = tell, self._socket
        headers = [(name, value) for name, value in socket["headers"] if name in _FORWARDED]
        request = {
            **{name: socket[name] for name in ("asgi", "http_version", "client", "server", "path", "raw_path")},
            "type": "http",
            "method": self._method,
            "scheme": "https" if socket["scheme"] == "wss" else "http",
            "root_path": "",
            "query_string": b"",
            "headers": [*headers, (b"content-type", b"application/json")],
            "state": self.state,
        }
        await socket["app"](request, self._receive, self._send)

    async def _receive(self) -> Message:
        body, self._asked = self._asked, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        body = message.get("body", b"")
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], Headers(raw=message["headers"])
        elif self.status == HTTPStatus.OK:
            for event in self._frames.read(body):
                await self._tell(event)
        else:
            self.body += body


class FrameReader:
    """Reads the events of a stream that comes in pieces; comments and the end of a stream are none."""

    def __init__(self) -> None:
        self._begun = b""

    def read(self, piece: bytes) -> Iterator[str]:
        """Yield the events that are whole with this piece."""
        *frames, self._begun = (self._begun + piece).split(b"\n\n")
        for frame in frames:
            _, begins, event = frame.partition(b"data: {")
            if begins:
                yield "{" + event.decode()


class _Socket:
    """An open connection: what its client asks for is answered in turn."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, left: asyncio.Event) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._left = left
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._asked_count = 0
        self._loop = asyncio.get_running_loop()

    async def serve(self, limits: ResponsesSocket, room: Lease) -> None:
        ends_at = self._loop.time() + limits.longest_seconds
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(self._read(room))
            while (body := await self._next(limits.idle_seconds, ends_at)) is not None:
                await self._answer(body)
                room.shrink(len(body))
                self._asked_count -= 1
            reading.cancel()
        if not self._left.is_set():
            await self._send({"type": "websocket.close", "code": _GOING_AWAY_CODE})

    async def _read(self, room: Lease) -> None:
        """Take what comes while turns run, too: the client may leave."""
        while not self._left.is_set():
            message = await self._receive()
            if message["type"] == "websocket.receive":
                await self._take(message, room)
                continue
            if message["type"] != GOING_AWAY:
                self._left.set()
            self._waiting.put_nowait(None)

    async def _take(self, message: Message, room: Lease) -> None:
        text = message.get("text")
        body = text.encode() if text is not None else message["bytes"]
        try:
            if self._asked_count >= MOST_ASKED:
                raise Conflict("A response runs and another one waits for it; send the next one then.")
            room.grow(len(body))
        except BallastError as error:
            await self._refuse(error)
            return
        self._asked_count += 1
        self._waiting.put_nowait(body)

    async def _next(self, idle_seconds: float, ends_at: float) -> bytes | None:
        """Return the next message; None where the connection ends."""
        now = self._loop.time()
        if now < ends_at:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(now + idle_seconds, ends_at)):
                    return await self._waiting.get()
        await self._refuse(InvalidRequest("This connection has ended; open another one."), _AT_LIMIT)
        return None

    async def _answer(self, body: bytes) -> None:
        asked = _Exchange(self._scope, "POST", body, self._left)
        await asked.run(self._tell)
        if asked.body:
            error = orjson.loads(asked.body)["error"]
            is_lost = asked.status == HTTPStatus.NOT_FOUND and error["param"] == "previous_response_id"
            await self._tell_error(asked.status, {**error, "code": _LOST_PREVIOUS} if is_lost else error)

    async def _refuse(self, error: BallastError, code: str | None = None) -> None:
        told = error_body(error)
        await self._tell_error(status_of(type(error))[0], {**told, "code": code or told["code"]})

    async def _tell_error(self, status: int, error: Mapping[str, str | None]) -> None:
        await self._tell(orjson.dumps({"type": "error", "status": status, "error": error}).decode())

    async def _tell(self, text: str) -> None:
        if self._left.is_set():
            return
        try:
            await self._send({"type": "websocket.send", "text": text})
        except OSError:  # the client has left, and the message that says so has not been read yet
            self._left.set()


router = new_router("Responses")
router.routes.append(WebSocketRoute(RESPONSES_PATH, ResponsesSocket()))
