"""The fake model server in-process; its API is told in the package's docstring."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import orjson
from pydantic import TypeAdapter

from tests.fakes.model_server import frames, messages_frames, responses_frames
from tests.fakes.model_server.connection import Connection
from tests.fakes.model_server.script import ConnectionRecord, Fault, RecordedRequest, Reply, Script

COMMENT_INTERVAL_SECONDS = 0.02
ENDLESS_INTERVAL_SECONDS = 0.002
"""It says too little to reach the length of the longest answer before a test is over."""
STREAM_HEADERS = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
FORMS = {
    "/v1/chat/completions": frames,
    "/v1/responses": responses_frames,
    "/v1/messages": messages_frames,
}
_REQUESTS = TypeAdapter(list[RecordedRequest])
_REPLIES = TypeAdapter(tuple[Reply, ...])


def _say_ok(request: RecordedRequest) -> Reply:
    return Reply(text=("ok",))


class FakeModelServer:
    """Answer as scripted and record what came."""

    def __init__(
        self,
        answer: Callable[[RecordedRequest], Reply] | None = None,
        *,
        models: tuple[str, ...] = ("fake-model",),
        record: Path | None = None,
        port: int = 0,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self._answer = answer or _say_ok
        self._models = models
        self._record = record
        self._port = port
        self._script = Script()
        self._connections: list[Connection] = []
        self._held = 0
        self._releases = asyncio.Semaphore(0)
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connect, "127.0.0.1", self._port)
        return self

    async def __aexit__(self, *exception: object) -> None:
        assert self._server is not None
        self._server.close()
        for connection in self._connections:
            connection.abort()
        tasks = [connection.task for connection in self._connections if connection.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def base_url(self) -> str:
        """The address to configure, ending in /v1."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    @property
    def connections(self) -> list[ConnectionRecord]:
        """All connections so far."""
        return [connection.record for connection in self._connections]

    @property
    def bytes_sent(self) -> int:
        """Bytes written so far on all connections."""
        return sum(connection.bytes_sent for connection in self._connections)

    def script(self, *replies: Reply, when: str | None = None) -> None:
        """Append replies, used up in order."""
        self._script.add(replies, when)

    def reset(self) -> None:
        """Forget script and requests; connections stay."""
        self._script.clear()
        self.requests.clear()

    def release(self, count: int = 1) -> None:
        """Let so many held replies go on."""
        for _ in range(count):
            self._releases.release()

    async def wait_requests(self, count: int) -> None:
        """Return once so many requests have come."""
        await self._until(lambda: len(self.requests) >= count)

    async def wait_held(self, count: int = 1) -> None:
        """Return once so many replies wait for `release`."""
        await self._until(lambda: self._held >= count)

    async def wait_closed(self, request: int = -1) -> float:
        """Return when, in monotonic seconds, the client closed the connection of this request."""
        connection = self._connections[self.requests[request].connection]
        await self._until(lambda: connection.closed_at is not None)
        assert connection.closed_at is not None
        return connection.closed_at

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _connect(self) -> Connection:
        connection = Connection(len(self._connections), self._respond, self._notify)
        self._connections.append(connection)
        return connection

    async def _respond(self, request: RecordedRequest, connection: Connection) -> None:
        target = urlsplit(request.path)
        if target.path.startswith("/_"):
            query = {name: int(values[0]) for name, values in parse_qs(target.query).items()}
            await connection.send_whole(200, await self._control(target.path, query, request.body))
        elif (request.method, target.path) == ("GET", "/v1/models"):
            models = [{"id": name, "object": "model", "created": 0, "owned_by": "fake"} for name in self._models]
            await connection.send_whole(200, orjson.dumps({"object": "list", "data": models}))
        elif request.method == "POST" and target.path in FORMS:
            self._remember(request)
            await self._reply(self._script.next(request) or self._answer(request), request, connection)
        else:
            await connection.send_whole(404, frames.error_body(404))

    def _remember(self, request: RecordedRequest) -> None:
        self.requests.append(request)
        if self._record is not None:
            with self._record.open("ab") as file:
                file.write(request.model_dump_json().encode() + b"\n")
        self._notify()

    async def _control(self, path: str, query: dict[str, int], body: bytes) -> bytes:
        if path == "/_script":
            posted: Any = orjson.loads(body)
            self.script(*_REPLIES.validate_json(orjson.dumps(posted["replies"])), when=posted.get("when"))
        elif path == "/_release":
            self.release(orjson.loads(body or b"{}").get("count", 1))
        elif path == "/_reset":
            self.reset()
        elif path == "/_requests":
            return _REQUESTS.dump_json(self.requests)
        elif path == "/_connections":
            return orjson.dumps([record.model_dump() for record in self.connections])
        else:
            return await self._wait(path, query)
        return b"{}"

    async def _wait(self, path: str, query: dict[str, int]) -> bytes:
        if path == "/_wait":
            await self.wait_requests(query["requests"])
        elif path == "/_wait_held":
            await self.wait_held(query.get("count", 1))
        elif path == "/_wait_closed":
            return orjson.dumps({"closed_at": await self.wait_closed(query.get("request", -1))})
        return b"{}"

    async def _reply(self, reply: Reply, request: RecordedRequest, connection: Connection) -> None:
        form = FORMS[urlsplit(request.path).path]
        if reply.first_pause_seconds:
            await asyncio.sleep(reply.first_pause_seconds)
        if reply.raw is not None:
            await self._send_raw(reply, reply.raw, connection)
        elif reply.body is not None or reply.status != 200:
            body = form.error_body(reply.status) if reply.body is None else reply.body.encode()
            await connection.send_whole(reply.status, body, reply.headers)
        elif reply.ignore_stream or not request.json_body.get("stream"):
            await connection.send_whole(200, form.whole_answer(reply, request), reply.headers)
        else:
            await self._stream(reply, request, connection)

    async def _send_raw(self, reply: Reply, raw: tuple[bytes, ...], connection: Connection) -> None:
        await connection.start(reply.status, STREAM_HEADERS | reply.headers)
        for piece in raw:
            await connection.send_chunk(piece)
            await asyncio.sleep(reply.pause_seconds)
        await self._finish(reply, b"", connection)

    async def _stream(self, reply: Reply, request: RecordedRequest, connection: Connection) -> None:
        form = FORMS[urlsplit(request.path).path]
        model = str(request.json_body.get("model", ""))
        deltas = form.delta_frames(reply, model)
        await connection.start(200, STREAM_HEADERS | reply.headers)
        await connection.send_chunk(form.role_frame(reply, model))
        sent = deltas if reply.fault is Fault.NONE else deltas[: reply.fault_after]
        await self._send_deltas(sent, reply, connection)
        if reply.fault is Fault.NONE:
            await connection.send_chunk(b"".join(form.end_frames(reply, request)))
        await self._finish(reply, deltas[-1] if deltas else form.role_frame(reply, model), connection)

    async def _send_deltas(self, deltas: list[bytes], reply: Reply, connection: Connection) -> None:
        for start in range(0, len(deltas), reply.frames_per_write):
            if reply.holds or reply.hold_after == start:
                await self._hold()
            await connection.send_chunk(b"".join(deltas[start : start + reply.frames_per_write]))
            if reply.pause_seconds:
                await asyncio.sleep(reply.pause_seconds)
        if reply.hold_after is not None and reply.hold_after >= len(deltas):
            await self._hold()

    async def _hold(self) -> None:
        self._held += 1
        self._notify()
        try:
            await self._releases.acquire()
        finally:
            self._held -= 1

    async def _finish(self, reply: Reply, again: bytes, connection: Connection) -> None:
        if reply.fault is Fault.CUT:
            connection.close()
            return
        if reply.fault is Fault.GARBAGE:
            await connection.send_chunk(b"data: {this is no frame\xff\n\n")
        while reply.fault in (Fault.STALL, Fault.STALL_WITH_COMMENTS, Fault.ENDLESS):
            await self._go_on(reply.fault, again, connection)
        await connection.write(b"0\r\n\r\n")

    async def _go_on(self, fault: Fault, again: bytes, connection: Connection) -> None:
        if fault is Fault.STALL:
            await asyncio.Event().wait()
        elif fault is Fault.STALL_WITH_COMMENTS:
            await connection.send_chunk(b": still there\n\n")
            await asyncio.sleep(COMMENT_INTERVAL_SECONDS)
        else:
            await connection.send_chunk(again)
            await asyncio.sleep(ENDLESS_INTERVAL_SECONDS)
