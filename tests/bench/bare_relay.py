"""A bare relay of the same deltas: aiohttp, one `grpc.aio` stream joined for 15 ms, uvicorn; what the pair cannot beat.

    python -m tests.bench.bare_relay [streams]

Two processes do what the pair does with a paced delta and nothing else: nothing is checked, read, numbered, kept or
stored, and who asks is not known. The section `paced` of the bench prints their CPU beside that of the pair.
"""

import asyncio
import json
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any, cast

import aiohttp
import grpc.aio
import uvicorn
import uvloop

from protos.execution.v1.chat_shell_pb2 import FromShell
from tests.servers.ports import free_port

DELTAS, RATE = 250, 50
ROUND_SECONDS = 0.015
MICROSECONDS = 1_000_000
SERVICE, METHOD = "bench.Relay", "Connect"
FRAME = b"event: response.output_text.delta\ndata: %b\n\n"


async def relay_answers(model: int, link: int, _http: int, streams: int) -> None:
    """Read answers of the fake model, and write what has come of all of them in one message."""
    body = json.dumps({"messages": [{"content": f"[deltas {DELTAS} delay {1000 // RATE}]"}]})
    ended = asyncio.Semaphore(0)

    async def connect(_requests: object, context: Any) -> None:
        waiting, has_come = FromShell(), asyncio.Event()

        async def answer(session: aiohttp.ClientSession, turn: int) -> None:
            async with session.post(f"http://127.0.0.1:{model}/v1/chat/completions", data=body) as answered:
                while received := await answered.content.readany():
                    waiting.frames.add(turn=turn, events=[received])
                    has_come.set()
            waiting.frames.add(turn=turn, is_last=True)
            has_come.set()
            ended.release()

        async def write() -> None:
            nonlocal waiting
            while True:
                await has_come.wait()
                has_come.clear()
                message, waiting = waiting, FromShell()
                await context.write(message.SerializeToString())
                await asyncio.sleep(ROUND_SECONDS)

        unlimited = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=unlimited) as session, asyncio.TaskGroup() as group:
            writing = group.create_task(write())
            while isinstance(asked := await context.read(), bytes):
                group.create_task(answer(session, int(asked)))
            writing.cancel()

    handler: Any = cast(Any, grpc).stream_stream_rpc_method_handler(connect)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
    server.add_insecure_port(f"127.0.0.1:{link}")
    await server.start()
    for _ in range(streams):
        await ended.acquire()
    await server.stop(1)


async def relay_to_clients(_model: int, link: int, http: int, streams: int) -> None:
    """Serve these answers as server-sent events."""
    numbers, answers, ended, writing = count(), dict[int, asyncio.Queue[bytes]](), 0, asyncio.Lock()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{link}") as channel:
        call: Any = cast(Any, channel).stream_stream(f"/{SERVICE}/{METHOD}")(wait_for_ready=True)

        async def read() -> None:
            with suppress(grpc.aio.AioRpcError):
                while isinstance(body := await call.read(), bytes):
                    for frame in FromShell.FromString(body).frames:
                        answers[frame.turn].put_nowait(b"".join(frame.events))

        async def app(_scope: object, _receive: object, send: Any) -> None:
            nonlocal ended
            turn = next(numbers)
            answers[turn] = asyncio.Queue()
            async with writing:
                await call.write(b"%d" % turn)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while piece := await answers[turn].get():
                await send({"type": "http.response.body", "body": FRAME % piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            ended += 1
            server.should_exit = ended == streams

        options: dict[str, Any] = {"loop": "uvloop", "http": "httptools", "lifespan": "off", "log_config": None}
        server = uvicorn.Server(uvicorn.Config(cast(Any, app), port=http, **options))
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(read())
            await server.serve()
            reading.cancel()


async def read_all(_model: int, _link: int, http: int, streams: int) -> None:
    """Read these events as the load of the bench does; the streams begin spread over a second."""
    await asyncio.to_thread(wait_until_open, http)

    async def stream(place: int) -> None:
        await asyncio.sleep(place / streams)
        reader, writer = await asyncio.open_connection("127.0.0.1", http)
        writer.write(b"GET / HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")
        while await reader.read(65_536):
            pass
        writer.close()

    async with asyncio.TaskGroup() as group:
        for place in range(streams):
            group.create_task(stream(place))


def wait_until_open(port: int) -> None:
    """Return once a server listens there."""
    while True:
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)


PARTS = {part.__name__: part for part in (relay_answers, relay_to_clients, read_all)}


def relay_microseconds(streams: int) -> float:
    """Return the CPU time of both processes of the relay for a delta."""
    ports = [str(free_port()) for _ in range(3)]
    model = subprocess.Popen([sys.executable, "-m", "tests.bench.fake_model", "--port", ports[0]])
    try:
        wait_until_open(int(ports[0]))
        command = [sys.executable, "-m", "tests.bench.bare_relay"]
        running = [
            subprocess.Popen([*command, part, *ports, str(streams)], stdout=subprocess.PIPE, text=True)
            for part in PARTS
        ]
        used = [float(each.communicate()[0]) for each in running]
    finally:
        model.kill()
        model.wait()
    return sum(used[:2])


def run_part(name: str, *numbers: int) -> None:
    """Run one part and print the CPU time that it used for a delta."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    uvloop.run(PARTS[name](*numbers))
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(spent / (numbers[-1] * DELTAS) * MICROSECONDS)


def main(arguments: Sequence[str]) -> None:
    """Run the relay, or the part of it that is named before its ports and the number of streams."""
    if arguments and arguments[0] in PARTS:
        run_part(arguments[0], *map(int, arguments[1:]))
    else:
        streams = int(arguments[0]) if arguments else 50
        print(f"{relay_microseconds(streams):.1f} µs of CPU a delta, {streams} streams at {RATE} deltas/s, bare relay")


if __name__ == "__main__":
    main(sys.argv[1:])
