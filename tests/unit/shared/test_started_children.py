"""A child process that is started while a gRPC call runs leaves no line among those of the log."""

import os
import subprocess
import sys

import pytest

_STARTS_CHILDREN_BESIDE_A_STREAM = """
import asyncio, os, sys
from shared.chosen import let_grpc_ignore_children

if sys.argv[1] == "ignoring":
    let_grpc_ignore_children(os.environ)
from grpc import aio, method_handlers_generic_handler, unary_stream_rpc_method_handler

async def numbers(request, context):
    for _ in range(1_000_000):
        yield b"1"
        await asyncio.sleep(0)

async def start_children():
    server = aio.server()
    handler = unary_stream_rpc_method_handler(numbers)
    server.add_generic_rpc_handlers((method_handlers_generic_handler("a.Service", {"Count": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    call = aio.insecure_channel(f"127.0.0.1:{port}").unary_stream("/a.Service/Count")(b"")
    for _ in range(20):
        await call.read()
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", "", preexec_fn=os.getpid)
        await child.wait()
    os._exit(0)

asyncio.run(start_children())
"""


@pytest.mark.parametrize(("mode", "is_silent"), [("ignoring", True), ("watching", False)])
def test_children_leave_no_line(mode: str, is_silent: bool) -> None:
    command = [sys.executable, "-c", _STARTS_CHILDREN_BESIDE_A_STREAM, mode]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=environment)
    assert ("fork() handlers" not in ran.stderr) is is_silent, ran.stderr
