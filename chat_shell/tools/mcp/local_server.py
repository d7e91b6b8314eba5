"""A tool server that runs as a child: one session for all calls, in which each call is a request of its own."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import structlog
from mcp.client.client import Client
from mcp.client.session import ClientSession

from chat_shell.tools.domain.definitions import ListedTool
from chat_shell.tools.domain.server_entry import LocalServer, ServerEntry
from chat_shell.tools.mcp.child_streams import Child, Streams, start_child
from chat_shell.tools.mcp.messages import call_tool, read_list
from chat_shell.tools.mcp.sessions import ServerTasks, attempt
from chat_shell.tools.ports.tools import CallFailure, CallResult, ToolServerFailed
from shared.models.values import JsonObject

T = TypeVar("T")

log = structlog.get_logger("chat_shell.tool_servers")

Sleep = Callable[[float], Awaitable[None]]

HANDSHAKE_SECONDS = 30.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
"""Between a child's end and its next start. Each pause is twice as long, until a child has lived this long."""


class LocalToolServer:
    """Implements `ToolServer` for a command.

    A child that dies, or writes more than may be read, ends the calls that run and is started again after a pause.
    """

    def __init__(self, entry: ServerEntry, link: LocalServer, sleep: Sleep = asyncio.sleep) -> None:
        self._name = entry.name
        self._link = link
        self._max_bytes = entry.max_message_bytes
        self._sleep = sleep
        self._tasks = ServerTasks()
        self._session: ClientSession | None = None
        self._child: Child | None = None
        self._newest: Child | None = None
        self._has_served = False
        self._has_started = asyncio.Event()
        self._has_started.set()

    async def run(self) -> None:
        """Keep a child running until cancelled."""
        await self._tasks.run(self._keep_running())

    async def list_tools(self) -> tuple[ListedTool, ...]:
        """Return its tools as it lists them now.

        Raises:
            ToolServerFailed: it gave no list.
        """
        return await self._in_session(read_list)

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        """Call a tool.

        Raises:
            ToolServerFailed: it gave no result.
        """
        return await self._in_session(lambda session: call_tool(session, tool, arguments))

    async def _in_session(self, work: Callable[[ClientSession], Awaitable[T]]) -> T:
        await self._has_started.wait()
        session, child = self._session, self._child
        if session is None or child is None:
            raise ToolServerFailed(CallFailure.AWAY)
        try:
            return await self._tasks.result_of(lambda: work(session))
        except ToolServerFailed as failed:
            raise ToolServerFailed(CallFailure.TOO_LARGE if child.is_too_large else failed.failure) from None

    async def _keep_running(self) -> None:
        pause_seconds = FIRST_PAUSE_SECONDS
        loop = asyncio.get_running_loop()
        while True:
            started_at = loop.time()
            await attempt(self._live)
            self._log_end()
            if loop.time() - started_at > LONGEST_PAUSE_SECONDS:
                pause_seconds = FIRST_PAUSE_SECONDS
            await self._sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)

    async def _live(self) -> None:
        """Start a child, and let calls use it until it ends; calls wait meanwhile for it to start, or to fail."""
        self._has_started.clear()
        self._newest, self._has_served = None, False
        try:
            async with start_child(self._link, self._max_bytes) as (child, streams):
                self._newest = child
                async with asyncio.timeout(HANDSHAKE_SECONDS) as limit, Client(_as_transport(streams)) as client:
                    limit.reschedule(None)
                    self._session, self._child, self._has_served = client.session, child, True
                    self._has_started.set()
                    await child.ended.wait()
                    self._session = self._child = None
        except OSError as error:
            if self._newest is None:
                log.warning("Tool server cannot be started", server=self._name, reason=error.strerror)
            raise
        finally:
            self._session = self._child = None
            self._has_started.set()

    def _log_end(self) -> None:
        """Say how a child has ended; its words only where no call has reached it: these may repeat what was asked."""
        if self._newest is not None:
            said = "" if self._has_served else self._without_secrets(self._newest.last_line)
            exit_code = self._newest.started.returncode
            log.warning("Tool server has ended", server=self._name, exit_code=exit_code, last_line=said)

    def _without_secrets(self, line: str) -> str:
        secrets = [value.get_secret_value() for value in self._link.environment.values()]
        for secret in sorted(filter(None, secrets), key=len, reverse=True):
            line = line.replace(secret, "***")
        return line


@asynccontextmanager
async def _as_transport(streams: Streams) -> AsyncGenerator[Streams]:
    yield streams
