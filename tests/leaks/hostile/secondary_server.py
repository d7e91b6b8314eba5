"""An OpenAI-compatible server in this event loop that answers with any bytes, or not at all."""

import asyncio
from collections.abc import Callable
from typing import Any, Self

import orjson

from tests.leaks.hostile.replies import Behaviour, HttpReply

Answer = Callable[[dict[str, Any]], Behaviour]


class SecondaryServer:
    """One request a connection; `answer` gets its JSON body."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._running: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *exception: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    @property
    def base_url(self) -> str:
        """The address to configure, ending in /v1."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            await self._converse(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the caller left
        finally:
            self._running.discard(task)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        body = await reader.readexactly(int(lengths[0].partition(b":")[2]))
        behaviour = self._answer(orjson.loads(body))
        if isinstance(behaviour, HttpReply):
            writer.write(behaviour.raw)
            await writer.drain()
        else:
            await reader.read()
