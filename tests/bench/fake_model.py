"""A model server that costs next to nothing, so that the bench measures the pair and not the fake.

    python -m tests.bench.fake_model --port 9900 --deltas 200 --delay-ms 0

Speaks streamed chat completions on a bare asyncio protocol. Each answer has `--deltas` text deltas of one
word; with a delay they are paced, without one they leave as fast as the socket takes them. A request may say both
itself, in its last message: "[deltas 200 delay 20]". A request whose last message contains "endless" gets deltas until
the client closes. `GET /closed` answers a JSON list with
the wall-clock instants (seconds) at which clients closed a stream before its end.
"""

import argparse
import asyncio
import json
import re
import time
from typing import cast

import uvloop

WORD = " ballast"
TAIL_BYTES = 2000
PACE = re.compile(rb"\[deltas (\d+) delay (\d+)\]")


def frame(delta: dict[str, str], finish: str | None = None, usage: dict[str, int] | None = None) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    body: dict[str, object] = {
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "bench",
        "choices": [] if usage else choices,
    }
    if usage:
        body["usage"] = usage
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    b"Cache-Control: no-cache\r\n\r\n"
)
FIRST = frame({"role": "assistant", "content": ""})
DELTA = frame({"content": WORD})


def http_chunk(payload: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(payload), payload)


class ModelProtocol(asyncio.Protocol):
    """One keep-alive connection; requests come one after the other."""

    def __init__(self, deltas: int, delay_seconds: float, closed: list[float]):
        self.deltas, self.delay_seconds, self.closed = deltas, delay_seconds, closed
        self.buffer = b""
        self.writable = asyncio.Event()
        self.writable.set()
        self.answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def eof_received(self) -> bool:
        self.end_of_file()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.end_of_file()

    def end_of_file(self) -> None:
        if self.answering and not self.answering.done():
            self.closed.append(time.time())
            self.answering.cancel()
            self.answering = None

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, separator, rest = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = content_length(head)
        if len(rest) < length:
            return
        body, self.buffer = rest[:length], rest[length:]
        path = head.split(b" ", 2)[1]
        if path.endswith(b"/chat/completions"):
            self.answering = asyncio.get_running_loop().create_task(self.answer(body[-TAIL_BYTES:]))
        elif path == b"/closed":
            self.send_json(self.closed)
        else:
            self.send_json({"object": "list", "data": [{"id": "bench", "object": "model"}]})

    def send_json(self, value: object) -> None:
        payload = json.dumps(value).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(payload)
        self.transport.write(head + payload)

    async def answer(self, asked: bytes) -> None:
        deltas, delay_seconds = self.deltas, self.delay_seconds
        if said := PACE.findall(asked):
            deltas, delay_seconds = int(said[-1][0]), int(said[-1][1]) / 1000
        endless = b"endless" in asked
        self.transport.write(HEAD + http_chunk(FIRST))
        begun_at, sent = asyncio.get_running_loop().time(), 0
        while endless or sent < deltas:
            self.transport.write(http_chunk(DELTA))
            sent += 1
            await self.writable.wait()
            # each delta has its instant, so that a late one does not delay those behind it
            await asyncio.sleep(max(0.0, begun_at + sent * delay_seconds - asyncio.get_running_loop().time()))
        usage = {"prompt_tokens": 100, "completion_tokens": sent, "total_tokens": 100 + sent}
        ending = frame({}, "stop") + frame({}, usage=usage) + b"data: [DONE]\n\n"
        self.transport.write(http_chunk(ending) + b"0\r\n\r\n")
        self.answering = None


def content_length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def serve(port: int, deltas: int, delay_seconds: float) -> None:
    closed: list[float] = []
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ModelProtocol(deltas, delay_seconds, closed), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--deltas", type=int, default=200)
    parser.add_argument("--delay-ms", type=float, default=0)
    given = parser.parse_args()
    uvloop.run(serve(given.port, given.deltas, given.delay_ms / 1000))
