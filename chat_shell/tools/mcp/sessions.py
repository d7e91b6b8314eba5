"""Work with a server in tasks of its own, so that a caller is free at once when it is cancelled."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from chat_shell.tools.mcp.messages import failure_of
from chat_shell.tools.ports.tools import CallFailure, ToolServerFailed

T = TypeVar("T")

log = structlog.get_logger("chat_shell.tool_servers")

FAREWELL_SECONDS = 2.0
"""How long a cancelled task may take to tell the server."""


class ServerTasks:
    """Runs work in a task group, which lives as long as the server is used. An error ends nothing but its own work."""

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None

    async def run(self, until: Awaitable[object]) -> None:
        """Take work until the awaitable ends, then cancel what still runs."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await until
                raise _Ended
        except* _Ended:
            pass
        finally:
            self._group = None

    async def result_of(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run work and return its result; a cancelled wait ends at once, and the work shortly after.

        Raises:
            ToolServerFailed: the work failed because of the server, or nothing runs here now.
        """
        group = self._group
        if group is None:
            raise ToolServerFailed(CallFailure.AWAY)
        task = group.create_task(attempt(work))
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            _cancel(task)
            raise
        outcome = CallFailure.BROKE if task.cancelled() else task.result()
        if isinstance(outcome, CallFailure):
            raise ToolServerFailed(outcome)
        return outcome[0]


class _Ended(Exception):
    """Ends the task group."""


def _cancel(task: asyncio.Task[object]) -> None:
    task.cancel()
    # Leaving a session sends a farewell, which a server that hangs would hold for ever.
    asyncio.get_running_loop().call_later(FAREWELL_SECONDS, task.cancel)


async def attempt(work: Callable[[], Awaitable[T]]) -> tuple[T] | CallFailure:
    """Return the result of work with a server, or why there is none; nothing but cancellation is raised.

    An error in a task group would end all that runs there, and the sender of messages chooses the paths of the library.
    """
    try:
        return (await work(),)
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            log.error("Client of a tool server broke", exc_info=error)
        return failure or CallFailure.UNREADABLE
