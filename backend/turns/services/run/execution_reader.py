"""Reading the events of a turn's executions, one after another."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TypeAlias, cast

from backend.turns.services.turn_ports import TurnPorts
from shared.errors import BallastError, ChatShellUnavailable, DeadlineExceeded
from shared.models.events import ExecutionEvent
from shared.models.execution import ExecutionRequest, count_seconds_left

DEADLINE_GRACE_SECONDS = 2.0
"""chat_shell reports a passed deadline itself; this timeout is for a chat_shell that cannot."""

Batch: TypeAlias = tuple[ExecutionEvent, ...]


class ExecutionEvents:
    """The events of one execution, as the task of the turn takes them: what it does not take slows chat_shell.

    The request is sent once they are first taken, and they are waited for until `seconds` from now. `error` is what it
    has ended with where it sent no last event, None where this process ended it.
    """

    def __init__(self, stream: AsyncGenerator[Batch], seconds: float) -> None:
        self.error: BallastError | None = None
        self._stream = stream
        self._has_begun = False
        self._is_ended = False
        self._is_over = False
        self._taking: asyncio.Task[object] | None = None
        self._is_interrupted = False
        late = DeadlineExceeded("The turn took too long.")
        self._timer = asyncio.get_running_loop().call_later(seconds, self.end, late)

    async def take(self) -> Sequence[ExecutionEvent]:
        """Wait for events and return them; none at the end."""
        while not self._is_over:
            is_last = self._is_ended
            found = await self._wait() if self._has_begun or not is_last else None
            if isinstance(found, tuple):
                self._has_begun = True
                return found
            if found is not None or is_last:
                await self._close(found)
        return ()

    def end(self, error: BallastError | None = None) -> None:
        """Wait for no further events; those that have arrived by then can still be taken."""
        if not (self._is_ended or self._is_over):
            self._is_ended, self.error = True, error
            self._interrupt()

    async def aclose(self) -> None:
        """End it now."""
        self.end()
        if not self._is_over:
            await self._close(None)

    async def _wait(self) -> Batch | BallastError | None:
        """Return events, or what the stream has ended with; None where it was ended before either came."""
        self._taking = task = asyncio.current_task()
        self._is_interrupted = False
        hurry = asyncio.get_running_loop().call_soon(self._interrupt) if self._is_ended else None
        try:
            return await anext(self._stream)
        except StopAsyncIteration:
            return ChatShellUnavailable("The answer broke off.")
        except BallastError as error:
            return error
        except asyncio.CancelledError:
            if task is None or not self._is_interrupted or task.uncancel():
                raise
            return None
        finally:
            self._taking = None
            if hurry is not None:
                hurry.cancel()

    def _interrupt(self) -> None:
        """Wake who waits for events, as `asyncio.timeout` does."""
        if self._taking is not None and not self._is_interrupted:
            self._is_interrupted = self._taking.cancel()

    async def _close(self, found: BallastError | None) -> None:
        self._is_over = True
        if not self._is_ended:
            self.error = found
        self._timer.cancel()
        await self._stream.aclose()


class ExecutionReader:
    """Begins executions one after another; `is_stopped` says that no further one may begin."""

    def __init__(self, ports: TurnPorts) -> None:
        self.is_stopped = False
        self._ports = ports
        self._newest: ExecutionEvents | None = None

    @property
    def error(self) -> BallastError | None:
        """What the newest one has ended with where it sent no last event, None where this process ended it."""
        return self._newest.error if self._newest is not None else None

    def start(self, request: ExecutionRequest) -> ExecutionEvents:
        """Begin to run a request; return its events."""
        stream = cast(AsyncGenerator[Batch], self._ports.chat_shell.execute(request))
        left_seconds = count_seconds_left(request.deadline, self._ports.clock.now())
        self._newest = ExecutionEvents(stream, left_seconds + DEADLINE_GRACE_SECONDS)
        if self.is_stopped:
            self._newest.end()
        return self._newest

    def stop(self) -> None:
        """End the execution that runs, and begin no further one."""
        self.is_stopped = True
        if self._newest is not None:
            self._newest.end()

    async def aclose(self) -> None:
        """End the execution that runs now."""
        if self._newest is not None:
            await self._newest.aclose()
