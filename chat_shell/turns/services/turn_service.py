"""Admit, run and time out turns for gRPC and HTTP alike, and turn every failure into an error for the caller."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Protocol

import structlog

from chat_shell.foundation.services.admission import Admission
from chat_shell.turns.ports import Emit
from chat_shell.turns.services.event_buffer import EventBuffer
from shared.clock import Clock
from shared.errors import BallastError, DeadlineExceeded, InternalError
from shared.models.error_reports import report_of
from shared.models.events import ModelCard, TurnFailed, Usage
from shared.models.execution import ExecutionRequest, count_seconds_left
from shared.models.served_tools import OfferedTools
from shared.models.single_tools import SingleToolCall, SingleToolResult

log = structlog.get_logger("chat_shell.turns")

TurnRunner = Callable[[ExecutionRequest, Emit], Awaitable[None]]
ModelLister = Callable[[], tuple[ModelCard, ...]]

DEADLINE_GRACE_SECONDS = 1.0
"""The runner itself reports a passed deadline, together with its usage; after this grace period it is cancelled."""


class ToolRunner(Protocol):
    """Runs single tools, and knows those of tool servers."""

    async def __call__(self, call: SingleToolCall) -> SingleToolResult:
        """Run one tool; nothing but cancellation is raised."""
        ...

    async def list_offered(self) -> OfferedTools:
        """Return the tools of tool servers, and the skills."""
        ...


class TurnService:
    """Runs turns for the gRPC and the HTTP server; there is one instance in a process."""

    def __init__(
        self,
        run: TurnRunner,
        run_tool: ToolRunner,
        models: ModelLister,
        clock: Clock,
        admission: Admission,
        *,
        deadline_grace_seconds: float = DEADLINE_GRACE_SECONDS,
    ) -> None:
        self._run = run
        self._run_tool = run_tool
        self._models = models
        self._clock = clock
        self._admission = admission
        self._deadline_grace_seconds = deadline_grace_seconds

    @property
    def accepting(self) -> bool:
        """Whether new turns are accepted."""
        return self._admission.accepting

    def models(self) -> tuple[ModelCard, ...]:
        """Return the models that are offered."""
        return self._models()

    async def list_offered_tools(self) -> OfferedTools:
        """Return the tools of tool servers, and the skills."""
        return await self._run_tool.list_offered()

    def bring_forward(self, request: ExecutionRequest, left_seconds: float | None) -> ExecutionRequest:
        """Return the request with the earlier one of its deadline and the call's, which ends in `left_seconds`."""
        if left_seconds is None or left_seconds >= count_seconds_left(request.deadline, self._clock.now()):
            return request
        return request.model_copy(update={"deadline": self._clock.now() + timedelta(seconds=left_seconds)})

    async def run_tool(self, call: SingleToolCall) -> SingleToolResult:
        """Run one tool that no model has asked for; it counts as a running turn.

        Raises:
            Draining: this process is shutting down.
            DeadlineExceeded: the deadline has passed already, or passed before there was a result.
        """
        with self._admission.admit():
            limit_seconds = count_seconds_left(call.turn.deadline, self._clock.now())
            if not limit_seconds:
                raise DeadlineExceeded("The deadline of the tool call has passed.")
            try:
                async with asyncio.timeout(limit_seconds + self._deadline_grace_seconds):
                    return await self._run_tool(call)
            except TimeoutError:
                raise DeadlineExceeded("The tool took longer than it may.") from None

    async def run(self, request: ExecutionRequest, buffer: EventBuffer) -> None:
        """Run a turn until all its events have been taken; cancelling this cancels the turn.

        An error before the first event ends the buffer; a later one ends the events with `TurnFailed`.

        Raises:
            Draining: this process is shutting down.
            DeadlineExceeded: the deadline has passed already.
        """
        with self._admission.admit():
            await self._run_into(buffer, request, self._count_left_seconds(request))
            await buffer.all_taken()

    @asynccontextmanager
    async def open(self, request: ExecutionRequest) -> AsyncGenerator[EventBuffer]:
        """Run a turn while the block runs; leaving the block cancels the turn.

        An error before the first event is raised by the buffer's `take`; a later one ends the events with `TurnFailed`.

        Raises:
            Draining: this process is shutting down.
            DeadlineExceeded: the deadline has passed already.
        """
        with self._admission.admit():
            left_seconds = self._count_left_seconds(request)
            buffer = EventBuffer()
            failure: BaseException | None = None
            try:
                async with asyncio.TaskGroup() as group:
                    running = group.create_task(self._run_into(buffer, request, left_seconds))
                    try:
                        yield buffer
                    finally:
                        running.cancel()
            except BaseExceptionGroup as broken:  # the task never raises, so the only exception is the block's own
                failure = broken.with_traceback(None).exceptions[0]
            try:
                if failure is not None:
                    raise failure
            finally:
                del failure  # its frames hold the request: a cycle of both would stay until Python looks for cycles

    def _count_left_seconds(self, request: ExecutionRequest) -> float:
        left_seconds = count_seconds_left(request.deadline, self._clock.now())
        if not left_seconds:
            raise DeadlineExceeded("The turn's deadline has passed.")
        return left_seconds

    async def _run_into(self, buffer: EventBuffer, request: ExecutionRequest, left_seconds: float) -> None:
        limit = asyncio.timeout(left_seconds + self._deadline_grace_seconds)
        try:
            async with limit:
                await self._run(request, buffer.put)
            buffer.end()
        except BallastError as error:
            _end_with_error(buffer, error)
        except Exception as error:  # a defect: the caller learns its class, the log has the rest
            if limit.expired():
                _end_with_error(buffer, DeadlineExceeded("The turn took longer than it may."))
                return
            log.exception("Turn broke", request_id=request.request_id, turn_id=request.turn_id)
            _end_with_error(buffer, InternalError(f"An internal error ended the turn ({type(error).__name__})."))


def _end_with_error(buffer: EventBuffer, error: BallastError) -> None:
    if buffer.is_complete:
        buffer.end()
    elif buffer.has_begun:
        buffer.end(final_events=(TurnFailed(error=report_of(error), usage=Usage()),))
    else:
        buffer.end(refusal=error)
