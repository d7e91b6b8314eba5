"""What the libraries on the way of a delta cost by themselves: the least CPU that the pair can need for it.

    python -m tests.bench.libraries_alone

Each row is a process that does one thing only, for fifty streams paced as in the section `paced` of the bench: wait for
the next delta, read server-sent events with aiohttp, write or read messages of one delta with `grpc.aio`, write a body
with uvicorn. What writes is woken by a timer for each delta; the first row shows what the timers cost.
"""

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import aiohttp
import grpc.aio
import uvicorn
import uvloop

from tests.bench.figures import Figure, render_table
from tests.servers.ports import free_port

STREAMS, DELTAS, RATE = 50, 250, 50
MICROSECONDS = 1_000_000
MESSAGE = b"\n\x08 ballast"
FRAME = b"event: response.output_text.delta\ndata: " + b"x" * 220 + b"\n\n"
SERVICE, METHOD = "bench.Libraries", "Stream"
CONNECT_SECONDS = 0.5
"""How long what reads waits for its server."""

Step = Callable[[], Awaitable[object]]


async def side_by_side(stream: Step) -> None:
    """Run all streams; they begin spread over a second, as those of the bench do."""

    async def begin(place: int) -> None:
        await asyncio.sleep(CONNECT_SECONDS + place / STREAMS)
        await stream()

    async with asyncio.TaskGroup() as group:
        for place in range(STREAMS):
            group.create_task(begin(place))


async def paced(write: Step) -> None:
    """Write each delta of a stream at its instant."""
    loop = asyncio.get_running_loop()
    begun_at = loop.time()
    for number in range(DELTAS):
        await asyncio.sleep(max(0.0, begun_at + number / RATE - loop.time()))
        await write()


async def wait(_port: int) -> None:
    """Write nothing."""

    async def write() -> None:
        return

    await side_by_side(lambda: paced(write))


async def grpc_write(port: int) -> None:
    """Serve streams of one method over gRPC."""
    ended = asyncio.Semaphore(0)

    async def stream(_request: bytes, context: Any) -> None:
        await paced(lambda: context.write(MESSAGE))
        ended.release()

    handler: Any = cast(Any, grpc).unary_stream_rpc_method_handler(stream)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    for _ in range(STREAMS):
        await ended.acquire()
    await server.stop(1)


async def grpc_read(port: int) -> None:
    """Read these streams."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call_of: Any = cast(Any, channel).unary_stream(f"/{SERVICE}/{METHOD}")

        async def stream() -> None:
            call = call_of(b"", wait_for_ready=True)
            while isinstance(await call.read(), bytes):
                pass

        await side_by_side(stream)


async def uvicorn_write(port: int) -> None:
    """Serve bodies without an end of their own over HTTP."""
    ended = 0

    async def app(_scope: object, _receive: object, send: Any) -> None:
        nonlocal ended
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await paced(lambda: send({"type": "http.response.body", "body": FRAME, "more_body": True}))
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        ended += 1
        server.should_exit = ended == STREAMS

    config = uvicorn.Config(cast(Any, app), port=port, loop="uvloop", http="httptools", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    await server.serve()


async def socket_read(port: int) -> None:
    """Read these bodies, as the load of the bench does."""

    async def stream() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")
        while await reader.read(65_536):
            pass
        writer.close()

    await side_by_side(stream)


async def aiohttp_read(port: int) -> None:
    """Read answers of the fake model."""
    body = json.dumps({"messages": [{"content": f"[deltas {DELTAS} delay {1000 // RATE}]"}]})
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def stream() -> None:
            async with session.post(f"http://127.0.0.1:{port}/v1/chat/completions", data=body) as answer:
                while await answer.content.readany():
                    pass

        await side_by_side(stream)


PARTS = {part.__name__: part for part in (wait, aiohttp_read, grpc_write, grpc_read, uvicorn_write, socket_read)}


def microseconds_a_delta(parts: Sequence[str], *, with_model: bool = False) -> list[tuple[str, float, float]]:
    """Run parts beside each other, each a process; return the user and system time of each for a delta."""
    port = free_port()
    model = [sys.executable, "-m", "tests.bench.fake_model", "--port", str(port)]
    beside = [subprocess.Popen(model)] if with_model else []
    try:
        command = [sys.executable, "-m", "tests.bench.libraries_alone", str(port)]
        running = [subprocess.Popen([*command, part], stdout=subprocess.PIPE, text=True) for part in parts]
        used = [json.loads(each.communicate()[0]) for each in running]
    finally:
        for each in beside:
            each.kill()
            each.wait()
    return [(part, *times) for part, times in zip(parts, used, strict=True)]


def run_part(name: str, port: int) -> None:
    """Run one part and print what it used."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    uvloop.run(PARTS[name](port))
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    print(json.dumps([seconds / (STREAMS * DELTAS) * MICROSECONDS for seconds in spent]))


def main(arguments: Sequence[str]) -> None:
    """Run all parts, or the one that is named behind its port."""
    if arguments:
        run_part(arguments[1], int(arguments[0]))
        return
    rows = microseconds_a_delta(["wait"]) + microseconds_a_delta(["aiohttp_read"], with_model=True)
    rows += microseconds_a_delta(["grpc_write", "grpc_read"]) + microseconds_a_delta(["uvicorn_write", "socket_read"])
    figures = [
        Figure(f"CPU a delta, {STREAMS} streams at {RATE} deltas/s, {name}, {kind}", value, "µs")
        for name, *times in rows
        for kind, value in zip(("user", "system"), times, strict=True)
    ]
    print(render_table(figures))


if __name__ == "__main__":
    main(sys.argv[1:])
