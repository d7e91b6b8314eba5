"""A turn may be silent for long: the keepalive of both ends of gRPC ends no call."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import grpc.aio
import pytest
from grpc import method_handlers_generic_handler, unary_stream_rpc_method_handler
from grpc._cython import cygrpc

from shared.wire.keepalive import options_of_client, options_of_server
from tests.house.sources import ROOT

PING_SECONDS = 1.0
"""The shortest time after which gRPC asks again."""

SILENT_PINGS = 6
"""A server that expects fewer pings ends the connection at the third or fourth one."""

OPTION = re.compile(r'"(grpc\.[a-z0-9_.]+)"')
OPTIONS_ARE_GIVEN_IN = (
    ROOT / "shared/wire/keepalive.py",
    ROOT / "backend/chat_shell_client/grpc_client.py",
    ROOT / "chat_shell/servers/grpc/server.py",
)


async def silent_for_long(_request: bytes, _context: object) -> AsyncIterator[bytes]:
    await asyncio.sleep(SILENT_PINGS * PING_SECONDS)
    yield b"alive"


async def test_a_call_that_is_silent_for_many_pings_lives_on() -> None:
    server = grpc.aio.server(options=options_of_server(PING_SECONDS))
    handlers = {"Wait": cast(Any, unary_stream_rpc_method_handler)(silent_for_long)}
    server.add_generic_rpc_handlers((method_handlers_generic_handler("a.Service", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options_of_client(PING_SECONDS)) as channel:
            call = cast(Any, channel).unary_stream("/a.Service/Wait")(b"")
            assert await call.read() == b"alive"
    finally:
        await server.stop(None)


@pytest.mark.parametrize("source", OPTIONS_ARE_GIVEN_IN, ids=lambda path: path.name)
def test_grpc_knows_each_option(source: Path) -> None:
    library = Path(str(cygrpc.__file__)).read_bytes()
    named = OPTION.findall(source.read_text(encoding="utf-8"))
    assert named
    for name in named:
        assert name.encode() + b"\0" in library, f"gRPC ignores {name}, which it does not know"
