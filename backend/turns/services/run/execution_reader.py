"""Reading the events of a turn's executions, one after another."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from backend.foundation.services.supervision import result_or_error
from backend.turns.services.turn_ports import TurnPorts
from shared.batch_buffer import BatchBuffer
from shared.errors import BallastError, ChatShellUnavailable, DeadlineExceeded
from shared.models.events import ExecutionEvent
from shared.models.execution import ExecutionRequest, remaining_seconds

MAX_WAITING_EVENTS = 256
"""With more events than this unwritten the reader waits; flow control then slows chat_shell and the provider, too."""

DEADLINE_GRACE_SECONDS = 2.0
"""chat_shell reports a passed deadline itself; this timeout is for a chat_shell that cannot."""


class ExecutionReader:
    """Reads executions one after another; `is_stopped` says that no further one may begin.

    `error` is what the newest one has ended with where it sent no last event, None where this process ended it.
    """

    def __init__(self, ports: TurnPorts, group: asyncio.TaskGroup) -> None:
        self.is_stopped = False
        self.error: BaseException | None = None
        self._ports = ports
        self._group = group
        self._task: asyncio.Task[None] | None = None

    def start(self, request: ExecutionRequest) -> BatchBuffer[ExecutionEvent]:
        """Send a request; return where its events arrive."""
        inbox = BatchBuffer[ExecutionEvent](MAX_WAITING_EVENTS)
        self.error = None
        if self.is_stopped:
            inbox.close()
        else:
            self._task = self._group.create_task(self._follow(request, inbox))
            # A task that is cancelled before its first step runs nothing of its coroutine, no `finally` either.
            self._task.add_done_callback(lambda _: inbox.close())
        return inbox

    def end(self) -> None:
        """End the execution that runs; events that have arrived by then can still be taken."""
        if self._task is not None:
            self._task.cancel()

    def stop(self) -> None:
        """End the execution that runs, and begin no further one."""
        self.is_stopped = True
        self.end()

    async def _follow(self, request: ExecutionRequest, inbox: BatchBuffer[ExecutionEvent]) -> None:
        self.error = await result_or_error(self._read(request, inbox))

    async def _read(self, request: ExecutionRequest, inbox: BatchBuffer[ExecutionEvent]) -> BallastError:
        """Read chat_shell's events to the end of the stream; return the error to report if no last event came."""
        left_seconds = remaining_seconds(request.deadline, self._ports.clock.now())
        stream = cast(AsyncGenerator[tuple[ExecutionEvent, ...]], self._ports.chat_shell.execute(request))
        try:
            async with asyncio.timeout(left_seconds + DEADLINE_GRACE_SECONDS), aclosing(stream) as batches:
                async for batch in batches:
                    inbox.add(batch)
                    if inbox.is_overfull:
                        await inbox.room()
            return ChatShellUnavailable("The answer broke off.")
        except TimeoutError:
            return DeadlineExceeded("The turn took too long.")
        except BallastError as error:
            return error
